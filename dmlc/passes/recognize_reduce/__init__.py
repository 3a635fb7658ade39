"""``recognize-reduce``: reductions that are written out in elementwise operations become what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.recognize_reduce.log_sum_exp import log_sum_exp, shifted_log_sum_exp
from dmlc.passes.recognize_reduce.mean import mean_from_sum, mean_of_parts, sum_from_mean
from dmlc.passes.recognize_reduce.norms import RULES, log_of_sum
from dmlc.passes.rewrite import RewritePass, Rule


class RecognizeReduce(RewritePass, frozen=True):
    """Runs after the fusions of whole normalizations, which look for sums of squares as they are written."""

    name: ClassVar[str] = "recognize-reduce"
    summary: ClassVar[str] = "Recognize means, norms, sums of squares and log-sum-exp."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [mean_from_sum, mean_of_parts, sum_from_mean, *RULES, shifted_log_sum_exp, log_sum_exp, log_of_sum]
