"""``recognize-reduce``: reductions that are written out in elementwise operations become what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.recognize_rules import (
    LogOfSum,
    LogSumExp,
    MeanFromSum,
    RootOfSquares,
    ShiftedLogSumExp,
    SumOfMagnitudes,
    SumOfSquares,
)
from dmlc.passes.rewrite import Rule, rewrite


@dataclass(frozen=True)
class RecognizeReduce(Pass):
    """Runs after the fusions of whole normalizations, which look for sums of squares as they are written."""

    name: ClassVar[str] = "recognize-reduce"
    summary: ClassVar[str] = "Recognize means, norms, sums of squares and log-sum-exp."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        rules: list[Rule[Any]] = [MeanFromSum(), SumOfSquares(), SumOfMagnitudes(), RootOfSquares()]
        if context.target.name in ("directml", "cpu"):
            # there it is written out again: DirectML's own overflows, and on the CPU the parts are faster
            return [*rules, LogOfSum()]
        return [*rules, ShiftedLogSumExp(), LogSumExp(), LogOfSum()]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
