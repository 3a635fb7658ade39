"""The order of the passes."""

from __future__ import annotations

from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from dmlc.passes.cse import Cse
from dmlc.passes.dce import Dce
from dmlc.passes.fold_constants import FoldConstants
from dmlc.passes.fold_conv import FoldConv
from dmlc.passes.fuse_dot import FuseDot
from dmlc.passes.fuse_instance_norm import FuseInstanceNorm
from dmlc.passes.fuse_layer_norm import FuseLayerNorm
from dmlc.passes.fuse_selection import FuseSelection
from dmlc.passes.fuse_softmax import FuseSoftmax
from dmlc.passes.infer_shapes import InferShapes
from dmlc.passes.legalize import Legalize
from dmlc.passes.lower_hardmax import LowerHardmax
from dmlc.passes.manager import Pass, PassManager
from dmlc.passes.recognize_reduce import RecognizeReduce
from dmlc.passes.share_reductions import ShareReductions
from dmlc.targets import Target


def default_pipeline(target: Target, *, lower_hardmax: bool = False) -> PassManager:
    """The passes for a target. ``lower_hardmax`` also lowers hardmax over a single axis.

    Hardmax is lowered late, and nothing folds after ``legalize``, which may have put two casts where one has no kernel.
    """
    passes: list[Pass] = [*fusions(target.max_rank), LowerHardmax(lower_single_axis=lower_hardmax)]
    if target.kernels is not None:
        passes.append(Legalize())
    return PassManager((*passes, Cse(), Dce()))


def fusions(max_rank: int | None) -> tuple[Pass, ...]:
    """The passes whose result is still a program of the language: what is computed, in as few operations as can be.

    Dead and equal nodes go first, so that "used once" is true where it can be.
    """
    return (
        InferShapes(),
        Dce(),
        FoldConstants(),
        Cse(),
        FoldConv(),
        CanonicalizeReduce(max_rank=max_rank),
        FuseLayerNorm(),
        FuseInstanceNorm(),
        FuseSoftmax(),
        RecognizeReduce(),
        FuseDot(),
        FuseSelection(),
        CanonicalizeReduce(max_rank=max_rank),
        ShareReductions(),
        Dce(),
    )
