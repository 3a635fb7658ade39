"""Rules for layout operations before a reduction: transposes, reshapes, expands and casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Dim, DType, Graph, Node, Operation, Shape, product
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
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, simplifies, taken_elsewhere
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Miss, used_elsewhere

_SELECTIONS = (ARGMAX, ARGMIN)


def _order(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    return order_class(match.root)


@simplifies(*REDUCTIONS, *_SELECTIONS, fed_by=(TRANSPOSE,), gives=_order)
def drop_transpose_before_reduction(e: Sketch, node: Node, y: Term) -> Lowered:
    """A reduction (or argmax, argmin) of a transpose becomes one over the axes before it, where the others keep order.

    Sums of floats may be added in another order (``reassociates``); max, min and selections are ``exact``. An index
    over several axes counts them in their order.
    """
    inner, attributes = e.made_by(y, TRANSPOSE), _any(node)
    if inner is None or not attributes.axes:
        return KEEP
    x, perm = inner.operand("x"), inner.attributes_as(TransposeAttributes).perm
    axes, kept = [perm[a] for a in attributes.axes], [p for i, p in enumerate(perm) if i not in attributes.axes]
    moving = [a for a in kept if x.shape[a] != 1]
    if moving != sorted(moving):
        return Miss("the kept axes come out permuted, as {0}: a transpose must remain", (kept,))
    if node.op in _SELECTIONS and axes != sorted(axes):
        return Miss("the index counts the axes in the order {0}", (axes,))
    record = replace(attributes, axes=tuple(sorted(axes)))
    return used_elsewhere(y.value) or reduce_to(e, node.op, x, record, node.result.shape)


def _any(node: Node) -> Any:
    return node.attributes


@simplifies(*REDUCTIONS, fed_by=(TRANSPOSE,), gives=_order)
def sink_transpose_between_reductions(e: Sketch, node: Node, y: Term) -> Lowered:
    """A transpose between two reductions that merge goes after both, where the axes that stay come out permuted.

    Sums of floats may be added in another order (``reassociates``), the others are ``exact``.
    """
    between, attributes = e.made_by(y, TRANSPOSE), node.attributes_as(ReduceAttributes)
    below = None if between is None else between.operand("x").producer
    if between is None or not attributes.axes or below is None or (node.op, below.op) not in MERGES:
        return KEEP
    if node.op is REDUCE_MEAN and y.dtype.is_integer:
        return Miss("integer means truncate, so the mean of means may differ from the mean")
    if reason := used_elsewhere(y.value) or used_elsewhere(below.result):
        return reason
    perm = between.attributes_as(TransposeAttributes).perm
    axes = tuple(sorted([perm[a] for a in attributes.axes]))
    made = e(node.op, below.result, attributes=replace(attributes, axes=axes))
    if attributes.keepdims:
        return e.transpose(made, perm=perm)
    left = [a for a in range(len(perm)) if a not in axes]
    return e.transpose(made, perm=tuple([left.index(p) for p in perm if p not in axes]))


def _order_after_reshape(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    inner = match.consumed[0]
    found = segments(graph, inner.operand("x").shape, inner.result.shape) or ()
    only_ones = all(len(before) == len(after) == 1 for before, after in found)
    return EXACT if only_ones else order_class(match.root)


@simplifies(*REDUCTIONS, fed_by=(UNSQUEEZE, RESHAPE, SQUEEZE), gives=_order_after_reshape)
def drop_flatten_before_reduction(e: Sketch, node: Node, y: Term) -> Lowered:
    """A reduction of a reshape becomes one over the axes before it: those that were merged, split or moved.

    Sums of floats may be added in another order (``reassociates``), the others are ``exact``.
    """
    inner, axes, limit = made_by(y.value, *RESHAPES), _any(node).axes, e.target.target.max_rank
    if inner is None or all(is_unit(e.graph, y.shape[a]) for a in axes):
        return KEEP  # nothing is reduced
    x = inner.operand("x")
    if limit is not None and x.type.rank > limit:
        return KEEP
    found = segments(e.graph, x.shape, y.shape)
    before = None if found is None else _before(found, axes)
    if before is None:
        return Miss("the reshape from {0} to {1} does more than regroup axes that are reduced", (x.type, y.type))
    e.taken.append(inner)
    means = node.op is REDUCE_MEAN and y.dtype.is_integer  # refused over no elements
    if means and any(e.graph.dims.promises_empty(x.shape[a]) for a in before):
        return Miss("an axis of {0} may be empty", (x.type,), x)
    record = ReduceAttributes(axes=before, keepdims=False)
    return used_elsewhere(y.value) or reduce_to(e, node.op, x, record, node.result.shape)


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


def _class_of_expand(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    if match.root.op in EXTREMES:
        return EXACT
    if match.root.result.type.dtype.is_float:
        return REASSOCIATES
    return EXACT if context.target.wraps_integers else RANGE


@simplifies(*_ADDING, REDUCE_MEAN, *EXTREMES, fed_by=(EXPAND,), gives=_class_of_expand)
def reduction_of_expand(e: Sketch, node: Node, y: Term) -> Lowered:
    """A sum of n equal elements becomes their product with n, a max, min or mean of them the element.

    Max and min are ``exact``; so are integer sums where the target's wrap, else they are ``range``. Of floats the
    product rounds once where the sum rounds n - 1 times, and a mean's partial sums cannot overflow any more.
    """
    inner, axes, dtype = e.made_by(y, EXPAND), node.attributes_as(ReduceAttributes).axes, y.dtype
    if inner is None:
        return KEEP
    x = inner.operand("x")
    offset = y.rank - x.type.rank
    wider = [a for a, size in enumerate(y.shape) if a < offset or x.shape[a - offset] != size]
    broadcast, kept = [y.shape[a] for a in wider if a in axes], [a for a in wider if a not in axes]
    if not broadcast:
        return KEEP
    stays = [a for a in kept if not is_unit(e.graph, y.shape[a])]
    if stays:
        return Miss("axis {0} is broadcast too and stays", (stays[-1],))
    if reason := _why_not_multiplied(e, node.op, dtype, broadcast) or used_elsewhere(y.value):
        return reason
    before = tuple([a - offset for a in axes if a >= offset])
    if before:
        value = e.of(reduce_to(e, node.op, x, ReduceAttributes(axes=before, keepdims=False), node.result.shape))
    else:  # all that is reduced was not there before, but for the elementwise part
        value = e.reduced(node.op, x, ()).with_ones(node.result.shape)
    return value * product(broadcast) if node.op in _ADDING else value


def _why_not_multiplied(e: Sketch, op: Operation, dtype: DType, broadcast: Sequence[Dim]) -> Miss | None:
    count = product(broadcast)
    if any(e.graph.dims.interval(d)[0] < 1 for d in broadcast):
        return Miss("the broadcast axes {0} may have no element", (list(map(str, broadcast)),))
    if op is REDUCE_MEAN and dtype.is_integer:
        return Miss("integer sums may overflow on the way to a mean")
    if op not in _ADDING:
        return None
    if not isinstance(count, int):
        return Miss("how many equal elements are added is not known while compiling: {0}", (count,))
    if count > (int(dtype.highest) if dtype.is_integer else 2 ** (1 + np.finfo(dtype.numpy).nmant)):
        return Miss("{0} does not hold every number up to {1}, the number of equal elements", (dtype, count))
    return None


@simplifies(CAST, fed_by=(REDUCE_MAX, REDUCE_MIN))
def casts_around_maximum(e: Sketch, node: Node, y: Term) -> Lowered:
    """cast(reduce_max(cast(x, to=f32)), to=f16) of an f16 tensor becomes reduce_max(x), and so on for wider floats.

    ``exact``: widening keeps every value and the order, and the narrower dtype holds the element that is chosen.
    """
    reduction = e.made_by(y, REDUCE_MAX, REDUCE_MIN)
    first = None if reduction is None else e.made_by(reduction.operand("x"), CAST)
    if reduction is None or first is None:
        return KEEP
    source, wide, to = first.operand("x").type.dtype, first.result.type.dtype, node.result.type.dtype
    if not source.is_float or not wide.is_float or wide.bits <= source.bits or to is not source:
        return KEEP
    return taken_elsewhere(e) or e(reduction.op, first.operand("x"), attributes=reduction.attributes)
