"""The rules of ``fuse-instance-norm``, one idea a file."""

from dmlc.ops.binary import ADD, DIV, MUL, POW, SUB
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import SQRT
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.opaque import OPAQUE
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.passes.later import Later
from dmlc.passes.layer_norm_rules.deviations import BY_DEVIATION

AbsorbChannelBias = Later(
    "dmlc.passes.instance_norm_rules.affine:AbsorbChannelBias", "absorb-channel-bias", (ADD, SUB), (OPAQUE, TRANSPOSE)
)
AbsorbChannelScale = Later(
    "dmlc.passes.instance_norm_rules.affine:AbsorbChannelScale", "absorb-channel-scale", (MUL, DIV), (OPAQUE, TRANSPOSE)
)
GroupAffine = Later("dmlc.passes.instance_norm_rules.group:GroupAffine", "fuse-group-affine", (ADD,), (MUL,))
GroupNorm = Later("dmlc.passes.instance_norm_rules.group:GroupNorm", "fuse-group-norm", (RESHAPE, OPAQUE))
GroupsOfOne = Later("dmlc.passes.instance_norm_rules.group:GroupsOfOne", "fuse-groups-of-one", (RESHAPE, OPAQUE))
LowerGroupNorm = Later("dmlc.passes.instance_norm_rules.lower_group:LowerGroupNorm", "lower-group-norm", (OPAQUE,))
RootOfStatistic = Later(
    "dmlc.passes.instance_norm_rules.deviations:RootOfStatistic",
    "root-of-statistic",
    (SQRT, POW),
    (REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, RESHAPE, SQUEEZE, UNSQUEEZE, MUL, DIV),
)
ScaledStatistic = Later(
    "dmlc.passes.instance_norm_rules.deviations:ScaledStatistic", "scaled-statistic", (MUL, DIV), (CONSTANT,)
)
SplitInstanceNorm = Later(
    "dmlc.passes.instance_norm_rules.written_out:SplitInstanceNorm", "fuse-split-instance-norm", (ADD, SUB), (MUL, DIV)
)
WrittenInstanceNorm = Later(
    "dmlc.passes.instance_norm_rules.written_out:WrittenInstanceNorm",
    "fuse-instance-norm",
    (MUL, DIV),
    BY_DEVIATION,
)
