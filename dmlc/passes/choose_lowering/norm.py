"""Norms, sums of squares and logarithms of sums: one kernel, which is slow off the last axes, or its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
    reduction_of,
)
from dmlc.passes.choose_lowering.plan import Maker, Plan, Sizes, Standing, Step
from dmlc.passes.choose_lowering.reduce import axes_of, chain_steps, home_of, reduce_view, why_not_in_parts
from dmlc.passes.choose_lowering.view import after
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.primitives import accumulated, total_in_parts

ROOTS = (REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, REDUCE_LOG_SUM)
#: Elements this many bytes apart evict each other from the cache.
_PAGE = 4096


class NormAsItStands(Standing):
    """One node over the axes."""

    roots: ClassVar[tuple[Operation, ...]] = ROOTS

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        view, home = reduce_view(node), home_of(node)
        shape = view.at(sizes)
        total = math.prod(shape)
        behind = max(after(shape, segment) for segment in view.groups[-1:])
        where = "" if behind == 1 else " far" if behind * home.numpy.itemsize >= _PAGE else " strided"
        return [Step(f"ReduceL2{where}", home, total)]


class NormInParts(Plan):
    """A norm or a logarithm of a sum becomes a plain sum, with what is done to the elements before and to it after."""

    name: ClassVar[str] = "norm-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = ROOTS
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        if not node.operand("x").type.dtype.is_float:
            return "partial sums of integers may leave their range"
        return why_not_in_parts(self.capabilities, REDUCE_SUM, node, axes_of(node))

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        shape, home = sizes.of(node.operand("x")), home_of(node)
        total = math.prod(shape)
        small = total // max(math.prod([shape[a] for a in axes_of(node)]), 1)
        op = reduction_of(node)
        before = [Step("Square", home, total, total)] if op.before else []
        sums = chain_steps(REDUCE_SUM, home, shape, axes_of(node))
        return [*before, *sums, *([Step("others", home, small, small)] if op.after else [])]

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        op, record = reduction_of(node), node.attributes_as(ReduceAttributes)
        return [accumulated(make, node.operand("x"), lambda x: total_in_parts(make, op, x, record))]


PLANS: Sequence[type[Plan]] = (NormAsItStands, NormInParts)
