"""``dce``: nodes that nothing uses go away."""

from __future__ import annotations

from typing import ClassVar

from dmlc.diagnostics.counted import counted
from dmlc.ir import Graph, Node
from dmlc.ir.providers import asked_dims
from dmlc.ops.constant import CONSTANT
from dmlc.ops.opaque import node_name
from dmlc.passes.manager import Pass, PassContext


class Dce(Pass, frozen=True):
    """Erase pure nodes that no output needs. Inputs stay, used or not: they are the model's interface.

    A node stays while a later one asks for a size that only it provides. Conditions that an erased node left stay too:
    they are promises about the sizes that are fed. Constants go without a word in the ledger: they compute nothing.
    """

    name: ClassVar[str] = "dce"
    summary: ClassVar[str] = "Remove the nodes that no output needs."
    optional: ClassVar[bool] = True

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.wants(self.name):
            return False
        changed = False
        for node in graph.with_regions:
            changed |= graph.drop_captures(node)
        gone: list[str] = []
        has_providers = bool(graph.provides)
        unasked = {name for pairs in graph.provides.values() for name, _ in pairs}
        for node in reversed(graph):  # users come later in the order, so one walk from the end finds all
            if has_providers and not any(value.uses for value in node.results):
                _release(graph, node, unasked)
            if node.is_used or not node.op.pure:
                if unasked:
                    unasked -= asked_dims(node)
            else:
                if node.op is not CONSTANT:
                    gone.append(node_name(node))
                graph.erase(node)
                changed = True
        if gone:
            text = f"{counted(len(gone), 'unused node')} removed"
            context.record(self.name, self.rewrite_class, text, before=tuple(reversed(gone)))
        return changed


def _release(graph: Graph, node: Node, unasked: set[str]) -> None:
    """Let a node whose results nothing takes provide only the dims that are asked for."""
    for value in node.results:
        pairs = graph.provides.pop(value, ())
        kept = tuple([pair for pair in pairs if pair[0] not in unasked])
        if kept:
            graph.provides[value] = kept
