"""A normalization over all axes but batch and channel, written out, is an instance normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Value
from dmlc.ir.dtype import f16, f32
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.passes.instance_norm_rules.nodes import INSTANCE, channels, make_norm
from dmlc.passes.layer_norm_rules.core import Norm, NormRule, WrittenLayerNorm
from dmlc.passes.layer_norm_rules.deviations import BY_DEVIATION
from dmlc.passes.layer_norm_rules.split import SplitLayerNorm
from dmlc.passes.patterns import used_outside
from dmlc.passes.rewrite import Miss, Rewriter


class _InstanceNorm(NormRule):
    """Rule with the matches of ``fuse-layer-norm``, which builds an InstanceNormalization instead."""

    def check(self, match: Norm, graph: Graph) -> Miss | None:
        deviation = match.deviation
        assert deviation is not None
        average = deviation.spread.average
        miss = deviation.why_not or average.why_no_mean() or match.why_not
        if miss is not None:
            return miss
        if not average.stands_in_place or match.x is None:
            return Miss("the mean broadcasts along another axis, or what is divided is something else", (), average.x)
        axis = _channel_axis(match)
        if axis is None:
            text = "it is over axes {0} of {1}, not over all but the first and that of the channels"
            return Miss(text, (list(match.axes), match.x.type))
        if channels(match.x, axis) is None:
            return Miss("the number of channels of {0} is not known", (match.x.type,), match.x)
        if match.dtype not in (f16, f32):
            return Miss("InstanceNormalization of {0} has no kernel", (match.dtype,))
        if match.root.result.shape != match.x.shape:
            return Miss("the product has another shape than what is normalized", (), match.x)
        return used_outside(match.consumed, match.root)

    def build(self, match: Norm, rewriter: Rewriter) -> Sequence[Value]:
        x, dtype, deviation, axis = match.x, match.dtype, match.deviation, _channel_axis(match)
        assert x is not None and dtype is not None and deviation is not None and axis is not None
        rank = x.type.rank
        count = channels(x, axis)
        assert count is not None
        if axis != 1:
            x = rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=(0, axis, *range(1, axis))))
        if x.type.dtype is not dtype:
            x = rewriter.add(CAST, [x], CastAttributes(to=dtype))
        out = make_norm(rewriter, INSTANCE, x, np.ones(count), np.zeros(count), {"epsilon": deviation.epsilon})
        if out.type.dtype is not match.root.result.type.dtype:
            out = rewriter.add(CAST, [out], CastAttributes(to=match.root.result.type.dtype))
        if axis != 1:
            out = rewriter.add(TRANSPOSE, [out], TransposeAttributes(perm=(0, *range(2, rank), 1)))
        for value in match.above:
            out = rewriter.add(MUL, [out, value])
        for value in match.below:
            out = rewriter.add(DIV, [out, value])
        return [out if match.plus is None else rewriter.add(ADD, [out, match.plus])]


class WrittenInstanceNorm(_InstanceNorm, WrittenLayerNorm):
    """(x - mean) / sqrt(variance + epsilon) over the spatial axes becomes an InstanceNormalization.

    What is found is what ``fuse-layer-norm`` finds, and of the same classes. Scale and bias join it later. Where the
    channels are the last axis, it stands between two transposes.
    """

    name = "fuse-instance-norm"
    roots = (MUL, DIV)
    fed_by = BY_DEVIATION


class SplitInstanceNorm(_InstanceNorm, SplitLayerNorm):
    """x * s + (bias - mean * s) with s = scale / sqrt(variance + epsilon) over spatial axes becomes an
    InstanceNormalization.

    Taking the mean out after the scale cancels where the mean is large; the fused node takes it out first.
    """

    name = "fuse-split-instance-norm"
    roots = (ADD, SUB)
    fed_by = (MUL, DIV)


def _channel_axis(match: Norm) -> int | None:
    """The axis that is neither the first nor normalized: the second, or the last."""
    assert match.x is not None
    rank = match.x.type.rank
    if match.perm is not None:
        return None
    if match.axes == tuple(range(2, rank)):
        return 1
    return rank - 1 if match.axes == tuple(range(1, rank - 1)) else None
