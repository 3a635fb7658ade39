"""The rules of ``hoist``, one idea a file."""

from dmlc.passes.hoist_rules.concat import ReductionOfConcat
from dmlc.passes.hoist_rules.extreme import RisingAfterExtreme
from dmlc.passes.hoist_rules.linear import ScaleAfterSum, ShiftAfterMean
from dmlc.passes.hoist_rules.padded import ReductionOfPad
from dmlc.passes.hoist_rules.stretched import ReductionBeforeExpand
from dmlc.passes.hoist_rules.sums import SumOfSums

__all__ = [
    "ReductionBeforeExpand",
    "ReductionOfConcat",
    "ReductionOfPad",
    "RisingAfterExtreme",
    "ScaleAfterSum",
    "ShiftAfterMean",
    "SumOfSums",
]
