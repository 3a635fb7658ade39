"""The rules of ``fuse-softmax``, one idea a file."""

from dmlc.ops.binary import ADD, DIV, MAX, MUL, SUB
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import EXP, LOG, NEG
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP
from dmlc.passes.later import Later

DifferenceFromLogSumExp = Later(
    "dmlc.passes.softmax_rules.log_softmax:DifferenceFromLogSumExp",
    "difference-from-log-sum-exp",
    (SUB, ADD),
    (NEG, ADD, REDUCE_LOG_SUM_EXP, LOG, REDUCE_LOG_SUM, RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND, CAST, MAX, WHERE),
)
LogOfSoftmax = Later("dmlc.passes.softmax_rules.log_softmax:LogOfSoftmax", "log-of-softmax", (LOG,), (SOFTMAX,))
PowerOfLogSoftmax = Later(
    "dmlc.passes.softmax_rules.log_softmax:PowerOfLogSoftmax", "power-of-log-softmax", (EXP,), (LOG_SOFTMAX,)
)
ShiftBeforeSoftmax = Later(
    "dmlc.passes.softmax_rules.log_softmax:ShiftBeforeSoftmax", "shift-before-softmax", (SOFTMAX, LOG_SOFTMAX)
)
SoftmaxOfReshape = Later(
    "dmlc.passes.softmax_rules.transposed:SoftmaxOfReshape", "softmax-of-reshape", (RESHAPE, SQUEEZE, UNSQUEEZE)
)
SoftmaxOfTranspose = Later(
    "dmlc.passes.softmax_rules.transposed:SoftmaxOfTranspose", "softmax-of-transpose", (TRANSPOSE,)
)
WrittenOut = Later(
    "dmlc.passes.softmax_rules.written_out:WrittenOut",
    "written-out-softmax",
    (DIV, MUL, SUB, ADD),
    (EXP, NEG, LOG, REDUCE_LOG_SUM, RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND, CAST, MAX, WHERE),
)
