"""``fuse-instance-norm``: normalizations with a scale and a bias for each channel become one node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.passes.instance_norm_rules import AbsorbChannelBias, AbsorbChannelScale, GroupNorm, WrittenInstanceNorm
from dmlc.passes.layer_norm_rules.ability import Ability
from dmlc.passes.manager import RANGE, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite

#: GroupNormalization has a scale for each channel from here on.
_GROUP_NORM_OPSET = 21


@dataclass(frozen=True)
class FuseInstanceNorm(Pass):
    """NumPy code cannot say these operators, so it keeps them written out."""

    name: ClassVar[str] = "fuse-instance-norm"
    summary: ClassVar[str] = "Fuse instance and group normalizations that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        if context.target.name == "numpy":
            return []
        rules: list[Rule[Any]] = [WrittenInstanceNorm(Ability.of(context)), AbsorbChannelScale(), AbsorbChannelBias()]
        if context.target.name == "onnx" and context.opset >= _GROUP_NORM_OPSET:
            rules.append(GroupNorm())
        return rules

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)
