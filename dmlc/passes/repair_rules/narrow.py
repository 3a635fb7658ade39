"""Max and min of narrow integers, which the provider takes at 12, 13 and 20 and not at 18."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import i32
from dmlc.ops.reduce import EXTREMES, ReduceAttributes, reduction_of
from dmlc.passes.legal_rules.build import Maker, dtype_of
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Miss, Rewriter


class NarrowExtreme(RepairRule[Match]):
    """The largest or smallest of 8 or 16 bits is found in i32, at opsets where only wider integers are taken."""

    name = "narrow-extreme"
    roots = EXTREMES
    repairs = ("reduce-bytes-18",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        return Match(node) if self.support.has_type(failure, reduction_of(node).onnx, "T", dtype_of(node)) else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        x = match.root.operand(0)
        for axis in match.root.attributes_as(ReduceAttributes).axes:
            if graph.dims.promises_empty(x.shape[axis]):
                return Miss("axis {0} may be empty, and the extreme of nothing is that of {1}", (axis, x.type.dtype))
        return None

    def describe(self, match: Match) -> str:
        return f"{match.root.op.name} of {dtype_of(match.root)} in i32"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        found = make(root.op, make.cast(root.operand(0), i32), attributes=root.attributes)
        return [make.cast(found, dtype_of(root))]
