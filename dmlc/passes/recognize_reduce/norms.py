"""Norms and sums of squares, and elementwise functions that join a reduction."""

from __future__ import annotations

from math import isfinite
from typing import Any

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
from dmlc.passes.emitted import emitted_nodes, why_no_gain
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.intervals import Intervals
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, NodeRule, simplifies
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.normal_form import base_of
from dmlc.passes.patterns import (
    Seen,
    both_ways,
    made_by,
    square_of,
    used_outside,
)
from dmlc.passes.rewrite import Miss, used_elsewhere


def _counted(e: Sketch, node: Node, becomes: Operation, reduction: Node, x: Value) -> Lowered:
    """The reduction ``becomes`` of ``x``, where that saves nodes."""
    axes = reduction.attributes_as(ReduceAttributes).axes
    if not axes:
        return Miss("it reduces over no axis")
    reason = used_elsewhere(e.taken[0].result) or why_no_gain(e, node, becomes, x, axes)
    return reason or e(becomes, x, attributes=reduction.attributes)


def _class_of_sum(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    if match.root.result.type.dtype.is_float:
        return REASSOCIATES
    # An imported model for a target that wraps also runs on ONNX Runtime's CPU provider, whose kernels saturate.
    wraps = context.target.wraps_integers and graph.dims.least > 0
    x = match.consumed[0].operand(0)
    return EXACT if wraps or _stays_in_range(match, magnitude(x, graph), graph) else RANGE


def _promises_of_sum(rule: Any, match: LoweredNode, graph: Graph) -> tuple[str, ...]:
    x = match.consumed[0].operand(0)
    most = promised_magnitude(x, graph)
    return () if most is None or not _stays_in_range(match, most, graph) else Intervals(graph).promised(x)


def _stays_in_range(match: LoweredNode, most: int, graph: Graph) -> bool:
    """Return whether every target computes the integer sum of numbers up to ``most``, or their squares, exactly."""
    x = match.consumed[0].operand(0)
    axes = match.root.attributes_as(ReduceAttributes).axes
    high = graph.dims.interval(product([x.shape[a] for a in axes]))[1]
    each = most if match.consumed[0].op is ABS else most * most
    return isfinite(high) and int(high) * each <= min(int(x.type.dtype.highest), 2**53)


@simplifies(REDUCE_SUM, fed_by=(MUL, POW), rewrite_class=RANGE, class_of=_class_of_sum, relies_on=_promises_of_sum)
def sum_of_squares(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_sum(x * x) becomes reduce_sum_square(x).

    ``reassociates`` for floats; a square that overflows does so in both. Integers are ``exact`` where both wrap or
    bounds prove that nothing overflows, else ``range``: a product wraps, a target's sum of squares may saturate.
    """
    squared = square_of(x.value, e.taken)
    return KEEP if squared is None else _counted(e, node, REDUCE_SUM_SQUARE, node, squared)


@simplifies(REDUCE_SUM, fed_by=(ABS,), rewrite_class=RANGE, class_of=_class_of_sum, relies_on=_promises_of_sum)
def sum_of_magnitudes(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_sum(abs(x)) becomes reduce_l1(x). ``reassociates`` for floats; integers as for sums of squares."""
    inner = e.made_by(x, ABS)
    return KEEP if inner is None else _counted(e, node, REDUCE_L1, node, inner.operand("x"))


@simplifies(REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, fed_by=(ABS, NEG))
def norm_of_magnitude(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_l1, reduce_l2 and reduce_sum_square of abs(x) or -x take x itself. ``exact``: signs do not matter."""
    inner = e.made_by(x, ABS, NEG)
    return KEEP if inner is None else _counted(e, node, node.op, node, inner.operand("x"))


@simplifies(SQRT, POW, gives=REASSOCIATES)
def root_of_squares(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """sqrt(reduce_sum_square(x)) becomes reduce_l2(x).

    ``reassociates``: the same sum and root in one operation, which may keep more digits between the two.
    """
    inner = e.made_by(base_of(node.result, 0.5, []), REDUCE_SUM_SQUARE)
    return KEEP if inner is None else _counted(e, node, REDUCE_L2, inner, inner.operand("x"))


@simplifies(POW, MUL, fed_by=(REDUCE_L2,), gives=REASSOCIATES)
def square_of_root(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """reduce_l2(x) ** 2, or times itself, becomes reduce_sum_square(x). ``reassociates``: no root is taken."""
    inner = e.made_by(square_of(node.result, []), REDUCE_L2)
    if inner is None:
        return KEEP
    x, axes = inner.operand("x"), inner.attributes_as(ReduceAttributes).axes
    reason = used_outside(e.taken, node) or why_no_gain(e, node, REDUCE_SUM_SQUARE, x, axes)
    return reason or e(REDUCE_SUM_SQUARE, x, attributes=inner.attributes)


@simplifies(LOG, fed_by=(REDUCE_SUM,), gives=REASSOCIATES)
def log_of_sum(e: Sketch, node: Node, x: Term) -> Lowered:
    """log(reduce_sum(x)) becomes reduce_log_sum(x).

    ``reassociates``: the same sum and logarithm in one operation. A log-sum-exp in parts stays in parts on a target
    whose lowerings are chosen by their costs. There a plain sum is faster: ONNX Runtime's CPU provider takes six times
    as long for ReduceLogSum as for ReduceSum and Log.
    """
    inner, target = e.made_by(x, REDUCE_SUM), e.target.target
    if inner is None:
        return KEEP
    if target.costs is not None and made_by(inner.operand("x"), EXP) is not None:
        return Miss("the sum of powers is faster on {0} without the logarithm", (target.name,))
    return _counted(e, node, REDUCE_LOG_SUM, inner, inner.operand("x"))


#: Most elementwise nodes between a reduction and the division by it: an epsilon, a root, a bound.
_MOST_STEPS = 4


@simplifies(MUL, fed_by=(RECIPROCAL, DIV, POW, SQRT), gives=REASSOCIATES)
def divide_by_norm(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """x * (1 / n) becomes x / n, and x * sum_square ** -0.5 becomes x / reduce_l2, where n is made of a reduction.

    ``reassociates``: it rounds once where there were two roundings.
    """
    if not node.result.type.dtype.is_float:
        return KEEP
    for a, b in both_ways(node):
        seen: Seen = []
        squares = made_by(base_of(b, -0.5, seen), REDUCE_SUM_SQUARE)
        if squares is not None:
            e.taken += [*seen, squares]
            return used_outside(e.taken, node) or _over_norm(e, node, a, squares)
        seen = []
        below = base_of(b, -1, seen)
        if below is not None and _is_of_reduction(below):
            e.taken += seen
            reason = used_outside(e.taken, node) or why_no_gain(e, node, DIV, a, ())
            return reason or e.of(a) / below
    return KEEP


def _over_norm(e: Sketch, node: Node, a: Value, squares: Node) -> Lowered:
    x, axes = squares.operand("x"), squares.attributes_as(ReduceAttributes).axes
    if not axes:
        return Miss("it reduces over no axis")
    more = emitted_nodes(e.rule.context, DIV, a, (), e.graph)
    reason = why_no_gain(e, node, REDUCE_L2, x, axes, more=more)
    return reason or e.of(a) / e(REDUCE_L2, x, attributes=squares.attributes)


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


def _is_far_from_0(rule: Any, match: LoweredNode, graph: Graph) -> tuple[str, ...]:
    x, known = match.consumed[0].operand("x"), Intervals(graph)
    promised = known.promised_of(x)
    if promised is None:
        return ()
    nearest = promised[0] if promised[0] > 0 else -promised[1]
    tiny = float(np.finfo(x.type.dtype.numpy).tiny)
    return known.promised(x) if nearest > 0 and nearest * nearest > tiny else ()  # nor is a square of it 0


@simplifies(DIV, fed_by=(REDUCE_L2, REDUCE_L1), gives=RANGE, relies_on=_is_far_from_0)
def normalize_by_norm(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """x / reduce_l2(x), and x / reduce_l1(x), over one axis become lp_norm(x).

    ``range``: over a group of zeros the division gives NaN, the operator 0.
    """
    norm = e.made_by(b, REDUCE_L2, REDUCE_L1)
    if norm is None or norm.operand("x") is not a.value or not a.dtype.is_float:
        return KEEP
    axes = norm.attributes_as(ReduceAttributes).axes
    if len(axes) != 1:
        return Miss("the norm is over axes {0}, and the operator takes one", (list(axes),))
    if b.shape != reduced_shape(a.shape, axes, True):
        return Miss("the norm over axis {0} does not keep it", axes)
    reason = used_outside(e.taken, node) or why_no_gain(e, node, LP_NORM, a, axes)
    record = LpNormAttributes(axis=axes[0], p=2 if norm.op is REDUCE_L2 else 1)
    return reason or e(LP_NORM, a, attributes=record)


#: The rules of this file but ``log_of_sum``, which must come after log-sum-exp.
RULES: tuple[type[NodeRule], ...] = (
    sum_of_squares,
    sum_of_magnitudes,
    norm_of_magnitude,
    divide_by_norm,
    root_of_squares,
    square_of_root,
    normalize_by_norm,
)
