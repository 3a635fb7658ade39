"""The rules of ``hoist``, one idea a file."""

from dmlc.ops.binary import ADD
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    REDUCTIONS,
)
from dmlc.passes.later import Later

ReductionBeforeExpand = Later(
    "dmlc.passes.hoist_rules.broadcast:ReductionBeforeExpand", "reduction-before-expand", REDUCTIONS
)
ReductionOfConcat = Later("dmlc.passes.hoist_rules.concat:ReductionOfConcat", "reduction-of-concat", REDUCTIONS)
ReductionOfPad = Later(
    "dmlc.passes.hoist_rules.padded:ReductionOfPad",
    "reduction-of-pad",
    [op for op in REDUCTIONS if op is not REDUCE_MEAN],  # a pad changes the count of a mean
)
RisingAfterExtreme = Later(
    "dmlc.passes.hoist_rules.extreme:RisingAfterExtreme", "rising-after-extreme", (REDUCE_MAX, REDUCE_MIN)
)
ScaleAfterSum = Later(
    "dmlc.passes.hoist_rules.linear:ScaleAfterSum",
    "scale-after-sum",
    (REDUCE_SUM, REDUCE_MEAN, REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE),
)
ShiftAfterMean = Later(
    "dmlc.passes.hoist_rules.linear:ShiftAfterMean", "shift-after-mean", (REDUCE_MEAN, REDUCE_SUM, REDUCE_LOG_SUM_EXP)
)
SumOfSums = Later("dmlc.passes.hoist_rules.sums:SumOfSums", "sum-of-sums", (REDUCE_SUM, REDUCE_MEAN), (ADD,))
