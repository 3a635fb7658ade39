"""Padding that changes nothing of a reduction."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import PAD, PadAttributes
from dmlc.ops.reduce import (
    EXTREMES,
    REDUCTIONS,
    ReduceAttributes,
    reduction_of,
)
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class ReductionOfPad(Rule[Match]):
    """reduce_sum(pad(x)) becomes reduce_sum(x), and so on where what is padded with changes nothing.

    That is 0 for sums and norms, 1 for products, the type's lowest for max and its highest for min. ``exact`` for max
    and min and for integers; float sums may add in another order.
    """

    name = "reduction-of-pad"
    roots = tuple([op for op in REDUCTIONS if op.neutral is not None])  # a pad changes the count of a mean

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand(0).producer
        if inner is None or inner.op is not PAD:
            return None
        axes, pads = node.attributes_as(ReduceAttributes).axes, inner.attributes_as(PadAttributes).pads
        padded = any(pads[a] != 0 or pads[a + len(pads) // 2] != 0 for a in axes)
        return Match(node, (inner,)) if padded else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        root, inner = match.root, match.consumed[0]
        record = inner.attributes_as(PadAttributes)
        if record.value != reduction_of(root).neutral_of(root.result.type.dtype):
            return Miss("padding with {0} may change {1}", (record.value, root.op.name))
        axes, rank = root.attributes_as(ReduceAttributes).axes, inner.result.type.rank
        kept = [i % rank for i, d in enumerate(record.pads) if d != 0 and i % rank not in axes]
        if kept:
            return Miss("axis {0} is padded too and stays", (kept[0],))
        return used_elsewhere(inner.result)

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        adds_floats = match.root.op not in EXTREMES and match.root.result.type.dtype.is_float
        return REASSOCIATES if adds_floats else EXACT

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, inner = match.root, match.consumed[0]
        return [rewriter.add(root.op, [inner.operand(0)], root.attributes)]
