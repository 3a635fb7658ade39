"""Operations on indices, and tensors made from attributes alone."""

from __future__ import annotations

import math

import numpy as np

from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers
from dmlc.codegen.dxdispatch.lowerings.move import joined, part_of
from dmlc.codegen.dxdispatch.view import BufferView
from dmlc.ir import Tensor, evaluate
from dmlc.ops import index
from dmlc.ops.literals import attribute_array


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
