"""``legalize``: every node gets a form that the target's kernels compute, with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.legalize import integers, reductions, widen
from dmlc.passes.manager import PassContext
from dmlc.passes.repair.absent import RULES as ABSENT_RULES
from dmlc.passes.repair.elementwise import remainder_by_division, truth_by_comparison
from dmlc.passes.rewrite import RewritePass, Rule

#: Special cases first: the table's rule raises where it finds nothing.
_RULES: Sequence[type[Rule[Any]]] = (
    *reductions.RULES,
    *integers.RULES,
    widen.signed_indices,
    widen.widen_dtype,
)


class Legalize(RewritePass, frozen=True):
    """Nodes whose dtype has no kernel at the opset are computed in another, with casts that lose nothing; integer
    operations that a kernel computes wrongly, or traps on, are spelled by others. ``exact``; a second run changes
    nothing.

    Raises ``DmlcError`` E0502 where nothing exact exists.
    """

    name: ClassVar[str] = "legalize"
    summary: ClassVar[str] = "Give every node a form that the target's kernels compute exactly."
    requires: ClassVar[tuple[str, ...]] = ("lowered-hardmax",)
    ensures: ClassVar[tuple[str, ...]] = ("legal-types",)

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        if context.capabilities.table is None:
            return []
        # The other rules make remainders and casts to bool that the provider may have no kernel for, or a wrong one.
        own: list[type[Rule[Any]]] = [remainder_by_division, truth_by_comparison, *ABSENT_RULES]
        return [*_RULES, *(own if context.capabilities.has_provider else ())]
