"""A sum over its count is a mean."""

from __future__ import annotations

import numpy as np

from dmlc.ir import Dim, DType, Graph, Node, Operation, Value, product
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.emitted import why_no_gain
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import ScaledValue, scaled_of
from dmlc.passes.rewrite import Miss, used_elsewhere


def _mean_or_sum(e: Sketch, node: Node, scaled: ScaledValue, reduction: Node, x: Value, becomes: Operation) -> Lowered:
    """The mean or sum of ``x`` that a scaled reduction, or a reduction of what is scaled, is."""
    axes = reduction.attributes_as(ReduceAttributes).axes
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
