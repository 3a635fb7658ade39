"""Powers of integers, which DirectML computes as those of floats, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import FOREIGN, Graph, Node, Value
from dmlc.ops.binary import POW
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, is_opaque
from dmlc.passes.legal_rules.build import Maker, dtype_of
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Miss, Rewriter


class PowerByProducts(RepairRule[Match]):
    """A power of i32 by a constant becomes products, of which a power of a program is made already."""

    name = "power-by-products"
    roots = (POW, OPAQUE)
    repairs = ("pow-int",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if (node.op is not POW or node.origin is None) and not is_opaque(node, "Pow"):
            return None
        base, exponent = node.operands[:2]
        if base is None or exponent is None or FOREIGN in (base.type.dtype, exponent.type.dtype):
            return None
        (failure,) = self.repairs
        data = constant_of(exponent)
        wrong = self.support.has_type(failure, "Pow", "T", base.type.dtype) and data is not None and data.size == 1
        return Match(node) if wrong else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        data = constant_of(match.root.operand(1))
        number = None if data is None else data.array.reshape(())[()]
        if number is None or number != int(number) or not 0 <= number < 2**31:
            return Miss("the exponent {0} is negative or not an integer", (number,))
        return None

    def describe(self, match: Match) -> str:
        return f"power of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        base = root.operand(0)
        return [make(POW, base, make.cast(root.operand(1), base.type.dtype))]  # legalize makes products of it
