"""Casts around a maximum or minimum, which is one of its operand's elements."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.choose import CAST
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _CastReductionMatch(Match):
    """``consumed`` are the reduction and the cast before it."""


class DropCasts(Rule[_CastReductionMatch]):
    """cast(reduce_max(cast(x, to=f32)), to=f16) of an f16 tensor becomes reduce_max(x), and so on for wider floats.

    ``exact``: widening keeps every value and the order, and the narrower dtype holds the element that is chosen.
    """

    name = "casts-around-maximum"
    roots = (CAST,)

    def match(self, node: Node, graph: Graph) -> _CastReductionMatch | None:
        reduction = node.operand(0).producer
        if reduction is None or (reduction.op is not REDUCE_MAX and reduction.op is not REDUCE_MIN):
            return None
        first = reduction.operand(0).producer
        if first is None or first.op is not CAST:
            return None
        source, wide, to = first.operand(0).type.dtype, first.result.type.dtype, node.result.type.dtype
        widens = source.is_float and wide.is_float and wide.bits > source.bits
        return _CastReductionMatch(node, (reduction, first)) if widens and to is source else None

    def check(self, match: _CastReductionMatch, graph: Graph) -> Miss | None:
        reduction, first = match.consumed
        return used_elsewhere(reduction.result) or used_elsewhere(first.result)

    def build(self, match: _CastReductionMatch, rewriter: Rewriter) -> Sequence[Value]:
        reduction, first = match.consumed
        return rewriter.add_node(reduction.op, [first.operand(0)], reduction.attributes).results
