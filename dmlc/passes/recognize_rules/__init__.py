"""The rules of ``recognize-reduce``, one idea a file."""

from dmlc.ops.binary import ADD, DIV, MAX, MUL, POW
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import ABS, LOG, NEG, RECIPROCAL, SQRT
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, UNSQUEEZE
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
)
from dmlc.passes.later import Later

DivideByNorm = Later(
    "dmlc.passes.recognize_rules.norm:DivideByNorm", "divide-by-norm", (MUL,), (RECIPROCAL, DIV, POW, SQRT)
)
LogOfSum = Later("dmlc.passes.recognize_rules.elementwise:LogOfSum", "log-of-sum", (LOG,))
LogSumExp = Later("dmlc.passes.recognize_rules.log_sum_exp:LogSumExp", "log-sum-exp", (LOG, REDUCE_LOG_SUM))
MeanFromSum = Later("dmlc.passes.recognize_rules.mean:MeanFromSum", "mean-from-sum", (DIV, MUL), (REDUCE_SUM,))
MeanOfParts = Later("dmlc.passes.recognize_rules.mean:MeanOfParts", "mean-of-parts", (REDUCE_SUM,), (DIV, MUL))
NormOfMagnitude = Later(
    "dmlc.passes.recognize_rules.elementwise:NormOfMagnitude",
    "norm-of-magnitude",
    (REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE),
    (ABS, NEG),
)
NormalizeByNorm = Later(
    "dmlc.passes.recognize_rules.norm:NormalizeByNorm", "normalize-by-norm", (DIV,), (REDUCE_L2, REDUCE_L1)
)
RootOfSquares = Later("dmlc.passes.recognize_rules.elementwise:RootOfSquares", "root-of-squares", (SQRT, POW))
ShiftedLogSumExp = Later(
    "dmlc.passes.recognize_rules.log_sum_exp:ShiftedLogSumExp",
    "shifted-log-sum-exp",
    (ADD,),
    (REDUCE_LOG_SUM_EXP, LOG, REDUCE_LOG_SUM, RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND, CAST, MAX, WHERE),
)
SumFromMean = Later("dmlc.passes.recognize_rules.mean:SumFromMean", "sum-from-mean", (MUL,), (REDUCE_MEAN,))
SumOfMagnitudes = Later(
    "dmlc.passes.recognize_rules.elementwise:SumOfMagnitudes", "sum-of-magnitudes", (REDUCE_SUM,), (MUL, POW, ABS)
)
SumOfSquares = Later(
    "dmlc.passes.recognize_rules.elementwise:SumOfSquares", "sum-of-squares", (REDUCE_SUM,), (MUL, POW, ABS)
)
