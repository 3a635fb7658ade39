"""The rules of ``recognize-reduce``, one idea a file."""

from dmlc.passes.recognize_rules.elementwise import (
    LogOfSum,
    NormOfMagnitude,
    RootOfSquares,
    SumOfMagnitudes,
    SumOfSquares,
)
from dmlc.passes.recognize_rules.log_sum_exp import LogSumExp, ShiftedLogSumExp
from dmlc.passes.recognize_rules.mean import MeanFromSum, MeanOfParts, SumFromMean
from dmlc.passes.recognize_rules.norm import DivideByNorm, NormalizeByNorm

__all__ = [
    "DivideByNorm",
    "LogOfSum",
    "LogSumExp",
    "MeanFromSum",
    "MeanOfParts",
    "NormOfMagnitude",
    "NormalizeByNorm",
    "RootOfSquares",
    "ShiftedLogSumExp",
    "SumFromMean",
    "SumOfMagnitudes",
    "SumOfSquares",
]
