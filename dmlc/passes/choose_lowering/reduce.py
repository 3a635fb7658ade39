"""Sums, means, maxima and minima over several or long axes: one node, a chain of them, or a chain over parts.

ONNX Runtime's CPU provider has kernels for reduced axes that lie together and for a first and a last group; what stands
further apart goes element by element. A long row is added faster, and rounded less, in parts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Dim, DType, Graph, Node, Operation, Shape
from dmlc.ops.matmul import MATMUL
from dmlc.ops.reduce import EXTREMES, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.choose_lowering.plan import Cheapest, Lowered, Plan, Sizes, Sketch, Standing, Step, Term, Work
from dmlc.passes.choose_lowering.view import CACHED, View, divisor_near, in_pieces, spread, view_of
from dmlc.passes.layouts import groups, is_unit, ones_between
from dmlc.passes.manager import EXACT, REASSOCIATES
from dmlc.targets.capabilities import Capabilities

ROOTS = (REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN)
#: A row of a sum is added in parts of four times its root, but of no fewer and no more elements than these; their sums
#: in parts of about so many.
_ROW, _MOST_ROW, _FEW = 256, 512, 64
#: Up to this length a row is not a long one.
_LONG = 512
#: A very long row is taken as this many blocks, of no more and no fewer elements than these.
_BLOCKS, _LEAST_BLOCK, _MOST_BLOCK = 32, 1024, 16384
#: Bytes of many rows that the cache does not hold from one column to the next.
_CACHE = 2**21
#: Up to so many rows are reduced column by column.
_FEW_ROWS = 16
#: No more rows and columns than this are reduced element by element.
_SMALL_TABLE = 256
#: A maximum along an axis that others lie behind takes so many elements at a time.
_STRIDED_BLOCK = 8


def axes_of(node: Node) -> tuple[int, ...]:
    return node.attributes_as(ReduceAttributes).axes


def reduce_view(node: Node) -> View:
    return view_of(node.graph, node, axes_of(node))


def why_not_in_parts(capabilities: Capabilities, op: Operation, node: Node, axes: Sequence[int]) -> str | None:
    """The reason against saying a node by reductions ``op``; none where nothing stands against it."""
    dtype = node.operand("x").type.dtype
    if not axes:
        return "it is over no axis"
    return None if capabilities.compute_dtype(op, dtype) is home_of(node) else f"{dtype} takes a detour"


def home_of(node: Node) -> DType:
    """Return the compute dtype of a target without f16."""
    return node.operand("x").type.dtype.accumulator


def with_ones(graph: Graph | None, shape: Sequence[Dim], axes: Sequence[int]) -> tuple[int, ...]:
    """The axes, and those of size 1 that follow them or come before them all; but not those that follow others.

    ONNX Runtime distinguishes reduced axes by their place alone: an axis of size 1 between them keeps it from
    seeing neighbours as one.
    """
    units = [d == 1 or (graph is not None and is_unit(graph, d)) for d in shape]
    out: list[int] = []
    reduced: bool | None = None
    for axis, unit in enumerate(units):
        if not unit:
            reduced = axis in axes
            if reduced and len(out) == 0 and all(units[:axis]):
                out.extend(range(axis))
        if reduced:
            out.append(axis)
    return tuple(out) if reduced is not None else tuple(range(len(shape)))


def reduce_step(op: Operation, dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> Step:
    """One node over the axes."""
    sizes, kind = _merged(shape, axes)
    base = "ReduceMax" if op in EXTREMES else "ReduceSum"
    total = math.prod(sizes)
    writes = math.prod([size for size, k in zip(sizes, kind, strict=True) if k == "K"])
    if (kind == "KRK" and sizes[0] == 1) or (kind == "RKR" and sizes[1] == 1):
        return Step(f"{base} alone", dtype, total, writes, sizes[-1])
    if kind in ("R", "KR", "RKR") and base == "ReduceSum" and sizes[-1] > _LONG:
        return Step(f"{base} long", dtype, total, writes, sizes[-1])
    if kind in ("", "K"):  # nothing is reduced
        return Step(base, dtype, total, writes, 1)
    if kind in ("R", "KR"):
        return Step(base, dtype, total, writes, sizes[-1])
    if kind == "RKR":
        return Step(f"{base} around", dtype, total, writes, sizes[-1])
    if kind not in ("RK", "KRK"):
        return Step(f"{base} apart", dtype, total, writes, sizes[-1] if kind[-1] == "R" else 1)
    behind = sizes[-1]
    if kind == "RK":
        return _first_step(base, dtype, sizes)
    if in_pieces(dtype, sizes, 1):
        return Step(f"{base} pieces", dtype, total, writes, behind)
    if base == "ReduceSum":
        return _inside_step(op, dtype, sizes)
    large = sizes[1] > _FEW_ROWS and sizes[1] * behind * dtype.numpy.itemsize >= _CACHE
    far = large or spread(base, dtype, sizes, 1).endswith("far")
    return Step(f"{base} far" if far else f"{base} inside", dtype, total, writes, behind)


def _inside_step(op: Operation, dtype: DType, sizes: Sequence[int]) -> Step:
    """A sum or mean over the middle of three axes. Data from memory is read run by run, and a mean writes the
    quotients once more."""
    total, writes, behind = math.prod(sizes), sizes[0] * sizes[2], sizes[2]
    if total * dtype.numpy.itemsize <= CACHED:
        return Step("ReduceSum inside", dtype, total, writes, behind * sizes[1])
    return Step("ReduceMean streamed" if op is REDUCE_MEAN else "ReduceSum streamed", dtype, total, writes, behind)


def _first_step(base: str, dtype: DType, sizes: Sequence[int]) -> Step:
    """A reduction of rows: there are kernels for few of them and for many, but not for a small table."""
    rows, behind = sizes
    kernel = "few" if rows <= _FEW_ROWS else "apart" if max(rows, behind) <= _SMALL_TABLE else "first"
    return Step(f"{base} {kernel}", dtype, rows * behind, behind, 1 if kernel == "apart" else behind)


def product_steps(dtype: DType, rows: int, columns: int) -> list[Step]:
    """A row of equal numbers times a matrix."""
    return [Step("MatMul row", dtype, rows * columns, columns, columns), *[Step("others", dtype)] * 2]


def _merged(shape: Sequence[int], axes: Sequence[int]) -> tuple[list[int], str]:
    """Neighbours of one kind as one: their sizes, and the kinds as letters."""
    sizes: list[int] = []
    kinds = ""
    for axis, size in enumerate(shape):
        kind = "KR"[axis in axes]
        if kinds and kinds[-1] == kind:
            sizes[-1] *= size
        else:
            sizes.append(size)
            kinds += kind
    return (sizes, kinds) if sizes else ([1], "R")


def chain_steps(op: Operation, dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> list[Step]:
    """A reduction with the axes kept, in one of the ways that its own plans have: one node for each group."""
    out = []
    sizes = list(shape)
    if _merged(sizes, with_ones(None, sizes, axes))[1] == "RKR":
        return [reduce_step(op, dtype, sizes, with_ones(None, sizes, axes))]
    for first, last in reversed(groups(axes)):
        more = with_ones(None, sizes, range(first, last))
        out.append(reduce_step(op, dtype, sizes, more))
        sizes = [1 if i in more else d for i, d in enumerate(sizes)]
    return out


class ReduceAsItStands(Standing):
    """One node over the axes."""

    roots: ClassVar[tuple[Operation, ...]] = ROOTS

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        shape = sizes.of(node.operand("x"))
        if _is_pool(node):
            return [Step("Pool", node.operand("x").type.dtype, math.prod(shape))]
        return [*_casts(node, shape), reduce_step(node.op, home_of(node), shape, axes_of(node))]


def _is_pool(node: Node) -> bool:
    """Return whether an imported model has the reduction as a global pooling."""
    return node.origin is not None and node.origin.proto.op_type in ("GlobalAveragePool", "GlobalMaxPool")


def _casts(node: Node, shape: Sequence[int]) -> list[Step]:
    dtype, count = node.operand("x").type.dtype, math.prod(shape)
    return [] if home_of(node) is dtype else [Step("Cast", dtype, count, count, count)]


def _why_not_moved(graph: Graph, node: Node) -> str | None:
    """Return the reason why the operand cannot be reshaped."""
    return "it may be empty" if any(graph.dims.interval(d)[0] < 1 for d in node.operand("x").shape) else None


class _SplitReduction(Plan):
    """One node or several, each over some of the axes, and what the axes of size 1 take at the end."""

    roots: ClassVar[tuple[Operation, ...]] = ROOTS
    rewrite_class: ClassVar[str] = REASSOCIATES

    def class_of(self, node: Node, graph: Graph) -> str:
        return EXACT if node.op in EXTREMES else REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        dtype = node.operand("x").type.dtype
        if not axes_of(node):
            return "no axis is reduced"
        if _is_pool(node) and node.op not in EXTREMES:
            return "an average of everything is rounded as its model says it"
        if node.op not in EXTREMES and not dtype.is_float:
            return "partial sums of integers may leave their range"
        if self.capabilities.compute_dtype(node.op, dtype) is not home_of(node):
            return f"{dtype} takes a detour"
        reason = self.why_not(node)
        return _why_not_moved(graph, node) if reason is None and self.shape(node) != node.operand("x").shape else reason

    @abstractmethod
    def why_not(self, node: Node) -> str | None:
        """Return the reason why the plan would change nothing."""

    def shape(self, node: Node) -> Shape:
        """The shape that the operand takes first."""
        return node.operand("x").shape

    @abstractmethod
    def order(self, node: Node) -> Sequence[Sequence[int]]:
        """The axes of each node, of that shape."""

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        home, shape = home_of(node), self.shape(node)
        out: list[Work] = [*_casts(node, [sizes(d) for d in shape])]
        if shape != node.operand("x").shape:
            out.append(Step("others", home))
        for axes in self.order(node):
            more = with_ones(node.graph, shape, axes)
            step = reduce_step(node.op, home, [sizes(d) for d in shape], more)
            product = self._product(node, shape, more, sizes)
            out.append(Cheapest(((step,), product)) if product else step)
            shape = tuple([1 if i in more else d for i, d in enumerate(shape)])
        return out if shape == node.result.shape else [*out, Step("others", home)]

    def _product(self, node: Node, shape: Shape, axes: Sequence[int], sizes: Sizes) -> tuple[Step, ...]:
        """Return the nodes of ``sum-by-product`` for a reduction over the axes; none if it is not possible."""
        home, graph = home_of(node), node.graph
        merged, kind = _merged([sizes(d) for d in shape], axes)
        known = (
            graph is not None and _why_not_moved(graph, node) is None and all(isinstance(shape[i], int) for i in axes)
        )
        fits = known and kind == "RK" and node.op not in EXTREMES and self.capabilities.has_kernel(MATMUL, home)
        return tuple(product_steps(home, *merged)) if fits else ()

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        value = x.cast(home_of(node)).reshape(self.shape(node))
        for axes in self.order(node):
            more = with_ones(node.graph, value.shape, axes)
            value = e.reduced(node.op, value, more)
        if ones_between(e.graph, value.shape, node.result.shape) is None:
            value = value.reshape(node.result.shape)
        return value.with_ones(node.result.shape).cast(node.result.type.dtype)


class ReduceOnesToo(_SplitReduction):
    """A reduction next to axes of size 1 reduces these too, so that its kernel sees fewer groups of axes."""

    name: ClassVar[str] = "reduce-ones-too"

    def why_not(self, node: Node) -> str | None:
        same = with_ones(node.graph, node.operand("x").shape, axes_of(node)) == axes_of(node)
        return "no axis of size 1 is between them" if same else None

    def order(self, node: Node) -> Sequence[Sequence[int]]:
        return [axes_of(node)]


class ReduceForPool(ReduceOnesToo):
    """The largest element as a model's GlobalMaxPool becomes a reduction, whose kernel is faster."""

    name: ClassVar[str] = "reduce-for-pool"
    rewrite_class: ClassVar[str] = EXACT

    def why_not(self, node: Node) -> str | None:
        return None if _is_pool(node) else "it is not a pooling"


class ReduceInnerFirst(_SplitReduction):
    """A reduction over axes that are not adjacent becomes a node for each group of neighbours, the last group first."""

    name: ClassVar[str] = "reduce-inner-first"

    def order(self, node: Node) -> Sequence[Sequence[int]]:
        axes = with_ones(node.graph, node.operand("x").shape, axes_of(node))
        return [range(first, last) for first, last in reversed(groups(axes))]

    def why_not(self, node: Node) -> str | None:
        return None if len(self.order(node)) > 1 else "all axes are neighbours"


class ReduceOuterFirst(ReduceInnerFirst):
    """A reduction over axes that are not adjacent becomes one for each group of neighbours, the first group first."""

    name: ClassVar[str] = "reduce-outer-first"

    def order(self, node: Node) -> Sequence[Sequence[int]]:
        return super().order(node)[::-1]


class ReduceInSteps(_SplitReduction):
    """A reduction over long axes becomes reductions of parts, and of what they leave, until all is one.

    The parts of a sum's row are short enough for its rounding errors to stay like a pairwise sum's.
    """

    name: ClassVar[str] = "reduce-in-steps"

    def parts(self, node: Node) -> View | str:
        """The segments with the long ones divided; or why none is."""
        view = reduce_view(node)
        divided = view
        for segment in reversed(view.groups):
            size = view.sizes[segment]
            if not isinstance(size, int):
                return f"{size} is not known, so that it cannot be divided"
            for part in self.divide(node, size, last=segment == len(view.sizes) - 1):
                size //= part
                divided = divided.split(segment, size, part)
        if divided.sizes == view.sizes:
            return "no axis is long, or has a divisor that helps"
        if sum(not isinstance(d, int) for d in divided.sizes) > 1:
            return "more than one size is not known"
        return divided

    def divide(self, node: Node, size: int, *, last: bool) -> list[int]:
        """The lengths of the parts, those within before those around them; what is left around is one more."""
        if last == (node.op in EXTREMES):
            return []
        return row_parts(size) if last else _parts(size, _STRIDED_BLOCK, 2 * _STRIDED_BLOCK)

    def why_not(self, node: Node) -> str | None:
        parts = self.parts(node)
        return parts if isinstance(parts, str) else None

    def parts_of(self, node: Node) -> View:
        parts = self.parts(node)
        assert isinstance(parts, View)
        return parts

    def shape(self, node: Node) -> Shape:
        return self.parts_of(node).sizes

    def order(self, node: Node) -> Sequence[Sequence[int]]:
        return [(segment,) for segment in reversed(self.parts_of(node).groups)]


def row_parts(size: int) -> list[int]:
    """The lengths of the parts of a long row, the one within first."""
    if size <= _LONG:
        return []
    row = divisor_near(size, max(_ROW, min(_MOST_ROW, 4 * math.sqrt(size))))
    return [row, *_parts(size // row, _FEW, _FEW)] if _ROW // 4 <= row <= 4 * _ROW else []


def _parts(size: int, wanted: int, most: int) -> list[int]:
    """Divisors near what is wanted, until no more than so many are left."""
    out = []
    while size > most:
        inner = divisor_near(size, wanted)
        if not 2 <= inner <= 4 * wanted or inner == size:
            break
        out.append(inner)
        size //= inner
    return out


def _block(size: int) -> int:
    return divisor_near(size, min(_MOST_BLOCK, max(_LEAST_BLOCK, size / _BLOCKS)))


class SumBlocksFirst(_SplitReduction):
    """A sum or mean over very long rows adds blocks of a row to each other first, which are many columns at once."""

    name: ClassVar[str] = "sum-blocks-first"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM, REDUCE_MEAN)

    def why_not(self, node: Node) -> str | None:
        view = reduce_view(node)
        if view.kind not in ("R", "KR"):
            return "other axes lie behind or between"
        size = view.sizes[-1]
        if not isinstance(size, int):
            return f"{size} is not known, so that it cannot be divided"
        block = _block(size)
        fits = _LEAST_BLOCK // 2 <= block <= 2 * _MOST_BLOCK and size // block >= _BLOCKS // 2
        return None if fits else "no row is very long"

    def shape(self, node: Node) -> Shape:
        sizes = reduce_view(node).sizes
        assert isinstance(sizes[-1], int)
        block = _block(sizes[-1])
        parts = row_parts(block)
        return (*sizes[:-1], sizes[-1] // block, block // math.prod(parts), *reversed(parts))

    def order(self, node: Node) -> Sequence[Sequence[int]]:
        kept, rank = len(reduce_view(node).kept), len(self.shape(node))
        return [(kept,), *[(axis,) for axis in range(rank - 1, kept, -1)]]


class SumByProduct(Plan):
    """A sum or mean over the first axes becomes the product of a row of equal numbers with a matrix.

    The kernel of the reduction adds few rows column by column, the kernel of the product takes many columns at once.
    """

    name: ClassVar[str] = "sum-by-product"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM, REDUCE_MEAN)
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        view, dtype = reduce_view(node), node.operand("x").type.dtype
        if not dtype.is_float or view.kind != "RK":
            return "it is not a sum of floats over the first axes"
        if not isinstance(view.sizes[0], int):
            return f"{view.sizes[0]} rows are not a known number of them"
        has_product = self.capabilities.has_kernel(MATMUL, home_of(node))
        return _why_not_moved(graph, node) or (None if has_product else f"the target has no matrix product of {dtype}")

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        shape, home = reduce_view(node).at(sizes), home_of(node)
        return [*_casts(node, shape), *product_steps(home, *shape)]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        view, home = reduce_view(node), home_of(node)
        rows = view.sizes[0]
        assert isinstance(rows, int)
        weight = 1 / rows if node.op is REDUCE_MEAN else 1
        row = e.full(shape=(1, rows), value=weight, dtype=home)
        made = e.matmul(row, x.cast(home).reshape(view.sizes))
        return made.cast(node.result.type.dtype).reshape(node.result.shape)


PLANS: Sequence[type[Plan]] = (
    ReduceAsItStands,
    ReduceOnesToo,
    ReduceInnerFirst,
    ReduceOuterFirst,
    ReduceInSteps,
    SumBlocksFirst,
    SumByProduct,
    ReduceForPool,
)
