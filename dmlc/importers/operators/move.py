"""Readers of operators that move or pick elements, and make tensors from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from dmlc.importers.registry import Data, Found, Made, Reading, Same, reads
from dmlc.importers.weights import stored
from dmlc.inference.query import ends_at_front, remaining, vanishes_with, within
from dmlc.ir import FOREIGN, Dim, Tensor, product, symbol
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.ops.constant import constant_of
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, GatherAttributes, IndexAttributes
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import (
    CONCAT,
    EXPAND,
    PAD,
    RESHAPE,
    SLICE,
    SPLIT,
    SQUEEZE,
    TRANSPOSE,
    UNSQUEEZE,
    AxesAttributes,
    ConcatAttributes,
    ExpandAttributes,
    NewAxesAttributes,
    PadAttributes,
    ReshapeAttributes,
    SliceAttributes,
    SplitAttributes,
    TransposeAttributes,
)


@reads("MatMul")
def matmul(r: Reading) -> Found:
    first, second = r.inputs
    return Made(MATMUL, [first, second]) if first is not None and second is not None else None


@reads("Transpose")
def transpose(r: Reading) -> Found:
    perm = r.integers("perm") or tuple(reversed(range(r.x.type.rank)))
    if sorted(perm) != list(range(r.x.type.rank)):
        return None
    return Made(TRANSPOSE, [r.x], TransposeAttributes(perm=perm))


@reads("Reshape")
def reshape(r: Reading) -> Found:
    """0 copies a size, -1 is what is left. A shape of which a size is not known is carried."""
    sizes = r.integers("shape") if r.opset < 5 else r.sizes(1)
    if sizes is None:
        return None
    copies = not r.integer("allowzero", 0)
    shape = _resolved(r, list(sizes), copies=copies)
    if shape is None:
        return None
    is_computed = r.opset >= 5 and r.ints(1) is None
    constant = _as_constant(r, sizes) if is_computed and copies and -1 in sizes else None
    return Made(RESHAPE, [r.x], ReshapeAttributes(shape=shape), None if constant is None else [r.x, constant])


def _as_constant(r: Reading, sizes: Sequence[Dim]) -> Tensor | None:
    """The shape operand with the node's -1, and 0 for sizes of the reshaped value; None where a size must be computed.

    The node fails if another size is 0.
    """
    have = r.x.shape
    places = [
        size if isinstance(size, int) else 0 if have[i : i + 1] == (size,) else size for i, size in enumerate(sizes)
    ]
    return Tensor(np.array(places, np.int64)) if all(isinstance(size, int) for size in places) else None


def _resolved(r: Reading, sizes: list[Dim], *, copies: bool) -> tuple[Dim, ...] | None:
    have = r.x.shape
    for i, size in enumerate(sizes):
        if size == 0 and copies:
            if i >= len(have):
                return None
            sizes[i] = have[i]
    if copies:
        _learn_not_empty(r, sizes[len(have) :])
    if copies and not all(isinstance(size, int) or _safe_to_copy(r, sizes, i) for i, size in enumerate(sizes)):
        return None
    places = [i for i, size in enumerate(sizes) if size == -1]
    if len(places) > 1:
        return None
    if places:
        others = [size for size in sizes if size != -1]
        if product(others) == 0:
            return None
        _learn_not_empty(r, others)
        sizes[places[0]] = remaining(have, others)
    return tuple(sizes)


def _learn_not_empty(r: Reading, sizes: Sequence[Dim]) -> None:
    """Take 1 as the least size of dims that make one of the sizes 0, with which a run fails: beside a -1, or behind the
    last axis, where a 0 has nothing to copy (onnxruntime, core/providers/cpu/tensor/reshape_helper.h)."""
    dims = r.graph.dims
    for size in sizes if r.outputs[0] in r.scope.live else ():
        terms = () if isinstance(size, int) else size.terms
        for name in terms[0][0] if len(terms) == 1 else ():
            if not isinstance(name, str):
                continue
            low, high = dims.interval(symbol(name))
            if low < 1 and name not in dims.provided:
                dims.bounds[name] = (1, high)


def _safe_to_copy(r: Reading, sizes: Sequence[Dim], place: int) -> bool:
    """True where a computed size of 0, which a reshape reads as a copy, gives that size all the same, or fails: there
    is nothing to copy, or the result would have elements, and the reshaped value then has none."""
    size, have = sizes[place], r.x.shape
    assert not isinstance(size, int)
    lowest = r.graph.dims.interval
    if lowest(size)[0] > 0 or place >= len(have) or vanishes_with(have[place], size):
        return True
    others = [d for i, d in enumerate(sizes) if i != place]
    return all(lowest(d)[0] > 0 for d in others) and product(sizes) == product(have)


@reads("Flatten")
def flatten(r: Reading) -> Found:
    axis = r.integer("axis", 1)
    axis = axis + r.x.type.rank if axis < 0 else axis
    if not 0 <= axis <= r.x.type.rank:
        return None
    shape = (product(r.x.shape[:axis]), product(r.x.shape[axis:]))
    return Made(RESHAPE, [r.x], ReshapeAttributes(shape=shape))


def _listed(r: Reading) -> tuple[int, ...] | None:
    """Axes: an attribute before opset 13, then an operand. Empty where there are none."""
    if r.opset < 13:
        return r.integers("axes") or ()
    return () if r.input(1) is None else r.ints(1)


@reads("Squeeze")
def squeeze(r: Reading) -> Found:
    axes = _listed(r)
    if axes is None:
        return None
    if not axes:
        if not r.x.type.is_static:
            return None  # only a run shows which sizes are 1
        axes = tuple([i for i, size in enumerate(r.x.shape) if size == 1])
    found = r.axes(axes, r.x.type.rank)
    return None if found is None else Made(SQUEEZE, [r.x], AxesAttributes(axes=found))


@reads("Unsqueeze")
def unsqueeze(r: Reading) -> Found:
    axes = _listed(r)
    if not axes:
        return None
    found = r.axes(axes, r.x.type.rank + len(axes))
    if found is None or len(found) != len(axes):
        return None
    return Made(UNSQUEEZE, [r.x], NewAxesAttributes(axes=found))


@reads("Expand")
def expand(r: Reading) -> Found:
    sizes = r.sizes(1)
    return None if sizes is None else Made(EXPAND, [r.x], ExpandAttributes(shape=sizes))


@reads("Concat")
def concat(r: Reading) -> Found:
    operands = [v for v in r.inputs if v is not None]
    axis = within(r.integer("axis", 1), r.x.type.rank)
    if axis is None or len(operands) != len(r.inputs):
        return None
    return Made(CONCAT, operands, ConcatAttributes(axis=axis))


@reads("Split")
def split(r: Reading) -> Found:
    axis = within(r.integer("axis", 0), r.x.type.rank)
    if axis is None:
        return None
    count, size = len(r.outputs), r.x.shape[axis]
    sizes: Sequence[Dim] | None
    if r.opset < 13:
        sizes = r.integers("split")
    else:
        sizes = r.sizes(1)
        if sizes is None and r.input(1) is not None:
            return None
    if sizes is None:
        if not isinstance(size, int) or r.integer("num_outputs", count) != count:
            return None
        each = -(-size // count)
        sizes = (*[each] * (count - 1), size - each * (count - 1))
        if sizes[-1] < 0 or (r.opset < 18 and sizes[-1] != each):
            return None
    if len(sizes) != count:
        return None
    return Made(SPLIT, [r.x], SplitAttributes(axis=axis, sizes=tuple(sizes)))


@reads("Slice")
def slice_(r: Reading) -> Found:
    """A computed start or end is read if it is known as a size that is proved to lie within the axis."""
    rank = r.x.type.rank
    starts: tuple[Dim, ...] | None
    ends: tuple[Dim, ...] | None
    if r.opset < 10:
        starts, ends, axes, steps = r.integers("starts"), r.integers("ends"), r.integers("axes"), None
    else:
        starts, ends = r.sizes(1), r.sizes(2)
        axes = r.ints(3) if r.input(3) is not None else None
        steps = r.ints(4) if r.input(4) is not None else None
        if (r.input(3) is not None and axes is None) or (r.input(4) is not None and steps is None):
            return None
    if starts is None or ends is None:
        return None
    axes = tuple(range(len(starts))) if axes is None else axes
    if any(not -rank <= a < rank for a in axes) or len({a % rank for a in axes}) != len(axes):
        return None
    steps = (1,) * len(starts) if steps is None else steps
    if len({len(starts), len(ends), len(axes), len(steps)}) != 1 or any(map(ends_at_front, ends, steps)):
        return None
    begins = [_begin(r.x.shape[a], start, step) for a, start, step in zip(axes, starts, steps, strict=True)]
    known = tuple([b for b in begins if b is not None])
    if len(known) < len(begins):
        return None
    record = SliceAttributes(starts=known, ends=ends, axes=tuple([a % rank for a in axes]), steps=steps)
    return Made(SLICE, [r.x], record)


def _begin(size: Dim, start: Dim, step: int) -> Dim | None:
    """The start as NumPy takes it; None where an open size decides.

    Backwards, ONNX clamps a start below the first element to it (onnx, docs/Operators.md, Slice); NumPy takes nothing.
    """
    if step > 0:
        return start
    if not isinstance(start, int):
        return None
    if start >= -1:
        return start
    return max(start, -size) if isinstance(size, int) else None


@reads("Resize")
def resize(r: Reading) -> Found:
    """Only one that keeps all sizes, where each position is one of the operand's."""
    if r.opset < 11 or r.word("coordinate_transformation_mode", "half_pixel") not in _SAME_POSITIONS:
        return None
    scales = r.array(2) if r.input(2) is not None else None
    if scales is not None and scales.size:
        return Same([r.x]) if (scales == 1).all() else None
    sizes, axes = r.sizes(3), r.integers("axes") or tuple(range(r.x.type.rank))
    if sizes is None or len(sizes) != len(axes):
        return None
    return Same([r.x]) if all(r.x.shape[a] == size for a, size in zip(axes, sizes, strict=True)) else None


#: Coordinate transformations that map a position to itself where no size changes.
_SAME_POSITIONS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")


@reads("Pad")
def pad(r: Reading) -> Found:
    """Other modes than the constant one are carried, but for pads of 0, as audio codecs have them.

    A computed count is read if it is known as a size that is proved not to be negative.
    """
    pads: tuple[Dim, ...] | None
    if r.word("mode", "constant") != "constant":
        pads = r.integers("pads") if r.opset < 11 else r.ints(1)
        return Same([r.x]) if pads is not None and not any(pads) else None
    rank = r.x.type.rank
    if r.opset < 11:
        pads, value = r.integers("pads"), r.real("value", 0.0)
        if not r.x.type.dtype.is_float:
            return None
    else:
        pads, number = r.sizes(1), 0.0
        if r.input(2) is not None:
            array = r.array(2)
            if array is None or array.size != 1:
                return None
            number = array.item()
        value = number if r.x.type.dtype.is_float or r.input(2) is not None else 0
        if r.input(3) is not None:
            axes = r.ints(3)
            pads = None if axes is None or pads is None else _all_pads(pads, axes, rank)
    if pads is None or len(pads) != 2 * rank or any(isinstance(p, int) and p < 0 for p in pads):
        return None
    return Made(PAD, [r.x], PadAttributes(pads=pads, value=value))


def _all_pads(pads: tuple[Dim, ...], axes: tuple[int, ...], rank: int) -> tuple[Dim, ...] | None:
    if len(pads) != 2 * len(axes) or any(not -rank <= a < rank for a in axes):
        return None
    out: list[Dim] = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        out[axis % rank], out[axis % rank + rank] = pads[i], pads[i + len(axes)]
    return tuple(out)


# --- Gathering and scattering


@reads("Gather", "GatherElements", "ScatterElements", "Scatter")
def indexed(r: Reading) -> Found:
    """A scatter that adds or multiplies is carried, and so is a gather of an element that does not exist."""
    operands = [v for v in r.inputs if v is not None]
    axis = within(r.integer("axis", 0), r.x.type.rank)
    if axis is None or len(operands) != len(r.inputs) or r.word("reduction", "none") != "none":
        return None
    size = r.x.type.shape[axis]
    if r.op_type == "Gather" and isinstance(size, int) and not all(-size <= i < size for i in r.ints(1) or ()):
        return None
    if r.op_type == "Gather":
        return Made(GATHER, operands, GatherAttributes(axis=axis, batch_axes=0))
    op = GATHER_ELEMENTS if r.op_type == "GatherElements" else SCATTER_ELEMENTS
    return Made(op, operands, IndexAttributes(axis=axis))


@reads("GatherND")
def gather_nd(r: Reading) -> Found:
    """Indices of one coordinate, made by an Unsqueeze of their last axis, are those of a gather. Others are carried."""
    places, batch = r.input(1), r.integer("batch_dims", 0)
    node = None if places is None else places.producer
    if places is None or node is None or node.op is not UNSQUEEZE or r.x.type.dtype is FOREIGN:
        return None
    indices = node.operand("x")
    if node.attributes_as(NewAxesAttributes).axes != (indices.type.rank,) or not 0 <= batch < r.x.type.rank:
        return None
    if r.x.shape[:batch] != indices.shape[:batch]:
        return None
    size = r.x.shape[batch]
    known = constant_of(indices)
    if known is not None and not (
        isinstance(size, int) and bool(((known.array >= -size) & (known.array < size)).all())
    ):
        return None
    return Made(GATHER, [r.x, indices], GatherAttributes(axis=batch, batch_axes=batch))


# --- Constants, and what exporters compute shapes with

#: Filled tensors up to this many elements are made while reading.
_MOST_FILLED = 4096


@reads("Constant")
def constant(r: Reading) -> Found:
    (attribute, *more) = r.proto.attribute
    if more:
        return None
    name = attribute.name
    if name == "value":
        if attribute.t.data_type not in DTYPE_OF:
            return None
        tensor = stored(attribute.t, r.scope.folder)
        return Same([r.scope.constant(tensor, r.outputs[0])])
    if name in ("value_int", "value_ints"):
        return Data(np.asarray(attribute.i if name == "value_int" else list(attribute.ints), np.int64))
    if name in ("value_float", "value_floats"):
        return Data(np.asarray(attribute.f if name == "value_float" else list(attribute.floats), np.float32))
    return None


@reads("ConstantOfShape")
def constant_of_shape(r: Reading) -> Found:
    sizes = r.ints(0)
    if sizes is None or prod(sizes) > _MOST_FILLED or any(s < 0 for s in sizes):
        return None
    given = r.attribute("value")
    if given is not None and given.t.data_type not in DTYPE_OF:
        return None
    value = r.tensor("value")
    return Data(np.full(sizes, np.float32(0) if value is None else value.reshape(-1)[0]))


@reads("Range")
def range_(r: Reading) -> Found:
    start, limit, delta = (r.array(i) for i in range(3))
    if start is None or limit is None or delta is None or start.dtype.kind not in "iu" or not delta.any():
        return None
    numbers = range(int(start.reshape(())), int(limit.reshape(())), int(delta.reshape(())))
    return None if numbers[_MOST_FILLED:] else Data(np.asarray(numbers, start.dtype))
