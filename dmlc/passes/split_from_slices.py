"""``split-from-slices``: slices and places that cover an axis are the parts of one split."""

from __future__ import annotations

from typing import ClassVar

from dmlc.ir import Graph, Node, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.index import GATHER, GatherAttributes
from dmlc.ops.move import RESHAPE, SLICE, SPLIT, ReshapeAttributes, SliceAttributes, SplitAttributes
from dmlc.ops.opaque import node_name
from dmlc.passes.manager import EXACT, Pass, PassContext
from dmlc.passes.rewrite import Match, Rewriter, names_after
from dmlc.targets.capabilities import Capabilities


class SplitFromSlices(Pass, frozen=True):
    """Runs last: rules look for slices. ``exact``.

    Not for a target that confuses the parts of a split (``split-gate`` in the reference of the targets). Gathers of one
    place each are parts where each node is a dispatch, and a reshape none.
    """

    name: ClassVar[str] = "split-from-slices"
    summary: ClassVar[str] = "Make one split of slices that cover an axis."
    rewrite_class: ClassVar[str] = EXACT
    optional: ClassVar[bool] = True

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.wants(self.name) or context.capabilities.fault("split-gate", "Mul") is not None:
            return False
        groups: dict[tuple[Value, int], dict[Node, range]] = {}
        for node in graph.nodes_of((SLICE, GATHER) if dispatches_each(context.capabilities) else (SLICE,)):
            found = _places(node) if node.op is SLICE else _place(node, context)
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
        sizes = tuple([1 if node.op is GATHER else node.result.shape[axis] for node in ordered])
        made = rewriter.add_node(SPLIT, [first.operand("x")], SplitAttributes(axis=axis, sizes=sizes))
        before = tuple(map(node_name, ordered))
        whole = [
            rewriter.add(RESHAPE, [part], ReshapeAttributes(shape=node.result.shape)) if node.op is GATHER else part
            for node, part in zip(ordered, made.results, strict=True)
        ]
        for node, part in zip(ordered, whole, strict=True):
            graph.replace_all_uses(node.result, part)
            graph.erase(node)
        after = names_after(rewriter.made)
        context.record(self.name, EXACT, f"{len(ordered)} slices", made.spans, before, after)


def dispatches_each(capabilities: Capabilities) -> bool:
    """Return whether each node that computes or moves is a dispatch of the target's provider, and a reshape none."""
    return capabilities.has_provider and not capabilities.provider.fuses


def _place(node: Node, context: PassContext) -> tuple[int, range] | None:
    """The same for a gather of one place."""
    record, index = node.attributes_as(GatherAttributes), constant_of(node.operand("i"))
    x = node.operand("x")
    size = x.shape[record.axis]
    if index is None or index.type.rank or record.batch_axes or not isinstance(size, int):
        return None
    place = int(index.array) % size if size else 0
    return (record.axis, range(place, place + 1)) if context.capabilities.computes("Split", x.type.dtype) else None


def _places(node: Node) -> tuple[int, range] | None:
    """The axis that a slice cuts and the places that it keeps; None if it cuts more axes, or places that are not known,
    or not neighbours."""
    rows = node.attributes_as(SliceAttributes).rows()
    if len(rows) != 1:
        return None
    axis, start, stop, step = rows[0]
    size = node.operand("x").shape[axis]
    if not (isinstance(size, int) and isinstance(start, int) and isinstance(stop, int)):
        return None
    found = range(size)[start:stop:step]
    if len(found) == 1:
        found = range(found[0], found[0] + 1)
    return (axis, found) if found and found.step == 1 else None
