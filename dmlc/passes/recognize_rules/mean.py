"""A sum over its count is a mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmlc.ir import DType, Graph, Node, Value, product
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import both_ways, made_by, scalar_of, stretches
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


@dataclass(slots=True, eq=False)
class _Found(Match):
    number: float = 0.0


class MeanFromSum(Rule[_Found]):
    """reduce_sum(x) / n, or times 1 / n, becomes reduce_mean(x), where n is the number of elements in each group.

    ``reassociates``: a target may divide before it adds. Floats only: means of integers truncate.
    """

    name = "mean-from-sum"
    roots = (DIV, MUL)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _Found | None:
        pairs = [(node.operand(0), node.operand(1))] if node.op is DIV else list(both_ways(node))
        for value, other in pairs:
            inner, number = made_by(value, REDUCE_SUM), scalar_of(other)
            if inner is None or number is None or not number or not node.result.type.dtype.is_float:
                continue
            tensor = constant_of(other)
            assert tensor is not None
            if not stretches(other, value):
                # 1 / n is rounded to the dtype: compared as that number, not as a quotient
                return _Found(node, (inner,), float(number) if node.op is DIV else _count(float(number), tensor.dtype))
        return None

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        axes = inner.attributes_as(ReduceAttributes).axes
        count = product([inner.operand(0).shape[a] for a in axes])
        if not axes or not isinstance(count, int):
            return Miss("the divisor {0:g} equals {1} only for some sizes", (match.number, count))
        if count != match.number:
            return Miss("the divisor {0:g} is not the number of elements, {1}", (match.number, count))
        return used_elsewhere(inner.result)

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        inner = match.consumed[0]
        return [rewriter.add(REDUCE_MEAN, [inner.operand(0)], inner.attributes)]


def _count(factor: float, dtype: DType) -> float:
    """The whole number whose reciprocal in that dtype is the factor; 0 where there is none."""
    numpy = dtype.numpy
    with np.errstate(all="ignore"):
        whole = round(1 / factor)
        return float(whole) if whole > 0 and bool(numpy.type(1 / whole) == numpy.type(factor)) else 0.0
