"""``share-reductions``: what is reduced twice over the same axes is reduced once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Value, product
from dmlc.ir.dtype import f16
from dmlc.ops.binary import DIV
from dmlc.ops.opaque import node_name
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCTIONS
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.manager import EXACT, REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import Match, Rewriter, names_after

_SHARED = frozenset((*REDUCTIONS, ARGMAX, ARGMIN))


class ShareReductions(Pass, frozen=True):
    """Runs last of the fusions: a value that is shared is no longer taken over by a pattern that it stands in.

    ``exact`` where two reductions differ in ``keepdims`` only: the second becomes a move of axes of size 1.
    ``reassociates`` where a mean stands beside a sum: it becomes the sum divided by the number of elements. Only of f32
    and f64, for a sum of f16 may overflow where the mean, which is accumulated in f32, does not.
    """

    name: ClassVar[str] = "share-reductions"
    summary: ClassVar[str] = "Compute a reduction once where only keepdims differs, and a mean from its sum."
    rewrite_class: ClassVar[str] = REASSOCIATES
    optional: ClassVar[bool] = True

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.wants(self.name):
            return False
        summed = self._with_both(graph) if REASSOCIATES in context.options.allowed else frozenset()
        seen: dict[Any, Value] = {}
        changed = False
        for node in graph.nodes_of(_SHARED):
            attributes: Any = node.attributes
            if node.op is REDUCE_MEAN and (node.operand("x"), attributes.axes) in summed:
                self._divide(graph, node, seen, context)
                changed = True
                continue
            first = seen.setdefault(_key(node), node.result)
            if first is not node.result:
                self._replace(graph, node, first, context)
                changed = True
        return changed

    def _with_both(self, graph: Graph) -> frozenset[Any]:
        """Return the values and axes that are both summed and averaged, over a known number of elements."""
        found: dict[Any, set[Any]] = {}
        if not (graph.holds((REDUCE_SUM,)) and graph.holds((REDUCE_MEAN,))):
            return frozenset()
        for node in graph.nodes_of((REDUCE_SUM, REDUCE_MEAN)):
            x, axes = node.operand("x"), node.attributes.axes  # type: ignore[attr-defined]
            dtype = x.type.dtype
            if dtype.is_float and dtype is not f16 and _count(x, axes):
                found.setdefault((x, axes), set()).add(node.op)
        return frozenset([key for key, ops in found.items() if len(ops) == 2])

    def _divide(self, graph: Graph, node: Node, seen: dict[Any, Value], context: PassContext) -> None:
        rewriter = Rewriter(graph, self.name, Match(node), REASSOCIATES)
        x, attributes = node.operand("x"), node.attributes
        key = _key(node, REDUCE_SUM)
        total = seen.get(key)
        if total is None:
            total = seen[key] = rewriter.add(REDUCE_SUM, [x], attributes)
        total = rewriter.with_ones(total, node.result.shape)
        count = np.asarray(_count(x, attributes.axes), x.type.dtype.numpy)  # type: ignore[attr-defined]
        mean = rewriter.add(DIV, [total, rewriter.constant(count)])
        self._finish(graph, node, mean, rewriter, context, REASSOCIATES, "mean beside the sum")

    def _replace(self, graph: Graph, node: Node, first: Value, context: PassContext) -> None:
        rewriter = Rewriter(graph, self.name, Match(node))
        value = rewriter.with_ones(first, node.result.shape)
        self._finish(graph, node, value, rewriter, context, EXACT, f"{node.op.name} computed twice")

    def _finish(
        self, graph: Graph, node: Node, value: Value, rewriter: Rewriter, context: PassContext, how: str, text: str
    ) -> None:
        before = node_name(node)
        graph.replace_all_uses(node.result, value)
        graph.erase(node)
        after = names_after(rewriter.made)
        context.record(self.name, how, text, node.spans, (before,), after)


def _key(node: Node, op: Any = None) -> Any:
    attributes: Any = node.attributes
    return (op or node.op, node.operand("x"), attributes if attributes.keepdims else replace(attributes, keepdims=True))


def _count(x: Value, axes: tuple[int, ...]) -> int | None:
    """Return the number of elements reduced to one, if it is known, not 0, and exact in the dtype."""
    count = product([x.shape[a] for a in axes])
    most = 2 ** (1 + int(np.finfo(x.type.dtype.numpy).nmant))
    return count if isinstance(count, int) and 0 < count <= most else None
