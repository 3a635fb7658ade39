"""``fuse-softmax``: softmax and its logarithm become the operations that they are."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.emitted import NodeCount
from dmlc.passes.fuse_softmax.decomposed import (
    DifferenceFromLogSumExp,
    LogOfSoftmax,
    PowerOfLogSoftmax,
    ShiftBeforeSoftmax,
    WrittenOut,
)
from dmlc.passes.fuse_softmax.transposed import SoftmaxOfReshape, SoftmaxOfTranspose
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass


@dataclass(frozen=True)
class FuseSoftmax(Pass):
    """Without the maximum taken out, and for the logarithm of a softmax, the class is ``range``."""

    name: ClassVar[str] = "fuse-softmax"
    summary: ClassVar[str] = "Fuse softmax and log-softmax that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        count = NodeCount(context)
        return [
            WrittenOut(count),
            DifferenceFromLogSumExp(count),
            LogOfSoftmax(count),
            PowerOfLogSoftmax(count),
            ShiftBeforeSoftmax(count),
            SoftmaxOfTranspose(count),
            SoftmaxOfReshape(count),
        ]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
