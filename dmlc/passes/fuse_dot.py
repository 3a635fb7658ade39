"""``fuse-dot``: sums of products become matrix products."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.dot_rules.einsum import EinsumFromSum
from dmlc.passes.dot_rules.outer import MatmulFromSum
from dmlc.passes.dot_rules.weighted import MatmulFromWeightedSum
from dmlc.passes.fold_rules import MOVE_RULES
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass
from dmlc.targets.support import ProviderSupport


@dataclass(frozen=True)
class FuseDot(Pass):
    """Replace sums over products by matrix products if that is cheaper on the target.

    Cheaper means: no product larger than its factors is stored, or fewer dispatches, or fewer nodes for as many
    dispatches.
    """

    name: ClassVar[str] = "fuse-dot"
    summary: ClassVar[str] = "Make matrix products of sums over products, where they are cheaper."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        rules: list[Rule[Any]] = [MatmulFromSum(), MatmulFromWeightedSum()]
        # Einsum is cheaper where it is an operator of an execution provider: fewer dispatches.
        if ProviderSupport(context.target, context.opset).kernel("Einsum") is not None:
            rules.append(EinsumFromSum())
        return [*rules, *MOVE_RULES]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
