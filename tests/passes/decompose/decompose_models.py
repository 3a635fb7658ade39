"""Models with one node of each operator that can be decomposed, in several forms."""

from __future__ import annotations

from onnx import ModelProto, parser

from tests.versions import NEWEST_OPSET, ONNX_RUNTIME

MICROSOFT = "com.microsoft"


def model(inputs: str, call: str, *, opset: int = 21, own: bool = False, output: str = "float y") -> ModelProto:
    """A model of one node. Its output is declared without a shape; ``own`` imports ``com.microsoft``."""
    domains = f'["": {opset}, "{MICROSOFT}": 1]' if own else f'["": {opset}]'
    made = parser.parse_model(f"<ir_version: 8, opset_import: {domains}> g ({inputs}) => ({output}) {{ {call} }}")
    for info in made.graph.output:
        info.type.tensor_type.ClearField("shape")
    return made


def own(call: str) -> str:
    """The call with its operator in ``com.microsoft``."""
    left, _, right = call.partition("= ")
    return f"{left}= {MICROSOFT}.{right}"


X = "float[N, 3, 8] x"
ROW = f"{X}, float[8] s, float[8] b"
IMAGE = "float[N, 6, 5, 4] x, float[6] s, float[6] b"
TOKENS = "float[2, 3, 8] q, float[2, 4, 8] k, float[2, 4, 8] v"
_EINSUMS = {
    "ij,jk->ik": "float[3, 4] a, float[4, 5] b",
    "bij,bjk->bik": "float[2, 3, 4] a, float[2, 4, 5] b",
    "bhid,bhjd->bhij": "float[2, 2, 3, 4] a, float[2, 2, 5, 4] b",
    "ij,ij->i": "float[3, 4] a, float[3, 4] b",
    "ij,ij->ij": "float[3, 4] a, float[3, 4] b",
    "i,j->ij": "float[3] a, float[4] b",
    "ij,kj->": "float[3, 4] a, float[5, 4] b",
    "ijk->kj": "float[3, 4, 5] a",
    "ij,jk,kl->il": "float[3, 4] a, float[4, 5] b, float[5, 2] c",
}


def _letters(equation: str) -> str:
    names = ", ".join("abc"[: equation.count(",") + 1])
    return f'y = Einsum<equation = "{equation}">({names})'


#: Models by operator. Inputs are f32 unless the model says otherwise.
MODELS: dict[str, list[ModelProto]] = {
    "Softmax": [
        model(X, "y = Softmax<axis = 1>(x)", opset=13),
        model("float[2, 3, 4] x", "y = Softmax<axis = 1>(x)", opset=11),
        model("float16[N, 8] x", "y = Softmax(x)", output="float16 y"),
        model("double[N, 8] x", "y = Softmax(x)", output="double y"),
    ],
    "LogSoftmax": [model(X, "y = LogSoftmax<axis = 2>(x)"), model(X, "y = LogSoftmax<axis = 0>(x)")],
    "Hardmax": [model(X, "y = Hardmax<axis = 1>(x)"), model("float[2, 3, 4] x", "y = Hardmax<axis = 1>(x)", opset=11)],
    "LayerNormalization": [
        model(ROW, "y = LayerNormalization(x, s, b)"),
        model(f"{X}, float[3, 8] s", "y = LayerNormalization<axis = 1, epsilon = 0.1>(x, s)"),
        model(ROW, "y, m, d = LayerNormalization(x, s, b)", output="float y, float m, float d"),
        model(ROW.replace("float", "float16"), "y = LayerNormalization(x, s, b)", output="float16 y"),
    ],
    "RMSNormalization": [model(f"{X}, float[8] s", "y = RMSNormalization(x, s)", opset=23)],
    "SimplifiedLayerNormalization": [model(f"{X}, float[8] s", "y = SimplifiedLayerNormalization(x, s)")],
    "com.microsoft.SkipLayerNormalization": [
        model(f"{ROW}, {X.replace('x', 'z')}", own("y = SkipLayerNormalization(x, z, s, b)"), own=True),
        model(
            f"{ROW}, {X.replace('x', 'z')}, float[8] c",
            own("y, m, d, t = SkipLayerNormalization<epsilon = 0.1>(x, z, s, b, c)"),
            own=True,
            output="float y, float t",
        ),
    ],
    "com.microsoft.SkipSimplifiedLayerNormalization": [
        model(
            f"{X}, {X.replace('x', 'z')}, float[8] s, float[8] c",
            own("y, m, d, t = SkipSimplifiedLayerNormalization(x, z, s, c)"),
            own=True,
            output="float y, float t",
        )
    ],
    "InstanceNormalization": [model(IMAGE, "y = InstanceNormalization(x, s, b)")],
    "GroupNormalization": [
        model(IMAGE, "y = GroupNormalization<num_groups = 3>(x, s, b)"),
        model(
            "float[2, 6, 5, 4] x, float[3] s, float[3] b", "y = GroupNormalization<num_groups = 3>(x, s, b)", opset=18
        ),
    ],
    "BatchNormalization": [
        model(f"{IMAGE}, float[6] m, float[6] v", "w = Abs(v) y = BatchNormalization(x, s, b, m, w)"),
    ],
    "MeanVarianceNormalization": [
        model("float[2, 3, 4, 5] x", "y = MeanVarianceNormalization(x)"),
        model("float[2, 3, 4, 5] x", "y = MeanVarianceNormalization<axes = [1, 3]>(x)"),
    ],
    "LpNormalization": [model(X, f"y = LpNormalization<axis = 1, p = {p}>(x)") for p in (1, 2)],
    "ReduceLogSum": [model(X, "i = Abs(x) y = ReduceLogSum<keepdims = 0>(i)")],
    "ReduceL1": [model(X, "a = Constant<value_ints = [1]>() y = ReduceL1(x, a)")],
    "ReduceL2": [model(X, "y = ReduceL2<axes = [2], keepdims = 0>(x)", opset=13)],
    "ReduceSumSquare": [
        model(X, "a = Constant<value_ints = [-1, 0]>() y = ReduceSumSquare(x, a)"),
        model("int32[2, 3] x", "y = ReduceSumSquare<keepdims = 0>(x)", output="int32 y"),
    ],
    "ReduceLogSumExp": [
        model(X, "a = Constant<value_ints = [1, 2]>() y = ReduceLogSumExp<keepdims = 0>(x, a)"),
        model("float16[N, 8] x", "y = ReduceLogSumExp(x)", output="float16 y"),
    ],
    "Elu": [model(X, "y = Elu<alpha = 0.5>(x)")],
    "LeakyRelu": [model(X, "y = LeakyRelu<alpha = 0.2>(x)")],
    "HardSigmoid": [model(X, "y = HardSigmoid<alpha = 0.3, beta = 0.4>(x)")],
    "Softplus": [model(X, "y = Softplus(x)")],
    "Softsign": [model(X, "y = Softsign(x)")],
    "Swish": [model(X, "y = Swish<alpha = 1.5>(x)", opset=24), model(X, "y = Swish(x)", opset=24)],
    "Gelu": [model(X, "y = Gelu(x)"), model(X, 'y = Gelu<approximate = "tanh">(x)')],
    "com.microsoft.Gelu": [model(X, own("y = Gelu(x)"), own=True)],
    "com.microsoft.FastGelu": [
        model(X, own("y = FastGelu(x)"), own=True),
        model(f"{X}, float[8] b", own("y = FastGelu(x, b)"), own=True),
    ],
    "com.microsoft.BiasGelu": [model(f"{X}, float[8] b", own("y = BiasGelu(x, b)"), own=True)],
    "com.microsoft.QuickGelu": [model(X, own("y = QuickGelu<alpha = 1.3>(x)"), own=True)],
    "Gemm": [
        model("float[4, 3] x, float[5, 4] w", "y = Gemm<transA = 1, transB = 1, alpha = 0.5>(x, w)"),
        model("float[N, 4] x, float[4, 5] w, float[5] c", "y = Gemm<beta = 2.0>(x, w, c)"),
    ],
    "Einsum": [model(inputs, _letters(equation)) for equation, inputs in _EINSUMS.items()],
    "Attention": [
        model("float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v", "y = Attention(q, k, v)", opset=23)
    ],
    "RotaryEmbedding": [
        model("float[1, 2, 3, 4] x, float[1, 3, 2] c, float[1, 3, 2] s", "y = RotaryEmbedding(x, c, s)", opset=23)
    ],
    "com.microsoft.MultiHeadAttention": [
        model(TOKENS, own("y = MultiHeadAttention<num_heads = 2>(q, k, v)"), own=True),
        model(
            f"{TOKENS}, float[24] b, float[2, 2, 3, 4] a",
            own('y = MultiHeadAttention<num_heads = 2, scale = 0.3>(q, k, v, b, "", a)').replace('""', ""),
            own=True,
        ),
        model(
            "float[2, 4, 8] q, float[2, 4, 8] k, float[2, 4, 8] v",
            own("y = MultiHeadAttention<num_heads = 4, unidirectional = 1>(q, k, v)"),
            own=True,
        ),
        model(
            "float[2, 3, 8] q, float[2, 2, 4, 4] k, float[2, 2, 4, 4] v",
            own("y = MultiHeadAttention<num_heads = 2>(q, k, v)"),
            own=True,
        ),
    ],
    "com.microsoft.Attention": [
        model(
            "float[2, 4, 8] x, float[8, 24] w, float[24] b",
            own("y = Attention<num_heads = 2>(x, w, b)"),
            own=True,
        ),
        model(
            "float[2, 4, 8] x, float[8, 24] w, float[24] b",
            own("y = Attention<num_heads = 2, unidirectional = 1>(x, w, b)"),
            own=True,
        ),
    ],
    "com.microsoft.RotaryEmbedding": [
        model(
            "float[1, 3, 8] x, float[6, 2] c, float[6, 2] s",
            f"i = Constant<value = int64[1, 3] {{2, 0, 5}}>() {own('y = RotaryEmbedding<num_heads = 2>(x, i, c, s)')}",
            own=True,
        )
    ],
}

_GROUP = own("y = GroupNorm<groups = 3, activation = {}, channels_last = 1>(x, s, b)")
#: ONNX Runtime's CPU provider has no kernel of these: the same function in other operators stands beside them.
WITHOUT_KERNEL: dict[str, list[tuple[ModelProto, ModelProto]]] = {
    "com.microsoft.GroupNorm": [
        (
            model("float[2, 5, 4, 6] x, float[6] s, float[6] b", _GROUP.format(activation), own=True),
            model(
                "float[2, 5, 4, 6] x, float[6] s, float[6] b",
                "t = Transpose<perm = [0, 3, 1, 2]>(x) n = GroupNormalization<num_groups = 3>(t, s, b) "
                f"g = Sigmoid(n) m = Mul(n, g) z = Identity({'m' if activation else 'n'}) "
                "y = Transpose<perm = [0, 2, 3, 1]>(z)",
            ),
        )
        for activation in (0, 1)
    ]
}


def runs_here(operator: str, made: ModelProto) -> bool:
    """False for a model that the installed ONNX Runtime is too old for."""
    if made.opset_import[0].version > NEWEST_OPSET:
        return False
    if operator == "Einsum" and ONNX_RUNTIME < (1, 26):  # it fails where a sum leaves two axes to be exchanged
        return "ijk->kj" not in str(made.graph.node[0].attribute[0].s)
    if operator == "LayerNormalization" and ONNX_RUNTIME < (1, 24):  # it broadcasts no scale and no bias
        shapes = [info.type.tensor_type.shape.dim for info in made.graph.input]
        return len({shape[-1].dim_value for shape in shapes}) == 1 and len({len(shape) for shape in shapes[1:]}) == 1
    return True


__all__ = ["MODELS", "WITHOUT_KERNEL", "model", "own", "runs_here"]
