"""Softmax and its logarithm, in two operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import ADD, MAX, SUB
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import EXP, LOG, NEG
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX
from dmlc.ops.rules import reduced_shape
from dmlc.passes.emitted import NodeCount
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import Seen, difference_of, made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.passes.softmax_rules.views import log_sum_exp_of, placed
from dmlc.records import dataclass


class _OfSoftmax(Rule[Match]):
    """An elementwise function of a softmax; ``consumed`` is the softmax."""

    def __init__(self, count: NodeCount) -> None:
        self.count = count

    def check(self, match: Match, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        axes = inner.attributes_as(SoftmaxAttributes).axes
        op = LOG_SOFTMAX if inner.op is SOFTMAX else SOFTMAX
        return used_elsewhere(inner.result) or self.count.no_gain(match, op, inner.operand(0), axes, graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        inner = match.consumed[0]
        op = LOG_SOFTMAX if inner.op is SOFTMAX else SOFTMAX
        return [rewriter.add(op, [inner.operand(0)], inner.attributes)]


class LogOfSoftmax(_OfSoftmax):
    """log(softmax(x)) becomes log_softmax(x).

    ``range``: where softmax underflows to 0 its logarithm is -inf, and the fused operation gives a number.
    """

    name = "log-of-softmax"
    roots = (LOG,)
    fed_by = (SOFTMAX,)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), SOFTMAX)
        return None if inner is None else Match(node, (inner,))


class PowerOfLogSoftmax(_OfSoftmax):
    """exp(log_softmax(x)) becomes softmax(x). ``reassociates``: neither overflows."""

    name = "power-of-log-softmax"
    roots = (EXP,)
    fed_by = (LOG_SOFTMAX,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), LOG_SOFTMAX)
        return None if inner is None else Match(node, (inner,))


@dataclass(slots=True, eq=False)
class _LogSoftmaxMatch(Match):
    x: Value | None = None
    axes: tuple[int, ...] = ()
    shifted: bool = True


class DifferenceFromLogSumExp(Rule[_LogSoftmaxMatch]):
    """x - reduce_log_sum_exp(x) becomes log_softmax(x), also where the second is written out.

    ``reassociates``; ``range`` where the second is written out without the maximum taken out, for its powers may
    overflow.
    """

    name = "difference-from-log-sum-exp"
    roots = (SUB, ADD)
    fed_by = (NEG, ADD, REDUCE_LOG_SUM_EXP, LOG, REDUCE_LOG_SUM, RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND, CAST, MAX, WHERE)
    rewrite_class = RANGE

    def __init__(self, count: NodeCount) -> None:
        self.count = count

    def match(self, node: Node, graph: Graph) -> _LogSoftmaxMatch | None:
        seen: Seen = []
        parts = difference_of(node.result, seen)
        found = log_sum_exp_of(parts[1], seen) if parts is not None else None
        if parts is None or found is None or found.x is not parts[0]:
            return None
        inside = tuple(dict.fromkeys([n for n in seen if n is not node]))
        return _LogSoftmaxMatch(node, inside, found.x, found.axes, found.shifted)

    def check(self, match: _LogSoftmaxMatch, graph: Graph) -> Miss | None:
        assert match.x is not None
        parts = difference_of(match.root.result, [])
        assert parts is not None
        if parts[1].shape != reduced_shape(match.x.shape, match.axes, True):
            return Miss("the logarithm of the sum does not keep its axes")
        outside = used_outside(match.consumed, match.root)
        return outside or self.count.no_gain(match, LOG_SOFTMAX, match.x, match.axes, graph)

    def class_of(self, match: _LogSoftmaxMatch, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if match.shifted else RANGE

    def build(self, match: _LogSoftmaxMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(LOG_SOFTMAX, [match.x], SoftmaxAttributes(axes=match.axes))]


@dataclass(slots=True, eq=False)
class _Shifted(Match):
    x: Value | None = None


class ShiftBeforeSoftmax(Rule[_Shifted]):
    """softmax(x - m) becomes softmax(x), and log_softmax alike, where m is the maximum over its axes.

    ``reassociates``: softmax takes the maximum out by itself, and in f16 need not round the difference.
    """

    name = "shift-before-softmax"
    roots = (SOFTMAX, LOG_SOFTMAX)
    rewrite_class = REASSOCIATES

    def __init__(self, count: NodeCount) -> None:
        self.count = count

    def match(self, node: Node, graph: Graph) -> _Shifted | None:
        seen: Seen = []
        parts = difference_of(node.operand(0), seen)
        peak = placed(parts[1], REDUCE_MAX) if parts is not None else None
        axes: Any = node.attributes_as(SoftmaxAttributes).axes
        if parts is None or peak is None or peak.x is not parts[0] or peak.axes != axes:
            return None
        return _Shifted(node, (*seen, *peak.nodes), parts[0])

    def check(self, match: _Shifted, graph: Graph) -> Miss | None:
        assert match.x is not None
        if match.x.shape != match.root.result.shape:
            return Miss("{0} is broadcast", (match.x.type,), match.x)
        axes = match.root.attributes_as(SoftmaxAttributes).axes
        outside = used_outside(match.consumed, match.root)
        return outside or self.count.no_gain(match, match.root.op, match.x, axes, graph)

    def build(self, match: _Shifted, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(match.root.op, [match.x], match.root.attributes)]
