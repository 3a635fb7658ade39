"""A negation before a search turns it around. Negating floats is exact, and integers where the lowest is ruled out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import DIV, MUL, SUB
from dmlc.ops.elementwise import NEG
from dmlc.ops.reduce import DUALS, REDUCE_MAX, REDUCE_MIN
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, TopKAttributes
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.passes.selection_rules.views import (
    OTHER_END,
    OTHER_ORDER,
    negation_of,
    why_kept_alive,
    why_order_may_not_turn,
)
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class Negated(Match):
    """``x`` is what was negated."""

    x: Value | None = None


class ArgOfNegation(Rule[Negated]):
    """argmin(-x) becomes argmax(x), and argmax(-x) argmin(x).

    Exact for floats: negation turns their order around, and -0 equals +0. Of integers the lowest negates to itself.
    """

    name = "arg-of-negation"
    roots = (ARGMAX, ARGMIN)

    def match(self, node: Node, graph: Graph) -> Negated | None:
        seen: list[Node] = []
        x = negation_of(node.operand(0), seen)
        return None if x is None else Negated(node, tuple(seen), x)

    def check(self, match: Negated, graph: Graph) -> Miss | None:
        assert match.x is not None
        return why_order_may_not_turn(match.x, graph) or why_kept_alive(match.root.operand(0))

    def build(self, match: Negated, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        return [rewriter.add(OTHER_END[root.op], [match.x], root.attributes)]


class TopKOfNegation(Rule[Negated]):
    """top_k(-x) becomes a top_k(x) of the other order, where its values are not used or negated back.

    Exact as argmax(-x) is: in both orders equal values are ordered by ascending index.
    """

    name = "top-k-of-negation"
    roots = (TOP_K,)

    def match(self, node: Node, graph: Graph) -> Negated | None:
        seen: list[Node] = []
        x = negation_of(node.operand(0), seen)
        return None if x is None else Negated(node, tuple(seen), x)

    def check(self, match: Negated, graph: Graph) -> Miss | None:
        assert match.x is not None
        values = match.root.results[0]
        if any(user.op is not NEG for user in values.users):
            return Miss("the values are used as they are: they would have to be negated instead", (), values)
        miss = why_order_may_not_turn(match.x, graph)
        if miss is None and any(user is not match.root for user in match.root.operand(0).users):
            miss = why_kept_alive(match.root.operand(0))
        return miss

    def build(self, match: Negated, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        a = root.attributes_as(TopKAttributes)
        turned = rewriter.add_node(TOP_K, [match.x], dataclasses.replace(a, order=OTHER_ORDER[a.order]))
        values, indices = turned.results
        return [rewriter.add(NEG, [values]) if root.results[0].uses else values, indices]


class NegatedExtremeOfNegation(Rule[Negated]):
    """-reduce_max(-x) becomes reduce_min(x), and -reduce_min(-x) reduce_max(x).

    Exact as argmax(-x) is; the sign of a zero that is the max or min is unspecified.
    """

    name = "negated-extreme-of-negation"
    roots = (NEG, SUB, MUL, DIV)
    fed_by = (REDUCE_MAX, REDUCE_MIN)

    def match(self, node: Node, graph: Graph) -> Negated | None:
        outside: list[Node] = []
        negated = negation_of(node.result, outside)
        extreme = made_by(negated, REDUCE_MAX, REDUCE_MIN)
        if extreme is None:
            return None
        inside: list[Node] = []
        x = negation_of(extreme.operand(0), inside)
        return None if x is None else Negated(node, (extreme, *inside), x)

    def check(self, match: Negated, graph: Graph) -> Miss | None:
        assert match.x is not None
        miss = why_order_may_not_turn(match.x, graph)
        for node in match.consumed:
            miss = miss or used_elsewhere(node.result)
        return miss

    def build(self, match: Negated, rewriter: Rewriter) -> Sequence[Value]:
        extreme = match.consumed[0]
        return [rewriter.add(DUALS[extreme.op], [match.x], extreme.attributes)]
