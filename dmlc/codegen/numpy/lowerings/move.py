"""Operations that move elements and compute nothing."""

from __future__ import annotations

from dmlc.codegen.numpy.expr import Expr, attribute, method, sequence, subscript
from dmlc.codegen.numpy.registry import NumpyCall, axis_or_axes, lowers
from dmlc.ir import Dim
from dmlc.ops import move as ops
from dmlc.ops.literals import attribute_array
from dmlc.ops.slicing import as_written


@lowers(ops.RESHAPE, quiet=True)
def _reshape(call: NumpyCall) -> Expr:
    return method(call.operand(), "reshape", *(call.dims(call.attributes.shape) or (sequence(()),)))


@lowers(ops.TRANSPOSE, quiet=True)
def _transpose(call: NumpyCall) -> Expr:
    perm = call.attributes.perm
    if perm == (1, 0):
        return attribute(call.operand(), "T")
    return method(call.operand(), "transpose", *perm) if perm else call.operand()


@lowers(ops.SQUEEZE, quiet=True)
def _squeeze(call: NumpyCall) -> Expr:
    return call.np("squeeze", call.operand(), axis=axis_or_axes(call.attributes.axes))


@lowers(ops.UNSQUEEZE, quiet=True)
def _unsqueeze(call: NumpyCall) -> Expr:
    return call.np("expand_dims", call.operand(), axis_or_axes(call.attributes.axes))


@lowers(ops.EXPAND, quiet=True)
def _expand(call: NumpyCall) -> Expr:
    return call.np("broadcast_to", call.operand(), call.dims(call.node.result.shape))


@lowers(ops.CONCAT, quiet=True)
def _concat(call: NumpyCall) -> Expr:
    parts = [call.operand(i) for i in range(len(call.node.operands))]
    return call.np("concatenate", sequence(parts, brackets="[]"), axis=call.attributes.axis)


@lowers(ops.SPLIT, quiet=True)
def _split(call: NumpyCall) -> Expr:
    a: ops.SplitAttributes = call.attributes
    cuts: list[Dim] = []
    for size in a.sizes[:-1]:
        cuts.append(size + (cuts[-1] if cuts else 0))
    parts = call.np("split", call.operand(), sequence(call.dims(tuple(cuts)), brackets="[]"), axis=a.axis)
    return subscript(parts, "0") if len(a.sizes) == 1 else parts


@lowers(ops.SLICE, quiet=True)
def _slice(call: NumpyCall) -> Expr:
    a: ops.SliceAttributes = call.attributes
    rows = {axis: (start, end, step) for axis, start, end, step in a.rows()}
    if not rows:
        return call.operand()
    shape = call.node.operand("x").type.shape
    pieces = [_range(call, shape[axis], *rows[axis]) if axis in rows else ":" for axis in range(max(rows) + 1)]
    return subscript(call.operand(), ", ".join(pieces))


def _range(call: NumpyCall, size: Dim, first: Dim, last: Dim, step: int) -> str:
    """``start:end:step`` without what NumPy does anyway."""
    forward = step > 0
    start, end = as_written(call.scope.graph.dims, size, first, last, step)
    is_first = start in (None, 0) if forward else isinstance(start, int) and start >= ops.FAR
    is_last = end is None or (isinstance(end, int) and (end >= ops.FAR if forward else end <= -ops.FAR))
    places = [None if is_first or start is None else call.dim(start), None if is_last or end is None else call.dim(end)]
    # The formatter puts spaces around the colons beside anything but names and numbers.
    space = "" if all(place is None or place.is_name for place in places) else " "
    before, behind = [place.text if place else "" for place in places]
    text = f"{before + space if before else ''}:{space + behind if behind else ''}"
    return text if step == 1 else f"{text}{space}:{space}{step}"


@lowers(ops.PAD, quiet=True)
def _pad(call: NumpyCall) -> Expr:
    a: ops.PadAttributes = call.attributes
    rank = call.node.operand("x").type.rank
    ends = call.dims(a.pads)
    pads = sequence([sequence(pair) for pair in zip(ends[:rank], ends[rank:], strict=True)])
    value = call.number(attribute_array(a.value, call.operand_dtype, None)[()])
    return call.np("pad", call.operand(), pads, constant_values=value) if rank else call.operand()


@lowers(ops.TILE, quiet=True)
def _tile(call: NumpyCall) -> Expr:
    return call.np("tile", call.operand(), sequence(call.dims(call.attributes.repeats)))
