"""``fuse-instance-norm``: normalizations with a scale and a bias for each channel become one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fold_constants.layouts import transpose_chain
from dmlc.passes.fuse_instance_norm.channels import (
    AbsorbChannelBias,
    AbsorbChannelScale,
    MeanVarianceInstanceNorm,
    WrittenInstanceNorm,
)
from dmlc.passes.fuse_instance_norm.deviations import RootOfStatistic, ScaledStatistic
from dmlc.passes.fuse_instance_norm.groups import GroupAffine, GroupNorm, GroupsOfOne, LowerGroupNorm
from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.rewrite import RewritePass, Rule

#: GroupNormalization has a scale for each channel from here on.
_GROUP_NORM_OPSET = 21
#: BatchNormalization takes any rank, and has no other results, from here on.
_BATCH_NORM_OPSET = 9


class FuseInstanceNorm(RewritePass, frozen=True):
    """NumPy code cannot say these operators, so it keeps them written out.

    A variance that stays written out, since it is divided by one less or epsilon is added to its root, is tidied.
    """

    name: ClassVar[str] = "fuse-instance-norm"
    summary: ClassVar[str] = "Fuse instance and group normalizations that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        statistics: list[type[Rule[Any]]] = [ScaledStatistic, RootOfStatistic]
        if not context.capabilities.emits_nodes:
            return statistics
        absorb: list[type[Rule[Any]]] = [AbsorbChannelScale, AbsorbChannelBias]
        rules: list[type[Rule[Any]]] = [WrittenInstanceNorm, MeanVarianceInstanceNorm]
        rules += [*absorb, GroupsOfOne]
        if not context.target.portable:
            rules.append(LowerGroupNorm)
        if context.target.portable and context.opset >= _GROUP_NORM_OPSET:
            rules.append(GroupNorm)
        if context.opset >= _BATCH_NORM_OPSET:  # a GroupNorm that is allowed leaves nothing for it
            rules.append(GroupAffine)
        return [*rules, transpose_chain, *statistics]
