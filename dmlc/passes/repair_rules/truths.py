"""Comparisons of truths that the provider's kernel does not take."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import bool_
from dmlc.ops.binary import EQUAL, XOR
from dmlc.ops.elementwise import NOT
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter


class EqualTruths(RepairRule[Match]):
    """``a == b`` of truths becomes ``!(a ^ b)``.

    The provider has no kernel of Equal for truths, and one of Xor.
    """

    name = "equality-of-truths"
    roots = (EQUAL,)
    repairs = ()

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.operand(0).type.dtype is not bool_:
            return None
        equal, xor = self.support.kernel("Equal"), self.support.kernel("Xor")
        return Match(node) if equal is not None and xor is not None and "bool" not in equal.types["T"] else None

    def describe(self, match: Match) -> str:
        return "equality of truths"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        differ = rewriter.add(XOR, [match.root.operand(0), match.root.operand(1)])
        return [rewriter.add(NOT, [differ])]
