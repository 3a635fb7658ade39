"""The rules of ``fuse-layer-norm``, one idea a file."""

from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.move import TRANSPOSE
from dmlc.ops.normalize import LAYER_NORM, RMS_NORM
from dmlc.passes.later import Later
from dmlc.passes.layer_norm_rules.deviations import BY_DEVIATION

AbsorbBias = Later(
    "dmlc.passes.layer_norm_rules.affine:AbsorbBias", "absorb-norm-bias", (ADD, SUB), (LAYER_NORM, CAST, TRANSPOSE)
)
AbsorbScale = Later(
    "dmlc.passes.layer_norm_rules.affine:AbsorbScale",
    "absorb-norm-scale",
    (MUL,),
    (LAYER_NORM, RMS_NORM, CAST, TRANSPOSE),
)
SplitLayerNorm = Later(
    "dmlc.passes.layer_norm_rules.split:SplitLayerNorm", "fuse-split-layer-norm", (ADD, SUB), (MUL, DIV)
)
WrittenLayerNorm = Later(
    "dmlc.passes.layer_norm_rules.core:WrittenLayerNorm",
    "fuse-layer-norm",
    (MUL, DIV),
    BY_DEVIATION,
)
WrittenRmsNorm = Later(
    "dmlc.passes.layer_norm_rules.core:WrittenRmsNorm",
    "fuse-rms-norm",
    (MUL, DIV),
    BY_DEVIATION,
)
