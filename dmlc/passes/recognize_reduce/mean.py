"""A sum over its count is a mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import Dim, DType, Graph, Node, Operation, Value, product
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.emitted import no_gain
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import both_ways, broadcasts, made_by, scalar_of
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
        scaled = _scaled(node)
        inner = made_by(scaled[0], REDUCE_SUM) if scaled is not None else None
        return (
            None
            if scaled is None or inner is None
            else _ScaledReductionMatch(node, (inner,), number=scaled[1], scale=node)
        )


class MeanOfParts(_Scaled):
    """reduce_sum(x / n), or of x times 1 / n, becomes reduce_mean(x), where n is the number of elements in each group.

    ``reassociates``: the sum before the division is larger, and may overflow where the parts did not. Floats only.
    """

    name = "mean-of-parts"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)
    fed_by: ClassVar[Collection[Operation]] = (DIV, MUL)

    def match(self, node: Node, graph: Graph) -> _ScaledReductionMatch | None:
        inner = made_by(node.operand("x"), DIV, MUL)
        scaled = _scaled(inner) if inner is not None else None
        return (
            None
            if inner is None or scaled is None
            else _ScaledReductionMatch(node, (inner,), number=scaled[1], scale=inner)
        )

    def parts(self, match: _ScaledReductionMatch) -> tuple[Node, Value]:
        scaled = _scaled(match.consumed[0])
        assert scaled is not None
        return match.root, scaled[0]


class SumFromMean(_Scaled):
    """reduce_mean(x) * n becomes reduce_sum(x), where n is the number of elements in each group.

    ``reassociates``. Floats only: means of integers truncate.
    """

    name = "sum-from-mean"
    roots: ClassVar[tuple[Operation, ...]] = (MUL,)
    fed_by: ClassVar[Collection[Operation]] = (REDUCE_MEAN,)
    becomes: ClassVar[Operation] = REDUCE_SUM

    def match(self, node: Node, graph: Graph) -> _ScaledReductionMatch | None:
        if not node.result.type.dtype.is_float:
            return None
        for value, other in both_ways(node):
            inner, number = made_by(value, REDUCE_MEAN), scalar_of(other)
            if inner is not None and number is not None and not broadcasts(other, value):
                return _ScaledReductionMatch(node, (inner,), number=float(number), scale=node)
        return None


def _scaled(node: Node) -> tuple[Value, float] | None:
    """``(x, n)`` where the node is ``x / n``, ``(x, 1 / n)`` where it is ``x * (1 / n)`` for a whole number n.

    The constant broadcasts nothing. A sum times another factor is not a mean.
    """
    if not node.result.type.dtype.is_float:
        return None
    pairs = [(node.operand("a"), node.operand("b"))] if node.op is DIV else list(both_ways(node))
    for value, other in pairs:
        number, tensor = scalar_of(other), constant_of(other)
        if not number or tensor is None or constant_of(value) is not None or broadcasts(other, value):
            continue
        if node.op is DIV or _count(float(number), tensor.dtype):
            return value, float(number)
    return None


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
