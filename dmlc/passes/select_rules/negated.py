"""The smallest of negated numbers is the largest of them."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.elementwise import NEG
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.manager import EXACT
from dmlc.passes.patterns import made_by
from dmlc.passes.reduce_rules.kinds import magnitude
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class SelectionOfNegation(Rule[Match]):
    """argmin(-x) becomes argmax(x), and argmax(-x) argmin(x), with the same ties.

    ``exact``: a negation of floats keeps every bit but the sign. Of integers only where bounds exclude the lowest one,
    which is its own negation.
    """

    name = "selection-of-negation"
    roots = (ARGMAX, ARGMIN)
    rewrite_class = EXACT

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), NEG)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        (inner,) = match.consumed
        x = inner.operand(0)
        dtype = x.type.dtype
        if not dtype.is_float and magnitude(x, graph) > int(dtype.highest):
            return Miss("{0} may hold {1}, which is its own negation", (dtype, dtype.lowest))
        return used_elsewhere(inner.result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        other = ARGMIN if match.root.op is ARGMAX else ARGMAX
        return [rewriter.add(other, [match.consumed[0].operand(0)], match.root.attributes)]
