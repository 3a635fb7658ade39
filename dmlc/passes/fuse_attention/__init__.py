"""``fuse-attention``: attention becomes the one operator that ONNX Runtime's DirectML provider has for it."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.ops.normalize import SOFTMAX
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass


@dataclass(frozen=True)
class FuseAttention(Pass):
    """A late choice: until here attention is products and a softmax, which other rules read.

    Where it is not ``enabled``, each attention is a remark that says what would be saved: the time of the fused
    operator on a GPU was not measured.
    """

    enabled: bool = False

    name: ClassVar[str] = "fuse-attention"
    summary: ClassVar[str] = "Make attention one operator, where that is asked for."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        from dmlc.passes.fuse_attention.multi_head import MultiHeadAttention  # few graphs have a softmax

        return [MultiHeadAttention(context, enabled=self.enabled)]

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not graph.holds((SOFTMAX,)):
            return False
        return rewrite(graph, self.rules(context), context)
