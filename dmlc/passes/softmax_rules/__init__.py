"""The rules of ``fuse-softmax``, one idea a file."""

from dmlc.passes.softmax_rules.log_softmax import (
    DifferenceFromLogSumExp,
    LogOfSoftmax,
    PowerOfLogSoftmax,
    ShiftBeforeSoftmax,
)
from dmlc.passes.softmax_rules.transposed import SoftmaxOfReshape, SoftmaxOfTranspose
from dmlc.passes.softmax_rules.written_out import WrittenOut

__all__ = [
    "DifferenceFromLogSumExp",
    "LogOfSoftmax",
    "PowerOfLogSoftmax",
    "ShiftBeforeSoftmax",
    "SoftmaxOfReshape",
    "SoftmaxOfTranspose",
    "WrittenOut",
]
