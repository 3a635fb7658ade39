"""An If whose condition is known is the branch that runs."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, is_opaque
from dmlc.passes.rewrite import Match, Rewriter, Rule


class InlineBranch(Rule[Match]):
    """An If of a constant condition becomes the nodes of the branch that it takes."""

    name = "inline-branch"
    roots = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not is_opaque(node, "If") or constant_of(node.operands[0]) is None:
            return None
        return Match(node)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node = match.root
        condition = constant_of(node.operands[0])
        assert condition is not None
        wanted = "then_branch" if condition.array.all() else "else_branch"
        region = next(r for r in node.regions if r.attribute == wanted)
        around = {inner: node.operand(place) for inner, place in zip(region.captured, region.captures, strict=True)}
        return rewriter.inline(region.graph, around)
