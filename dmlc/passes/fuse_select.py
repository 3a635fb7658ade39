"""``fuse-selection``: what is selected in several operations is selected in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.passes.select_rules import (
    DropMonotone,
    FlattenedSelection,
    GatheredExtreme,
    HardmaxFromOneHot,
    SelectionOfNegation,
    TopOne,
)


@dataclass(frozen=True)
class FuseSelection(Pass):
    """What may move an index by rounding is ``range``; the others keep every index, but beside a NaN."""

    name: ClassVar[str] = "fuse-selection"
    summary: ClassVar[str] = "Fuse argmax, argmin, top_k, one_hot and gathers of what they find."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        rules: list[Rule[Any]] = [HardmaxFromOneHot(), GatheredExtreme(), SelectionOfNegation(), DropMonotone()]
        if context.target.name == "numpy":
            rules.append(FlattenedSelection())
        return [*rules, TopOne(context.target.name)]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
