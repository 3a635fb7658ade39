"""The rules of ``fold-conv``, one idea a file."""

from dmlc.passes.conv_rules.batch_norm import FoldBatchNorm
from dmlc.passes.conv_rules.bias import FoldBias
from dmlc.passes.conv_rules.scale import FoldScale

__all__ = ["FoldBatchNorm", "FoldBias", "FoldScale"]
