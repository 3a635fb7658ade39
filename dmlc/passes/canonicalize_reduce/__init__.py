"""``canonicalize-reduce``: every reduction in one form, and as few of them as the program allows."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.canonicalize_reduce.axes import (
    AbsorbMove,
    DropEmptyReduction,
    DropUnitAxes,
    LowerRank,
    MergeNested,
    SortAxes,
)
from dmlc.passes.canonicalize_reduce.layouts import DropCasts, DropExpanded, DropFlatten, DropTranspose, SinkTranspose
from dmlc.passes.fold_constants import MOVE_RULES
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass


@dataclass(frozen=True)
class CanonicalizeReduce(Pass):
    """Options: ``max_rank`` is the highest rank that reductions and selections may have, None for no limit.

    Afterwards axes are sorted, an axis of size 1 is reduced only where ``keepdims=false`` takes it out anyway,
    a reduction over nothing is its elementwise part, nested reductions of one kind are one, and ``keepdims`` says
    what a squeeze or unsqueeze said. Of class ``exact`` are the rules about axes and ``keepdims`` and the merging of
    max, min and wrapping integers; float sums reassociate; what may overflow in between is ``range``.
    """

    max_rank: int | None = 8

    name: ClassVar[str] = "canonicalize-reduce"
    summary: ClassVar[str] = "Bring reductions to one form and merge nested ones."
    rewrite_class: ClassVar[str] = RANGE
    ensures: ClassVar[tuple[str, ...]] = ("canonical-reduce",)

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        rules: list[Rule[Any]] = [SortAxes(), DropEmptyReduction(), DropUnitAxes(), MergeNested(), AbsorbMove()]
        rules += [DropTranspose(), SinkTranspose(), DropFlatten(self.max_rank), DropExpanded(), DropCasts()]
        if self.max_rank is not None:
            rules.append(LowerRank(self.max_rank))
        return [*rules, *MOVE_RULES]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
