"""``canonicalize-reduce``: every reduction in one form, and as few of them as the program allows."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Dim, DType, Graph, Node, Operation, Shape, product
from dmlc.ops.choose import CAST
from dmlc.ops.move import EXPAND, RESHAPE, RESHAPES, SQUEEZE, TRANSPOSE, UNSQUEEZE, AxesAttributes, TransposeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, LP_NORM, MEAN_VARIANCE_NORM, SOFTMAX
from dmlc.ops.reduce import (
    EXTREMES,
    GOES_ON,
    MERGES,
    REDUCE_LOG_SUM,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    REDUCTIONS,
    ReduceAttributes,
    axes_of,
    reduction_of,
)
from dmlc.ops.rules import reduced_shape
from dmlc.ops.scan import CUMPROD, CUMSUM
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.passes.canonicalize_reduce.kinds import (
    elementwise_class,
    merge_class,
    order_class,
    promises_in_range,
    reduce_to,
)
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.layouts import Origin, follow, is_unit
from dmlc.passes.lowering import KEEP, Lowered, lowers, simplifies, taken_elsewhere
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Miss, RewritePass, Rule, rules_of, used_elsewhere

# --- Rules about the axes of a reduction: order, size 1, nested reductions, ``keepdims`` and the highest rank


@simplifies(*REDUCTIONS, gives=(EXACT, REASSOCIATES))
def drop_empty_reduction(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over no axes, or only over axes of size 1, becomes its elementwise part, if it has one."""
    a, alone = node.attributes_as(ReduceAttributes), reduction_of(node).alone
    for axis in a.axes:
        if not is_unit(e.graph, x.shape[axis]):
            return KEEP
    e.gives = elementwise_class(reduction_of(node))
    if node.op is REDUCE_SUM_SQUARE:
        x = x * x
    elif alone is not None and x.dtype.kind != "uint":  # an unsigned number is its own magnitude
        x = e(alone, x)
    return e.squeeze(x, axes=a.axes) if a.axes and not a.keepdims else x


@simplifies(*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX, gives=(EXACT, REASSOCIATES))
def drop_unit_axes(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction leaves out axes of size 1, but keeps at least one axis.

    With ``keepdims=false`` they stay: taking one out of the list would cost a squeeze. Kernels choose by the list how
    they go over the elements, so that sums of floats are added up in another order: ``reassociates``.
    """
    attributes: Any = node.attributes
    if len(attributes.axes) < 2 or not getattr(attributes, "keepdims", True):
        return KEEP
    kept = e.counting(x, attributes.axes)
    if len(kept) == len(attributes.axes) or is_unit(e.graph, x.shape[kept[0]]):
        return KEEP
    e.gives = order_class(node) if node.op in REDUCTIONS else EXACT
    return e(node.op, x, attributes=replace(attributes, axes=kept))


_KINDS = frozenset(REDUCTIONS)
_SIZE_ONE_MOVES = frozenset((SQUEEZE, UNSQUEEZE, RESHAPE))
#: Most moves between two reductions that are looked through; folding leaves at most one.
_MOST_MOVES = 4


@simplifies(
    *REDUCTIONS,
    fed_by=(*REDUCTIONS, UNSQUEEZE, SQUEEZE, RESHAPE),
    gives=(EXACT, REASSOCIATES, RANGE),
)
def merge_nested_reductions(e: Sketch, node: Node, y: Term) -> Lowered:
    """``reduce_sum(reduce_sum(x, axes=[2]), axes=[1])`` becomes ``reduce_sum(x, axes=[1, 2])``, and so on for its kind.

    Moves between the two that only add or take out axes of size 1 are looked through. Max and min are ``exact``, so are
    sums and products of integers that wrap (``range`` where they may saturate). For floats rounding may differ
    (``reassociates``), and so may overflow on the way. A mean of means divides before it adds again. The one mean adds
    all elements first, so its larger sum can overflow where the chain did not. Integer means truncate and stay.
    """
    between: list[Node] = []
    inner = y.value.producer
    while inner is not None and inner.op in _SIZE_ONE_MOVES and len(between) < _MOST_MOVES:
        between.append(inner)
        inner = inner.operand("x").producer
    if inner is None or inner.op not in _KINDS:
        return KEEP
    axes = _merged_axes(e.graph, node, between, inner)
    if axes is None:
        return KEEP
    e.taken += [*between, inner]
    if reason := taken_elsewhere(e):
        return reason
    pair = node.op, inner.op
    if pair not in MERGES:
        return Miss(_WHY_NOT.get(pair, "{0} of {1} is not a single reduction"), (node.op.name, inner.op.name))
    if node.op is REDUCE_MEAN and y.dtype.is_integer:
        return Miss("integer means truncate, so the mean of means may differ from the mean")
    e.gives = merge_class(node.op, inner, axes, e.graph, e.target.target)
    e.promised = promises_in_range(node.op, inner, axes, e.graph) if e.gives == RANGE else ()
    record = ReduceAttributes(axes=axes, keepdims=False)
    return reduce_to(e, MERGES[pair], inner.operand("x"), record, node.result.shape)


_WHY_NOT: dict[tuple[Operation, Operation], str] = {
    (REDUCE_SUM_SQUARE, REDUCE_SUM_SQUARE): "the squares of sums of squares do not add up to a sum of squares",
    (REDUCE_LOG_SUM, REDUCE_LOG_SUM): "the logarithm of a sum of logarithms is not the logarithm of the whole sum",
}


def _merged_axes(graph: Graph, outer: Node, between: list[Node], inner: Node) -> tuple[int, ...] | None:
    """The axes of both in terms of the inner operand; None where a move between does more than add or drop 1s."""
    attributes = inner.attributes_as(ReduceAttributes)
    rank = inner.operand("x").type.rank
    gone = () if attributes.keepdims else attributes.axes
    origins: list[Origin] | None = [a for a in range(rank) if a not in gone]
    for node in reversed(between):
        assert origins is not None
        origins = follow(graph, node, origins)
        if origins is None:
            return None
    assert origins is not None
    axes = set(attributes.axes)
    for axis in axes_of(outer):
        origin = origins[axis]
        if origin is not None:
            axes.add(origin)
    return tuple(sorted(axes))


def _axes(node: Node) -> tuple[int, ...]:
    attributes: Any = node.attributes
    return (attributes.axis,) if hasattr(attributes, "axis") else attributes.axes


_KEEPING = frozenset((*REDUCTIONS, ARGMAX, ARGMIN))


@simplifies(SQUEEZE, UNSQUEEZE, RESHAPE, fed_by=_KEEPING)
def absorb_move_into_keepdims(e: Sketch, node: Node, y: Term) -> Lowered:
    """A squeeze, unsqueeze or reshape after a reduction that ``keepdims`` can say becomes that flag."""
    inner = e.made_by(y, *_KEEPING)
    if inner is None:
        return KEEP
    a: Any = inner.attributes
    axes, keepdims = a.axes, not a.keepdims
    if reduced_shape(inner.operand("x").shape, axes, keepdims) != node.result.shape:
        if node.op is not SQUEEZE:
            return KEEP
        keepdims = False
        axes = _with_squeezed(e.graph, inner, axes, a.keepdims, node.attributes_as(AxesAttributes).axes)
    if axes is None:
        return KEEP
    record = replace(a, axes=axes, keepdims=keepdims)
    return used_elsewhere(y.value) or e(inner.op, *inner.operands, attributes=record)


def _with_squeezed(
    graph: Graph, inner: Node, axes: tuple[int, ...], keepdims: bool, squeezed: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The reduced axes and the squeezed ones together, as axes of the reduction's operand.

    Reducing an axis of size 1 too changes nothing. None where a reduced axis would stay, or size 1 is not proved.
    """
    shape = inner.operand("x").shape
    left = [a for a in range(len(shape)) if keepdims or a not in axes]
    taken = {left[s] for s in squeezed}
    if keepdims and not set(axes) <= taken:
        return None
    if not all(is_unit(graph, shape[a]) for a in taken.difference(axes)):
        return None
    return tuple(sorted(taken.union(axes)))


# --- Rules for layout operations before a reduction: transposes, reshapes, expands and casts

_SELECTIONS = (ARGMAX, ARGMIN)


@simplifies(*REDUCTIONS, *_SELECTIONS, fed_by=(TRANSPOSE,), gives=(EXACT, REASSOCIATES))
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
    e.gives = order_class(node)
    record = replace(attributes, axes=tuple(sorted(axes)))
    return used_elsewhere(y.value) or reduce_to(e, node.op, x, record, node.result.shape)


def _any(node: Node) -> Any:
    return node.attributes


@simplifies(*REDUCTIONS, fed_by=(TRANSPOSE,), gives=(EXACT, REASSOCIATES))
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
    e.gives = order_class(node)
    perm = between.attributes_as(TransposeAttributes).perm
    axes = tuple(sorted([perm[a] for a in attributes.axes]))
    made = e(node.op, below.result, attributes=replace(attributes, axes=axes))
    if attributes.keepdims:
        return e.transpose(made, perm=perm)
    left = [a for a in range(len(perm)) if a not in axes]
    return e.transpose(made, perm=tuple([left.index(p) for p in perm if p not in axes]))


@simplifies(*REDUCTIONS, fed_by=(UNSQUEEZE, RESHAPE, SQUEEZE), gives=(EXACT, REASSOCIATES))
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
    if before is None or found is None:
        return Miss("the reshape from {0} to {1} does more than regroup axes that are reduced", (x.type, y.type))
    e.taken.append(inner)
    means = node.op is REDUCE_MEAN and y.dtype.is_integer  # refused over no elements
    if means and any(e.graph.dims.promises_empty(x.shape[a]) for a in before):
        return Miss("an axis of {0} may be empty", (x.type,), x)
    e.gives = EXACT if all(len(old) == len(new) == 1 for old, new in found) else order_class(node)
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


@simplifies(*_ADDING, REDUCE_MEAN, *EXTREMES, fed_by=(EXPAND,), gives=(EXACT, REASSOCIATES, RANGE))
def reduction_of_expand(e: Sketch, node: Node, y: Term) -> Lowered:
    """A sum of n equal elements becomes their product with n, a max, min or mean of them the element.

    Max and min are ``exact``; so are integer sums where the target's wrap, else they are ``range``. Of floats the
    product rounds once where the sum rounds n - 1 times, and a mean's partial sums cannot overflow any more.
    """
    inner, axes, dtype = e.made_by(y, EXPAND), axes_of(node), y.dtype
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
    if node.op not in EXTREMES:
        e.gives = REASSOCIATES if dtype.is_float else EXACT if e.target.target.wraps_integers else RANGE
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


@lowers(
    *(*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX, MEAN_VARIANCE_NORM, TOP_K, CUMSUM, CUMPROD, LP_NORM),
    offered=lambda rule, node, graph: node.operand("x").type.rank > (rule.capabilities.target.max_rank or inf),
    describe=Rule.describe,
)
def lower_rank(e: Sketch, node: Node, x: Term) -> Lowered:
    """``reduce(x)`` of a high rank becomes reshape, reduce over merged axes, reshape.

    Row-major order stays, so an index over several axes (``argmax``) counts as before.
    """
    treated, attributes = _axes(node), node.attributes
    # An axis of size 1 may go with either neighbour, unless all treated axes are such.
    free = {i for i, d in enumerate(x.shape) if is_unit(e.graph, d)}
    if free.issuperset(treated):
        free = set()
    if hasattr(attributes, "axis"):
        free.discard(treated[0])
    runs: list[list[int]] = []
    fates: list[bool | None] = []
    for axis in range(x.rank):
        fate = None if axis in free else axis in treated
        if runs and (fate is None or fates[-1] is None or fates[-1] is fate):
            runs[-1].append(axis)
            fates[-1] = fate if fates[-1] is None else fates[-1]
        else:
            runs.append([axis])
            fates.append(fate)
    limit = e.target.target.max_rank
    if limit is not None and len(runs) > limit:
        text = "treated and other axes alternate: merging neighbours leaves {0} axes, the limit is {1}"
        return Miss(text, (len(runs), limit), x.value)
    axes = tuple([i for i, fate in enumerate(fates) if fate])
    changed: dict[str, Any] = {"axis": axes[0]} if hasattr(attributes, "axis") else {"axes": axes}
    flat = x.reshape([product([x.shape[a] for a in run]) for run in runs])
    made = e.results(node.op, flat, attributes=replace(attributes, **changed))
    return [new.reshape(old.shape) for new, old in zip(made, node.results, strict=True)]


_RULES = rules_of(globals())


class CanonicalizeReduce(RewritePass, frozen=True):
    """Rules about the axes, the rank and the nesting of reductions.

    Afterwards an axis of size 1 is reduced only where ``keepdims=false`` takes it out anyway. A reduction over nothing
    is its elementwise part, and nested reductions of one kind are one. ``keepdims`` replaces a squeeze or unsqueeze.

    The rules about axes and ``keepdims``, and the merging of max, min and wrapping integers are ``exact``. Float sums
    reassociate. A merge that may overflow in between is ``range``.
    """

    name: ClassVar[str] = "canonicalize-reduce"
    summary: ClassVar[str] = "Bring reductions to one form and merge nested ones."
    rewrite_class: ClassVar[str] = RANGE
    ensures: ClassVar[tuple[str, ...]] = ("canonical-reduce",)

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return (*_RULES, *MOVE_RULES)
