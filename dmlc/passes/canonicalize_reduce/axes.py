"""Rules about the axes of a reduction: order, size 1, nested reductions, ``keepdims`` and the highest rank."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ops.binary import MUL
from dmlc.ops.move import RESHAPE, SQUEEZE, UNSQUEEZE, AxesAttributes, ReshapeAttributes
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
from dmlc.passes.layouts import Origin, follow, is_unit
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class AxesMatch(Match, eq=False, kw_only=True):
    """The axes that the operation shall have."""

    axes: tuple[int, ...]


def with_axes(match: AxesMatch, rewriter: Rewriter) -> Sequence[Value]:
    """The root again, over other axes."""
    attributes: Any = match.root.attributes
    record = replace(attributes, axes=match.axes)
    return rewriter.add_node(match.root.op, match.root.operands, record).results


class DropUnitAxes(Rule[AxesMatch]):
    """Axes of size 1 leave the list, but never the last one.

    With ``keepdims=false`` they stay: taking one out of the list would cost a squeeze. Kernels choose by the list how
    they go over the elements, so that sums of floats are added up in another order: ``reassociates``.
    """

    name = "drop-unit-axes"
    roots: ClassVar[tuple[Operation, ...]] = (*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX)

    def class_of(self, match: AxesMatch, graph: Graph, context: PassContext) -> str:
        return order_class(match.root) if match.root.op in REDUCTIONS else EXACT

    def match(self, node: Node, graph: Graph) -> AxesMatch | None:
        attributes: Any = node.attributes
        axes: tuple[int, ...] = attributes.axes
        if len(axes) < 2 or not getattr(attributes, "keepdims", True):
            return None
        shape = node.operand("x").shape
        kept = tuple([a for a in axes if not is_unit(graph, shape[a])])
        return AxesMatch(node, axes=kept) if kept and len(kept) < len(axes) else None

    def build(self, match: AxesMatch, rewriter: Rewriter) -> Sequence[Value]:
        return with_axes(match, rewriter)


class DropEmptyReduction(Rule[Match]):
    """A reduction over no axes, or only over axes of size 1, becomes its elementwise part, if it has one."""

    name = "drop-empty-reduction"
    roots: ClassVar[tuple[Operation, ...]] = REDUCTIONS

    def match(self, node: Node, graph: Graph) -> Match | None:
        shape = node.operand("x").shape
        axes = node.attributes_as(ReduceAttributes).axes
        for axis in axes:
            if not is_unit(graph, shape[axis]):
                return None
        return Match(node)

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return elementwise_class(reduction_of(match.root))

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        attributes = root.attributes_as(ReduceAttributes)
        value = root.operand("x")
        alone = reduction_of(root).alone
        if root.op is REDUCE_SUM_SQUARE:
            value = rewriter.add(MUL, [value, value])
        elif alone is not None and value.type.dtype.kind != "uint":  # an unsigned number is its own magnitude
            value = rewriter.add(alone, [value])
        if attributes.axes and not attributes.keepdims:
            value = rewriter.add(SQUEEZE, [value], AxesAttributes(axes=attributes.axes))
        return [value]


_KINDS = frozenset(REDUCTIONS)
_SIZE_ONE_MOVES = frozenset((SQUEEZE, UNSQUEEZE, RESHAPE))
#: Most moves between two reductions that are looked through; folding leaves at most one.
_MOST_MOVES = 4


class NestedMatch(Match, eq=False, kw_only=True):
    """``consumed`` ends with the inner reduction; before it stand the moves between, outermost first."""

    axes: tuple[int, ...]

    @property
    def inner(self) -> Node:
        return self.consumed[-1]


class MergeNested(Rule[NestedMatch]):
    """``reduce_sum(reduce_sum(x, axes=[2]), axes=[1])`` becomes ``reduce_sum(x, axes=[1, 2])``, and so on for its kind.

    Moves between the two that only add or take out axes of size 1 are looked through. Max and min are ``exact``, so are
    sums and products of integers that wrap (``range`` where they may saturate). For floats rounding may differ
    (``reassociates``), and so may overflow on the way. A mean of means divides before it adds again. The one mean adds
    all elements first, so its larger sum can overflow where the chain did not. Integer means truncate and stay.
    """

    name = "merge-nested-reductions"
    roots: ClassVar[tuple[Operation, ...]] = REDUCTIONS
    fed_by: ClassVar[Collection[Operation]] = (*REDUCTIONS, UNSQUEEZE, SQUEEZE, RESHAPE)

    def match(self, node: Node, graph: Graph) -> NestedMatch | None:
        between: list[Node] = []
        below = node.operand("x").producer
        while below is not None and below.op in _SIZE_ONE_MOVES and len(between) < _MOST_MOVES:
            between.append(below)
            below = below.operand("x").producer
        if below is None or below.op not in _KINDS:
            return None
        axes = _merged_axes(graph, node, between, below)
        return None if axes is None else NestedMatch(node, (*between, below), axes=axes)

    def check(self, match: NestedMatch, graph: Graph) -> Miss | None:
        outer, inner = match.root.op, match.inner.op
        for node in match.consumed:
            miss = used_elsewhere(node.result)
            if miss is not None:
                return miss
        if (outer, inner) not in MERGES:
            return Miss(_WHY_NOT.get((outer, inner), "{0} of {1} is not a single reduction"), (outer.name, inner.name))
        if outer is REDUCE_MEAN and match.root.result.type.dtype.is_integer:
            return Miss("integer means truncate, so the mean of means may differ from the mean")
        return None

    def class_of(self, match: NestedMatch, graph: Graph, context: PassContext) -> str:
        return merge_class(match.root.op, match.inner, match.axes, graph, context.target)

    def relies_on(self, match: NestedMatch, graph: Graph) -> tuple[str, ...]:
        return promises_in_range(match.root.op, match.inner, match.axes, graph)

    def build(self, match: NestedMatch, rewriter: Rewriter) -> Sequence[Value]:
        op = MERGES[match.root.op, match.inner.op]
        x, target = match.inner.operand("x"), match.root.result.shape
        return [reduce_to(rewriter, op, x, ReduceAttributes(axes=match.axes, keepdims=False), target)]


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


class MergedAxesMatch(Match, eq=False, kw_only=True):
    """``runs`` are the neighbouring axes that become one axis each, ``axes`` the new numbers of the treated ones.

    ``limit`` is the most axes that the target takes.
    """

    runs: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]
    limit: int


class LowerRank(Rule[MergedAxesMatch]):
    """``reduce(x)`` of a high rank becomes reshape, reduce over merged axes, reshape.

    Row-major order stays, so an index over several axes (``argmax``) counts as before.
    """

    name = "lower-rank"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (
        *REDUCTIONS,
        ARGMAX,
        ARGMIN,
        HARDMAX,
        SOFTMAX,
        LOG_SOFTMAX,
        MEAN_VARIANCE_NORM,
        TOP_K,
        CUMSUM,
        CUMPROD,
        LP_NORM,
    )

    def match(self, node: Node, graph: Graph) -> MergedAxesMatch | None:
        limit = self.capabilities.target.max_rank
        if limit is None or node.operand("x").type.rank <= limit:
            return None
        treated = _axes(node)
        shape = node.operand("x").shape
        # An axis of size 1 may go with either neighbour, unless all treated axes are such.
        free = {i for i, d in enumerate(shape) if is_unit(graph, d)}
        if free.issuperset(treated):
            free = set()
        if hasattr(node.attributes, "axis"):
            free.discard(treated[0])
        runs: list[list[int]] = []
        fates: list[bool | None] = []
        for axis in range(len(shape)):
            fate = None if axis in free else axis in treated
            if runs and (fate is None or fates[-1] is None or fates[-1] is fate):
                runs[-1].append(axis)
                fates[-1] = fate if fates[-1] is None else fates[-1]
            else:
                runs.append([axis])
                fates.append(fate)
        axes = tuple([i for i, fate in enumerate(fates) if fate])
        return MergedAxesMatch(node, runs=tuple([tuple(run) for run in runs]), axes=axes, limit=limit)

    def check(self, match: MergedAxesMatch, graph: Graph) -> Miss | None:
        if len(match.runs) <= match.limit:
            return None
        text = "treated and other axes alternate: merging neighbours leaves {0} axes, the limit is {1}"
        return Miss(text, (len(match.runs), match.limit), match.root.operand("x"))

    def build(self, match: MergedAxesMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        x = root.operand("x")
        merged = tuple([product([x.shape[a] for a in run]) for run in match.runs])
        flat = rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=merged))
        attributes: Any = root.attributes
        changed: dict[str, Any] = {"axis": match.axes[0]} if hasattr(attributes, "axis") else {"axes": match.axes}
        node = rewriter.add_node(root.op, [flat], replace(attributes, **changed))
        return [
            new if new.shape == old.shape else rewriter.add(RESHAPE, [new], ReshapeAttributes(shape=old.shape))
            for new, old in zip(node.results, root.results, strict=True)
        ]


def _axes(node: Node) -> tuple[int, ...]:
    attributes: Any = node.attributes
    return (attributes.axis,) if hasattr(attributes, "axis") else attributes.axes


_KEEPING = frozenset((*REDUCTIONS, ARGMAX, ARGMIN))


class AbsorbedMatch(Match, eq=False, kw_only=True):
    axes: tuple[int, ...]
    keepdims: bool


class AbsorbMove(Rule[AbsorbedMatch]):
    """A squeeze, unsqueeze or reshape after a reduction that ``keepdims`` can say becomes that flag."""

    name = "absorb-move-into-keepdims"
    roots: ClassVar[tuple[Operation, ...]] = (SQUEEZE, UNSQUEEZE, RESHAPE)

    def match(self, node: Node, graph: Graph) -> AbsorbedMatch | None:
        inner = node.operand("x").producer
        if inner is None or inner.op not in _KEEPING:
            return None
        attributes: Any = inner.attributes
        axes: tuple[int, ...] = attributes.axes
        shape, target = inner.operand("x").shape, node.result.shape
        if reduced_shape(shape, axes, not attributes.keepdims) == target:
            return AbsorbedMatch(node, (inner,), axes=axes, keepdims=not attributes.keepdims)
        if node.op is SQUEEZE:
            wider = _with_squeezed(graph, inner, axes, attributes.keepdims, node.attributes_as(AxesAttributes).axes)
            return None if wider is None else AbsorbedMatch(node, (inner,), axes=wider, keepdims=False)
        return None

    def check(self, match: AbsorbedMatch, graph: Graph) -> Miss | None:
        return used_elsewhere(match.consumed[0].result)

    def build(self, match: AbsorbedMatch, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        attributes: Any = inner.attributes
        record = replace(attributes, axes=match.axes, keepdims=match.keepdims)
        return rewriter.add_node(inner.op, inner.operands, record).results


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
