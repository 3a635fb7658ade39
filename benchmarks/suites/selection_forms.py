"""Argmax and hardmax as ONNX graphs that one could write by hand; the first of equal elements wins in all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt, prod

import numpy as np
from onnx import ModelProto

from benchmarks.nets import Net
from benchmarks.operations import back, kept, last, sizes
from dmlc.passes.layouts import groups

Shape = Sequence[int]
Form = Callable[[Shape, Shape], ModelProto]


def _start(shape: Shape) -> tuple[Net, str]:
    net = Net()
    return net, net.input("x", shape)


def merged(shape: Shape, axes: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape and the axes with each run of reduced axes made one."""
    out: list[int] = []
    reduced: list[int] = []
    at = 0
    for first, end in groups(axes):
        out += shape[at:first]
        reduced.append(len(out))
        out.append(prod(shape[first:end]))
        at = end
    return (*out, *shape[at:]), tuple(reduced)


def _flat_index(net: Net, x: str, shape: Shape, axes: Shape) -> tuple[str, int]:
    """Transposed and flattened, so that one axis at the end is searched, and that axis."""
    order = last(len(shape), axes)
    outer = sizes(shape, kept(len(shape), axes)) or (1,)  # OneHot takes no scalar
    flat = net.transpose(x, order)
    return _reshaped(net, flat, sizes(shape, order), (*outer, prod(sizes(shape, axes)))), len(outer)


def _reshaped(net: Net, x: str, have: Shape, want: Shape) -> str:
    return x if tuple(have) == tuple(want) else net.reshape(x, want)


def transpose_argmax(shape: Shape, axes: Shape) -> ModelProto:
    net, x = _start(shape)
    flat, axis = _flat_index(net, x, shape, axes)
    return net.model(net.op("ArgMax", flat, axis=axis, keepdims=0))


def transpose_topk(shape: Shape, axes: Shape) -> ModelProto:
    net, x = _start(shape)
    _, index = net.many("TopK", _flat_index(net, x, shape, axes)[0], net.ints([1]), results=2)
    return net.model(net.op("Squeeze", index, net.ints([-1])))


def merged_argmax(shape: Shape, axes: Shape) -> ModelProto:
    """Only where the axes are neighbours."""
    net, x = _start(shape)
    small, (axis,) = merged(shape, axes)
    return net.model(net.op("ArgMax", _reshaped(net, x, shape, small), axis=axis, keepdims=0))


def merged_topk(shape: Shape, axes: Shape) -> ModelProto:
    """Only where the axes are neighbours."""
    net, x = _start(shape)
    small, (axis,) = merged(shape, axes)
    _, index = net.many("TopK", _reshaped(net, x, shape, small), net.ints([1]), results=2, axis=axis)
    return net.model(net.op("Squeeze", index, net.ints([axis])))


def hierarchical(shape: Shape, axes: Shape) -> ModelProto:
    """The last group first, with its largest values; then the group before it among those. Two groups."""
    net, x = _start(shape)
    small, (outer, inner) = merged(shape, axes)
    x = net.reshape(x, small)
    index = net.op("ArgMax", x, axis=inner, keepdims=1)
    top = net.op("ArgMax", net.reduce("Max", x, [inner], keep=True), axis=outer, keepdims=1)
    chosen = net.op("GatherElements", index, top, axis=outer)
    return _joined(net, top, chosen, small, outer, inner)


def blocked(shape: Shape, axes: Shape) -> ModelProto:
    """ReduceMax over the inner part, ArgMax of what is left, then ArgMax in the slice that won.

    Two groups of axes, or one that is split near its square root.
    """
    net, x = _start(shape)
    small, reduced = merged(shape, axes)
    if len(reduced) == 1:
        axis = reduced[0]
        before, after = small[:axis], small[axis + 1 :]
        inner_size = _divisor(small[axis], 16 if prod(after) > 1 and small[axis] > 1024 else isqrt(small[axis]))
        small = (*before, small[axis] // inner_size, inner_size, *after)
        reduced = (axis, axis + 1)
    outer, inner = reduced
    x = net.reshape(x, small)
    top = net.op("ArgMax", net.reduce("Max", x, [inner], keep=True), axis=outer, keepdims=1)
    slice_shape = [1 if a == outer else n for a, n in enumerate(small)]
    slice_index = net.op("Expand", top, net.ints(slice_shape))
    found = net.op("ArgMax", net.op("GatherElements", x, slice_index, axis=outer), axis=inner, keepdims=1)
    return _joined(net, top, found, small, outer, inner)


def _joined(net: Net, outer_index: str, inner_index: str, small: Shape, outer: int, inner: int) -> ModelProto:
    scaled = net.op("Mul", outer_index, net.constant(small[inner], np.int64))
    index = net.op("Add", scaled, inner_index)
    return net.model(net.op("Squeeze", index, net.ints([outer, inner])))


def _divisor(size: int, wanted: int) -> int:
    """The divisor nearest to what is wanted, as a ratio."""
    found = [n for n in range(1, size + 1) if size % n == 0]
    return min(found, key=lambda n: abs(np.log(n / wanted)))


def argmax_forms(shape: Shape, axes: Shape) -> dict[str, ModelProto]:
    """The spellings of argmax over these axes, by name."""
    out = {
        "transpose+argmax": transpose_argmax(shape, axes),
        "transpose+topk": transpose_topk(shape, axes),
    }
    small, reduced = merged(shape, axes)
    if len(reduced) == 1:
        out["argmax"] = merged_argmax(shape, axes)
        out["topk"] = merged_topk(shape, axes)
    if len(reduced) == 2:
        out["hierarchical"] = hierarchical(shape, axes)
    if len(reduced) == 2 or small[reduced[0]] > 3:
        out["blocked"] = blocked(shape, axes)
    return out


#: Forms of ``argmax_forms`` in which one operator does the selection.
SINGLE = ("transpose+argmax", "transpose+topk", "argmax", "topk")


# --- hardmax


def native_hardmax(shape: Shape, axes: Shape) -> ModelProto:
    net, x = _start(shape)
    order = last(len(shape), axes)
    y = net.op("Hardmax", _flat_index(net, x, shape, axes)[0], axis=-1)
    return net.model(_restored(net, y, shape, order))


def argmax_onehot(shape: Shape, axes: Shape) -> ModelProto:
    net, x = _start(shape)
    order = last(len(shape), axes)
    index = net.op("ArgMax", _flat_index(net, x, shape, axes)[0], axis=-1, keepdims=0)
    depth = net.constant(prod(sizes(shape, axes)), np.int64)
    y = net.op("OneHot", index, depth, net.constant([0, 1], np.float32), axis=-1)
    return net.model(_restored(net, y, shape, order))


def _restored(net: Net, y: str, shape: Shape, order: Shape) -> str:
    return net.transpose(net.reshape(y, [shape[a] for a in order]), back(order))
