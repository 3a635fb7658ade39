"""Rules about the axes of a reduction: order, size 1, nested reductions, ``keepdims`` and the highest rank."""

from __future__ import annotations

from math import inf
from typing import Any

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, product
from dmlc.ops.move import RESHAPE, SQUEEZE, UNSQUEEZE, AxesAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, LP_NORM, MEAN_VARIANCE_NORM, SOFTMAX
from dmlc.ops.reduce import (
    MERGES,
    REDUCE_LOG_SUM,
    REDUCE_MEAN,
    REDUCE_SUM_SQUARE,
    REDUCTIONS,
    ReduceAttributes,
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
from dmlc.passes.layouts import Origin, follow, is_unit
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, lowers, simplifies, taken_elsewhere
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.rewrite import Miss, Rule, used_elsewhere


def _class_of_order(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    return order_class(match.root) if match.root.op in REDUCTIONS else EXACT


@simplifies(*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX, gives=_class_of_order)
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
    return e(node.op, x, attributes=replace(attributes, axes=kept))


def _class_of_element(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    return elementwise_class(reduction_of(match.root))


@simplifies(*REDUCTIONS, gives=_class_of_element)
def drop_empty_reduction(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over no axes, or only over axes of size 1, becomes its elementwise part, if it has one."""
    a, alone = node.attributes_as(ReduceAttributes), reduction_of(node).alone
    for axis in a.axes:
        if not is_unit(e.graph, x.shape[axis]):
            return KEEP
    if node.op is REDUCE_SUM_SQUARE:
        x = x * x
    elif alone is not None and x.dtype.kind != "uint":  # an unsigned number is its own magnitude
        x = e(alone, x)
    return e.squeeze(x, axes=a.axes) if a.axes and not a.keepdims else x


_KINDS = frozenset(REDUCTIONS)
_SIZE_ONE_MOVES = frozenset((SQUEEZE, UNSQUEEZE, RESHAPE))
#: Most moves between two reductions that are looked through; folding leaves at most one.
_MOST_MOVES = 4


def _merged(graph: Graph, match: LoweredNode) -> tuple[Operation, Node, tuple[int, ...], Graph]:
    """The outer operation, the inner reduction, and the axes of both."""
    *between, inner = match.consumed
    return match.root.op, inner, _merged_axes(graph, match.root, between, inner) or (), graph


@simplifies(
    *REDUCTIONS,
    fed_by=(*REDUCTIONS, UNSQUEEZE, SQUEEZE, RESHAPE),
    class_of=lambda rule, match, graph, context: merge_class(*_merged(graph, match), context.target),
    relies_on=lambda rule, match, graph: promises_in_range(*_merged(graph, match)),
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
    for axis in outer.attributes_as(ReduceAttributes).axes:
        origin = origins[axis]
        if origin is not None:
            axes.add(origin)
    return tuple(sorted(axes))


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
