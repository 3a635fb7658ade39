"""Attributes that became inputs: axes, sizes, bounds, counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from dmlc.onnx_schema.moves.draft import Draft, Row, Step, Unmovable, count, int64, ints

#: Element types that Pad and Clip took as long as their bounds and values were attributes.
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
_F32_MOST = float(np.finfo(np.float32).max)


# --- lists of integers


def _list_up(attribute: str) -> Step:
    def up(draft: Draft) -> None:
        values = draft.pop(attribute)
        if values:
            draft.set_constant(1, int64(values), attribute)

    return up


def _list_down(attribute: str) -> Step:
    def down(draft: Draft) -> None:
        values = draft.constant(1, attribute)
        draft.drop_inputs(1)
        if values is not None:
            if not count(values):
                raise Unmovable(f"its {attribute} are an empty list")
            draft.set(attribute, ints(values))

    return down


def _reduce_down(draft: Draft) -> None:
    axes = draft.constant(1, "axes")
    if draft.pop("noop_with_empty_axes", 0) and (axes is None or not count(axes)):
        raise Unmovable("it reduces over no axis, which the attribute axes cannot say")
    draft.drop_inputs(1)
    if axes is not None and count(axes):
        draft.set("axes", ints(axes))


_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare",
)  # fmt: skip


# --- single rows


def _top_k_up(draft: Draft) -> None:
    draft.set_constant(1, int64([draft.pop("k")]), "k")


def _slice_up(draft: Draft) -> None:
    for index, name in enumerate(("starts", "ends", "axes"), 1):
        values = draft.pop(name)
        if values is not None:
            draft.set_constant(index, int64(values), name)


def _dtype(draft: Draft, what: str) -> np.dtype[Any]:
    number = draft.element_type(0)
    if number is None:
        raise Unmovable(f"{what} becomes an input of the type of the data, which is not known")
    if number not in _FLOATS:
        raise Unmovable(f"{what} of data that is not floating-point")
    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(number)
    return dtype


def _pad_up(draft: Draft) -> None:
    pads, value = draft.pop("pads"), draft.pop("value", 0.0)
    constant = None if value == 0 else np.asarray(value, _dtype(draft, "value"))
    draft.set_constant(1, int64(pads), "pads")
    if constant is not None:
        draft.set_constant(2, constant, "constant_value")


def _pad_axes_down(draft: Draft) -> None:
    """Pads of some axes become pads of all."""
    axes = draft.constant(3, "axes")
    if axes is None:
        return
    pads = draft.constant(1, "pads")
    assert pads is not None
    rank = draft.rank(0, "it pads the axes that an input names")
    begins, ends = [0] * rank, [0] * rank
    half = len(ints(axes))
    for place, axis in enumerate(ints(axes)):
        begins[axis], ends[axis] = ints(pads)[place], ints(pads)[half + place]
    draft.drop_inputs(3)
    draft.set_constant(1, int64(begins + ends), "pads")


def _clip_up(draft: Draft) -> None:
    """Bounds that are not given are the largest f32 before, and the largest of the type after."""
    low, high = draft.pop("min"), draft.pop("max")
    dtype = _dtype(draft, "min or max") if low is not None or high is not None or draft.element_type(0) else None
    if dtype is not None and dtype != np.float32:
        low, high = -_F32_MOST if low is None else low, _F32_MOST if high is None else high
    with np.errstate(over="ignore"):
        if low is not None:
            draft.set_constant(1, np.asarray(low, dtype), "min")
        if high is not None:
            draft.set_constant(2, np.asarray(high, dtype), "max")


def _dft_up(draft: Draft) -> None:
    draft.set_constant(2, np.asarray(draft.pop("axis", 1), np.int64), "axis")


def _dft_down(draft: Draft) -> None:
    axis = draft.constant(2, "axis")
    draft.drop_inputs(2)
    draft.set("axis", -2 if axis is None else ints(axis)[0])


def _split_count_up(draft: Draft) -> None:
    if not draft.input(1):
        draft.set("num_outputs", len(draft.node.output))


def _split_count_down(draft: Draft) -> None:
    parts = draft.pop("num_outputs")
    if parts is None:
        return
    sizes, axis = draft.sizes(0), draft.get("axis", 0)
    size = sizes[axis] if sizes is not None else None
    if not isinstance(size, int):
        raise Unmovable("its parts may differ in size, as the size of the axis is not known")
    if size % parts:
        each = -(-size // parts)
        lengths = [max(0, min(each, size - each * i)) for i in range(parts)]
        draft.set_constant(1, int64(lengths), "split")


_SMALLER = "either split or num_outputs is given; a last part may be smaller"
_BOUNDS = "min and max are inputs; where they are absent, they are the limits of the data's type"
_DFT = "axis is an input; where it is absent, it is -2 and was 1"
ROWS: tuple[Row, ...] = (
    *[Row(op, 18, "axes are an input", _list_up("axes"), _reduce_down) for op in _REDUCTIONS],
    Row("ReduceSum", 13, "axes are an input", _list_up("axes"), _reduce_down),
    Row("Squeeze", 13, "axes are an input", _list_up("axes"), _list_down("axes")),
    Row("Unsqueeze", 13, "axes are an input", _list_up("axes"), _list_down("axes")),
    Row("Split", 13, "split is an input", _list_up("split"), _list_down("split")),
    Row("Split", 18, _SMALLER, _split_count_up, _split_count_down),
    Row("TopK", 10, "k is an input", _top_k_up),
    Row("Slice", 10, "starts, ends and axes are inputs", _slice_up),
    Row("Pad", 11, "pads and value are inputs", _pad_up),
    Row("Pad", 18, "pads may name the axes they are of", down=_pad_axes_down),
    Row("Clip", 11, _BOUNDS, _clip_up),
    Row("DFT", 20, _DFT, _dft_up, _dft_down),
)
