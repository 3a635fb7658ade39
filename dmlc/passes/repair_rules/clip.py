"""Clip of 64-bit integers with one bound, whose other bound older releases compute wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dmlc.ir import Graph, Node, Value
from dmlc.ops.choose import CLIP, ClipAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.legal_rules.build import Maker, dtype_of
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter


class BothBounds(RepairRule[Match]):
    """A clip with a missing bound gets the lowest or highest number of its dtype."""

    name = "both-bounds"
    roots = (CLIP, OPAQUE)
    repairs = ("clip-64",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.op is CLIP:
            a = node.attributes_as(ClipAttributes)
            given = [a.min is not None, a.max is not None]
        elif is_opaque(node, "Clip"):
            given = [index < len(node.operands) and node.operands[index] is not None for index in (1, 2)]
        else:
            return None
        if all(given) or node.operands[0] is None:
            return None
        (failure,) = self.repairs
        return Match(node) if self.support.has_type(failure, "Clip", "T", dtype_of(node)) else None

    def describe(self, match: Match) -> str:
        return f"clip of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, dtype = match.root, dtype_of(match.root)
        ends = (int(dtype.lowest), int(dtype.highest))
        if root.op is CLIP:
            a = root.attributes_as(ClipAttributes)
            low, high = (end if bound is None else bound for bound, end in zip((a.min, a.max), ends, strict=True))
            return [rewriter.add(CLIP, root.operands, replace(a, min=low, max=high))]
        given = [*root.operands[1:], None, None][:2]
        bounds = [
            Maker(rewriter).constant(end, dtype) if bound is None else bound
            for bound, end in zip(given, ends, strict=True)
        ]
        record = OpaqueAttributes(op_type="Clip", types=(root.result.type,))
        return [rewriter.add(OPAQUE, [root.operand(0), *bounds], record)]
