"""Casts to bool, made by way of u8: 0.25 and -3 become false; in older releases 5 becomes the byte 5."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import bool_
from dmlc.ops.binary import EQUAL
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.elementwise import NOT
from dmlc.ops.opaque import OPAQUE, is_opaque
from dmlc.passes.legal_rules.build import Maker, dtype_of
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter


class TruthByComparison(RepairRule[Match]):
    """A cast of numbers to bool becomes Not(Equal(x, 0)), of which a NaN is true as it is in the cast."""

    name = "truth-by-comparison"
    roots = (CAST, OPAQUE)
    repairs = ("cast-bool", "cast-integer-bool", "cast-int-bool")

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.op is CAST:
            op_type = "Cast"
            if node.attributes_as(CastAttributes).to is not bool_:
                return None
        elif is_opaque(node, "CastLike") and node.result.type.dtype is bool_ and node.operands[0] is not None:
            op_type = "CastLike"
        else:
            return None
        dtype = dtype_of(node)
        is_wrong = any(self.support.has_type(failure, op_type, "T1", dtype) for failure in self.repairs)
        return Match(node) if is_wrong else None

    def describe(self, match: Match) -> str:
        return f"cast of {dtype_of(match.root)} to bool"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, x = Maker(rewriter), match.root.operand(0)
        return [make(NOT, make(EQUAL, x, make.constant(0, x.type.dtype)))]
