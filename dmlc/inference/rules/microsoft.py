"""Operators of ``com.microsoft`` (onnxruntime, docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query
from dmlc.inference.registry import rule
from dmlc.inference.rules.elementwise import same
from dmlc.inference.rules.matmul import product_shape
from dmlc.inference.rules.window import slid
from dmlc.ir import Dim

_OWN = "com.microsoft"


@rule("BiasGelu", "FastGelu", "Gelu", "QuickGelu", "BiasSoftmax", "GroupNorm", "RotaryEmbedding", domain=_OWN)
def like_the_first(q: Query) -> Sequence[Fact]:
    return [same(q)]


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=_OWN)
def skip_norm(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    kept = None if shape is None else (*shape[:-1], 1)
    return [same(q), Fact(TensorProto.FLOAT, kept), Fact(TensorProto.FLOAT, kept), same(q)]


@rule("SimplifiedLayerNormalization")
def simplified_norm(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    axis = 0 if shape is None else q.axis(-1, len(shape))
    kept = None if shape is None else (*shape[:axis], *[1] * (len(shape) - axis))
    return [same(q), Fact(TensorProto.FLOAT, kept)]


@rule("FusedMatMul", domain=_OWN)
def fused_matmul(q: Query) -> Sequence[Fact]:
    a, b = q.shape(0), q.shape(1)
    if a is None or b is None or q.integer("transBatchA") or q.integer("transBatchB"):
        return [Fact(q.element(0))]
    a = (*a[:-2], a[-1], a[-2]) if q.integer("transA") and len(a) > 1 else a
    b = (*b[:-2], b[-1], b[-2]) if q.integer("transB") and len(b) > 1 else b
    return [Fact(q.element(0), product_shape(q, a, b))]


@rule("FusedGemm", domain=_OWN)
def fused_gemm(q: Query) -> Sequence[Fact]:
    a, b = q.shape(0), q.shape(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return [Fact(q.element(0), q.fresh_shape(2))]
    return [Fact(q.element(0), (a[1 if q.integer("transA") else 0], b[0 if q.integer("transB") else 1]))]


@rule("FusedConv", domain=_OWN)
def fused_conv(q: Query) -> Sequence[Fact]:
    x, w = q.shape(0), q.shape(1)
    if x is None or w is None or len(x) != len(w):
        return [Fact(q.element(0), None if x is None else q.fresh_shape(len(x)))]
    out = slid(q, x[2:], q.integers("kernel_shape") or w[2:])
    return [Fact(q.element(0), (x[0], w[0], *out))]


@rule("MatMulNBits", domain=_OWN)
def matmul_bits(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    return [Fact(q.element(0), None if shape is None else (*shape[:-1], q.integer("N")))]


@rule("DynamicQuantizeMatMul", "MatMulIntegerToFloat", domain=_OWN)
def quantized_matmul(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.FLOAT, product_shape(q, q.shape(0), q.shape(1)))]


@rule("QuantizeLinear", domain=_OWN)
def quantize(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(2) if q.has(2) else TensorProto.UINT8, q.shape(0))]


@rule("DequantizeLinear", domain=_OWN)
def dequantize(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(1), q.shape(0))]


@rule("QLinearAdd", "QLinearMul", domain=_OWN)
def quantized_binary(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.broadcast(q.shape(0), q.shape(3)))]


@rule("QLinearLeakyRelu", "QLinearSigmoid", domain=_OWN)
def quantized_unary(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.shape(0))]


@rule("MultiHeadAttention", domain=_OWN)
def multi_head_attention(q: Query) -> Sequence[Fact]:
    """The query is (batch, length, hidden); key and value are so too, or (batch, heads, length, size)."""
    query, key, value = q.shape(0), q.shape(1), q.shape(2)
    element = q.element(0)
    if query is None or len(query) != 3 or value is None or key is None:
        return [Fact(element, None if query is None else q.fresh_shape(3)), Fact(element), Fact(element)]
    hidden: Dim = value[2] if len(value) == 3 else value[1] * value[3]
    heads = q.integer("num_heads")
    length = key[1] if len(key) == 3 else key[2]
    if q.has(6):
        past = q.shape(6)
        length = q.new_dim() if past is None else length + past[2]
    present = (query[0], heads, length, q.new_dim())
    return [Fact(element, (*query[:2], hidden)), Fact(element, present), Fact(element, present)]


@rule("GroupQueryAttention", domain=_OWN)
def group_query_attention(q: Query) -> Sequence[Fact]:
    return [same(q), same(q, 3), same(q, 4)] if q.has(1) else []
