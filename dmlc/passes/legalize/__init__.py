"""``legalize``: every node gets a form that the target's kernels compute, with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.kernel_support import KernelSupport, LegalRule
from dmlc.passes.legalize import integers, reductions, selections, widen
from dmlc.passes.manager import Pass, PassContext
from dmlc.passes.repair.elementwise import RemainderByDivision, TruthByComparison
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass
from dmlc.targets import kernel_table

#: Special cases first: the table's rule raises where it finds nothing.
_RULES: Sequence[type[LegalRule]] = (
    *selections.RULES,
    *reductions.RULES,
    *integers.RULES,
    *widen.RULES,
    widen.WidenDtype,
)


@dataclass(frozen=True)
class Legalize(Pass):
    """Nodes whose dtype has no kernel at the opset are computed in another, with casts that lose nothing; integer
    operations that a kernel computes wrongly, or traps on, are spelled by others. ``exact``; a second run changes
    nothing.

    Raises ``DmlcError`` E0502 where nothing exact exists.
    """

    name: ClassVar[str] = "legalize"
    summary: ClassVar[str] = "Give every node a form that the target's kernels compute exactly."
    requires: ClassVar[tuple[str, ...]] = ("lowered-hardmax",)
    ensures: ClassVar[tuple[str, ...]] = ("legal-types",)

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        table = kernel_table(context.target)
        if table is None:
            return []
        facts = KernelSupport(table, context.opset, context.target)
        # The other rules make remainders and casts to bool that the provider may have no kernel for, or a wrong one.
        repairs = (RemainderByDivision, TruthByComparison)
        spelled = [rule(facts.support) for rule in repairs] if facts.support.exists else []
        return [*[rule(facts) for rule in _RULES], *spelled]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
