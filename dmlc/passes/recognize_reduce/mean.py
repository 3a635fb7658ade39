"""A sum over its count is a mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import Dim, DType, Graph, Node, Operation, Value, product
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.emitted import no_gain
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import ScaledValue, made_by, scaled_of
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _ScaledReductionMatch(Match, eq=False, kw_only=True):
    """``number`` is the constant: a divisor, a factor near one over a count, or the factor of a mean."""

    number: float
    scale: Node


class _Scaled(Rule[_ScaledReductionMatch]):
    rewrite_class = REASSOCIATES
    becomes: ClassVar[Operation] = REDUCE_MEAN

    def parts(self, match: _ScaledReductionMatch) -> tuple[Node, Value]:
        """The reduction and what it is of in the end."""
        return match.consumed[0], match.consumed[0].operand("x")

    def check(self, match: _ScaledReductionMatch, graph: Graph) -> Miss | None:
        reduction, x = self.parts(match)
        axes = reduction.attributes_as(ReduceAttributes).axes
        count: Dim = product([x.shape[a] for a in axes])
        miss = self._other_number(match, count, graph)
        if miss is not None:
            return miss
        if count == 0:  # the sum is 0, the mean NaN
            return Miss("there is nothing to reduce")
        return used_elsewhere(match.consumed[0].result) or no_gain(self.context, match, self.becomes, x, axes, graph)

    def _other_number(self, match: _ScaledReductionMatch, count: Dim, graph: Graph) -> Miss | None:
        """The reason why the constant does not stand for the number of elements; None where it does."""
        dtype, number = match.scale.result.type.dtype, match.number
        by_inverse = self.becomes is REDUCE_MEAN and match.scale.op is not DIV
        told = str(dtype.numpy.type(number)).removesuffix(".0")  # the shortest text of this number and no other
        role = f"the factor {told}" if match.scale.op is not DIV else f"the divisor {told}"
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

    def build(self, match: _ScaledReductionMatch, rewriter: Rewriter) -> Sequence[Value]:
        reduction, x = self.parts(match)
        return [rewriter.add(self.becomes, [x], reduction.attributes)]


class MeanFromSum(_Scaled):
    """reduce_sum(x) / n, or times 1 / n, becomes reduce_mean(x), where n is the number of elements in each group.

    ``reassociates``: a target may divide before it adds. Floats only: means of integers truncate.
    """

    name = "mean-from-sum"
    roots: ClassVar[tuple[Operation, ...]] = (DIV, MUL)
    fed_by: ClassVar[Collection[Operation]] = (REDUCE_SUM,)

    def match(self, node: Node, graph: Graph) -> _ScaledReductionMatch | None:
        scaled = _scaled(node.result)
        inner = made_by(scaled.x, REDUCE_SUM) if scaled is not None else None
        if scaled is None or inner is None:
            return None
        return _ScaledReductionMatch(node, (inner,), number=scaled.number, scale=node)


class MeanOfParts(_Scaled):
    """reduce_sum(x / n), or of x times 1 / n, becomes reduce_mean(x), where n is the number of elements in each group.

    ``reassociates``: the sum before the division is larger, and may overflow where the parts did not. Floats only.
    """

    name = "mean-of-parts"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)
    fed_by: ClassVar[Collection[Operation]] = (DIV, MUL)

    def match(self, node: Node, graph: Graph) -> _ScaledReductionMatch | None:
        scaled = _scaled(node.operand("x"))
        if scaled is None:
            return None
        return _ScaledReductionMatch(node, (scaled.node,), number=scaled.number, scale=scaled.node)

    def parts(self, match: _ScaledReductionMatch) -> tuple[Node, Value]:
        scaled = _scaled(match.root.operand("x"))
        assert scaled is not None
        return match.root, scaled.x


class SumFromMean(_Scaled):
    """reduce_mean(x) * n becomes reduce_sum(x), where n is the number of elements in each group.

    ``reassociates``. Floats only: means of integers truncate.
    """

    name = "sum-from-mean"
    roots: ClassVar[tuple[Operation, ...]] = (MUL,)
    fed_by: ClassVar[Collection[Operation]] = (REDUCE_MEAN,)
    becomes: ClassVar[Operation] = REDUCE_SUM

    def match(self, node: Node, graph: Graph) -> _ScaledReductionMatch | None:
        scaled = scaled_of(node.result)
        inner = made_by(scaled.x, REDUCE_MEAN) if scaled is not None else None
        if scaled is None or inner is None:
            return None
        return _ScaledReductionMatch(node, (inner,), number=scaled.number, scale=node)


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
