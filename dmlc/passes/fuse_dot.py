"""``fuse-dot``: sums of products become matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.dot_rules import MatmulFromSum
from dmlc.passes.fold_rules import MOVE_RULES
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite


@dataclass(frozen=True)
class FuseDot(Pass):
    """Where the product would hold more elements than its factors."""

    name: ClassVar[str] = "fuse-dot"
    summary: ClassVar[str] = "Make matrix products of sums over products that stretch both factors."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        return [MatmulFromSum(), *MOVE_RULES]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
