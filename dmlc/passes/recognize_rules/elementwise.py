"""An elementwise operation before or after a reduction is part of another reduction."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ops.binary import MUL, POW
from dmlc.ops.elementwise import ABS, EXP, LOG, NEG, SQRT
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
)
from dmlc.passes.emitted import NodeCount
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import Seen, made_by, root_of, square_of
from dmlc.passes.reduce_rules.kinds import magnitude
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _Counted(Rule[Match]):
    """A rule that fires where it saves nodes."""

    def __init__(self, count: NodeCount) -> None:
        self.count = count

    def no_gain(self, match: Match, becomes: Operation, reduction: Node, x: Value, graph: Graph) -> Miss | None:
        axes = reduction.attributes_as(ReduceAttributes).axes
        if not axes:
            return Miss("it reduces over no axis")
        return used_elsewhere(match.consumed[0].result) or self.count.no_gain(match, becomes, x, axes, graph)


class _BeforeSum(_Counted):
    """A sum of elementwise results; ``consumed`` is the elementwise node."""

    rewrite_class = RANGE
    becomes: ClassVar[Operation]

    def check(self, match: Match, graph: Graph) -> Miss | None:
        return self.no_gain(match, self.becomes, match.root, match.consumed[0].operand(0), graph)

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        if match.root.result.type.dtype.is_float:
            return REASSOCIATES
        # An imported model for a target that wraps also runs on ONNX Runtime's CPU provider, whose kernels saturate.
        wraps = context.target.wraps_integers and graph.dims.least > 0
        return EXACT if wraps or _stays_in_range(self.becomes, match, graph) else RANGE

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(self.becomes, [match.consumed[0].operand(0)], match.root.attributes)]


def _stays_in_range(becomes: Operation, match: Match, graph: Graph) -> bool:
    """Return whether bounds prove that every target computes the integer sum of squares or magnitudes exactly."""
    x = match.consumed[0].operand(0)
    axes = match.root.attributes_as(ReduceAttributes).axes
    high = graph.dims.interval(product([x.shape[a] for a in axes]))[1]
    most = magnitude(x, graph)
    each = most * most if becomes is REDUCE_SUM_SQUARE else most
    return isfinite(high) and int(high) * each <= min(int(x.type.dtype.highest), 2**53)


class SumOfSquares(_BeforeSum):
    """reduce_sum(x * x) becomes reduce_sum_square(x).

    ``reassociates`` for floats; a square that overflows does so in both. Integers are ``exact`` where both wrap or
    bounds prove that nothing overflows, else ``range``: a product wraps, a target's sum of squares may saturate.
    """

    name = "sum-of-squares"
    roots = (REDUCE_SUM,)
    fed_by = (MUL, POW, ABS)
    becomes = REDUCE_SUM_SQUARE

    def match(self, node: Node, graph: Graph) -> Match | None:
        seen: Seen = []
        return Match(node, tuple(seen)) if square_of(node.operand(0), seen) is not None else None


class SumOfMagnitudes(_BeforeSum):
    """reduce_sum(abs(x)) becomes reduce_l1(x). ``reassociates`` for floats; integers as for sums of squares."""

    name = "sum-of-magnitudes"
    roots = (REDUCE_SUM,)
    fed_by = (MUL, POW, ABS)
    becomes = REDUCE_L1

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), ABS)
        return None if inner is None else Match(node, (inner,))


class NormOfMagnitude(_Counted):
    """reduce_l1, reduce_l2 and reduce_sum_square of abs(x) or -x become those of x. ``exact``: signs do not matter."""

    name = "norm-of-magnitude"
    roots = (REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE)
    fed_by = (ABS, NEG)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), ABS, NEG)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        return self.no_gain(match, match.root.op, match.root, match.consumed[0].operand(0), graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(match.root.op, [match.consumed[0].operand(0)], match.root.attributes)]


class _AfterReduction(_Counted):
    """An elementwise function of a reduction; ``consumed`` is the reduction."""

    rewrite_class = REASSOCIATES
    becomes: ClassVar[Operation]

    def check(self, match: Match, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        return self.no_gain(match, self.becomes, inner, inner.operand(0), graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        inner = match.consumed[0]
        return [rewriter.add(self.becomes, [inner.operand(0)], inner.attributes)]


class RootOfSquares(_AfterReduction):
    """sqrt(reduce_sum_square(x)) becomes reduce_l2(x).

    ``reassociates``: the same sum and root in one operation, which may keep more digits between the two.
    """

    name = "root-of-squares"
    roots = (SQRT, POW)
    becomes = REDUCE_L2

    def match(self, node: Node, graph: Graph) -> Match | None:
        below = root_of(node.result, [])
        inner = made_by(below, REDUCE_SUM_SQUARE)
        return None if inner is None else Match(node, (inner,))


class LogOfSum(_AfterReduction):
    """log(reduce_sum(x)) becomes reduce_log_sum(x).

    ``reassociates``: the same sum and logarithm in one operation. A log-sum-exp in parts stays in parts on a target
    whose lowerings are chosen by their costs: there a plain sum is the faster one (ONNX Runtime's CPU provider takes
    six times as long for ReduceLogSum as for ReduceSum and Log).
    """

    name = "log-of-sum"
    roots = (LOG,)
    becomes = REDUCE_LOG_SUM

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), REDUCE_SUM)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        target = self.count.target
        if target.costs is not None and made_by(match.consumed[0].operand(0), EXP) is not None:
            return Miss("the sum of powers is faster on {0} without the logarithm", (target.name,))
        return super().check(match, graph)
