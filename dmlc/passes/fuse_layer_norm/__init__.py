"""``fuse-layer-norm``: layer and RMS normalizations that are written out become one node each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.fold_constants.layouts import transpose_chain
from dmlc.passes.fuse_layer_norm.affine import AbsorbBias, AbsorbScale
from dmlc.passes.fuse_layer_norm.operations import LayerNormByRms, MeanVarianceNorm, RmsOfCentred
from dmlc.passes.fuse_layer_norm.written import WrittenLayerNorm, WrittenRmsNorm
from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class FuseLayerNorm(RewritePass, frozen=True):
    """Fuse written-out layer and RMS normalizations, if the target has the operators at the emitted opset.

    The normalized value is matched first, with a scale of ones; factors and terms along its axes then join it. A layer
    normalization that cannot be one node (below opset 17) becomes an RMS normalization of the centred value.
    """

    name: ClassVar[str] = "fuse-layer-norm"
    summary: ClassVar[str] = "Make one node of layer and RMS normalizations that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        written = (WrittenLayerNorm, WrittenRmsNorm, RmsOfCentred, AbsorbScale, AbsorbBias)
        if not context.capabilities.emits_nodes:
            return written
        return [*written, MeanVarianceNorm, LayerNormByRms, transpose_chain]

    def run(self, graph: Graph, context: PassContext) -> bool:
        if context.target.code == "numpy":
            return False
        return super().run(graph, context)
