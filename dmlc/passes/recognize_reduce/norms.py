"""Norms and sums of squares, and elementwise functions that join a reduction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ops.binary import ADD, DIV, MAX, MUL, POW
from dmlc.ops.choose import CLIP
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import ABS, EXP, LOG, NEG, RECIPROCAL, SQRT
from dmlc.ops.normalize import LP_NORM, LpNormAttributes
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    REDUCTIONS,
    ReduceAttributes,
)
from dmlc.ops.rules import reduced_shape
from dmlc.passes.canonicalize_reduce.kinds import magnitude, promised_magnitude
from dmlc.passes.emitted import emitted_nodes, no_gain
from dmlc.passes.intervals import Intervals
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.normal_form import base_of
from dmlc.passes.patterns import (
    Seen,
    both_ways,
    made_by,
    square_of,
    used_outside,
)
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _Counted(Rule[Match]):
    """A rule that fires where it saves nodes."""

    def no_gain(self, match: Match, becomes: Operation, reduction: Node, x: Value, graph: Graph) -> Miss | None:
        axes = reduction.attributes_as(ReduceAttributes).axes
        if not axes:
            return Miss("it reduces over no axis")
        return used_elsewhere(match.consumed[0].result) or no_gain(self.context, match, becomes, x, axes, graph)


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
        x = match.consumed[0].operand(0)
        return EXACT if wraps or self.stays_in_range(match, magnitude(x, graph), graph) else RANGE

    def relies_on(self, match: Match, graph: Graph) -> tuple[str, ...]:
        x = match.consumed[0].operand(0)
        most = promised_magnitude(x, graph)
        return () if most is None or not self.stays_in_range(match, most, graph) else Intervals(graph).promised(x)

    def stays_in_range(self, match: Match, most: int, graph: Graph) -> bool:
        """Return whether every target computes the integer sum of numbers up to ``most``, or their squares, exactly."""
        x = match.consumed[0].operand(0)
        axes = match.root.attributes_as(ReduceAttributes).axes
        high = graph.dims.interval(product([x.shape[a] for a in axes]))[1]
        each = most * most if self.becomes is REDUCE_SUM_SQUARE else most
        return isfinite(high) and int(high) * each <= min(int(x.type.dtype.highest), 2**53)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(self.becomes, [match.consumed[0].operand(0)], match.root.attributes)]


class SumOfSquares(_BeforeSum):
    """reduce_sum(x * x) becomes reduce_sum_square(x).

    ``reassociates`` for floats; a square that overflows does so in both. Integers are ``exact`` where both wrap or
    bounds prove that nothing overflows, else ``range``: a product wraps, a target's sum of squares may saturate.
    """

    name = "sum-of-squares"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)
    fed_by: ClassVar[Collection[Operation]] = (MUL, POW, ABS)
    becomes: ClassVar[Operation] = REDUCE_SUM_SQUARE

    def match(self, node: Node, graph: Graph) -> Match | None:
        seen: Seen = []
        return Match(node, tuple(seen)) if square_of(node.operand("x"), seen) is not None else None


class SumOfMagnitudes(_BeforeSum):
    """reduce_sum(abs(x)) becomes reduce_l1(x). ``reassociates`` for floats; integers as for sums of squares."""

    name = "sum-of-magnitudes"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)
    fed_by: ClassVar[Collection[Operation]] = (MUL, POW, ABS)
    becomes: ClassVar[Operation] = REDUCE_L1

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand("x"), ABS)
        return None if inner is None else Match(node, (inner,))


class NormOfMagnitude(_Counted):
    """reduce_l1, reduce_l2 and reduce_sum_square of abs(x) or -x take x itself. ``exact``: signs do not matter."""

    name = "norm-of-magnitude"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE)
    fed_by: ClassVar[Collection[Operation]] = (ABS, NEG)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand("x"), ABS, NEG)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        return self.no_gain(match, match.root.op, match.root, match.consumed[0].operand("x"), graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(match.root.op, [match.consumed[0].operand("x")], match.root.attributes)]


class _AfterReduction(_Counted):
    """An elementwise function of a reduction; ``consumed`` is the reduction."""

    rewrite_class = REASSOCIATES
    becomes: ClassVar[Operation]

    def check(self, match: Match, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        return self.no_gain(match, self.becomes, inner, inner.operand("x"), graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        inner = match.consumed[0]
        return [rewriter.add(self.becomes, [inner.operand("x")], inner.attributes)]


class RootOfSquares(_AfterReduction):
    """sqrt(reduce_sum_square(x)) becomes reduce_l2(x).

    ``reassociates``: the same sum and root in one operation, which may keep more digits between the two.
    """

    name = "root-of-squares"
    roots: ClassVar[tuple[Operation, ...]] = (SQRT, POW)
    becomes: ClassVar[Operation] = REDUCE_L2

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(base_of(node.result, 0.5, []), REDUCE_SUM_SQUARE)
        return None if inner is None else Match(node, (inner,))


class SquareOfRoot(_AfterReduction):
    """reduce_l2(x) ** 2, or times itself, becomes reduce_sum_square(x). ``reassociates``: no root is taken."""

    name = "square-of-root"
    roots: ClassVar[tuple[Operation, ...]] = (POW, MUL)
    fed_by: ClassVar[Collection[Operation]] = (REDUCE_L2,)
    becomes: ClassVar[Operation] = REDUCE_SUM_SQUARE

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(square_of(node.result, []), REDUCE_L2)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        axes = inner.attributes_as(ReduceAttributes).axes
        gain = no_gain(self.context, match, self.becomes, inner.operand("x"), axes, graph)
        return used_outside(match.consumed, match.root) or gain


class LogOfSum(_AfterReduction):
    """log(reduce_sum(x)) becomes reduce_log_sum(x).

    ``reassociates``: the same sum and logarithm in one operation. A log-sum-exp in parts stays in parts on a target
    whose lowerings are chosen by their costs. There a plain sum is faster: ONNX Runtime's CPU provider takes six times
    as long for ReduceLogSum as for ReduceSum and Log.
    """

    name = "log-of-sum"
    roots: ClassVar[tuple[Operation, ...]] = (LOG,)
    becomes: ClassVar[Operation] = REDUCE_LOG_SUM

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand("x"), REDUCE_SUM)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        target = self.context.target
        if target.costs is not None and made_by(match.consumed[0].operand("x"), EXP) is not None:
            return Miss("the sum of powers is faster on {0} without the logarithm", (target.name,))
        return super().check(match, graph)


#: Most elementwise nodes between a reduction and the division by it: an epsilon, a root, a bound.
_MOST_STEPS = 4


class _NormDivisionMatch(Match, eq=False, kw_only=True):
    """``a`` is divided by ``below``, or by the root of the sum of squares that is ``squares``."""

    a: Value
    below: Value | None
    squares: Node | None


class DivideByNorm(Rule[_NormDivisionMatch]):
    """x * (1 / n) becomes x / n, and x * sum_square ** -0.5 becomes x / reduce_l2, where n is made of a reduction.

    ``reassociates``: it rounds once where there were two roundings.
    """

    name = "divide-by-norm"
    roots: ClassVar[tuple[Operation, ...]] = (MUL,)
    fed_by: ClassVar[Collection[Operation]] = (RECIPROCAL, DIV, POW, SQRT)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _NormDivisionMatch | None:
        if not node.result.type.dtype.is_float:
            return None
        for a, b in both_ways(node):
            seen: Seen = []
            squares = made_by(base_of(b, -0.5, seen), REDUCE_SUM_SQUARE)
            if squares is not None:
                return _NormDivisionMatch(node, (*seen, squares), a=a, below=None, squares=squares)
            seen = []
            below = base_of(b, -1, seen)
            if below is not None and _is_of_reduction(below):
                return _NormDivisionMatch(node, tuple(seen), a=a, below=below, squares=None)
        return None

    def check(self, match: _NormDivisionMatch, graph: Graph) -> Miss | None:
        outside = used_outside(match.consumed, match.root)
        if outside is not None:
            return outside
        if match.squares is None:
            return no_gain(self.context, match, DIV, match.a, (), graph)
        x, axes = match.squares.operand("x"), match.squares.attributes_as(ReduceAttributes).axes
        if not axes:
            return Miss("it reduces over no axis")
        more = emitted_nodes(self.context, DIV, match.a, (), graph)
        return no_gain(self.context, match, REDUCE_L2, x, axes, graph, more=more)

    def build(self, match: _NormDivisionMatch, rewriter: Rewriter) -> Sequence[Value]:
        below = match.below
        if match.squares is not None:
            below = rewriter.add(REDUCE_L2, [match.squares.operand("x")], match.squares.attributes)
        return [rewriter.add(DIV, [match.a, below])]


def _is_of_reduction(value: Value) -> bool:
    """Return whether the value is a reduction, possibly with a constant added, clipped, or under a root."""
    for _ in range(_MOST_STEPS):
        node = value.producer
        if node is None:
            return False
        if node.op in REDUCTIONS:
            return True
        if node.op in (SQRT, CLIP):
            value = node.operand("x")
        elif node.op in (ADD, MAX):
            value = next((x for x, other in both_ways(node) if constant_of(other) is not None), value)
        else:
            return False
    return False


class NormalizeByNorm(Rule[Match]):
    """x / reduce_l2(x), and x / reduce_l1(x), over one axis become lp_norm(x).

    ``range``: over a group of zeros the division gives NaN, the operator 0.
    """

    name = "normalize-by-norm"
    roots: ClassVar[tuple[Operation, ...]] = (DIV,)
    fed_by: ClassVar[Collection[Operation]] = (REDUCE_L2, REDUCE_L1)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> Match | None:
        norm = made_by(node.operand("b"), REDUCE_L2, REDUCE_L1)
        if norm is None or norm.operand("x") is not node.operand("a") or not node.result.type.dtype.is_float:
            return None
        return Match(node, (norm,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        norm = match.consumed[0]
        x, axes = norm.operand("x"), norm.attributes_as(ReduceAttributes).axes
        if len(axes) != 1:
            return Miss("the norm is over axes {0}, and the operator takes one", (list(axes),))
        if norm.result.shape != reduced_shape(x.shape, axes, True):
            return Miss("the norm over axis {0} does not keep it", axes)
        return used_outside(match.consumed, match.root) or no_gain(self.context, match, LP_NORM, x, axes, graph)

    def relies_on(self, match: Match, graph: Graph) -> tuple[str, ...]:
        x, known = match.consumed[0].operand("x"), Intervals(graph)
        promised = known.promised_of(x)
        if promised is None:
            return ()
        nearest = promised[0] if promised[0] > 0 else -promised[1]
        tiny = float(np.finfo(x.type.dtype.numpy).tiny)
        return known.promised(x) if nearest > 0 and nearest * nearest > tiny else ()  # nor is a square of it 0

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        norm = match.consumed[0]
        (axis,) = norm.attributes_as(ReduceAttributes).axes
        record = LpNormAttributes(axis=axis, p=2 if norm.op is REDUCE_L2 else 1)
        return [rewriter.add(LP_NORM, [norm.operand("x")], record)]


#: The rules of this file but ``LogOfSum``, which must come after log-sum-exp.
RULES: Sequence[type[Rule[Any]]] = (
    SumOfSquares,
    SumOfMagnitudes,
    NormOfMagnitude,
    DivideByNorm,
    RootOfSquares,
    SquareOfRoot,
    NormalizeByNorm,
)
