"""A reduction of a reduction becomes one over the axes of both."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.move import RESHAPE, SQUEEZE, UNSQUEEZE
from dmlc.ops.reduce import MERGES, REDUCE_LOG_SUM, REDUCE_MEAN, REDUCE_SUM_SQUARE, REDUCTIONS, ReduceAttributes
from dmlc.passes.manager import PassContext
from dmlc.passes.reduce_rules.fit import reduce_to
from dmlc.passes.reduce_rules.kinds import merge_class
from dmlc.passes.reduce_rules.moves import Origin, follow
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass

_KINDS = frozenset(REDUCTIONS)
_MOVES = frozenset((SQUEEZE, UNSQUEEZE, RESHAPE))
#: How many moves between two reductions are looked through; folding leaves at most one.
_MOST_MOVES = 4


@dataclass(slots=True, eq=False)
class Nested(Match):
    """``consumed`` ends with the inner reduction; before it stand the moves between, outermost first."""

    axes: tuple[int, ...] = ()

    @property
    def inner(self) -> Node:
        return self.consumed[-1]


class MergeNested(Rule[Nested]):
    """``reduce_sum(reduce_sum(x, axes=[2]), axes=[1])`` becomes ``reduce_sum(x, axes=[1, 2])``, and so on for its kind.

    Moves between the two that only add or take out axes of size 1 are looked through. Max and min are ``exact``, so are
    sums and products of integers that wrap (``range`` where they may saturate). Of floats rounding may differ
    (``reassociates``), and so may overflow on the way: a mean of means divides before it adds again, the one mean adds
    all elements first, so that its larger sum can overflow where the chain did not. Integer means truncate and stay.
    """

    name = "merge-nested-reductions"
    roots = REDUCTIONS
    fed_by = (*REDUCTIONS, UNSQUEEZE, SQUEEZE, RESHAPE)

    def match(self, node: Node, graph: Graph) -> Nested | None:
        between: list[Node] = []
        below = node.operand(0).producer
        while below is not None and below.op in _MOVES and len(between) < _MOST_MOVES:
            between.append(below)
            below = below.operand(0).producer
        if below is None or below.op not in _KINDS:
            return None
        axes = _merged_axes(graph, node, between, below)
        return None if axes is None else Nested(node, (*between, below), axes)

    def check(self, match: Nested, graph: Graph) -> Miss | None:
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

    def class_of(self, match: Nested, graph: Graph, context: PassContext) -> str:
        return merge_class(match.root.op, match.inner, match.axes, graph, context.target)

    def build(self, match: Nested, rewriter: Rewriter) -> Sequence[Value]:
        op = MERGES[match.root.op, match.inner.op]
        x, target = match.inner.operand(0), match.root.result.shape
        return [reduce_to(rewriter, op, x, ReduceAttributes(axes=match.axes, keepdims=False), target)]


_WHY_NOT: dict[tuple[Operation, Operation], str] = {
    (REDUCE_SUM_SQUARE, REDUCE_SUM_SQUARE): "the squares of sums of squares do not add up to a sum of squares",
    (REDUCE_LOG_SUM, REDUCE_LOG_SUM): "the logarithm of a sum of logarithms is not that of the whole sum",
}


def _merged_axes(graph: Graph, outer: Node, between: list[Node], inner: Node) -> tuple[int, ...] | None:
    """The axes of both in terms of the inner operand; None where a move between does more than add or drop 1s."""
    attributes = inner.attributes_as(ReduceAttributes)
    rank = inner.operand(0).type.rank
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
