"""The rules of ``fuse-instance-norm``, one idea a file."""

from dmlc.passes.instance_norm_rules.affine import AbsorbChannelBias, AbsorbChannelScale
from dmlc.passes.instance_norm_rules.deviations import RootOfStatistic, ScaledStatistic
from dmlc.passes.instance_norm_rules.group import GroupAffine, GroupNorm, GroupsOfOne
from dmlc.passes.instance_norm_rules.lower_group import LowerGroupNorm
from dmlc.passes.instance_norm_rules.written_out import SplitInstanceNorm, WrittenInstanceNorm

__all__ = [
    "AbsorbChannelBias",
    "AbsorbChannelScale",
    "GroupAffine",
    "GroupNorm",
    "GroupsOfOne",
    "LowerGroupNorm",
    "RootOfStatistic",
    "ScaledStatistic",
    "SplitInstanceNorm",
    "WrittenInstanceNorm",
]
