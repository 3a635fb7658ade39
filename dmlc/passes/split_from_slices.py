"""``split-from-slices``: slices that cover an axis are the parts of one split."""

from __future__ import annotations

from typing import ClassVar

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import SLICE, SPLIT, SliceAttributes, SplitAttributes
from dmlc.ops.node_name import node_name
from dmlc.passes.manager import EXACT, Pass, PassContext
from dmlc.passes.rewrite import Match, Rewriter, names_after


class SplitFromSlices(Pass, frozen=True):
    """Runs last: rules look for slices. ``exact``.

    Not for a target that confuses the parts of a split (``split-gate`` in the reference of the targets).
    """

    name: ClassVar[str] = "split-from-slices"
    summary: ClassVar[str] = "Make one split of slices that cover an axis."
    rewrite_class: ClassVar[str] = EXACT
    optional: ClassVar[bool] = True

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.wants(self.name) or context.capabilities.fault("split-gate", "Mul") is not None:
            return False
        groups: dict[tuple[Value, int], dict[Node, range]] = {}
        for node in graph.nodes_of((SLICE,)):
            found = _places(node)
            if found is not None:
                groups.setdefault((node.operand("x"), found[0]), {})[node] = found[1]
        changed = False
        for (x, axis), parts in groups.items():
            ordered = sorted(parts, key=lambda node, parts=parts: parts[node].start)  # type: ignore[misc]
            starts = [parts[node].start for node in ordered]
            stops = [parts[node].stop for node in ordered]
            if len(parts) > 1 and [*starts, x.shape[axis]] == [0, *stops]:
                self._split(graph, context, axis, ordered, next(iter(parts)))
                changed = True
        return changed

    def _split(self, graph: Graph, context: PassContext, axis: int, ordered: list[Node], first: Node) -> None:
        """Make the split where the first of the slices is."""
        rewriter = Rewriter(graph, self.name, Match(first, tuple(node for node in ordered if node is not first)))
        sizes = tuple([node.result.shape[axis] for node in ordered])
        made = rewriter.add_node(SPLIT, [first.operand("x")], SplitAttributes(axis=axis, sizes=sizes))
        before = tuple(map(node_name, ordered))
        for node, part in zip(ordered, made.results, strict=True):
            graph.replace_all_uses(node.result, part)
            graph.erase(node)
        after = names_after(rewriter.made)
        context.record(self.name, EXACT, f"{len(ordered)} slices", made.spans, before, after)


def _places(node: Node) -> tuple[int, range] | None:
    """The axis that a slice cuts and the places that it keeps; None if it cuts more axes, or unknown places."""
    rows = node.attributes_as(SliceAttributes).rows()
    if len(rows) != 1:
        return None
    axis, start, stop, step = rows[0]
    size = node.operand("x").shape[axis]
    if step != 1 or not (isinstance(size, int) and isinstance(start, int) and isinstance(stop, int)):
        return None
    found = range(size)[start:stop]
    return (axis, found) if found else None
