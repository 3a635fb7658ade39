"""Lowerings of operations that move, pick and multiply elements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from msgspec.structs import replace

from dmlc.codegen.dxdispatch.json_text import scalar_union, type_name
from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers, lowers_onnx, static
from dmlc.codegen.dxdispatch.view import BufferView, Sizes, broadcast_sizes
from dmlc.diagnostics.catalogue.dxdispatch import NO_OPERATOR
from dmlc.ir import Tensor, evaluate
from dmlc.ops import index, matmul, move
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


# --- Operations on indices, and tensors made from attributes alone


@lowers(index.GATHER)
def _gather(c: DispatchCall) -> BufferView:
    """The indices as one axis, whatever their shape: the result is regrouped."""
    x, i, axis = c.view(0), c.view(1), c.attributes.axis
    if c.attributes.batch_axes:
        return _gather_batch(c, x, i)
    line = c.build.regroup(i, (i.count,)).padded(x.rank)
    out = c.build.new(x.dtype, (*x.sizes[:axis], i.count, *x.sizes[axis + 1 :]))
    c.build.call("GATHER", InputTensor=x, IndicesTensor=line, OutputTensor=out, Axis=axis, IndexDimensions=1)
    return c.build.regroup(out, c.sizes)


def _gather_batch(c: DispatchCall, x: BufferView, i: BufferView) -> BufferView:
    """GATHER_ND1 of [batch, length, rest]: the axis moves next to the batch axes, which become one, and back."""
    axis, batch = c.attributes.axis, c.attributes.batch_axes
    order = [*range(batch), axis, *range(batch, axis), *range(axis + 1, x.rank)]
    moved = x.transposed(order)
    rows, count = math.prod(x.sizes[:batch]), math.prod(i.sizes[batch:])
    rest = moved.sizes[batch + 1 :]
    source = c.build.regroup(moved, (rows, x.sizes[axis], math.prod(rest)))
    out = c.build.new(x.dtype, (rows, count, math.prod(rest)))
    c.build.call(
        "GATHER_ND1",
        InputTensor=source,
        IndicesTensor=c.build.regroup(i, (rows, count, 1)),
        OutputTensor=out,
        InputDimensionCount=3,
        IndicesDimensionCount=3,
        BatchDimensionCount=1,
    )
    inner = i.rank - batch
    found = c.build.regroup(out, (*x.sizes[:batch], *i.sizes[batch:], *rest))
    between = range(batch + inner, inner + axis)
    back = [*range(batch), *between, *range(batch, batch + inner), *range(inner + axis, found.rank)]
    return found.transposed(back)


def _reached(c: DispatchCall, x: BufferView, i: BufferView) -> BufferView:
    """The part of ``x`` that the indices go along: DirectML wants equal sizes away from the axis."""
    axis = c.attributes.axis
    return part_of(c, x, [range(n if d == axis else i.sizes[d]) for d, n in enumerate(x.sizes)])


@lowers(index.GATHER_ELEMENTS)
def _gather_elements(c: DispatchCall) -> BufferView:
    x, i = c.view(0), c.view(1)
    out = c.build.new(x.dtype, i.sizes)
    c.build.call(
        "GATHER_ELEMENTS", InputTensor=_reached(c, x, i), IndicesTensor=i, OutputTensor=out, Axis=c.attributes.axis
    )
    return out


@lowers(index.SCATTER_ELEMENTS)
def _scatter_elements(c: DispatchCall) -> BufferView:
    """Into the part that the indices reach; the rest is joined to it, axis by axis."""
    whole, i, updates = c.view(0), c.view(1), c.view(2)
    axis = c.attributes.axis
    small = _reached(c, whole, i)
    out = c.build.new(whole.dtype, small.sizes)
    c.build.call("SCATTER", InputTensor=small, IndicesTensor=i, UpdatesTensor=updates, OutputTensor=out, Axis=axis)
    done = out
    for d in reversed(range(whole.rank)):
        if done.sizes[d] < whole.sizes[d]:
            places = [range(n) for n in (*small.sizes[:d], *whole.sizes[d:])]
            places[d] = range(small.sizes[d], whole.sizes[d])
            done = joined(c, [done, part_of(c, whole, places)], d)
    return done


@lowers(index.ONE_HOT)
def _one_hot(c: DispatchCall) -> BufferView:
    i, a = c.view(), c.attributes
    pair = [attribute_array(value, a.dtype, name) for name, value in (("off", a.off), ("on", a.on))]
    values = c.build.constant(Tensor(np.array(pair, a.dtype.numpy).reshape([1] * i.rank + [2])))
    at = c.build.regroup(i, (*i.sizes[: a.axis], 1, *i.sizes[a.axis :]))
    out = c.build.new(a.dtype, c.sizes)
    c.build.call("ONE_HOT", IndicesTensor=at, ValuesTensor=values, OutputTensor=out, Axis=a.axis)
    return out


@lowers(index.IOTA)
def _iota(c: DispatchCall) -> BufferView:
    return c.build.iota(c.attributes.dtype, evaluate(c.attributes.length, {}))


@lowers(index.FULL)
def _full(c: DispatchCall) -> BufferView:
    a = c.attributes
    c.build.check_size(a.dtype, c.sizes)
    return c.build.scalar(index.full_value(a), a.dtype).broadcast(c.sizes)


# --- The matrix product

#: GEMM's tensors have a batch and a channel axis before rows and columns.
_BATCHES = 2


@lowers(matmul.MATMUL)
def _matmul(c: DispatchCall) -> BufferView:
    a, b = c.view(0), c.view(1)
    if a.rank == 1:
        a = a.padded(2)
    if b.rank == 1:
        b = replace(b, sizes=(*b.sizes, 1), strides=(*b.strides, 1))
    product = _multiplied(c, a, b) if a.dtype.is_float else _sum_of_products(c, a, b)
    return c.build.regroup(product, c.sizes)


@lowers_onnx("Gemm")
def _gemm(c: DispatchCall) -> BufferView:
    """ONNX's alpha * A @ B + beta * C, of which a matrix may be transposed and C is broadcast."""
    given = dict(c.attributes.attributes)
    a, b = (
        c.view(i).transposed((1, 0)) if given.get(name) else c.view(i) for i, name in enumerate(("transA", "transB"))
    )
    alpha, beta = float(given.get("alpha", 1.0)), float(given.get("beta", 1.0))
    has_c = len(c.node.operands) > 2 and c.node.operands[2] is not None and beta != 0
    if a.dtype.is_float:
        added = {"CTensor": c.view(2).broadcast((1, 1, *c.sizes))} if has_c else {}
        product = _multiplied(c, a, b, added, alpha, beta if has_c else 0.0)
        return c.build.regroup(product, c.sizes)
    if alpha != 1 or (has_c and beta != 1):
        message = f"DirectML multiplies integers by integers, and alpha is {alpha:g}, beta {beta:g}"
        raise c.build.refuse(NO_OPERATOR, message, "scale the operands with mul")
    product = c.build.regroup(_sum_of_products(c, a, b), c.sizes)
    return c.build.binary("ELEMENT_WISE_ADD", product, c.view(2)) if has_c else product


def _multiplied(
    c: DispatchCall,
    a: BufferView,
    b: BufferView,
    added: Mapping[str, BufferView] | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> BufferView:
    """Batches are broadcast by strides; more than two batch axes are merged."""
    batch = broadcast_sizes([replace(v, sizes=v.sizes[:-2], strides=v.strides[:-2]) for v in (a, b)])
    if len(batch) > _BATCHES:
        merged: Sizes = (prod(batch[:-1]), batch[-1])
        a, b = (c.build.regroup(v.broadcast((*batch, *v.sizes[-2:])), (*merged, *v.sizes[-2:])) for v in (a, b))
    else:
        merged = (1,) * (_BATCHES - len(batch)) + batch
        a, b = (v.broadcast((*merged, *v.sizes[-2:])) for v in (a, b))
    out = c.build.new(a.dtype, (*merged, a.sizes[-2], b.sizes[-1]))
    none = "DML_MATRIX_TRANSFORM_NONE"
    tensors = {"ATensor": a, "BTensor": b, **(added or {}), "OutputTensor": out}
    c.build.call("GEMM", **tensors, TransA=none, TransB=none, Alpha=alpha, Beta=beta)
    return out


def _sum_of_products(c: DispatchCall, a: BufferView, b: BufferView) -> BufferView:
    """Integers: GEMM takes floats only. Every product is written out, which wants memory."""
    build = c.build
    a, b = build.widened(a), build.widened(b)
    rows = replace(a, sizes=(*a.sizes, 1), strides=(*a.strides, 1))
    columns = replace(b, sizes=(*b.sizes[:-2], 1, *b.sizes[-2:]), strides=(*b.strides[:-2], 1, *b.strides[-2:]))
    products = build.binary("ELEMENT_WISE_MULTIPLY", rows, columns)
    total = build.reduce("SUM", products, (products.rank - 2,))
    return build.cast(total, c.dtype)
