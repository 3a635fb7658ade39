"""``share-prefixes``: a reduction over more axes goes on from the one over fewer beside it."""

from __future__ import annotations

from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ir.dtype import f16
from dmlc.ops.opaque import node_name
from dmlc.ops.reduce import EXTREMES, GOES_ON, REDUCE_MEAN, ReduceAttributes, axes_of
from dmlc.passes.canonicalize_reduce.kinds import fit, merge_class, reduce_to
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import Match, Rewriter, names_after


class SharePrefixes(Pass, frozen=True):
    """Runs after the merging of nested reductions, which would take a result that nothing else uses away again.

    ``exact`` for max and min, and for integers where no sum can leave its range; float sums and means reassociate.
    The smaller result is read again. Integer means truncate and stay.
    """

    name: ClassVar[str] = "share-prefixes"
    summary: ClassVar[str] = "Compute a reduction from one over fewer axes of the same operand."
    rewrite_class: ClassVar[str] = REASSOCIATES
    optional: ClassVar[bool] = True

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.wants(self.name):
            return False
        groups: dict[tuple[Value, Operation], list[Node]] = {}
        for node in graph:
            if node.op in GOES_ON and axes_of(node):
                groups.setdefault((node.operand("x"), node.op), []).append(node)
        changed = False
        for group in groups.values():
            if len(group) > 1 and _merges(group[0]):
                changed |= self._share(graph, group, context)
        return changed

    def _share(self, graph: Graph, group: list[Node], context: PassContext) -> bool:
        """Compute reductions of one value from others of it, all placed at the first; return whether any was
        changed."""
        parents: dict[Node, Node] = {}
        for node in group:
            fewer = [n for n in group if set(axes_of(n)) < set(axes_of(node)) and _leads_to(graph, n, node)]
            if not fewer:
                continue
            best = max(fewer, key=lambda n: len(axes_of(n)))
            if merge_class(GOES_ON[node.op], best, axes_of(node), graph, context.target) in context.options.allowed:
                parents[node] = best
        made: dict[Node, Value] = {}
        for node in sorted({*parents, *parents.values()}, key=lambda n: len(axes_of(n))):
            rewriter = Rewriter(graph, self.name, Match(node), REASSOCIATES)
            rewriter.root = group[0]
            parent = parents.get(node)
            made[node] = _again(rewriter, node) if parent is None else _go_on(rewriter, node, parent, made[parent])
            if parent is not None:
                how = merge_class(GOES_ON[node.op], parent, axes_of(node), graph, context.target)
                text = f"{node.op.name} over {list(axes_of(node))} from the one over {list(axes_of(parent))}"
                after = names_after(rewriter.made)
                context.record(self.name, how, text, node.spans, (node_name(node),), after)
        for node, value in made.items():
            graph.replace_all_uses(node.result, value)
            graph.erase(node)
        return bool(made)


def _merges(node: Node) -> bool:
    """Return whether partial results lead to the same result. f16 is rounded and may overflow; an integer mean
    truncates."""
    dtype = node.result.type.dtype
    if node.op in EXTREMES:
        return True
    return dtype is not f16 and not (node.op is REDUCE_MEAN and dtype.is_integer)


def _leads_to(graph: Graph, fewer: Node, node: Node) -> bool:
    """Return whether reducing the smaller result once more gives the other one, without a layout operation, and reads
    less."""
    if all(is_unit(graph, fewer.operand("x").shape[a]) for a in axes_of(fewer)):
        return False
    return fit(graph, fewer.result.shape, _rest(fewer, node), node.result.shape) is not None


def _rest(fewer: Node, node: Node) -> tuple[int, ...]:
    """The axes that are still to be reduced, of the smaller result."""
    done = axes_of(fewer)
    rest = [a for a in axes_of(node) if a not in done]
    if not fewer.attributes_as(ReduceAttributes).keepdims:
        rest = [a - sum(d < a for d in done) for a in rest]
    return tuple(rest)


def _again(rewriter: Rewriter, node: Node) -> Value:
    """The same node, at the place of the first one."""
    made = rewriter.graph.add(
        node.op, node.operands, node.attributes, spans=node.spans, history=node.history, before=rewriter.root
    )
    made.name, made.origin = node.name, node.origin
    return made.result


def _go_on(rewriter: Rewriter, node: Node, parent: Node, start: Value) -> Value:
    record = ReduceAttributes(axes=_rest(parent, node), keepdims=False)
    return reduce_to(rewriter, GOES_ON[node.op], start, record, node.result.shape)
