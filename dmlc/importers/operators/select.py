"""Selections, and what is counted or placed by an index."""

from __future__ import annotations

from dmlc.importers.registry import Found, Made, Reading, reads
from dmlc.inference.query import within
from dmlc.ir import as_dtype
from dmlc.ir.dtype import i64
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.ops.index import ONE_HOT, OneHotAttributes
from dmlc.ops.scan import CUMSUM, ScanAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes, HardmaxAttributes, TopKAttributes


@reads("ArgMax", "ArgMin")
def arg(r: Reading) -> Found:
    axes = r.axes([r.integer("axis", 0)], r.x.type.rank)
    if axes is None:
        return None
    ties = "last" if r.integer("select_last_index", 0) else "first"
    record = ArgAttributes(axes=axes, ties=ties, dtype=i64, keepdims=bool(r.integer("keepdims", 1)))
    return Made(ARGMAX if r.op_type == "ArgMax" else ARGMIN, [r.x], record)


@reads("TopK")
def top_k(r: Reading) -> Found:
    """A ``k`` that is computed while running is carried, as is one whose results may come in any order."""
    axis = within(r.integer("axis", -1), r.x.type.rank)
    known = (r.integer("k", 0),) if r.opset < 10 else r.ints(1)
    if axis is None or known is None or len(known) != 1 or known[0] < 1:
        return None
    if known[0] > 1 and not r.integer("sorted", 1):
        return None
    order = "largest" if r.integer("largest", 1) else "smallest"
    return Made(TOP_K, [r.x], TopKAttributes(k=known[0], axis=axis, order=order, dtype=i64))


@reads("Hardmax")
def hardmax(r: Reading) -> Found:
    axes = softmax_axes(r)
    return None if axes is None else Made(HARDMAX, [r.x], HardmaxAttributes(axes=axes))


def softmax_axes(r: Reading) -> tuple[int, ...] | None:
    """Before opset 13 all axes from ``axis`` on together, by default from 1; then that axis, by default the last."""
    rank = r.x.type.rank
    axis = r.integer("axis", 1 if r.opset < 13 else -1)
    if r.opset >= 13:
        found = within(axis, rank)
        return None if found is None else (found,)
    axis = axis + rank if axis < 0 else axis
    return tuple(range(axis, rank)) if 0 <= axis < rank else None


@reads("OneHot")
def one_hot(r: Reading) -> Found:
    depth, values = r.ints(1), r.array(2)
    axis = within(r.integer("axis", -1), r.x.type.rank + 1)
    if depth is None or len(depth) != 1 or depth[0] < 1 or values is None or values.shape != (2,) or axis is None:
        return None
    try:
        dtype = as_dtype(values.dtype)
    except KeyError:
        return None
    off, on = values.tolist()
    return Made(ONE_HOT, [r.x], OneHotAttributes(depth=depth[0], axis=axis, on=on, off=off, dtype=dtype))


@reads("CumSum")
def cumsum(r: Reading) -> Found:
    axes = r.ints(1)
    axis = None if axes is None or len(axes) != 1 else within(axes[0], r.x.type.rank)
    if axis is None or r.x.type.dtype not in DTYPE_OF.values():
        return None
    record = ScanAttributes(axis=axis, exclusive=bool(r.integer("exclusive", 0)), reverse=bool(r.integer("reverse", 0)))
    return Made(CUMSUM, [r.x], record)
