"""``recognize-reduce``: reductions that are written out in elementwise operations become what they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Dim, DType, Graph, Node, Operation, Value, product
from dmlc.ops.binary import ADD, DIV, MAX, MUL, POW
from dmlc.ops.choose import CLIP
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import ABS, EXP, LOG, NEG, RECIPROCAL, SQRT
from dmlc.ops.normalize import LP_NORM, LpNormAttributes
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    REDUCTIONS,
    ReduceAttributes,
    axes_of,
)
from dmlc.ops.rules import reduced_shape
from dmlc.passes.canonicalize_reduce.kinds import fit, magnitude, promised_magnitude, reduce_to
from dmlc.passes.emitted import emitted_nodes, why_no_gain
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fuse_softmax import MAKERS_OF_LOG_SUM_EXP, log_sum_exp_of
from dmlc.passes.intervals import Intervals
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.normal_form import base_of
from dmlc.passes.patterns import (
    ScaledValue,
    Seen,
    both_ways,
    difference_of,
    made_by,
    scaled_of,
    square_of,
    used_outside,
)
from dmlc.passes.rewrite import Miss, RewritePass, Rule, rules_of, used_elsewhere

# --- A sum over its count is a mean


def _mean_or_sum(e: Sketch, node: Node, scaled: ScaledValue, reduction: Node, x: Value, becomes: Operation) -> Lowered:
    """The mean or sum of ``x`` that a scaled reduction, or a reduction of what is scaled, is."""
    axes = axes_of(reduction)
    count: Dim = product([x.shape[a] for a in axes])
    if miss := _why_other_number(scaled, count, e.graph, becomes):
        return miss
    if count == 0:  # the sum is 0, the mean NaN
        return Miss("there is nothing to reduce")
    reason = used_elsewhere(e.taken[0].result) or why_no_gain(e, node, becomes, x, axes)
    return reason or e(becomes, x, attributes=reduction.attributes)


def _why_other_number(scaled: ScaledValue, count: Dim, graph: Graph, becomes: Operation) -> Miss | None:
    """The reason why the constant does not stand for the number of elements; None where it does."""
    op, dtype, number = scaled.node.op, scaled.node.result.type.dtype, scaled.number
    by_inverse = becomes is REDUCE_MEAN and op is not DIV
    told = str(dtype.numpy.type(number)).removesuffix(".0")  # the shortest text of this number and no other
    role = f"the factor {told}" if op is not DIV else f"the divisor {told}"
    wanted = "one over the number of elements" if by_inverse else "the number of elements"
    if isinstance(count, int):
        found = _inverse(count, dtype) if by_inverse else float(count)
        return None if found == number else Miss("{0} is not {1}, {2}", (role, wanted, count))
    low, high = graph.dims.interval(count)
    needed = _count(number, dtype) if by_inverse else number
    text = "{0} is {1}, {2}, only for some sizes"
    if not (needed.is_integer() and low <= needed <= high):
        text = "{0} is not {1}, {2}"
    return Miss(text, (role, wanted, count))


@simplifies(DIV, MUL, fed_by=(REDUCE_SUM,), gives=REASSOCIATES)
def mean_from_sum(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """reduce_sum(x) / n, or times 1 / n, becomes reduce_mean(x), where n is the number of elements in each group.

    ``reassociates``: a target may divide before it adds. Floats only: means of integers truncate.
    """
    scaled = _scaled(node.result)
    inner = e.made_by(scaled.x, REDUCE_SUM) if scaled is not None else None
    if scaled is None or inner is None:
        return KEEP
    return _mean_or_sum(e, node, scaled, inner, inner.operand("x"), REDUCE_MEAN)


@simplifies(REDUCE_SUM, fed_by=(DIV, MUL), gives=REASSOCIATES)
def mean_of_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_sum(x / n), or of x times 1 / n, becomes reduce_mean(x), where n is the number of elements in each group.

    ``reassociates``: the sum before the division is larger, and may overflow where the parts did not. Floats only.
    """
    scaled = _scaled(x.value)
    if scaled is None:
        return KEEP
    e.taken.append(scaled.node)
    return _mean_or_sum(e, node, scaled, node, scaled.x, REDUCE_MEAN)


@simplifies(MUL, fed_by=(REDUCE_MEAN,), gives=REASSOCIATES)
def sum_from_mean(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """reduce_mean(x) * n becomes reduce_sum(x), where n is the number of elements in each group.

    ``reassociates``. Floats only: means of integers truncate.
    """
    scaled = scaled_of(node.result)
    inner = e.made_by(scaled.x, REDUCE_MEAN) if scaled is not None else None
    if scaled is None or inner is None:
        return KEEP
    return _mean_or_sum(e, node, scaled, inner, inner.operand("x"), REDUCE_SUM)


def _scaled(value: Value) -> ScaledValue | None:
    """``x / n``, or ``x * (1 / n)`` for a whole number n. A sum times another factor is not a mean."""
    found = scaled_of(value)
    if found is None or not found.number:
        return None
    return found if found.node.op is DIV or _count(found.number, value.type.dtype) else None


def _inverse(count: int, dtype: DType) -> float:
    """One over the count, rounded to the dtype; NaN for a count of 0."""
    return float(dtype.numpy.type(1 / count)) if count else float("nan")


def _count(factor: float, dtype: DType) -> float:
    """The whole number whose reciprocal in that dtype is the factor; 0 where there is none."""
    with np.errstate(all="ignore"):
        inverse = 1 / factor
        if not np.isfinite(inverse):
            return 0.0
        whole = round(inverse)
        # 1 / n is rounded to the dtype: compared as that number, not as a quotient
        return float(whole) if whole > 0 and _inverse(whole, dtype) == factor else 0.0


# --- Norms and sums of squares, and elementwise functions that join a reduction


def _counted(e: Sketch, node: Node, becomes: Operation, reduction: Node, x: Value) -> Lowered:
    """The reduction ``becomes`` of ``x``, where that saves nodes."""
    axes = axes_of(reduction)
    if not axes:
        return Miss("it reduces over no axis")
    reason = used_elsewhere(e.taken[0].result) or why_no_gain(e, node, becomes, x, axes)
    return reason or e(becomes, x, attributes=reduction.attributes)


def _sum_as(e: Sketch, node: Node, becomes: Operation, x: Value) -> Lowered:
    """The sum of squares or magnitudes of ``x``; integers must not leave their range."""
    if x.type.dtype.is_float:
        e.gives = REASSOCIATES
    # An imported model for a target that wraps also runs on ONNX Runtime's CPU provider, whose kernels saturate.
    elif (e.target.target.wraps_integers and e.graph.dims.least > 0) or _stays_in_range(
        e, node, becomes, x, magnitude(x, e.graph)
    ):
        e.gives = EXACT
    elif (most := promised_magnitude(x, e.graph)) is not None and _stays_in_range(e, node, becomes, x, most):
        e.promised = Intervals(e.graph).promised(x)
    return _counted(e, node, becomes, node, x)


def _stays_in_range(e: Sketch, node: Node, becomes: Operation, x: Value, most: int) -> bool:
    """Return whether every target computes the integer sum of numbers up to ``most``, or their squares, exactly."""
    high = e.graph.dims.interval(product([x.shape[a] for a in axes_of(node)]))[1]
    each = most if becomes is REDUCE_L1 else most * most
    return isfinite(high) and int(high) * each <= min(int(x.type.dtype.highest), 2**53)


@simplifies(REDUCE_SUM, fed_by=(MUL, POW), gives=(RANGE, REASSOCIATES, EXACT))
def sum_of_squares(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_sum(x * x) becomes reduce_sum_square(x).

    ``reassociates`` for floats; a square that overflows does so in both. Integers are ``exact`` where both wrap or
    bounds prove that nothing overflows, else ``range``: a product wraps, a target's sum of squares may saturate.
    """
    squared = square_of(x.value, e.taken)
    return KEEP if squared is None else _sum_as(e, node, REDUCE_SUM_SQUARE, squared)


@simplifies(REDUCE_SUM, fed_by=(ABS,), gives=(RANGE, REASSOCIATES, EXACT))
def sum_of_magnitudes(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_sum(abs(x)) becomes reduce_l1(x). ``reassociates`` for floats; integers as for sums of squares."""
    inner = e.made_by(x, ABS)
    return KEEP if inner is None else _sum_as(e, node, REDUCE_L1, inner.operand("x"))


@simplifies(REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, fed_by=(ABS, NEG))
def norm_of_magnitude(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_l1, reduce_l2 and reduce_sum_square of abs(x) or -x take x itself. ``exact``: signs do not matter."""
    inner = e.made_by(x, ABS, NEG)
    return KEEP if inner is None else _counted(e, node, node.op, node, inner.operand("x"))


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
    x, axes = squares.operand("x"), axes_of(squares)
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
    x, axes = inner.operand("x"), axes_of(inner)
    reason = used_outside(e.taken, node) or why_no_gain(e, node, REDUCE_SUM_SQUARE, x, axes)
    return reason or e(REDUCE_SUM_SQUARE, x, attributes=inner.attributes)


@simplifies(DIV, fed_by=(REDUCE_L2, REDUCE_L1), gives=RANGE)
def normalize_by_norm(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """x / reduce_l2(x), and x / reduce_l1(x), over one axis become lp_norm(x).

    ``range``: over a group of zeros the division gives NaN, the operator 0.
    """
    norm = e.made_by(b, REDUCE_L2, REDUCE_L1)
    if norm is None or norm.operand("x") is not a.value or not a.dtype.is_float:
        return KEEP
    axes = axes_of(norm)
    if len(axes) != 1:
        return Miss("the norm is over axes {0}, and the operator takes one", (list(axes),))
    if b.shape != reduced_shape(a.shape, axes, True):
        return Miss("the norm over axis {0} does not keep it", axes)
    known = Intervals(e.graph)
    promised = known.promised_of(a.value)
    if promised is not None:
        nearest = promised[0] if promised[0] > 0 else -promised[1]
        is_apart = nearest > 0 and nearest * nearest > float(np.finfo(a.dtype.numpy).tiny)  # nor is a square of it 0
        e.promised = known.promised(a.value) if is_apart else ()
    reason = used_outside(e.taken, node) or why_no_gain(e, node, LP_NORM, a, axes)
    record = LpNormAttributes(axis=axes[0], p=2 if norm.op is REDUCE_L2 else 1)
    return reason or e(LP_NORM, a, attributes=record)


# --- The logarithm of a sum of powers of e, with the maximum taken out or not


def _log_sum_exp(e: Sketch, node: Node, *, shifted: bool) -> Lowered:
    seen: Seen = []
    found = log_sum_exp_of(node.result, seen)
    if found is None:
        return KEEP
    parts, target = None if shifted else difference_of(found.x, []), node.result.shape
    if parts is not None and made_by(parts[1], REDUCE_MAX) is not None:
        return KEEP  # shifted-log-sum-exp takes the shifted form
    e.taken += [n for n in seen if n is not node]
    more = int(fit(e.graph, found.x.shape, found.axes, target) is None)
    outside = used_outside(e.taken, node) or why_no_gain(e, node, REDUCE_LOG_SUM_EXP, found.x, found.axes, more=more)
    record = ReduceAttributes(axes=found.axes, keepdims=False)
    return outside or reduce_to(e, REDUCE_LOG_SUM_EXP, found.x, record, target)


@simplifies(LOG, REDUCE_LOG_SUM, gives=REASSOCIATES)
def log_sum_exp(e: Sketch, node: Node, x: Term) -> Lowered:
    """log(reduce_sum(exp(x))) becomes reduce_log_sum_exp(x).

    ``reassociates``: the same function; where exp(x) left its range, the fused one does not.
    """
    return _log_sum_exp(e, node, shifted=False)


@simplifies(ADD, fed_by=MAKERS_OF_LOG_SUM_EXP, gives=REASSOCIATES)
def shifted_log_sum_exp(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """m + log(reduce_sum(exp(x - m))) with m = reduce_max(x) becomes reduce_log_sum_exp(x).

    ``reassociates``. It is known too where an infinite maximum is taken for 0, and where the rest is a log-sum-exp.
    Where a target's own operator does not take the maximum out, as DirectML's, the written form is shorter and stays.
    """
    return _log_sum_exp(e, node, shifted=True)


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


_RULES = rules_of(globals())


class RecognizeReduce(RewritePass, frozen=True):
    """Runs after the fusions of whole normalizations, which look for sums of squares as they are written."""

    name: ClassVar[str] = "recognize-reduce"
    summary: ClassVar[str] = "Recognize means, norms, sums of squares and log-sum-exp."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return _RULES
