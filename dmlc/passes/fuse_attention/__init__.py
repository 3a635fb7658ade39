"""``fuse-attention``: attention becomes the one operator that ONNX Runtime's DirectML provider has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.ops.normalize import SOFTMAX
from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class FuseAttention(RewritePass, frozen=True):
    """A late choice: until here attention is products and a softmax, which other rules read.

    Where the user did not ask for it, each attention is a remark that says what would be saved: the time of the fused
    operator on a GPU was not measured.
    """

    name: ClassVar[str] = "fuse-attention"
    summary: ClassVar[str] = "Make attention one operator, where that is asked for."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        from dmlc.passes.fuse_attention.multi_head import MultiHeadAttention  # few graphs have a softmax

        return [MultiHeadAttention]

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not graph.holds((SOFTMAX,)):
            return False
        return super().run(graph, context)
