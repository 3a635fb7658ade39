"""Operators of ``com.microsoft`` that pick, cut, pad or slide (onnxruntime, docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query, place
from dmlc.inference.registry import rule
from dmlc.inference.rules.elementwise import same
from dmlc.inference.rules.generate import range_
from dmlc.inference.rules.index import gather_nd
from dmlc.inference.rules.matmul import product_shape
from dmlc.inference.rules.window import slid
from dmlc.ir import Dim, Shape, floordiv
from dmlc.onnx_schema.domains import MICROSOFT

rule("GatherND", domain=MICROSOFT)(gather_nd)
rule("Range", domain=MICROSOFT)(range_)


@rule("LongformerAttention", "QMoE", "SkipGroupNorm", "Trilu", domain=MICROSOFT)
def like_the_first(q: Query) -> Sequence[Fact]:
    return [same(q)] * q.results


@rule("NGramRepeatBlock", domain=MICROSOFT)
def like_the_second(q: Query) -> Sequence[Fact]:
    return [same(q, 1)]


@rule("ComplexMul", "ComplexMulConj", domain=MICROSOFT)
def complex_product(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.broadcast(q.shape(0), q.shape(1)))]


@rule("GemmFastGelu", domain=MICROSOFT)
def matmul(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), product_shape(q, q.shape(0), q.shape(1)))]


@rule("MatMulInteger16", domain=MICROSOFT)
def integer_matmul(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT32, product_shape(q, q.shape(0), q.shape(1)))]


@rule("MurmurHash3", domain=MICROSOFT)
def hashed(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.UINT32 if q.integer("positive", 1) else TensorProto.INT32, q.shape(0))]


@rule("ExpandDims", domain=MICROSOFT)
def expand_dims(q: Query) -> Sequence[Fact]:
    shape, axes = q.shape(0), q.numbers(1)
    if shape is None:
        return [Fact(q.element(0))]
    if axes is None or len(axes) != 1:
        return [Fact(q.element(0), q.fresh_shape(len(shape) + 1))]
    at = place(axes[0], len(shape) + 1)
    return [Fact(q.element(0), (*shape[:at], 1, *shape[at:]))]


@rule("Unique", domain=MICROSOFT, counts=True)
def unique(q: Query) -> Sequence[Fact]:
    count, shape = q.new_dim(), q.shape(0)
    size: Dim = shape[0] if shape is not None and len(shape) == 1 else q.new_dim()
    index = TensorProto.INT64
    return [Fact(q.element(0), (count,)), Fact(index, (size,)), Fact(index, (count,))]


@rule("UnfoldTensor", domain=MICROSOFT)
def unfold(q: Query) -> Sequence[Fact]:
    """The windows of an axis stand in its place, and their elements behind all axes."""
    shape, size, step = q.shape(0), q.integer("size"), q.integer("step", 1)
    if shape is None:
        return [Fact(q.element(0))]
    at = place(q.integer("dim", -1), len(shape))
    count = floordiv(shape[at] - size, step) + 1
    return [Fact(q.element(0), (*shape[:at], count, *shape[at + 1 :], size))]


@rule("DynamicTimeWarping", domain=MICROSOFT, counts=True)
def time_warping(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT32, (2, q.new_dim()))]


@rule("GridSample", domain=MICROSOFT)
def grid_sample(q: Query) -> Sequence[Fact]:
    x, grid = q.shape(0), q.shape(1)
    if x is None or grid is None or len(x) != 4 or len(grid) != 4:
        return [Fact(q.element(0), q.fresh_shape(4))]
    return [Fact(q.element(0), (*x[:2], *grid[1:3]))]


@rule("CropAndResize", domain=MICROSOFT)
def crop_and_resize(q: Query) -> Sequence[Fact]:
    x, regions, sizes = q.shape(0), q.shape(1), q.sizes(3)
    count = q.new_dim() if regions is None else regions[0]
    channels = q.new_dim() if x is None else x[1]
    wanted = q.fresh_shape(2) if sizes is None or len(sizes) != 2 else tuple([q.size_of(s) for s in sizes])
    return [Fact(q.element(0), (count, channels, *wanted))]


@rule("MaxpoolWithMask", domain=MICROSOFT)
def masked_pool(q: Query) -> Sequence[Fact]:
    x, kernel = q.shape(0), q.integers("kernel_shape")
    if x is None or kernel is None or len(x) < 3:
        return [Fact(q.element(0))]
    return [Fact(q.element(0), (*x[:2], *slid(q, x[2:], kernel)))]


@rule("NhwcMaxPool", domain=MICROSOFT)
def last_channels_pool(q: Query) -> Sequence[Fact]:
    x, kernel = q.shape(0), q.integers("kernel_shape")
    if x is None or kernel is None or len(x) < 3:
        return [Fact(q.element(0))]
    return [Fact(q.element(0), (x[0], *slid(q, x[1:-1], kernel), x[-1]))]


@rule("QLinearConv", domain=MICROSOFT)
def quantized_conv(q: Query) -> Sequence[Fact]:
    """As the operator of ONNX, with an attribute for channels behind the spatial axes; weights keep their axes."""
    x, w = q.shape(0), q.shape(3)
    if x is None or w is None or len(x) != len(w) or len(x) < 3:
        return [Fact(q.element(7))]
    is_last = q.integer("channels_last")
    out = slid(q, x[1:-1] if is_last else x[2:], q.integers("kernel_shape") or w[2:])
    shape: Shape = (x[0], *out, w[0]) if is_last else (x[0], w[0], *out)
    return [Fact(q.element(7), shape)]
