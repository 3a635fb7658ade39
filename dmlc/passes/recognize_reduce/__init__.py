"""``recognize-reduce``: reductions that are written out in elementwise operations become what they are."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.emitted import NodeCount
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.recognize_reduce.log_sum_exp import LogSumExp, ShiftedLogSumExp
from dmlc.passes.recognize_reduce.mean import MeanFromSum, MeanOfParts, SumFromMean
from dmlc.passes.recognize_reduce.norms import (
    DivideByNorm,
    LogOfSum,
    NormalizeByNorm,
    NormOfMagnitude,
    RootOfSquares,
    SumOfMagnitudes,
    SumOfSquares,
)
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass


@dataclass(frozen=True)
class RecognizeReduce(Pass):
    """Runs after the fusions of whole normalizations, which look for sums of squares as they are written."""

    name: ClassVar[str] = "recognize-reduce"
    summary: ClassVar[str] = "Recognize means, norms, sums of squares and log-sum-exp."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        count = NodeCount(context)
        return [
            MeanFromSum(count),
            MeanOfParts(count),
            SumFromMean(count),
            SumOfSquares(count),
            SumOfMagnitudes(count),
            NormOfMagnitude(count),
            DivideByNorm(count),
            RootOfSquares(count),
            NormalizeByNorm(count),
            ShiftedLogSumExp(count),
            LogSumExp(count),
            LogOfSum(count),
        ]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
