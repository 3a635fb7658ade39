"""Operators of ``com.microsoft.nchwc``, in models that ONNX Runtime has optimized for its own channel layout.

Their shapes are NCHW shapes, with the channels rounded up to a multiple of the processor's block.
"""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query
from dmlc.inference.registry import rule
from dmlc.inference.rules.microsoft import fused_conv
from dmlc.inference.rules.window import global_pool, pool
from dmlc.ir import Dim

_NCHWC = "com.microsoft.nchwc"
#: Channels of the largest block. A multiple of it needs no rounding on any processor.
_LARGEST_BLOCK = 16


rule("Conv", domain=_NCHWC)(fused_conv)
rule("AveragePool", "MaxPool", domain=_NCHWC)(pool)
rule("GlobalAveragePool", "GlobalMaxPool", domain=_NCHWC)(global_pool)


@rule("ReorderInput", domain=_NCHWC)
def reorder_input(q: Query) -> Sequence[Fact]:
    """Gather channels in blocks; NHWC becomes NCHW on the way."""
    x = q.shape(0)
    if x is None or len(x) != 4:
        return [Fact(q.element(0), q.fresh_shape(4))]
    rows, channels, *sizes = (x[0], x[3], *x[1:3]) if q.integer("channels_last") else x
    is_whole = isinstance(channels, int) and channels % _LARGEST_BLOCK == 0
    return [Fact(q.element(0), (rows, channels if is_whole else q.new_dim(), *sizes))]


@rule("ReorderOutput", domain=_NCHWC)
def reorder_output(q: Query) -> Sequence[Fact]:
    """Drop the channels that were added, and become NCHW, or NHWC."""
    x = q.shape(0)
    if x is None or len(x) != 4:
        return [Fact(q.element(0), q.fresh_shape(4))]
    channels: Dim = q.integer("channels") or q.new_dim()
    shape = (x[0], *x[2:], channels) if q.integer("channels_last") else (x[0], channels, *x[2:])
    return [Fact(q.element(0), shape)]


@rule("Upsample", domain=_NCHWC)
def upsample(q: Query) -> Sequence[Fact]:
    x, scales = q.shape(0), q.integers("scales")
    if x is None or scales is None or len(x) != len(scales):
        return [Fact(q.element(0), None if x is None else q.fresh_shape(len(x)))]
    return [Fact(q.element(0), tuple([size * scale for size, scale in zip(x, scales, strict=True)]))]
