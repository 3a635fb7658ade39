"""``dce``: nodes that nothing uses go away."""

from __future__ import annotations

from typing import ClassVar

from dmlc.ir import Graph
from dmlc.ops.constant import CONSTANT
from dmlc.passes.manager import Pass, PassContext
from dmlc.passes.rewrite import node_name
from dmlc.records import dataclass


@dataclass(frozen=True)
class Dce(Pass):
    """Erase pure nodes that no output needs. Inputs stay, used or not: they are the model's interface.

    Conditions that an erased node left stay too: they are promises about the sizes that are fed. Constants go without
    a word in the ledger: they compute nothing.
    """

    name: ClassVar[str] = "dce"
    summary: ClassVar[str] = "Remove what no output needs."
    optional: ClassVar[bool] = True

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.wants(self.name):
            return False
        changed = False
        gone: list[str] = []
        for node in reversed(graph):  # users come later in the order, so one walk from the end finds all
            if not node.is_used and node.op.pure:
                if node.op is not CONSTANT:
                    gone.append(node_name(node))
                graph.erase(node)
                changed = True
        if gone:
            text = f"{len(gone)} unused node{'s' if len(gone) > 1 else ''} removed"
            context.record(self.name, self.rewrite_class, text, before=tuple(reversed(gone)))
        return changed
