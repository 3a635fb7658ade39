"""The logarithm of softmax, in two operations."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import SUB
from dmlc.ops.elementwise import LOG
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, AxesAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, ReduceAttributes
from dmlc.passes.manager import RANGE, REASSOCIATES
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class LogOfSoftmax(Rule[Match]):
    """log(softmax(x)) becomes log_softmax(x).

    ``range``: where softmax underflows to 0 its logarithm is -inf, and the fused operation gives a number.
    """

    name = "log-of-softmax"
    roots = (LOG,)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), SOFTMAX)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        return used_elsewhere(match.consumed[0].result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        inner = match.consumed[0]
        return [rewriter.add(LOG_SOFTMAX, [inner.operand(0)], inner.attributes)]


class DifferenceFromLogSumExp(Rule[Match]):
    """x - reduce_log_sum_exp(x) becomes log_softmax(x). ``reassociates``."""

    name = "difference-from-log-sum-exp"
    roots = (SUB,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(1), REDUCE_LOG_SUM_EXP)
        if inner is None or inner.operand(0) is not node.operand(0):
            return None
        return Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        a = inner.attributes_as(ReduceAttributes)
        if not a.axes or (not a.keepdims and inner.result.type.rank):
            return Miss("the logarithm of the sum does not keep its axes")
        return used_elsewhere(inner.result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        axes = match.consumed[0].attributes_as(ReduceAttributes).axes
        return [rewriter.add(LOG_SOFTMAX, [match.root.operand(0)], AxesAttributes(axes=axes))]
