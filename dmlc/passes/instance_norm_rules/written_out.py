"""A normalization over all axes but batch and channel, written out, is an instance normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Value
from dmlc.ir.dtype import f16, f32
from dmlc.ops.binary import ADD, DIV, MUL
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.passes.instance_norm_rules.nodes import INSTANCE, channels, make_norm
from dmlc.passes.layer_norm_rules import WrittenLayerNorm
from dmlc.passes.layer_norm_rules.core import Norm
from dmlc.passes.patterns import used_outside
from dmlc.passes.rewrite import Miss, Rewriter


class WrittenInstanceNorm(WrittenLayerNorm):
    """(x - mean) / sqrt(variance + epsilon) over all axes from the third on becomes an InstanceNormalization.

    What is found is what ``fuse-layer-norm`` finds, and of the same classes. Scale and bias join it later.
    """

    name = "fuse-instance-norm"

    def check(self, match: Norm, graph: Graph) -> Miss | None:
        deviation = match.deviation
        assert deviation is not None
        average = deviation.spread.average
        miss = deviation.why_not or average.why_no_mean() or match.why_not
        if miss is not None:
            return miss
        if not average.stands_in_place or match.x is None:
            return Miss("the mean stretches along another axis, or what is divided is something else", (), average.x)
        rank = match.x.type.rank
        if match.perm is not None or rank < 3 or match.axes != tuple(range(2, rank)):
            return Miss("it is over axes {0} of {1}, not over all from the third on", (list(match.axes), match.x.type))
        if channels(match.x) is None:
            return Miss("the number of channels of {0} is not known", (match.x.type,), match.x)
        if match.dtype not in (f16, f32):
            return Miss("InstanceNormalization of {0} has no kernel", (match.dtype,))
        if match.root.result.shape != match.x.shape:
            return Miss("the product has another shape than what is normalized", (), match.x)
        return used_outside(match.consumed, match.root)

    def build(self, match: Norm, rewriter: Rewriter) -> Sequence[Value]:
        x, dtype, deviation = match.x, match.dtype, match.deviation
        assert x is not None and dtype is not None and deviation is not None
        count = channels(x)
        assert count is not None
        if x.type.dtype is not dtype:
            x = rewriter.add(CAST, [x], CastAttributes(to=dtype))
        out = make_norm(rewriter, INSTANCE, x, np.ones(count), np.zeros(count), {"epsilon": deviation.epsilon})
        if out.type.dtype is not match.root.result.type.dtype:
            out = rewriter.add(CAST, [out], CastAttributes(to=match.root.result.type.dtype))
        for value in match.above:
            out = rewriter.add(MUL, [out, value])
        for value in match.below:
            out = rewriter.add(DIV, [out, value])
        return [out if match.plus is None else rewriter.add(ADD, [out, match.plus])]
