"""``fuse-softmax``: softmax and its logarithm become the operations that they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fuse_softmax.decomposed import (
    DifferenceFromLogSumExp,
    LogOfSoftmax,
    PowerOfLogSoftmax,
    ShiftBeforeSoftmax,
    WrittenOut,
)
from dmlc.passes.fuse_softmax.transposed import SoftmaxOfReshape, SoftmaxOfTranspose
from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class FuseSoftmax(RewritePass, frozen=True):
    """Without the maximum taken out, and for the logarithm of a softmax, the class is ``range``."""

    name: ClassVar[str] = "fuse-softmax"
    summary: ClassVar[str] = "Fuse softmax and log-softmax that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [
            WrittenOut,
            DifferenceFromLogSumExp,
            LogOfSoftmax,
            PowerOfLogSoftmax,
            ShiftBeforeSoftmax,
            SoftmaxOfTranspose,
            SoftmaxOfReshape,
        ]
