"""An elementwise operation before or after a sum is part of another reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import POW
from dmlc.ops.elementwise import ABS, LOG, SQRT
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
)
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.patterns import Seen, made_by, root_of, square_of
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _BeforeSum(Rule[Match]):
    """A sum of elementwise results; ``consumed`` is the elementwise node."""

    roots = (REDUCE_SUM,)
    becomes: ClassVar[Operation]

    def check(self, match: Match, graph: Graph) -> Miss | None:
        if not match.root.attributes_as(ReduceAttributes).axes:
            return Miss("it sums over no axis")
        return used_elsewhere(match.consumed[0].result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(self.becomes, [match.consumed[0].operand(0)], match.root.attributes)]


class SumOfSquares(_BeforeSum):
    """reduce_sum(x * x) becomes reduce_sum_square(x).

    ``reassociates`` for floats; a square that overflows does so in both. Integers wrap alike (``exact``).
    """

    name = "sum-of-squares"
    becomes = REDUCE_SUM_SQUARE

    def match(self, node: Node, graph: Graph) -> Match | None:
        seen: Seen = []
        return Match(node, tuple(seen)) if square_of(node.operand(0), seen) is not None else None

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if match.root.result.type.dtype.is_float else EXACT


class SumOfMagnitudes(_BeforeSum):
    """reduce_sum(abs(x)) becomes reduce_l1(x). ``reassociates`` for floats, ``exact`` for integers."""

    name = "sum-of-magnitudes"
    becomes = REDUCE_L1

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), ABS)
        return None if inner is None else Match(node, (inner,))

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if match.root.result.type.dtype.is_float else EXACT


class _AfterReduction(Rule[Match]):
    """An elementwise function of a reduction; ``consumed`` is the reduction."""

    rewrite_class = REASSOCIATES
    becomes: ClassVar[Operation]

    def check(self, match: Match, graph: Graph) -> Miss | None:
        if not match.consumed[0].attributes_as(ReduceAttributes).axes:
            return Miss("it sums over no axis")
        return used_elsewhere(match.consumed[0].result)

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
        return None if inner is None or not node.result.type.dtype.is_float else Match(node, (inner,))


class LogOfSum(_AfterReduction):
    """log(reduce_sum(x)) becomes reduce_log_sum(x).

    ``reassociates``: the same sum and logarithm in one operation.
    """

    name = "log-of-sum"
    roots = (LOG,)
    becomes = REDUCE_LOG_SUM

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), REDUCE_SUM)
        return None if inner is None else Match(node, (inner,))
