"""``hoist``: what can be done after a reduction is done after it, to fewer elements."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.fold_constants import MOVE_RULES
from dmlc.passes.fuse_selection.goal import Goal
from dmlc.passes.hoist.extremum import RisingAfterExtreme
from dmlc.passes.hoist.layouts import ReductionBeforeExpand, ReductionOfConcat, ReductionOfPad
from dmlc.passes.hoist.linear import ScaleAfterSum, ShiftAfterMean, SumOfSums
from dmlc.passes.hoist.split import Scales
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass


@dataclass(frozen=True)
class Hoist(Pass):
    """Runs after the fusions that want an elementwise operation before its reduction (norms, softmax, means).

    A tensor that only a reduction reads is then not written: less memory on every target, with as many nodes. What
    takes more nodes is weighed where the target has a cost model.
    """

    name: ClassVar[str] = "hoist"
    summary: ClassVar[str] = "Do after a reduction, to fewer elements, what was done before it."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        goal, scales = Goal.of(context), Scales(context)
        rules: list[Rule[Any]] = [RisingAfterExtreme(goal, scales), ScaleAfterSum(scales), ShiftAfterMean(scales)]
        if scales.known:
            rules.append(SumOfSums(scales))
        return [*rules, ReductionOfConcat(goal, scales), ReductionOfPad(), ReductionBeforeExpand(), *MOVE_RULES]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
