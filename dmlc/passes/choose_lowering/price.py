"""The price of a node: the kernels that ONNX Runtime's CPU provider runs for it, what they read and what they write."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import f32, f64, i64
from dmlc.ops.binary import ADD, DIV, EQUAL, MUL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import ABS, EXP, LOG
from dmlc.ops.index import FULL, GATHER, GATHER_ELEMENTS, IOTA, SCATTER_ELEMENTS, GatherAttributes, IndexAttributes
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE, TransposeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.reduce import EXTREMES, REDUCE_LOG_SUM_EXP, axes_of
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, ArgAttributes
from dmlc.passes.choose_lowering.plan import Plan, Sizes, View, merged, view_of
from dmlc.passes.choose_lowering.reduce import LONG, NORMS, ROOTS, is_pool
from dmlc.passes.choose_lowering.search import MOST_WRITTEN
from dmlc.passes.expressions import Sketch
from dmlc.passes.layouts import groups
from dmlc.passes.lowering import LoweredNode
from dmlc.passes.primitives import softmax
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.cost import Cheapest, Step, Work

#: Elements that are whole pages apart fall into the same ways of the cache, which holds fewer than this of them.
_PAGE, _WAYS = 4096, 16
#: Tensors of more bytes than this come from memory.
_CACHED = 1 << 24
#: Bytes of many rows that the cache does not hold from one column to the next.
_CACHE = 2**21
#: Up to so many rows are reduced column by column. Elements from as many places share lines of memory.
_FEW = 16
#: No more rows and columns than this are reduced element by element.
_SMALL_TABLE = 256
#: Nodes in the parts of a node may be lowered by plans in their turn, and so on so many times.
_DEPTH = 2


class Priced:
    """A node at known sizes."""

    __slots__ = ("capabilities", "dtype", "graph", "node", "shape", "sizes", "total", "written")

    def __init__(self, node: Node, graph: Graph, sizes: Sizes, capabilities: Capabilities) -> None:
        x = next((v for v in node.operands if v is not None), node.results[0])
        self.node, self.graph, self.sizes, self.capabilities = node, graph, sizes, capabilities
        self.dtype: DType = x.type.dtype
        self.shape: tuple[int, ...] = sizes.of(x)
        self.total: int = math.prod(self.shape)
        self.written: int = math.prod(sizes.of(node.results[0]))

    def view(self, axes: Sequence[int]) -> tuple[View, tuple[int, ...]]:
        """The operand as segments, and their sizes."""
        found = view_of(self.graph, self.node, axes)
        return found, found.at(self.sizes)

    def each(self, kernel: str, run: int = 1) -> list[Step]:
        """A kernel over all elements of the result."""
        return [Step(kernel, self.dtype, self.written, self.written, run)]


def _casts(dtype: DType, home: DType, count: int) -> list[Step]:
    return [] if home is dtype else [Step("Cast", dtype, count, count, count)]


def _after(sizes: Sequence[int], segment: int) -> int:
    """Return the number of contiguous elements for each position of the segment."""
    return math.prod(sizes[segment + 1 :])


def _spread(kernel: str, dtype: DType, sizes: Sequence[int], segment: int) -> str:
    """The row of the cost model for a kernel that goes along one segment."""
    behind = _after(sizes, segment)
    if behind == 1:
        return kernel
    if sizes[segment] >= _WAYS and behind * dtype.numpy.itemsize % _PAGE == 0:
        return f"{kernel} far"
    return f"{kernel} deep" if sizes[segment] > _WAYS else f"{kernel} strided"


def _where(behind: int, dtype: DType) -> str:
    """The end of a kernel's row: so many elements lie behind the axis."""
    return "" if behind == 1 else " far" if behind * dtype.numpy.itemsize >= _PAGE else " strided"


# --- selections


def _search(at: Priced) -> list[Step]:
    """An argmax of the axes as one, brought together by a transpose where others lie between. The cast of the index is
    not counted where it ends all ways to say the node."""
    a = at.node.attributes_as(ArgAttributes)
    view, shape = at.view(a.axes)
    is_other = at.node.operands[0].shape != view.sizes if at.node.operands[0] is not None else False
    frame = (is_other + (is_other or not a.keepdims)) * (len(a.axes) > 1)
    home = at.capabilities.compute_dtype(at.node.op, at.dtype) or i64
    steps = [*[Step("Reshape", at.dtype)] * frame, *_casts(at.dtype, home, at.total), *_along(home, view, shape)]
    return steps if at.node.graph is not None else [*steps, *_casts(i64, a.dtype, at.written)]


def _along(dtype: DType, view: View, shape: Sequence[int]) -> list[Step]:
    segments = [i for i in view.groups if shape[i] > 1] or list(view.groups[:1])
    total = math.prod(shape)
    length = math.prod([shape[i] for i in segments])
    if any(shape[i] > 1 and not view.searched[i] for i in range(segments[0], segments[-1])):
        run = shape[segments[-1]] if _after(shape, segments[-1]) == 1 else 1
        moved = Step("Transpose", dtype, total, total, run)
        return [moved, Step("ArgMax", dtype, total, total // max(length, 1), length)]
    joined = (*shape[: segments[0]], length, *shape[segments[-1] + 1 :])
    return [Step(_spread("ArgMax", dtype, joined, segments[0]), dtype, total, total // max(length, 1), length)]


def _hardmax(at: Priced) -> list[Step]:
    """The target's own over one axis, which it swaps with the last one: cheap where that is its neighbour. Over several
    axes argmax and one_hot, with transposes where others lie between."""
    axes = axes_of(at.node)
    if len(axes) == 1 and at.dtype is not f64:
        behind = _after(at.shape, axes[0])
        kernel = "Hardmax" if behind == 1 else "Hardmax strided" if behind == at.shape[-1] else "Hardmax far"
        own = Step(kernel, f32, at.total, at.total, at.shape[axes[0]])
        return [*_casts(at.dtype, f32, at.total), own, *_casts(f32, at.dtype, at.total)]
    view, shape = at.view(axes)
    home, length = at.dtype.accumulator, math.prod([shape[i] for i in view.groups])
    run = length if len(view.groups) == 1 and view.groups[0] < len(shape) - 1 else 1
    hot = Step("OneHot", f32, at.total // max(length, 1), at.total, run)
    out = [*_casts(at.dtype, home, at.total), *_along(home, view, shape), hot, *_casts(f32, at.dtype, at.total)]
    moved = [step for step in out if step.kernel == "Transpose"]
    return [*out, *(moved or [Step("Reshape", at.dtype, at.total, at.total)])]


def _gather(at: Priced) -> list[Step]:
    return at.each("Gather", _after(at.shape, at.node.attributes_as(GatherAttributes).axis))


def _gather_elements(at: Priced) -> list[Step]:
    """Single elements, each from one of several places: neighbours lie together where the places are few."""
    axis = at.node.attributes_as(IndexAttributes).axis
    places = at.shape[axis] // max(at.sizes.of(at.node.results[0])[axis], 1)
    large = at.total * at.dtype.numpy.itemsize > _CACHED
    return at.each(
        "GatherElements far" if large and places > _FEW else "GatherElements near" if large else "GatherElements"
    )


def _scatter(at: Priced) -> list[Step]:
    index = at.node.operands[1]
    assert index is not None
    return [Step("ScatterElements", at.dtype, math.prod(at.sizes.of(index)), at.total, 1)]


# --- reductions


def _reduction(at: Priced) -> list[Step]:
    if is_pool(at.node):
        return [Step("Pool", at.dtype, at.total)]
    home = at.dtype.accumulator
    axes = axes_of(at.node)
    return [*_casts(at.dtype, home, at.total), _reduce(at.node.op, home, at.shape, axes)]


def _reduce(op: Operation, dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> Step:
    """One node over the axes."""
    view = merged([(size, axis in axes) for axis, size in enumerate(shape)])
    sizes, kind = [size for size in view.sizes if isinstance(size, int)], view.kind
    base = "ReduceMax" if op in EXTREMES else "ReduceSum"
    total = math.prod(sizes)
    writes = math.prod([sizes[i] for i in view.kept])
    if not axes:
        return Step(base, dtype, total, writes, 1)
    if (kind == "KRK" and sizes[0] == 1) or (kind == "RKR" and sizes[1] == 1):
        return Step(f"{base} alone", dtype, total, writes, sizes[-1])
    if kind in ("R", "KR", "RKR") and base == "ReduceSum" and sizes[-1] > LONG:
        return Step(f"{base} long", dtype, total, writes, sizes[-1])
    if kind in ("R", "KR"):
        return Step(base, dtype, total, writes, sizes[-1])
    if kind == "RKR":
        return Step(f"{base} around", dtype, total, writes, sizes[-1])
    if kind == "RK":
        return _reduce_rows(base, dtype, sizes)
    if kind != "KRK":
        return Step(f"{base} apart", dtype, total, writes, sizes[-1] if kind[-1] == "R" else 1)
    return _reduce_inside(base, dtype, sizes)


def _reduce_rows(base: str, dtype: DType, sizes: Sequence[int]) -> Step:
    """A reduction of rows: there are kernels for few of them and for many, but not for a small table."""
    rows, behind = sizes
    kernel = "few" if rows <= _FEW else "apart" if max(rows, behind) <= _SMALL_TABLE else "first"
    return Step(f"{base} {kernel}", dtype, rows * behind, behind, 1 if kernel == "apart" else behind)


def _reduce_inside(base: str, dtype: DType, sizes: Sequence[int]) -> Step:
    """A reduction over the middle of three axes. Data from memory is read run by run. Pieces of less than a page defeat
    prefetching."""
    total, writes, (_, middle, behind) = math.prod(sizes), sizes[0] * sizes[2], sizes
    is_large = total * dtype.numpy.itemsize > _CACHED
    if is_large and dtype.numpy.itemsize < behind * dtype.numpy.itemsize < _PAGE:
        return Step(f"{base} pieces", dtype, total, writes, behind)
    if base == "ReduceSum" and not is_large:
        return Step("ReduceSum inside", dtype, total, writes, behind * middle)
    if base == "ReduceSum":
        return Step("ReduceSum streamed", dtype, total, writes, behind)
    large = middle > _FEW and middle * behind * dtype.numpy.itemsize >= _CACHE
    is_far = large or _spread(base, dtype, sizes, 1).endswith("far")
    return Step(f"{base} far" if is_far else f"{base} inside", dtype, total, writes, behind)


def _norm(at: Priced) -> list[Step]:
    view, shape = at.view(axes_of(at.node))
    home = at.dtype.accumulator
    return [Step(f"ReduceL2{_where(_after(shape, view.groups[-1]), home)}", home, at.total)]


def _softmax(at: Priced) -> list[Step]:
    """One node where the axes are neighbours."""
    axes, home = axes_of(at.node), at.dtype.accumulator
    view, shape = at.view(axes)
    x = at.node.operands[0]
    assert x is not None
    if not axes or len(view.groups) > 1 or len(groups(axes)) > 1:
        e = Sketch(at.graph, at.capabilities)
        softmax(e, at.node.op, e.of(x).widened(), axes)
        return [step for node, _ in e.steps for step in kernels(Priced(node, at.graph, at.sizes, at.capabilities))]
    (segment,) = view.groups
    return [Step(f"Softmax{_where(_after(shape, segment), home)}", home, at.total, at.total, shape[segment])]


# --- elementwise


def _arithmetic(at: Priced) -> list[Step]:
    """Two operands, of which the second may be the same along some axes."""
    a, b = at.node.operands
    assert a is not None and b is not None
    if a is b:
        return at.each("Square")
    if at.dtype.is_integer:
        return at.each("Add", at.written)
    small, full = at.sizes.of(b), at.sizes.of(at.node.results[0])
    if small == full or math.prod(small) == 1:
        return at.each("others")
    run, (last, *rest) = 1, [(d, d == s) for d, s in reversed(list(zip(full, small, strict=True))) if d != 1]
    for size, same in (last, *rest):
        if same is not last[1]:
            break
        run *= size
    return at.each("Broadcast", run)


def _full(at: Priced) -> list[Step]:
    """A few equal numbers are a constant."""
    return at.each("Expand") if at.written > MOST_WRITTEN else []


def _transpose(at: Priced) -> list[Step]:
    stays = at.node.attributes_as(TransposeAttributes).perm[-1] == len(at.shape) - 1
    return at.each("Transpose", at.shape[-1] if stays else 1)


_KERNELS: Mapping[Operation, Callable[[Priced], list[Step]]] = {
    **dict.fromkeys((CONSTANT, IOTA), lambda at: []),
    **dict.fromkeys((ARGMAX, ARGMIN), _search),
    **dict.fromkeys((SOFTMAX, LOG_SOFTMAX), _softmax),
    **dict.fromkeys(ROOTS, _reduction),
    **dict.fromkeys(NORMS, _norm),
    **dict.fromkeys((ADD, SUB, MUL, DIV), _arithmetic),
    **dict.fromkeys((RESHAPE, SQUEEZE, UNSQUEEZE), lambda at: [Step("Reshape", at.dtype)]),
    FULL: _full,
    HARDMAX: _hardmax,
    GATHER: _gather,
    GATHER_ELEMENTS: _gather_elements,
    SCATTER_ELEMENTS: _scatter,
    REDUCE_LOG_SUM_EXP: lambda at: [Step("ReduceLogSumExp", at.dtype.accumulator, at.total, at.written)],
    CAST: lambda at: at.each("Cast", at.written),
    TRANSPOSE: _transpose,
    MATMUL: lambda at: [Step("MatMul row", at.dtype, at.written * at.shape[-1], at.written, at.written)],
    EQUAL: lambda at: at.each("Equal", at.sizes.of(at.node.results[0])[-1]),
    EXPAND: lambda at: at.each("Expand"),
    EXP: lambda at: at.each("Exp"),
    LOG: lambda at: at.each("Log"),
    ABS: lambda at: at.each("Square"),
}


def kernels(at: Priced) -> list[Step]:
    """The kernels of the node as the target writes it."""
    kernel = _KERNELS.get(at.node.op)
    return at.each("others") if kernel is None else kernel(at)


class Prices:
    """The work of nodes, and of what plans make of them; ``plans`` are the plans that may be chosen."""

    def __init__(self, graph: Graph, plans: Mapping[Operation, Sequence[Plan]], capabilities: Capabilities) -> None:
        self.graph, self.plans, self.capabilities = graph, plans, capabilities
        self.matches: dict[Any, list[tuple[Plan, LoweredNode]]] = {}

    def unchanged(self, node: Node, sizes: Sizes) -> list[Step]:
        return kernels(Priced(node, self.graph, sizes, self.capabilities))

    def of(
        self, plan: Plan, match: LoweredNode, sizes: Sizes, without: frozenset[str] = frozenset(), depth: int = 0
    ) -> list[Work]:
        """The work of what a plan makes. Its nodes may be lowered by other plans, but not those ``without``."""
        without |= set() if plan.repeatable else {plan.name}
        out: list[Work] = []
        there = _already_there(match) if plan.looks_around else set()
        for node in [node for node, _ in match.steps if node not in there]:
            steps = self._last(node, match, sizes) if node.result in match.values else self.unchanged(node, sizes)
            ways = self._ways(node, without) if depth < _DEPTH else ()
            others = [tuple(self.of(each, made, sizes, without, depth + 1)) for each, made in ways]
            out += [Cheapest((tuple(steps), *others))] if others else steps
        return out

    def _last(self, node: Node, match: LoweredNode, sizes: Sizes) -> list[Step]:
        """The kernels of a node whose result takes the place of the root's: a view of it is a copy."""
        if node.op is RESHAPE:
            total = math.prod(sizes.of(node.result))
            return [Step("Reshape", node.result.type.dtype, total, total)]
        is_cast_of_index = node.op is CAST and match.root.op in (ARGMAX, ARGMIN) and match.root.graph is not None
        return [] if is_cast_of_index else self.unchanged(node, sizes)

    def _ways(self, node: Node, without: frozenset[str]) -> Sequence[tuple[Plan, LoweredNode]]:
        key = node.op, node.attributes, tuple([v and v.type for v in node.operands]), without
        if key not in self.matches:
            plans = [one for one in self.plans.get(node.op, ()) if one.name not in without and not one.looks_around]
            found = [(one, one.match(node, self.graph)) for one in plans if one.is_estimated]
            self.matches[key] = [(one, made) for one, made in found if isinstance(made, LoweredNode)]
        return self.matches[key]


def _already_there(match: LoweredNode) -> set[Node]:
    """The new nodes of a match that nodes of the graph are equal to."""
    equal: dict[Value | None, Value] = {}
    out = set()
    for node, _ in match.steps:
        operands = tuple([equal.get(v, v) for v in node.operands])
        users = operands[0].users if operands and operands[0] is not None else ()
        twins = [
            user
            for user in users
            if user is not match.root
            and (user.op, user.operands, user.attributes) == (node.op, operands, node.attributes)
        ]
        if twins:
            out.add(node)
            equal.update(zip(node.results, twins[0].results, strict=True))
    return out
