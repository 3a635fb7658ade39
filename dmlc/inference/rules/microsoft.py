"""Operators of ``com.microsoft`` (onnxruntime, docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from onnx import TensorProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query, place
from dmlc.inference.registry import rule
from dmlc.inference.rules.elementwise import range_, same
from dmlc.inference.rules.index import gather_nd
from dmlc.inference.rules.matmul import product_shape
from dmlc.inference.rules.window import slid
from dmlc.ir import Dim, Shape, floordiv
from dmlc.onnx_schema.domains import MICROSOFT


@rule(
    *("BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "GatedAdd", "GatedRMSNorm", "Gelu", "GroupNorm", "Inverse"),
    *("MoE", "QuickGelu", "RotaryEmbedding", "ScaledSiLU"),
    domain=MICROSOFT,
)
def like_the_first(q: Query) -> Sequence[Fact]:
    return [same(q)]


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_norm(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    kept = None if shape is None else (*shape[:-1], 1)
    return [same(q), Fact(TensorProto.FLOAT, kept), Fact(TensorProto.FLOAT, kept), same(q)]


@rule("SimplifiedLayerNormalization")
def simplified_norm(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    axis = 0 if shape is None else q.axis(-1, len(shape))
    kept = None if shape is None else (*shape[:axis], *[1] * (len(shape) - axis))
    return [Fact(q.element(1) or q.element(0), shape), Fact(TensorProto.FLOAT, kept)]


@rule("BiasSplitGelu", domain=MICROSOFT)
def split_gelu(q: Query) -> Sequence[Fact]:
    """Halve the last axis: one half is multiplied by the GELU of the other."""
    shape = q.shape(0)
    return [Fact(q.element(0), None if shape is None else (*shape[:-1], floordiv(shape[-1], 2)))]


@rule("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(q: Query) -> Sequence[Fact]:
    a, b = _turned(q, 0, "A"), _turned(q, 1, "B")
    return [Fact(q.element(0), product_shape(q, a, b))]


def _turned(q: Query, index: int, which: str) -> Shape | None:
    """The shape of a factor once its first axis is behind the batch (``transBatch``), and its last two are swapped."""
    shape = q.shape(index)
    if shape is None or len(shape) < 2:
        return shape
    if q.integer(f"transBatch{which}") and len(shape) > 2:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if q.integer(f"trans{which}") else shape


@rule("FusedGemm", domain=MICROSOFT)
def fused_gemm(q: Query) -> Sequence[Fact]:
    a, b = q.shape(0), q.shape(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return [Fact(q.element(0), q.fresh_shape(2))]
    return [Fact(q.element(0), (a[1 if q.integer("transA") else 0], b[0 if q.integer("transB") else 1]))]


@rule("FusedConv", domain=MICROSOFT)
def fused_conv(q: Query) -> Sequence[Fact]:
    x, w = q.shape(0), q.shape(1)
    if x is None or w is None or len(x) != len(w):
        return [Fact(q.element(0), None if x is None else q.fresh_shape(len(x)))]
    out = slid(q, x[2:], q.integers("kernel_shape") or w[2:])
    return [Fact(q.element(0), (x[0], w[0], *out))]


@rule("MatMulNBits", "MatMulBnb4", domain=MICROSOFT)
def matmul_bits(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    return [Fact(q.element(0), None if shape is None else (*shape[:-1], q.integer("N")))]


@rule("DynamicQuantizeMatMul", "MatMulIntegerToFloat", domain=MICROSOFT)
def quantized_matmul(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.FLOAT, product_shape(q, q.shape(0), q.shape(1)))]


@rule("QuantizeLinear", domain=MICROSOFT)
def quantize(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(2) if q.has(2) else TensorProto.UINT8, q.shape(0))]


@rule("DequantizeLinear", domain=MICROSOFT)
def dequantize(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(1), q.shape(0))]


@rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def quantized_binary(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.broadcast(q.shape(0), q.shape(3)))]


@rule("QLinearLeakyRelu", "QLinearSigmoid", domain=MICROSOFT)
def quantized_unary(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.shape(0))]


@rule("QLinearSoftmax", domain=MICROSOFT)
def quantized_softmax(q: Query) -> Sequence[Fact]:
    return [same(q)]


@rule("QLinearConcat", domain=MICROSOFT)
def quantized_concat(q: Query) -> Sequence[Fact]:
    """A scale and a zero point come first, then each operand with its own."""
    shapes = [q.shape(place) for place in range(2, len(q.operands), 3)]
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes) or len({len(shape) for shape in known}) > 1:
        return [Fact(q.element(1), q.fresh_shape(len(known[0])) if known else None)]
    axis = q.axis(0, len(known[0]))
    whole = reduce(lambda a, b: a + b, [shape[axis] for shape in known])
    return [Fact(q.element(1), (*known[0][:axis], whole, *known[0][axis + 1 :]))]


@rule("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def quantized_pool(q: Query) -> Sequence[Fact]:
    x, kernel = q.shape(0), q.integers("kernel_shape")
    if x is None or len(x) < 3 or (kernel is None and q.op_type == "QLinearAveragePool"):
        return [Fact(q.element(0))]
    is_last = q.integer("channels_last")
    spatial = x[1:-1] if is_last else x[2:]
    out = (1,) * len(spatial) if kernel is None else slid(q, spatial, kernel)
    return [Fact(q.element(0), (x[0], *out, x[-1]) if is_last else (*x[:2], *out))]


@rule("QGemm", domain=MICROSOFT)
def quantized_gemm(q: Query) -> Sequence[Fact]:
    element = q.element(8) if q.has(8) else TensorProto.FLOAT
    a, b = q.shape(0), q.shape(3)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return [Fact(element, q.fresh_shape(2))]
    return [Fact(element, (a[1 if q.integer("transA") else 0], b[0 if q.integer("transB") else 1]))]


@rule("QLinearWhere", domain=MICROSOFT)
def quantized_where(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(1), q.broadcast(q.shape(0), q.shape(1), q.shape(4)))]


@rule("CDist", domain=MICROSOFT)
def distances(q: Query) -> Sequence[Fact]:
    a, b = q.shape(0), q.shape(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return [Fact(q.element(0), q.fresh_shape(2))]
    return [Fact(q.element(0), (a[0], b[0]))]


@rule("Tokenizer", domain=MICROSOFT, counts=True)
def tokens(q: Query) -> Sequence[Fact]:
    """The words of each string lie along a new last axis."""
    shape = q.shape(0)
    return [Fact(TensorProto.STRING, None if shape is None else (*shape, *q.fresh_shape(1)))]


@rule("BeamSearch", "WhisperBeamSearch", domain=MICROSOFT)
def beam_search(q: Query) -> Sequence[Fact]:
    scores = q.element(5) or TensorProto.FLOAT
    kept = (_rows(q), _one_size(q, 4))
    return [Fact(TensorProto.INT32, (*kept, _one_size(q, 1))), Fact(scores, kept), Fact(scores, q.fresh_shape(4))]


@rule("GreedySearch", "Sampling", domain=MICROSOFT)
def greedy_search(q: Query) -> Sequence[Fact]:
    rows = _rows(q)
    return [Fact(TensorProto.INT32, (rows, _one_size(q, 1))), Fact(TensorProto.FLOAT, (rows, q.new_dim()))]


def _rows(q: Query) -> Dim:
    shape = q.shape(0)
    return shape[0] if shape else q.new_dim()


def _one_size(q: Query, index: int) -> Dim:
    """The size that an operand of one element gives."""
    sizes = q.sizes(index)
    return q.size_of(sizes[0]) if sizes is not None and len(sizes) == 1 else q.new_dim()


# --- Operators of ``com.microsoft`` that pick, cut, pad or slide (onnxruntime, docs/ContribOperators.md)

rule("GatherND", domain=MICROSOFT)(gather_nd)
rule("Range", domain=MICROSOFT)(range_)


@rule("LongformerAttention", "QMoE", "SkipGroupNorm", "Trilu", domain=MICROSOFT)
def all_like_the_first(q: Query) -> Sequence[Fact]:
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
