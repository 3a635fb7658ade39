"""For each row of ``failures`` in dml_ep.json, a model that differs little from the row's own and does not meet it."""

from __future__ import annotations

from typing import Any

from onnx import parser

_HEADS = "float[1,2,8] q, float[1,2,8] k, float[1,2,8] v"
_GROUPS = "float[1,2,32] q, float[1,2,32] k, float[1,2,32] v"
_GROUP_RESULTS = "float[1,2,32] y, float[1,2,2,16] p, float[1,2,2,16] r"
_GROUP = "n = Constant<value = int32[1] {1}>() t = Constant<value = int32[1] {2}>() y, p, r ="
_ATTENTION = "(float[1,2,4] x, float[4,12] w, float[12] b) => (float[1,2,4] y) { y = com.microsoft.Attention"
_QUANTIZED = (
    "(uint8[1,2,4] x, uint8[4,12] w, float[12] b, float s) => (float[1,2,4] y)"
    " { m = Constant<value = int32[1] {2}>() y = com.microsoft.QAttention"
)
_NORM = "(float[2,3,4] x, float[2,3,4] s, float[4] g) => (float[2,3,4] y) { y = com.microsoft."
_EINSUM = '(float[3,3] a, float[3,3] b) => (float[3,3] y) { y = Einsum<equation = "ab,bc->ac">(a, b) }'
_RESIZE = "(float[1,1,4,4] x) => (float[1,1,8,8] y) { f = Constant<value = float[4] {1,1,2,2}>() y = Resize"


def _group(operands: str = "", attributes: str = "") -> str:
    call = (
        f"com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 2{attributes}>(q, k, v, , , n, t{operands})"
    )
    return f"({_GROUPS}) => ({_GROUP_RESULTS}) {{ {_GROUP} {call} }}"


def _mha(operands: str = "", attributes: str = "", more: str = "") -> str:
    call = f"com.microsoft.MultiHeadAttention<num_heads = 2{attributes}>(q, k, v{operands})"
    return f"({_HEADS}{more}) => (float[1,2,8] y) {{ y = {call} }}"


def _pad(numbers: str) -> str:
    return f"(float[5] x) => (float[m] y) {{ p = Constant<value = int64[2] {{{numbers}}}>() y = Pad(x, p) }}"


def _reduced(op: str, kind: str) -> str:
    return f"({kind}[2,3] x) => ({kind}[2,1] y) {{ a = Constant<value = int64[1] {{1}}>() y = {op}(x, a) }}"


#: The opset and the graph, by the row's id.
_TEXTS: dict[str, tuple[int, str]] = {
    "reduce-integers": (18, _reduced("ReduceSum", "int64")),
    "reduce-unsigned": (18, _reduced("ReduceSum", "int32")),
    "reduce-f64": (20, _reduced("ReduceMax", "float")),
    "rank": (13, "(float[1,1,1,1,1,1,1,3] x) => (float[1,1,1,1,1,1,1,3] y) { y = Neg(x) }"),
    "reduce-bytes-18": (20, _reduced("ReduceMax", "uint8")),
    "cast-bool": (19, "(float[4] x) => (uint8[4] y) { y = Cast<to = 2>(x) }"),
    "cast-int-bool": (19, "(uint8[4] x) => (bool[4] y) { y = Cast<to = 9>(x) }"),
    "log-sum-exp": (18, _reduced("ReduceLogSum", "float")),
    "empty": (20, _reduced("ReduceMax", "float")),
    "layer-norm-results": (17, "(float[2,4] x, float[4] g) => (float[2,4] y) { y = LayerNormalization(x, g) }"),
    "group-norm": (21, "(float[1,2,3] x, float[2] g) => (float[1,2,3] y) { y = InstanceNormalization(x, g, g) }"),
    "resize-cubic": (13, f'{_RESIZE}<mode = "linear">(x, , f) }}'),
    "resize-outside": (18, f'{_RESIZE}<mode = "linear", antialias = 1, exclude_outside = 0>(x, , f) }}'),
    "resize-extrapolation": (13, f'{_RESIZE}<mode = "linear", extrapolation_value = 0.0>(x, , f) }}'),
    "resize-aspect": (18, f'{_RESIZE}<mode = "nearest", keep_aspect_ratio_policy = "stretch">(x, , f) }}'),
    "resize-rank": (13, "(float[1,2,1,2,2,3] x) => (float[1,2,1,2,4,6] y)"
                        " { f = Constant<value = float[6] {1,1,1,1,2,2}>() y = Resize(x, , f) }"),
    "scatter-reduction": (16, "(float[2,4] x, int64[1,4] i, float[1,4] u) => (float[2,4] y)"
                              ' { y = ScatterElements<reduction = "none">(x, i, u) }'),
    "max-pool-order": (12, "(float[1,1,4,4] x) => (float[1,1,3,3] y, int64[1,1,3,3] i)"
                           " { y, i = MaxPool<kernel_shape = [2,2], storage_order = 0>(x) }"),
    "batch-norm-training": (15, "(float[1,2,3] x, float[2] s) => (float[1,2,3] y)"
                                " { y = BatchNormalization<training_mode = 0>(x, s, s, s, s) }"),
    "batch-norm-mixed": (15, "(float16[1,2,3] x, float16[2] s) => (float16[1,2,3] y)"
                             " { y = BatchNormalization(x, s, s, s, s) }"),
    "rnn-layout": (14, "(float[4,1,3] x, float[1,2,3] w, float[1,2,2] r) => (float[4,1,1,2] y)"
                       " { y = RNN<hidden_size = 2, layout = 0>(x, w, r) }"),
    "pad-negative": (13, _pad("0, 1")),
    "pad-negative-attribute": (10, "(float[5] x) => (float[6] y) { y = Pad<pads = [0, 1]>(x) }"),
    "einsum-operands": (12, _EINSUM),
    "einsum-ellipsis": (12, _EINSUM),
    "einsum-letters": (17, "(float[2,2,2] x, float[2,2] z) => (float[2] y)"
                           ' { y = Einsum<equation = "abc,de->a">(x, z) }'),
    "einsum-product": (17, "(float[2,4,3,2] a, float[2,4,5,2] b) => (float[2,4,3,5] y)"
                           ' { y = Einsum<equation = "hwpc,hwqc->hwpq">(a, b) }'),
    "gelu": (20, "(float[2,4] x) => (float[2,4] y) { y = com.microsoft.Gelu(x) }"),
    "fast-gelu": (17, "(float[2,4] x) => (float[2,4] y) { y = com.microsoft.QuickGelu(x) }"),
    "matmul-rank": (17, "(float[2,3,4,5] a, float[2,3,5,6] b) => (float[2,3,4,6] y) { y = MatMul(a, b) }"),
    "fused-matmul-rank": (17, "(float[2,3,4,5] a, float[2,3,5,6] b) => (float[2,3,4,6] y)"
                              " { y = com.microsoft.FusedMatMul(a, b) }"),
    "gemm-batch": (17, "(float[65535,1,2] a, float[65535,2,1] b) => (float[65535,1,1] y) { y = MatMul(a, b) }"),
    "fused-gemm-batch": (17, "(float[1,65536,2] a, float[1,2,3] b) => (float[1,65536,3] y)"
                             " { y = com.microsoft.FusedMatMul(a, b) }"),
    "split-gate": (13, "(float[2,4] x) => (float[2,2] y) { a, b = Split<axis = 1>(x) c = Tanh(b) y = Mul(a, c) }"),
    "pow-int": (15, "(int32[2,3] x, int32[2,3] e) => (int32[2,3] y) { y = Pow(x, e) }"),
    "trilu-rank": (17, "(float[2,2,3,3] x) => (float[2,2,3,3] y) { y = Trilu(x) }"),
    "lrn-rank": (17, "(float[2,4,3,3] x) => (float[2,4,3,3] y) { y = LRN<size = 3>(x) }"),
    "lrn-rank-low": (17, "(float[2,4,3,3] x) => (float[2,4,3,3] y) { y = LRN<size = 3>(x) }"),
    "simplified-norm-results": (17, "(float[2,3,4] x, float[4] g) => (float[2,3,4] y)"
                                    " { y = SimplifiedLayerNormalization(x, g) }"),
    "skip-norm-results": (17, _NORM + "SkipLayerNormalization(x, s, g) }"),
    "skip-norm-bias": (17, _NORM + "SkipSimplifiedLayerNormalization(x, s, g) }"),
    "skip-norm-broadcast": (17, _NORM + "SkipLayerNormalization(x, s, g) }"),
    "norm-f16": (17, "(float16[2,4] x, float16[4] g) => (float16[2,4] y)"
                     " { t = Tanh(x) y = LayerNormalization(t, g) }"),
    "skip-norm-f16": (17, "(float16[2,3,4] x, float16[2,3,4] s, float16[4] g) => (float16[2,3,4] y)"
                          " { t = Tanh(x) u = Sigmoid(s) y = com.microsoft.SkipLayerNormalization(t, u, g) }"),
    "mvn-epsilon": (17, "(float[2,3,2] x, float[3] g) => (float[2,3,2] y) { y = InstanceNormalization(x, g, g) }"),
    "lp-epsilon": (17, "(float[2,3] x) => (float[2,1] y) { y = ReduceL2<axes = [1]>(x) }"),
    "fused-output": (17, "(float[2,3] a, float[3,3] b) => (float[2,3] z, float[2,3] y)"
                         " { y = MatMul(a, b) s = Sigmoid(y) u = Exp(y) z = Add(s, u) }"),
    "mha-unidirectional": (17, _mha(attributes=", unidirectional = 0")),
    "mha-scale": (17, _mha(attributes=", scale = 0.5")),
    "mha-bias-broadcast": (17, _mha(", , , e", more=", float[1,2,2,2] e")),
    "mha-keys-by-head": (17, "(float[1,2,8] q, float[1,2,2,4] k, float[1,2,2,4] v) => (float[1,2,8] y)"
                             " { y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v) }"),
    "mha-cache": (17, f"({_HEADS}, float[1,2,2,4] o) => (float[1,2,8] y, float[1,2,4,4] a, float[1,2,4,4] c)"
                      " { y, a, c = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v, , , , o, o) }"),
    "mha-scores": (17, _mha()),
    "mha-past-mask": (17, _mha(", , m", more=", int32[1,2] m")),
    "gqa-rotary": (17, _group(attributes=", do_rotary = 0")),
    "gqa-window": (17, _group(attributes=", local_window_size = -1")),
    "gqa-softcap": (17, _group(attributes=", softcap = 0.0")),
    "gqa-smooth": (17, _group(attributes=", smooth_softmax = 0")),
    "gqa-operands": (17, _group()),
    "gqa-packed": (17, _group()),
    "gqa-causal": (17, _group(attributes=", causal = 1")),
    "gqa-norms": (17, _group()),
    "attention-past": (17, f"{_ATTENTION}<num_heads = 1>(x, w, b) }}"),
    "attention-present": (17, f"{_ATTENTION}<num_heads = 1>(x, w, b) }}"),
    "attention-causal": (17, f"{_ATTENTION}<num_heads = 1, unidirectional = 0>(x, w, b) }}"),
    "attention-rotary": (17, f"{_ATTENTION}<num_heads = 1, do_rotary = 0>(x, w, b) }}"),
    "quantized-attention-past": (17, f"{_QUANTIZED}<num_heads = 1>(x, w, b, s, s, m) }}"),
    "quantized-sigmoid": (17, "(uint8[2,3] x) => (uint8[2,3] y) { s = Constant<value = float {0.1}>()"
                              " z = Constant<value = uint8 {2}>() y = com.microsoft.QLinearSigmoid(x, s, z, s, z) }"),
    "quantized-extreme": (18, "(uint8[2,4] x) => (uint8[2,1] y)"
                              " <float s = {0.1}, float t = {0.2}, uint8 z = {3}, int64[1] k = {1}>"
                              " { a = DequantizeLinear(x, s, z) b = ReduceMax(a, k) y = QuantizeLinear(b, t, z) }"),
    "quantize-blocks": (21, "(int8[2,4] x, float[4] s) => (float[2,4] y)"
                            " { y = DequantizeLinear<axis = 1, block_size = 0>(x, s) }"),
    "quantize-4-bit": (21, "(float[3,3] x, float s, uint8 z) => (uint8[3,3] y) { y = QuantizeLinear(x, s, z) }"),
    "lp-pool-f16": (18, "(float16[1,1,4,4] x) => (float16[1,1,2,2] y)"
                        " { t = Tanh(x) y = LpPool<kernel_shape = [2,2], strides = [2,2]>(t) }"),
    "sum-f16": (18, "(float16[4,1024] x) => (float16[1,1] y) { y = ReduceMean(x) }"),
    "conv-transpose-line": (17, "(float[1,2,5] x, float[2,1,3] w) => (float[1,2,9] y)"
                                " { y = ConvTranspose<group = 2, strides = [2], pads = [1,1]>(x, w) }"),
    "conv-transpose-size": (17, "(float[1,2,4,4] x, float[2,1,3,3] w) => (float[1,1,8,8] y)"
                                ' { y = ConvTranspose<strides = [2,2], auto_pad = "SAME_UPPER">(x, w) }'),
    "conv-transpose-start": (17, "(float[1,2,5,5] x, float[2,1,3,3] w) => (float[1,1,10,10] y)"
                                 " { y = ConvTranspose<strides = [2,2], output_shape = [10,10],"
                                 " output_padding = [1,1]>(x, w) }"),
    "reshape-allowzero": (17, "(float[2,3,4] x) => (float[2,12] y)"
                              " { k = Constant<value = int64[2] {2, 12}>() y = Reshape<allowzero = 1>(x, k) }"),
    "slice-steps": (17, "(float[6,3] x) => (float[4,3] y) <int64[1] a = {0}, int64[1] b = {4}>"
                        " { y = Slice(x, a, b) }"),
    "gather-nd-number": (17, "(float[2,3] x, int64[1,2] i) => (float[1] y) { y = GatherND(x, i) }"),
    "resize-pytorch-pixel": (17, "(float[1,1,4,4] x) => (float[1,1,1,8] y) <int64[4] k = {1, 1, 1, 8}>"
                                 ' { y = Resize<mode = "linear">(x, , , k) }'),
    "weight-block": (17, "(float[1,3,32] x, uint8[2,2,8] w, float[4] s) => (float[1,3,2] y)"
                         " { y = com.microsoft.MatMulNBits<K = 32, N = 2, bits = 4, block_size = 16>(x, w, s) }"),
}  # fmt: skip


def near_miss(name: str) -> Any:
    """The model for a row. Raises ``KeyError`` for a row that has none."""
    opset, body = _TEXTS[name]
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {body}')


NEAR_MISSES = frozenset(_TEXTS)
