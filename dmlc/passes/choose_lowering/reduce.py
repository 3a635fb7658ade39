"""Sums, means, maxima and minima over several or long axes: one node, a chain of them, or a chain over parts.

ONNX Runtime's CPU provider has kernels for reduced axes that lie together and for a first and a last group; what is
further apart goes element by element. A long row is added faster, and rounded less, in parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from dmlc.ir import Dim, Graph, Node, Shape
from dmlc.ops.matmul import MATMUL
from dmlc.ops.reduce import EXTREMES, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.choose_lowering.plan import Plan, plan
from dmlc.passes.choose_lowering.view import View, divisor_near, view_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import groups, is_unit, ones_between
from dmlc.passes.lowering import Lowered
from dmlc.passes.manager import EXACT, REASSOCIATES
from dmlc.passes.rewrite import Miss

ROOTS = (REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN)
#: A row of n numbers is split into parts of 4*sqrt(n), at least 256 and at most 512; the sums of the parts are added in
#: parts of about 64.
_ROW, _MOST_ROW, _FEW = 256, 512, 64
#: Up to this length a row is not a long one.
LONG = 512
#: A very long row is taken as this many blocks, of no more and no fewer elements than these.
_BLOCKS, _LEAST_BLOCK, _MOST_BLOCK = 32, 1024, 16384
#: A maximum along an axis that others lie behind takes so many elements at a time.
_STRIDED_BLOCK = 8


def is_pool(node: Node) -> bool:
    """Return whether an imported model has the reduction as a global pooling."""
    return node.origin is not None and node.origin.proto.op_type in ("GlobalAveragePool", "GlobalMaxPool")


def _axes(node: Node) -> tuple[int, ...]:
    return node.attributes_as(ReduceAttributes).axes


def _why_not_moved(e: Sketch, x: Term) -> Miss | None:
    """Return the reason why the operand cannot be reshaped."""
    return Miss("it may be empty") if any(e.graph.dims.interval(d)[0] < 1 for d in x.shape) else None


def _with_ones(graph: Graph, shape: Sequence[Dim], axes: Iterable[int]) -> tuple[int, ...]:
    """The axes, and those of size 1 that follow them or come before them all; but not those that follow others.

    ONNX Runtime distinguishes reduced axes by their place alone: an axis of size 1 between them keeps it from
    seeing neighbours as one.
    """
    units, axes = [is_unit(graph, d) for d in shape], tuple(axes)
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


def _class(rule: Any, match: Any, graph: Graph, context: Any) -> str:
    return EXACT if match.root.op in EXTREMES else REASSOCIATES


def _chain(
    e: Sketch, node: Node, x: Term, order: Sequence[Iterable[int]], shape: Sequence[Dim] | None = None
) -> Lowered:
    """A reduction for each of the groups of axes, of the operand in that shape."""
    is_extreme = node.op in EXTREMES
    if not _axes(node):
        return Miss("no axis is reduced")
    if is_pool(node) and not is_extreme:
        return Miss("an average of everything is rounded as its model says it")
    if not is_extreme and not x.dtype.is_float:
        return Miss("partial sums of integers may leave their range")
    if e.target.compute_dtype(node.op, x.dtype) is not x.dtype.accumulator:
        return Miss("{0} takes a detour", (x.dtype,))
    if shape is not None and tuple(shape) != x.shape and (reason := _why_not_moved(e, x)):
        return reason
    value = x.widened().reshape(x.shape if shape is None else shape)
    for axes in order:
        value = e.reduced(node.op, value, _with_ones(e.graph, value.shape, axes))
    if ones_between(e.graph, value.shape, node.result.shape) is None:
        value = value.reshape(node.result.shape)
    return value.with_ones(node.result.shape).cast(node.result.type.dtype)


@plan(*ROOTS, gives=_class)
def reduce_ones_too(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction next to axes of size 1 reduces these too, so that its kernel sees fewer groups of axes."""
    if _with_ones(e.graph, x.shape, _axes(node)) == _axes(node):
        return Miss("no axis of size 1 is between them")
    return _chain(e, node, x, [_axes(node)])


@plan(*ROOTS)
def reduce_for_pool(e: Sketch, node: Node, x: Term) -> Lowered:
    """The largest element as a model's GlobalMaxPool becomes a reduction, whose kernel is faster."""
    return _chain(e, node, x, [_axes(node)]) if is_pool(node) else Miss("it is not a pooling")


def _by_groups(e: Sketch, node: Node, x: Term, step: int) -> Lowered:
    order = [range(*group) for group in groups(_with_ones(e.graph, x.shape, _axes(node)))][::step]
    return _chain(e, node, x, order) if len(order) > 1 else Miss("all axes are neighbours")


@plan(*ROOTS, gives=_class)
def reduce_inner_first(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over axes that are not adjacent becomes a node for each group of neighbours, the last group first."""
    return _by_groups(e, node, x, -1)


@plan(*ROOTS, gives=_class)
def reduce_outer_first(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over axes that are not adjacent becomes one for each group of neighbours, the first group first."""
    return _by_groups(e, node, x, 1)


@plan(*ROOTS, gives=_class)
def reduce_in_steps(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over long axes becomes reductions of parts, and of what they leave, until all is one.

    The parts of a sum's row are short enough for its rounding errors to stay like a pairwise sum's.
    """
    view = view_of(e.graph, node, _axes(node))
    parts: View = view
    for segment in reversed(view.groups):
        size, is_last = view.sizes[segment], segment == len(view.sizes) - 1
        if not isinstance(size, int):
            return Miss("{0} is not known, so that it cannot be divided", (size,))
        if is_last is not (node.op in EXTREMES):
            for part in row_parts(size) if is_last else _parts(size, _STRIDED_BLOCK, 2 * _STRIDED_BLOCK):
                size //= part
                parts = parts.split(segment, size, part)
    if parts.sizes == view.sizes:
        return Miss("no axis is long, or has a divisor that helps")
    if sum(not isinstance(d, int) for d in parts.sizes) > 1:
        return Miss("more than one size is not known")
    return _chain(e, node, x, [(segment,) for segment in reversed(parts.groups)], parts.sizes)


def row_parts(size: int) -> list[int]:
    """The lengths of the parts of a long row, the one within first."""
    if size <= LONG:
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


@plan(REDUCE_SUM, REDUCE_MEAN, gives=REASSOCIATES)
def sum_blocks_first(e: Sketch, node: Node, x: Term) -> Lowered:
    """A sum or mean over very long rows adds blocks of a row to each other first, which are many columns at once."""
    view = view_of(e.graph, node, _axes(node))
    if view.kind not in ("R", "KR"):
        return Miss("other axes lie behind or between")
    size = view.sizes[-1]
    if not isinstance(size, int):
        return Miss("{0} is not known, so that it cannot be divided", (size,))
    block = divisor_near(size, min(_MOST_BLOCK, max(_LEAST_BLOCK, size / _BLOCKS)))
    if not _LEAST_BLOCK // 2 <= block <= 2 * _MOST_BLOCK or size // block < _BLOCKS // 2:
        return Miss("no row is very long")
    parts, kept = row_parts(block), view.sizes[:-1]
    shape: Shape = (*kept, size // block, block // math.prod(parts), *reversed(parts))
    return _chain(e, node, x, [(axis,) for axis in (len(kept), *range(len(shape) - 1, len(kept), -1))], shape)


@plan(REDUCE_SUM, REDUCE_MEAN, gives=REASSOCIATES)
def sum_by_product(e: Sketch, node: Node, x: Term) -> Lowered:
    """A sum or mean over the first axes becomes the product of a row of equal numbers with a matrix.

    The kernel of the reduction adds few rows column by column, the kernel of the product takes many columns at once.
    """
    view, home = view_of(e.graph, node, _axes(node)), x.dtype.accumulator
    rows = view.sizes[0]
    if not x.dtype.is_float or view.kind != "RK":
        return Miss("it is not a sum of floats over the first axes")
    if not isinstance(rows, int):
        return Miss("{0} rows are not a known number of them", (rows,))
    if reason := _why_not_moved(e, x):
        return reason
    if not e.target.has_kernel(MATMUL, home):
        return Miss("the target has no matrix product of {0}", (x.dtype,))
    row = e.full(shape=(1, rows), value=1 / rows if node.op is REDUCE_MEAN else 1, dtype=home)
    made = e.matmul(row, x.cast(home).reshape(view.sizes))
    return made.cast(node.result.type.dtype).reshape(node.result.shape)


#: The first of two that come to the same nodes is taken: it needs fewer rewrites.
PLANS: tuple[type[Plan], ...] = (
    reduce_in_steps,
    sum_blocks_first,
    sum_by_product,
    reduce_inner_first,
    reduce_outer_first,
    reduce_for_pool,
    reduce_ones_too,
)
