"""A sum of an addition becomes the addition of two sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import f16
from dmlc.ops.binary import ADD
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.hoist_rules.scales import Scales, Steps, join_step, reduction_steps
from dmlc.passes.hoist_rules.split import why_absorbed
from dmlc.passes.lowering_plans.plan import Sizes, Work
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class SumOfSums(Rule[Match]):
    """reduce_sum(a + b) becomes reduce_sum(a) + reduce_sum(b), and so on for means.

    ``reassociates``: where ``a`` and ``b`` nearly cancel, what is lost is what changing them in their last places
    changes too. Only where a cost model says that it is cheaper not to write the tensor; not of f16, which would be
    rounded between.
    """

    name = "sum-of-sums"
    roots = (REDUCE_SUM, REDUCE_MEAN)
    fed_by = (ADD,)
    rewrite_class = REASSOCIATES

    def __init__(self, scales: Scales) -> None:
        self.scales = scales

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand(0).producer
        if inner is None or inner.op is not ADD or not node.result.type.dtype.is_float:
            return None
        a, b = inner.operand(0), inner.operand(1)
        if a is b or a.shape != b.shape or not node.attributes_as(ReduceAttributes).axes:
            return None
        return Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        if inner.result.type.dtype is f16:
            return Miss("f16 would be rounded between the parts")
        absorbed = why_absorbed(inner, inner.operand(0)) or why_absorbed(inner, inner.operand(1))
        shared = absorbed or used_elsewhere(inner.result)
        return shared or self.scales.why_dearer(match, graph, *_forms(match))

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, inner = match.root, match.consumed[0]
        self.scales.tell(self.name, match, rewriter.graph, *_forms(match))
        record = root.attributes_as(ReduceAttributes)
        sums = [rewriter.add(root.op, [inner.operand(i)], record) for i in (0, 1)]
        return [rewriter.add(ADD, sums)]


def _forms(match: Match) -> tuple[Steps, Steps]:
    """The nodes as they stand, and those that would be made."""
    root, x = match.root, match.root.operand(0)
    axes, dtype = root.attributes_as(ReduceAttributes).axes, x.type.dtype

    def before(sizes: Sizes) -> list[Work]:
        shape = sizes.of(x)
        return [join_step(dtype, math.prod(shape)), *reduction_steps(root.op, dtype, shape, axes)]

    def after(sizes: Sizes) -> list[Work]:
        one = reduction_steps(root.op, dtype, sizes.of(x), axes)
        return [*one, *one, join_step(dtype, math.prod(sizes.of(root.result)))]

    return before, after
