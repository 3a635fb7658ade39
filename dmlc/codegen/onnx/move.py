"""Operations that move elements."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.codegen.onnx.emitter import FAR, Emitter
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Dim, Node
from dmlc.ops.literals import attribute_array
from dmlc.ops.move import (
    CONCAT,
    EXPAND,
    PAD,
    RESHAPE,
    SLICE,
    SPLIT,
    SQUEEZE,
    TILE,
    TRANSPOSE,
    UNSQUEEZE,
    AxesAttributes,
    ConcatAttributes,
    ExpandAttributes,
    PadAttributes,
    SliceAttributes,
    SplitAttributes,
    TileAttributes,
    TransposeAttributes,
)
from dmlc.ops.slicing import as_written


@lowers(RESHAPE)
def reshape(emitter: Emitter, node: Node) -> str:
    x = node.operand("x")
    return emitter.reshape(emitter.of(x), x.shape, node.result.shape, x.type.dtype)


@lowers(TRANSPOSE)
def transpose(emitter: Emitter, node: Node) -> str:
    return emitter.op("Transpose", [emitter.operand(node, 0)], perm=node.attributes_as(TransposeAttributes).perm)


@lowers(SQUEEZE, UNSQUEEZE)
def squeeze(emitter: Emitter, node: Node) -> str:
    axes = node.attributes_as(AxesAttributes).axes
    op_type = "Squeeze" if node.op is SQUEEZE else "Unsqueeze"
    x = node.operand("x")
    return emitter.squeeze(op_type, emitter.of(x), axes, x.shape, node.result.shape) if axes else emitter.of(x)


@lowers(EXPAND)
def expand(emitter: Emitter, node: Node) -> str:
    """A size that is the operand's own is 1 in the shape, which keeps it."""
    x, shape = node.operand("x"), node.attributes_as(ExpandAttributes).shape
    if x.shape == node.result.shape:
        return emitter.of(x)
    offset = x.type.rank - len(shape)
    own = [x.shape[i + offset] if i + offset >= 0 else None for i in range(len(shape))]
    spelled = [1 if d == mine and not isinstance(d, int) else d for d, mine in zip(shape, own, strict=True)]
    return emitter.op("Expand", [emitter.of(x), emitter.sizes(spelled)])


@lowers(CONCAT)
def concat(emitter: Emitter, node: Node) -> str:
    axis = node.attributes_as(ConcatAttributes).axis
    return emitter.op("Concat", [emitter.of(v) for v in node.operands], axis=axis)


@lowers(SPLIT)
def split(emitter: Emitter, node: Node) -> Sequence[str]:
    """The sizes are an attribute below opset 13; symbolic ones become slices there."""
    a = node.attributes_as(SplitAttributes)
    name, count = emitter.operand(node, 0), len(a.sizes)
    if emitter.opset >= 13:
        return emitter.ops("Split", [name, emitter.sizes(a.sizes)], count, axis=a.axis)
    static = tuple(s for s in a.sizes if isinstance(s, int))
    if len(static) == count:
        return emitter.ops("Split", [name], count, axis=a.axis, split=static)
    size = node.operand("x").shape[a.axis]
    parts, start = [], _ZERO
    for length in a.sizes:
        parts.append(slice_of(emitter, name, size, a.axis, start, start + length))
        start = start + length
    return parts


_ZERO: Dim = 0


def slice_of(emitter: Emitter, name: str, size: Dim, axis: int, start: Dim, end: Dim) -> str:
    """A slice along one axis of that size."""
    bounds = _bounds(emitter, size, start, end, 1)
    return emitter.op("Slice", [name, emitter.sizes(bounds[:1]), emitter.sizes(bounds[1:]), emitter.ints([axis])])


def _bounds(emitter: Emitter, size: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim, Dim]:
    """The start and the end of a slice as ONNX reads them, which clamps them itself."""
    first, last = as_written(emitter.graph.dims, size, start, end, step)
    return _bound(0 if first is None else first, size), _bound(FAR if last is None else last, size)


def _bound(place: Dim, size: Dim) -> Dim:
    """A symbolic place that is a known distance from the end counts from there, so that nothing is computed."""
    if isinstance(place, int):
        return place
    distance = place - size
    if isinstance(distance, int) and distance <= 0:
        return distance or FAR
    return place


@lowers(SLICE)
def slice_(emitter: Emitter, node: Node) -> str:
    x = node.operand("x")
    rows = node.attributes_as(SliceAttributes).rows()
    if not rows:
        return emitter.of(x)
    bounds = [_bounds(emitter, x.shape[axis], start, end, step) for axis, start, end, step in rows]
    starts, ends = [emitter.sizes([pair[i] for pair in bounds]) for i in (0, 1)]
    steps = [step for *_, step in rows]
    last = "" if all(s == 1 for s in steps) else emitter.ints(steps)
    return emitter.op("Slice", [emitter.of(x), starts, ends, emitter.ints([row[0] for row in rows]), last])


@lowers(PAD)
def pad(emitter: Emitter, node: Node) -> str:
    a, dtype = node.attributes_as(PadAttributes), node.result.type.dtype
    if not any(a.pads):
        return emitter.operand(node, 0)
    value = emitter.array(attribute_array(a.value, dtype, "value"), dtype)
    return emitter.op("Pad", [emitter.operand(node, 0), emitter.sizes(a.pads), value])


@lowers(TILE)
def tile(emitter: Emitter, node: Node) -> str:
    a = node.attributes_as(TileAttributes)
    return emitter.op("Tile", [emitter.operand(node, 0), emitter.sizes(a.repeats)])
