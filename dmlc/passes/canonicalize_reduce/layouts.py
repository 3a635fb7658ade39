"""Rules for layout operations before a reduction: transposes, reshapes, expands and casts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Dim, Graph, Node, Operation, Shape, Value, product
from dmlc.ops.binary import MUL
from dmlc.ops.choose import CAST
from dmlc.ops.move import EXPAND, RESHAPE, RESHAPES, SQUEEZE, TRANSPOSE, UNSQUEEZE, TransposeAttributes
from dmlc.ops.reduce import (
    EXTREMES,
    GOES_ON,
    MERGES,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCTIONS,
    ReduceAttributes,
)
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.canonicalize_reduce.kinds import order_class, reduce_to
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

_SELECTIONS = (ARGMAX, ARGMIN)


class _ReducedTransposeMatch(Match, eq=False, kw_only=True):
    """``axes`` of the transpose's operand in the order of the reduction, ``kept`` the others in the result's order."""

    axes: tuple[int, ...]
    kept: tuple[int, ...]


class DropTranspose(Rule[_ReducedTransposeMatch]):
    """A reduction (or argmax, argmin) of a transpose becomes one over the axes before it, where the others keep order.

    Sums of floats may be added in another order (``reassociates``); max, min and selections are ``exact``. An index
    over several axes counts them in their order.
    """

    name = "drop-transpose-before-reduction"
    roots: ClassVar[tuple[Operation, ...]] = (*REDUCTIONS, ARGMAX, ARGMIN)
    fed_by: ClassVar[Collection[Operation]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> _ReducedTransposeMatch | None:
        inner = node.operand("x").producer
        if inner is None or inner.op is not TRANSPOSE:
            return None
        attributes: Any = node.attributes
        perm = inner.attributes_as(TransposeAttributes).perm
        if not attributes.axes:
            return None
        axes = tuple([perm[a] for a in attributes.axes])
        kept = tuple([p for i, p in enumerate(perm) if i not in attributes.axes])
        return _ReducedTransposeMatch(node, (inner,), axes=axes, kept=kept)

    def check(self, match: _ReducedTransposeMatch, graph: Graph) -> Miss | None:
        shape = match.consumed[0].operand("x").shape
        moving = [a for a in match.kept if shape[a] != 1]
        if moving != sorted(moving):
            return Miss("the kept axes come out permuted, as {0}: a transpose must remain", (list(match.kept),))
        if match.root.op in _SELECTIONS and list(match.axes) != sorted(match.axes):
            return Miss("the index counts the axes in the order {0}", (list(match.axes),))
        return used_elsewhere(match.consumed[0].result)

    def class_of(self, match: _ReducedTransposeMatch, graph: Graph, context: PassContext) -> str:
        return order_class(match.root)

    def build(self, match: _ReducedTransposeMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        attributes: Any = root.attributes
        x = match.consumed[0].operand("x")
        record = replace(attributes, axes=tuple(sorted(match.axes)))
        return [reduce_to(rewriter, root.op, x, record, root.result.shape)]


class SinkTranspose(Rule[Match]):
    """A transpose between two reductions that merge goes after both, where the axes that stay come out permuted.

    Sums of floats may be added in another order (``reassociates``), the others are ``exact``.
    """

    name = "sink-transpose-between-reductions"
    roots: ClassVar[tuple[Operation, ...]] = REDUCTIONS
    fed_by: ClassVar[Collection[Operation]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand("x").producer
        if inner is None or inner.op is not TRANSPOSE or not node.attributes_as(ReduceAttributes).axes:
            return None
        below = inner.operand("x").producer
        return Match(node, (inner,)) if below is not None and (node.op, below.op) in MERGES else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        between = match.consumed[0]
        if match.root.op is REDUCE_MEAN and match.root.result.type.dtype.is_integer:
            return Miss("integer means truncate, so the mean of means may differ from the mean")
        return used_elsewhere(between.result) or used_elsewhere(between.operand("x"))

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return order_class(match.root)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, between = match.root, match.consumed[0]
        attributes = root.attributes_as(ReduceAttributes)
        perm = between.attributes_as(TransposeAttributes).perm
        axes = tuple(sorted([perm[a] for a in attributes.axes]))
        record = replace(attributes, axes=axes)
        made = rewriter.add(root.op, [between.operand("x")], record)
        if attributes.keepdims:
            return [rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=perm))]
        left = [a for a in range(len(perm)) if a not in axes]
        kept = tuple([left.index(p) for p in perm if p not in axes])
        return [rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=kept))]


class _ReducedReshapeMatch(Match, eq=False, kw_only=True):
    """``axes`` of what was reshaped; ``same_order`` where nothing but axes of size 1 was added or dropped."""

    axes: tuple[int, ...]
    same_order: bool


class DropFlatten(Rule[_ReducedReshapeMatch]):
    """A reduction of a reshape becomes one over the axes before it: those that were merged, split or moved.

    Sums of floats may be added in another order (``reassociates``), the others are ``exact``.
    """

    name = "drop-flatten-before-reduction"
    roots: ClassVar[tuple[Operation, ...]] = REDUCTIONS
    fed_by: ClassVar[Collection[Operation]] = (UNSQUEEZE, RESHAPE, SQUEEZE)

    def match(self, node: Node, graph: Graph) -> _ReducedReshapeMatch | Miss | None:
        inner = node.operand("x").producer
        axes = node.attributes_as(ReduceAttributes).axes
        if inner is None or inner.op not in RESHAPES:
            return None
        old, new = inner.operand("x").shape, inner.result.shape
        if self.capabilities.target.max_rank is not None and len(old) > self.capabilities.target.max_rank:
            return None
        if all(is_unit(graph, new[a]) for a in axes):
            return None  # nothing is reduced
        found = segments(graph, old, new)
        before = None if found is None else _before(found, axes)
        if found is None or before is None:
            types = (inner.operand("x").type, inner.result.type)
            return Miss("the reshape from {0} to {1} does more than regroup axes that are reduced", types)
        same_order = all(len(before) == len(after) == 1 for before, after in found)
        return _ReducedReshapeMatch(node, (inner,), axes=before, same_order=same_order)

    def check(self, match: _ReducedReshapeMatch, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        x = inner.operand("x")
        means = match.root.op is REDUCE_MEAN and x.type.dtype.is_integer  # refused over no elements
        if means and any(graph.dims.promises_empty(x.shape[a]) for a in match.axes):
            return Miss("an axis of {0} may be empty", (x.type,), x)
        return used_elsewhere(inner.result)

    def class_of(self, match: _ReducedReshapeMatch, graph: Graph, context: PassContext) -> str:
        return EXACT if match.same_order else order_class(match.root)

    def build(self, match: _ReducedReshapeMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.consumed[0].operand("x")
        return [reduce_to(rewriter, root.op, x, ReduceAttributes(axes=match.axes, keepdims=False), root.result.shape)]


Segment = tuple[list[int], list[int]]


def segments(graph: Graph, old: Shape, new: Shape) -> list[Segment] | None:
    """The axes in the shortest runs that hold the same elements before and after; axes of size 1 are in none.

    A run of one axis on both sides is that axis. None where there are no such runs, or no elements.
    """
    if 0 in old:
        return None
    before = [a for a, size in enumerate(old) if not is_unit(graph, size)]
    after = [a for a, size in enumerate(new) if not is_unit(graph, size)]
    # Products of sizes from the left: where both sides have the same one, a run ends. Of polynomials, equal products
    # after equal products mean equal factors between.
    ends = {size: place + 1 for place, size in enumerate(_running([new[a] for a in after]))}
    out: list[Segment] = []
    first = start = 0
    for place, size in enumerate(_running([old[a] for a in before])):
        end = ends.get(size)
        if end is not None:
            out.append((before[first : place + 1], after[start:end]))
            first, start = place + 1, end
    return out if first == len(before) and start == len(after) else None


def _running(sizes: Sequence[Dim]) -> list[Dim]:
    out: list[Dim] = []
    total: Dim = 1
    for size in sizes:
        total = total * size
        out.append(total)
    return out


def _before(found: Sequence[Segment], axes: Sequence[int]) -> tuple[int, ...] | None:
    """The axes before the reshape that are reduced; None where a run is only partly so, or is kept in another form."""
    out: list[int] = []
    for before, after in found:
        if all(a in axes for a in after):
            out.extend(before)
        elif not len(before) == len(after) == 1:
            return None
    return tuple(out)


def axis_groups(old: Shape, new: Shape) -> list[tuple[int, int]] | None:
    """For each new axis the old ones (first, last + 1) that it was made of; None where axes were split or regrouped."""
    out: list[tuple[int, int]] = []
    start = 0
    for index, size in enumerate(new):
        last = len(old) if index == len(new) - 1 else start
        while last < len(old) and product(old[start:last]) != size:
            last += 1
        if product(old[start:last]) != size:
            return None
        out.append((start, last))
        start = last
    return out


_ADDING = tuple([op for op, total in GOES_ON.items() if total is REDUCE_SUM])


class _ReducedExpandMatch(Match, eq=False, kw_only=True):
    """``axes`` of the expand's operand that are reduced, ``broadcast`` the sizes that its equal elements had.

    ``kept`` is a broadcast axis that is not reduced.
    """

    axes: tuple[int, ...]
    broadcast: Shape
    kept: int | None


class DropExpanded(Rule[_ReducedExpandMatch]):
    """A sum of n equal elements becomes their product with n, a max, min or mean of them the element.

    Max and min are ``exact``; so are integer sums where the target's wrap, else they are ``range``. Of floats the
    product rounds once where the sum rounds n - 1 times, and a mean's partial sums cannot overflow any more.
    """

    name = "reduction-of-expand"
    roots: ClassVar[tuple[Operation, ...]] = (*_ADDING, REDUCE_MEAN, *EXTREMES)
    fed_by: ClassVar[Collection[Operation]] = (EXPAND,)

    def match(self, node: Node, graph: Graph) -> _ReducedExpandMatch | None:
        inner = node.operand("x").producer
        axes = node.attributes_as(ReduceAttributes).axes
        if inner is None or inner.op is not EXPAND:
            return None
        old, new = inner.operand("x").shape, inner.result.shape
        offset = len(new) - len(old)
        broadcast, kept = [], None
        for axis, size in enumerate(new):
            if axis >= offset and old[axis - offset] == size:
                continue
            if axis in axes:
                broadcast.append(size)
            elif not is_unit(graph, size):
                kept = axis
        if not broadcast:
            return None
        before = tuple([a - offset for a in axes if a >= offset])
        return _ReducedExpandMatch(node, (inner,), axes=before, broadcast=tuple(broadcast), kept=kept)

    def check(self, match: _ReducedExpandMatch, graph: Graph) -> Miss | None:
        root = match.root
        dtype = root.result.type.dtype
        if match.kept is not None:
            return Miss("axis {0} is broadcast too and stays", (match.kept,))
        if any(graph.dims.interval(d)[0] < 1 for d in match.broadcast):
            return Miss("the broadcast axes {0} may have no element", (list(map(str, match.broadcast)),))
        if root.op in _ADDING:
            count = product(match.broadcast)
            if not isinstance(count, int):
                return Miss("how many equal elements are added is not known while compiling: {0}", (count,))
            if count > (int(dtype.highest) if dtype.is_integer else 2 ** (1 + np.finfo(dtype.numpy).nmant)):
                return Miss("{0} does not hold every number up to {1}, the number of equal elements", (dtype, count))
        if root.op is REDUCE_MEAN and dtype.is_integer:
            return Miss("integer sums may overflow on the way to a mean")
        return used_elsewhere(match.consumed[0].result)

    def class_of(self, match: _ReducedExpandMatch, graph: Graph, context: PassContext) -> str:
        if match.root.op in EXTREMES:
            return EXACT
        if match.root.result.type.dtype.is_float:
            return REASSOCIATES
        return EXACT if context.target.wraps_integers else RANGE

    def build(self, match: _ReducedExpandMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.consumed[0].operand("x")
        if match.axes:
            record = ReduceAttributes(axes=match.axes, keepdims=False)
            value = reduce_to(rewriter, root.op, x, record, root.result.shape)
        else:  # all that is reduced was not there before, but for the elementwise part
            value = rewriter.add(root.op, [x], ReduceAttributes(axes=(), keepdims=True))
            value = rewriter.with_ones(value, root.result.shape)
        if root.op not in _ADDING:
            return [value]
        count = np.asarray(product(match.broadcast), value.type.dtype.numpy)
        return [rewriter.add(MUL, [value, rewriter.constant(count)])]


class DropCasts(Rule[Match]):
    """cast(reduce_max(cast(x, to=f32)), to=f16) of an f16 tensor becomes reduce_max(x), and so on for wider floats.

    ``exact``: widening keeps every value and the order, and the narrower dtype holds the element that is chosen.
    """

    name = "casts-around-maximum"
    roots: ClassVar[tuple[Operation, ...]] = (CAST,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        reduction = node.operand("x").producer
        if reduction is None or (reduction.op is not REDUCE_MAX and reduction.op is not REDUCE_MIN):
            return None
        first = reduction.operand("x").producer
        if first is None or first.op is not CAST:
            return None
        source, wide, to = first.operand("x").type.dtype, first.result.type.dtype, node.result.type.dtype
        widens = source.is_float and wide.is_float and wide.bits > source.bits
        return Match(node, (reduction, first)) if widens and to is source else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        reduction, first = match.consumed
        return used_elsewhere(reduction.result) or used_elsewhere(first.result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        reduction, first = match.consumed
        return rewriter.add_node(reduction.op, [first.operand("x")], reduction.attributes).results
