"""``fold-conv``: what follows a convolution and is linear becomes part of its weights."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.conv_rules import FoldBatchNorm, FoldBias, FoldScale
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass


@dataclass(frozen=True)
class FoldConv(Pass):
    """Weights in a file of their own are never read for it."""

    name: ClassVar[str] = "fold-conv"
    summary: ClassVar[str] = "Fold batch normalizations, biases and scales into convolutions."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        return [FoldBatchNorm(), FoldBias(), FoldScale()]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return graph.holds([OPAQUE]) and rewrite(graph, self.rules(context), context)
