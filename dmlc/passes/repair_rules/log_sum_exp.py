"""ReduceLogSumExp, from which the provider does not take the maximum out."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP
from dmlc.passes.legal_rules.build import dtype_of
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter


class ShiftLogSumExp(RepairRule[Match]):
    """A ReduceLogSumExp of a model is written out with the maximum taken out, as one of the language always is.

    ``reassociates``: the same function over the reals, whose rounding differs. An infinite maximum is kept from
    inf - inf: the result of -inf alone is -inf, of a +inf among others +inf.
    """

    name = "shift-log-sum-exp"
    roots = (REDUCE_LOG_SUM_EXP,)
    repairs = ("log-sum-exp",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        wrong = self.support.has_type(failure, "ReduceLogSumExp", "T", dtype_of(node))
        return Match(node) if wrong and node.origin is not None else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        return [rewriter.add(root.op, root.operands, root.attributes)]
