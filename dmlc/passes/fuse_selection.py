"""``fuse-selection``: searches for the largest or smallest element, and what is done with their index."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.fold_rules import MOVE_RULES, Inverse
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.passes.selection_rules import (
    ArgOfFlattened,
    ArgOfNegation,
    GatherAtArg,
    HotArgmax,
    NegatedExtremeOfNegation,
    SearchOfRising,
    SearchOfWider,
    TopKOfNegation,
    TopOne,
)
from dmlc.passes.selection_rules.goal import Goal
from dmlc.records import dataclass


@dataclass(frozen=True)
class FuseSelection(Pass):
    """Which element a selection takes where a NaN is among them is left open by the language.

    ``exact`` is what keeps the choice in the same hands: a search stays a search. Where another operation makes the
    choice, it falls otherwise beside a NaN (ONNX Runtime's Hardmax of a group that starts with one is all zeros, and
    one_hot of its ArgMax is not): ``reassociates``. What rounds or saturates before a search is ``range``.
    """

    name: ClassVar[str] = "fuse-selection"
    summary: ClassVar[str] = "Make one node of a search and what is done with its index."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        goal = Goal.of(context)
        return [
            TopOne(goal),
            ArgOfFlattened(goal),
            ArgOfNegation(),
            TopKOfNegation(),
            NegatedExtremeOfNegation(),
            SearchOfWider(goal),
            SearchOfRising(),
            GatherAtArg(goal),
            HotArgmax(goal),
            Inverse(),
            *MOVE_RULES,
        ]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
