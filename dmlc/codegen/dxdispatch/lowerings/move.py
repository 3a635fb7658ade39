"""Moving elements: mostly other strides over the same buffer."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dmlc.codegen.dxdispatch.json_text import scalar_union, type_name
from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers, static
from dmlc.codegen.dxdispatch.view import BufferView
from dmlc.ir import evaluate
from dmlc.ops import move
from dmlc.ops.literals import attribute_array


@lowers(move.RESHAPE, move.SQUEEZE, move.UNSQUEEZE)
def _reshape(c: DispatchCall) -> BufferView:
    return c.build.regroup(c.view(), c.sizes)


@lowers(move.TRANSPOSE)
def _transpose(c: DispatchCall) -> BufferView:
    return c.view().transposed(c.attributes.perm)


@lowers(move.EXPAND)
def _expand(c: DispatchCall) -> BufferView:
    return c.view().broadcast(c.sizes)


@lowers(move.CONCAT)
def _concat(c: DispatchCall) -> BufferView:
    """Empty operands are left out."""
    axis = c.attributes.axis
    sizes = [static(operand) for operand in c.node.operands if operand is not None]
    parts = [c.view(i) for i, own in enumerate(sizes) if own[axis]]
    return joined(c, parts, axis) if parts else c.build.new(c.dtype, c.sizes)


def joined(c: DispatchCall, parts: list[BufferView], axis: int) -> BufferView:
    """Tensors one after another along an axis."""
    if len(parts) == 1:
        return parts[0]
    sizes = parts[0].sizes
    out = c.build.new(parts[0].dtype, (*sizes[:axis], sum(part.sizes[axis] for part in parts), *sizes[axis + 1 :]))
    c.build.call("JOIN", InputCount=len(parts), InputTensors=parts, OutputTensor=out, Axis=axis)
    return out


@lowers(move.SPLIT)
def _split(c: DispatchCall) -> list[BufferView]:
    x, axis = c.view(), c.attributes.axis
    if len(c.node.results) == 1:
        return [x]
    parts = [c.build.new(x.dtype, static(result)) for result in c.node.results]
    c.build.call("SPLIT", InputTensor=x, OutputCount=len(parts), OutputTensors=parts, Axis=axis)
    return parts


@lowers(move.SLICE)
def _slice(c: DispatchCall) -> BufferView:
    x = c.view()
    ranges = [range(n) for n in x.sizes]
    for axis, start, end, step in c.attributes.rows():
        place = slice(evaluate(start, {}), evaluate(end, {}), step)
        ranges[axis] = range(*place.indices(x.sizes[axis]))
    c.build.check_size(x.dtype, tuple(map(len, ranges)))
    return part_of(c, x, ranges)


def part_of(c: DispatchCall, x: BufferView, ranges: list[range]) -> BufferView:
    """The elements at some places of each axis: by strides alone where every axis starts at its first."""
    sizes = tuple(map(len, ranges))
    # one element has no direction: its step is 1
    steps = [r.step if n > 1 else 1 for r, n in zip(ranges, sizes, strict=True)]
    if all(r[0] == 0 for r in ranges) and min(steps, default=1) > 0:
        return replace(x, sizes=sizes, strides=tuple(s * k for s, k in zip(x.strides, steps, strict=True)))
    out = c.build.new(x.dtype, sizes)
    c.build.call(
        "SLICE1",
        InputTensor=x,
        OutputTensor=out,
        DimensionCount=x.rank,
        InputWindowOffsets=[min(r[0], r[-1]) for r in ranges],
        InputWindowSizes=[abs(r[-1] - r[0]) + 1 for r in ranges],
        InputWindowStrides=steps,
    )
    return out


@lowers(move.PAD)
def _pad(c: DispatchCall) -> BufferView:
    x, a = c.view(), c.attributes
    pads = [evaluate(count, {}) for count in a.pads]
    if not any(pads):
        return x
    out = c.build.new(x.dtype, c.sizes)
    value: Any = scalar_union(attribute_array(a.value, x.dtype, "value"), x.dtype)
    c.build.call(
        "PADDING1",
        InputTensor=x,
        OutputTensor=out,
        PaddingMode="DML_PADDING_MODE_CONSTANT",
        PaddingValueDataType=type_name(x.dtype),
        PaddingValue=value,
        DimensionCount=x.rank,
        StartPadding=pads[: x.rank],
        EndPadding=pads[x.rank :],
    )
    return out


@lowers(move.TILE)
def _tile(c: DispatchCall) -> BufferView:
    x = c.view()
    repeats = [evaluate(count, {}) for count in c.attributes.repeats]
    if all(count == 1 for count in repeats):
        return x
    out = c.build.new(x.dtype, c.sizes)
    c.build.call("TILE", InputTensor=x, OutputTensor=out, RepeatsCount=len(repeats), Repeats=repeats)
    return out
