"""Helpers of the plans for arg reductions: the compute dtype, the steps of one reduction, the index arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dmlc.ir import Dim, DType, Graph, Node, Operation
from dmlc.ir.dtype import i64
from dmlc.ops.select import ArgAttributes
from dmlc.passes.choose_lowering.plan import Sketch, Step, Term
from dmlc.passes.choose_lowering.view import CACHED, View, after, spread, view_of
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.needed_kernels import VALUE_FLOAT_FIRST

#: More numbers than this are counted at run time rather than written into the model.
_MOST_WRITTEN = 4096
#: So many places that each element lies in a line of memory of its own.
_FEW = 16


def arg_of(node: Node) -> ArgAttributes:
    return node.attributes_as(ArgAttributes)


def arg_view(node: Node) -> View:
    """Return the view of the operand that an argmax or argmin reduces."""
    return view_of(node.graph, node, arg_of(node).axes)


def home_of(capabilities: Capabilities, dtype: DType, *ops: Operation) -> DType | None:
    """The first type that holds the values in the same order and for which all operations have a kernel."""
    for candidate in (dtype, *VALUE_FLOAT_FIRST.get(dtype, ())):
        if all(capabilities.has_kernel(op, candidate) for op in ops):
            return candidate
    return None


def may_be_empty(capabilities: Capabilities, graph: Graph, sizes: Sequence[Dim]) -> str | None:
    """The reason against reshapes below opset 14, which cannot say a size of 0."""
    if capabilities.opset >= 14 or all(graph.dims.interval(d)[0] > 0 for d in sizes):
        return None
    return "reshapes of sizes that may be 0 need opset 14"


def frame_steps(node: Node, view: View) -> list[Step]:
    """The reshapes to the segments and back from their index."""
    dtype, merged = node.operand("x").type.dtype, node.operand("x").shape != view.sizes
    return [Step("Reshape", dtype)] * (merged + (merged or not arg_of(node).keepdims))


def cast_steps(dtype: DType, home: DType, count: int) -> list[Step]:
    return [] if home is dtype else [Step("Cast", dtype, count, count, count)]


def small_steps(count: int, size: int) -> list[Step]:
    """Nodes of index arithmetic over that many elements."""
    return [Step("Add", i64, size, size, size)] * count


def search_steps(dtype: DType, view: View, shape: Sequence[int]) -> list[Step]:
    """A search as it stands over the segments of a view: brought together by a transpose where others lie between."""
    segments = [i for i in view.groups if shape[i] > 1] or list(view.groups[:1])
    total = math.prod(shape)
    length = math.prod([shape[i] for i in segments])
    if any(shape[i] > 1 and not view.searched[i] for i in range(segments[0], segments[-1])):
        run = shape[segments[-1]] if after(shape, segments[-1]) == 1 else 1
        moved = Step("Transpose", dtype, total, total, run)
        return [moved, Step("ArgMax", dtype, total, total // max(length, 1), length)]
    merged = (*shape[: segments[0]], length, *shape[segments[-1] + 1 :])
    kernel = spread("ArgMax", dtype, merged, segments[0])
    return [Step(kernel, dtype, total, total // max(length, 1), length)]


def gather_step(dtype: DType, table: int, places: int, count: int) -> Step:
    """A gather of that many single elements out of a table, each from one of several places: neighbours lie together
    where the places are few."""
    large = table * dtype.numpy.itemsize > CACHED
    far = "GatherElements far" if places > _FEW else "GatherElements near"
    return Step(far if large else "GatherElements", dtype, count, count)


def search(e: Sketch, node: Node, x: Term, axes: Sequence[int], *, keep: bool = True) -> Term:
    """The same search along some axes, with an index of i64."""
    record = ArgAttributes(axes=tuple(axes), ties=arg_of(node).ties, dtype=i64, keepdims=keep)
    return e(node.op, x, attributes=record)


def scaled(index: Term, factor: Dim) -> Term:
    return index if factor == 1 else index * factor


def along(e: Sketch, size: Dim, stride: Dim, place: int, rank: int) -> Term:
    """0, stride, 2*stride and so on along one axis of so many."""
    if isinstance(size, int) and isinstance(stride, int) and size <= _MOST_WRITTEN:
        return e.number(np.arange(size).reshape([-1 if i == place else 1 for i in range(rank)]) * stride, i64)
    shape = [size if i == place else 1 for i in range(rank)]
    return scaled(e.iota(length=size, dtype=i64), stride).reshape(shape)


def offsets(e: Sketch, sizes: Sequence[Dim], strides: Sequence[Dim], places: Sequence[int]) -> Term | None:
    """The sum over some axes of index times stride, broadcast over the others; None over no axes."""
    total: Term | None = None
    known = [s for i in places if isinstance(s := sizes[i], int)]
    if len(known) == len(places) and math.prod(known) <= _MOST_WRITTEN and places:
        array = np.zeros([1] * len(sizes), np.int64)
        for i in places:
            step, size = strides[i], sizes[i]
            assert isinstance(step, int) and isinstance(size, int)
            array = array + (np.arange(size) * step).reshape([size if k == i else 1 for k in range(len(sizes))])
        return e.number(array, i64)
    for i in places:
        part = along(e, sizes[i], strides[i], i, len(sizes))
        total = part if total is None else total + part
    return total


def row_of(block: Term, sizes: Sequence[Dim], strides: Sequence[Dim]) -> Term:
    """The place that a flat index over some axes stands for, when each axis has a stride of its own.

    The index of axis j is ``q[j] - q[j-1]*size[j]`` for the quotients q, so that the sum needs one product for each.
    """
    total = scaled(block, strides[-1])
    tail: Dim = 1
    for j in range(len(sizes) - 2, -1, -1):
        tail = tail * sizes[j + 1]
        factor = strides[j] - sizes[j + 1] * strides[j + 1]
        if factor != 0:
            total = total + scaled(block if tail == 1 else block / tail, factor)
    return total
