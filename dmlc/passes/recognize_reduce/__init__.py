"""``recognize-reduce``: reductions that are written out in elementwise operations become what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.recognize_reduce.log_sum_exp import LogSumExp, ShiftedLogSumExp
from dmlc.passes.recognize_reduce.mean import MeanFromSum, MeanOfParts, SumFromMean
from dmlc.passes.recognize_reduce.norms import RULES, LogOfSum
from dmlc.passes.rewrite import RewritePass, Rule


class RecognizeReduce(RewritePass, frozen=True):
    """Runs after the fusions of whole normalizations, which look for sums of squares as they are written."""

    name: ClassVar[str] = "recognize-reduce"
    summary: ClassVar[str] = "Recognize means, norms, sums of squares and log-sum-exp."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [MeanFromSum, MeanOfParts, SumFromMean, *RULES, ShiftedLogSumExp, LogSumExp, LogOfSum]
