"""The rules of ``fuse-instance-norm``, one idea a file."""

from dmlc.passes.instance_norm_rules.affine import AbsorbChannelBias, AbsorbChannelScale
from dmlc.passes.instance_norm_rules.group import GroupNorm
from dmlc.passes.instance_norm_rules.written_out import WrittenInstanceNorm

__all__ = ["AbsorbChannelBias", "AbsorbChannelScale", "GroupNorm", "WrittenInstanceNorm"]
