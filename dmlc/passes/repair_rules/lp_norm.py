"""lp_norm, to which DirectML's LP_NORMALIZATION adds an epsilon that ONNX does not have."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import f16, f32
from dmlc.ops.binary import DIV, EQUAL
from dmlc.ops.choose import WHERE
from dmlc.ops.normalize import LP_NORM, LpNormAttributes
from dmlc.ops.reduce import REDUCE_L1, REDUCE_L2, ReduceAttributes
from dmlc.passes.legal_rules.build import Maker
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter


class LpNormInParts(RepairRule[Match]):
    """lp_norm becomes a division by its norm; a row of zeros is divided by 1."""

    name = "lp-norm-in-parts"
    optional = True
    roots = (LP_NORM,)
    repairs = ("lp-epsilon",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        dtype = node.result.type.dtype
        if self.support.of_kernel(failure, "LpNormalization") is None or self.support.leaves("LpNormalization", dtype):
            return None
        return Match(node)

    def describe(self, match: Match) -> str:
        return f"lp_norm of {match.root.result.type.dtype}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        a, dtype = root.attributes_as(LpNormAttributes), root.result.type.dtype
        x = make.cast(root.operand(0), f32 if dtype is f16 else dtype)
        over = ReduceAttributes(axes=(a.axis,), keepdims=True)
        norm = make(REDUCE_L1 if a.p == 1 else REDUCE_L2, x, attributes=over)
        is_zero = make(EQUAL, norm, make.constant(0, x.type.dtype))
        divisor = make(WHERE, is_zero, make.constant(1, x.type.dtype), norm)
        return [make.cast(make(DIV, x, divisor), dtype)]
