"""``fuse-layer-norm``: layer and RMS normalizations that are written out become one node each."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.fold_constants.layouts import TransposeChain
from dmlc.passes.fuse_layer_norm.affine import AbsorbBias, AbsorbScale, SplitLayerNorm
from dmlc.passes.fuse_layer_norm.core import Ability, WrittenLayerNorm, WrittenRmsNorm
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.passes.unknown_ranks import note_normalizations
from dmlc.records import dataclass


@dataclass(frozen=True)
class FuseLayerNorm(Pass):
    """Fuse written-out layer and RMS normalizations, if the target has the operators at the emitted opset.

    The normalized value is matched first, with a scale of ones; factors and terms along its axes then join it. A layer
    normalization that cannot be one node (below opset 17) becomes an RMS normalization of the centred value.
    """

    name: ClassVar[str] = "fuse-layer-norm"
    summary: ClassVar[str] = "Make one node of layer and RMS normalizations that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        ability = Ability.of(context)
        fusing = (WrittenLayerNorm, WrittenRmsNorm, SplitLayerNorm, AbsorbScale, AbsorbBias)
        return [*[rule(ability) for rule in fusing], TransposeChain()]

    def run(self, graph: Graph, context: PassContext) -> bool:
        if context.target.kernels is None:
            return False
        if graph.origin is not None:
            note_normalizations(graph, context)
        return rewrite(graph, self.rules(context), context)
