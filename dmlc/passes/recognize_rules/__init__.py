"""The rules of ``recognize-reduce``, one idea a file."""

from dmlc.passes.recognize_rules.elementwise import LogOfSum, RootOfSquares, SumOfMagnitudes, SumOfSquares
from dmlc.passes.recognize_rules.log_sum_exp import LogSumExp, ShiftedLogSumExp
from dmlc.passes.recognize_rules.mean import MeanFromSum

__all__ = [
    "LogOfSum",
    "LogSumExp",
    "MeanFromSum",
    "RootOfSquares",
    "ShiftedLogSumExp",
    "SumOfMagnitudes",
    "SumOfSquares",
]
