"""The rules of ``fuse-layer-norm``, one idea a file."""

from dmlc.passes.layer_norm_rules.ability import Ability
from dmlc.passes.layer_norm_rules.affine import AbsorbBias, AbsorbScale
from dmlc.passes.layer_norm_rules.core import WrittenLayerNorm, WrittenRmsNorm
from dmlc.passes.layer_norm_rules.split import SplitLayerNorm

__all__ = ["Ability", "AbsorbBias", "AbsorbScale", "SplitLayerNorm", "WrittenLayerNorm", "WrittenRmsNorm"]
