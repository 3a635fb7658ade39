"""Gated linear units: a half of a split tensor times the sigmoid of the other half, which DirectML confuses."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Dim, Graph, Node, Value
from dmlc.ops.binary import MUL
from dmlc.ops.elementwise import SIGMOID
from dmlc.ops.move import SLICE, SPLIT, SliceAttributes, SplitAttributes
from dmlc.passes.legal_rules.build import Maker
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter


class SlicesOfGate(RepairRule[Match]):
    """A Split of which one part is multiplied by the sigmoid of a part becomes slices: no two results of one node."""

    name = "slices-of-gate"
    roots = (SPLIT,)
    repairs = ("split-gate",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        if self.support.of_kernel(failure, "Mul") is None or len(node.results) < 2:
            return None
        return Match(node) if any(_is_gated(part, node) for part in node.results) else None

    def describe(self, match: Match) -> str:
        return f"split into {len(match.root.results)} parts with a gate"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        a = root.attributes_as(SplitAttributes)
        out: list[Value] = []
        start: Dim = 0
        for size in a.sizes:
            record = SliceAttributes(starts=(start,), ends=(start + size,), axes=(a.axis,), steps=(1,))
            out.append(make(SLICE, root.operand(0), attributes=record))
            start = start + size
        return out


def _is_gated(part: Value, split: Node) -> bool:
    """True if the sigmoid of a part is multiplied by a part."""
    for sigmoid in part.users:
        if sigmoid.op is SIGMOID:
            for user in sigmoid.result.users:
                if user.op is MUL and any(v is not None and v.producer is split for v in user.operands):
                    return True
    return False
