"""Dispatches and bytes of nodes that the provider makes several operators of, or none."""

from __future__ import annotations

from onnx import parser

from dmlc.placement.node import NodePlacement
from dmlc.placement.report import placement
from dmlc.placement.statistics import statistics
from dmlc.targets import load_target
from tests.rows import each_row


def nodes(body: str, opset: int = 17) -> dict[str, NodePlacement]:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {body}')
    found = placement(model, load_target("directml")).nodes
    counts = [node.dispatches for node in found]
    assert statistics(model).dispatches == sum(counts)
    assert statistics(model).bytes_moved == sum(node.bytes for node in found)
    return {node.op: node for node in found}


_FOUR = "(float[4] a, float[4] b, float[4] c, float[4] d) => (float[4] y)"
#: The node, what counts, dispatches, bytes.
COUNTED = {
    "cast of floats to bool": ("(float[8] x) => (bool[8] y) { y = Cast<to = 9>(x) }", "Cast", 2, 8 * 4 + 3 * 8),
    "cast of bools": ("(bool[8] x) => (float[8] y) { y = Cast<to = 1>(x) }", "Cast", 1, 8 + 32),
    "max of two": (f"{_FOUR} {{ y = Max(a, b) }}", "Max", 1, 3 * 16),
    "max of four": (f"{_FOUR} {{ y = Max(a, b, c, d) }}", "Max", 3, 9 * 16),
    "sum of three": (f"{_FOUR} {{ y = Sum(a, b, c) }}", "Sum", 2, 6 * 16),
    "mean of two": (f"{_FOUR} {{ y = Mean(a, b) }}", "Mean", 1, 3 * 16),
    "mean of three": (f"{_FOUR} {{ y = Mean(a, b, c) }}", "Mean", 3, 6 * 16),
    "einsum, a matrix product": (
        '(float[2,3] a, float[3,4] b) => (float[2,4] y) { y = Einsum<equation = "ij,jk->ik">(a, b) }',
        "Einsum", 1, 4 * (6 + 12 + 8),
    ),
    "einsum, a product": (
        '(float[2,3] a, float[3] b) => (float[2,3] y) { y = Einsum<equation = "ij,j->ij">(a, b) }',
        "Einsum", 1, 4 * (6 + 3 + 6),
    ),
    "einsum, a transpose": (
        '(float[2,3] a) => (float[3,2] y) { y = Einsum<equation = "ij->ji">(a) }', "Einsum", 1, 4 * 12,
    ),
    "einsum, a product and a sum": (
        '(float[2,3,4] a, float[2,3,5] b) => (float[4,5] y) { y = Einsum<equation = "ijk,ijl->kl">(a, b) }',
        "Einsum", 2, 4 * (24 + 30 + 20 + 2 * 120),
    ),
    "einsum, rows": (
        '(float[2,3] a, float[2,3] b) => (float[2] y) { y = Einsum<equation = "ij,ij->i">(a, b) }',
        "Einsum", 2, 4 * (6 + 6 + 2 + 2 * 6),
    ),
    "skip norm": (
        "(float[1,2,4] x, float[4] g) => (float[1,2,4] y) { y = com.microsoft.SkipLayerNormalization(x, x, g) }",
        "com.microsoft.SkipLayerNormalization", 2, 4 * (8 + 4 + 8),
    ),
    "skip norm with a bias": (
        "(float[1,2,4] x, float[4] g) => (float[1,2,4] y)"
        " { y = com.microsoft.SkipLayerNormalization(x, x, g, , g) }",
        "com.microsoft.SkipLayerNormalization", 3, 4 * (8 + 4 + 8),
    ),
    "quick gelu": ("(float[4] x) => (float[4] y) { y = com.microsoft.QuickGelu(x) }",
                   "com.microsoft.QuickGelu", 3, 32),
    "quick gelu of 1": ("(float[4] x) => (float[4] y) { y = com.microsoft.QuickGelu<alpha = 1.0>(x) }",
                        "com.microsoft.QuickGelu", 2, 32),
}  # fmt: skip


_ROTARY = "(float[1,2,3,8] x, int64{0} p, float[3,{1}] t) => (float[1,2,3,8] y) {{ y = com.microsoft.RotaryEmbedding"
_GROUPS = (
    "({0}[1,{1},32] q, {0}[1,{1},16] k, {0}[1,{1},16] v, int32[1] n)"
    " => ({0}[1,{1},32] y, {0}[1,1,{1},16] a, {0}[1,1,{1},16] b) {{ t = Constant<value = int32[1] {{{1}}}>()"
    " y, a, b = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 1>(q, k, v, , , n, t) }}"
)
_ATTENTION = "(float[1,2,4] x, float[4,{0}] w, float[{0}] b) => (float[1,2,{1}] y) {{ y = com.microsoft.Attention"


@each_row(
    ("body", "op", "count"),
    [
        (_GROUPS.format("float", 2), "GroupQueryAttention", 2),
        (_GROUPS.format("float", 1), "GroupQueryAttention", 1),
        (_GROUPS.format("float16", 2), "GroupQueryAttention", 8),
        (_GROUPS.format("float16", 1), "GroupQueryAttention", 7),
        (_ROTARY.format("[1,3]", 4) + "(x, p, t, t) }", "RotaryEmbedding", 10),
        (_ROTARY.format("[1]", 4) + "(x, p, t, t) }", "RotaryEmbedding", 12),
        (
            _ROTARY.format("[1]", 2) + "<rotary_embedding_dim = 4, num_heads = 2>(x, p, t, t) }",
            "RotaryEmbedding",
            14,
        ),
        (_ATTENTION.format(12, 4) + "<num_heads = 1>(x, w, b) }", "Attention", 3),
        (_ATTENTION.format(10, 2) + "<num_heads = 1, qkv_hidden_sizes = [4, 4, 2]>(x, w, b) }", "Attention", 5),
    ],
)
def test_dispatches_of_attention(body: str, op: str, count: int) -> None:
    assert nodes(body)[f"com.microsoft.{op}"].dispatches == count


@each_row("name", COUNTED)
def test_dispatches_and_bytes(name: str) -> None:
    body, op, dispatches, bytes_moved = COUNTED[name]
    found = nodes(body)[op]
    assert (found.dispatches, found.bytes) == (dispatches, bytes_moved)


_PRODUCT = "(float[2,3] a, float[3,4] b, float[2,4] c) => (float[2,4] y)"
#: A graph, the activation, whether it is computed within the node before it.
FUSED = {
    "matmul and sigmoid": (f"{_PRODUCT} {{ s = MatMul(a, b) y = Sigmoid(s) }}", "Sigmoid", True),
    "matmul and gelu": (f"{_PRODUCT} {{ s = MatMul(a, b) y = com.microsoft.Gelu(s) }}", "com.microsoft.Gelu", False),
    "add and relu": (f"{_PRODUCT} {{ s = Add(c, c) y = Relu(s) }}", "Relu", True),
    "add and tanh": (f"{_PRODUCT} {{ s = Add(c, c) y = Tanh(s) }}", "Tanh", False),
    "three summed and relu": (f"{_PRODUCT} {{ t = Exp(c) s = Sum(c, c, t) y = Relu(s) }}", "Relu", False),
    "two uses": (f"{_PRODUCT} {{ s = MatMul(a, b) t = Sigmoid(s) y = Mul(s, t) }}", "Sigmoid", False),
    "instance norm and leaky relu": (
        "(float[1,2,4] x, float[2] g) => (float[1,2,4] y) { s = InstanceNormalization(x, g, g) y = LeakyRelu(s) }",
        "LeakyRelu", True,
    ),
}  # fmt: skip


@each_row("name", FUSED)
def test_fused_activation_costs_nothing(name: str) -> None:
    body, op, is_fused = FUSED[name]
    found = nodes(body)[op]
    assert found.dispatches == (0 if is_fused else 1)
    assert (found.bytes == 0) == is_fused


def test_equal_nodes_differ_where_one_is_fused() -> None:
    """Both read a value of the same type; the second is the only use of a product."""
    body = (
        "(float[2,2] a) => (float[2,2] y, float[2,2] z) { s = Exp(a) y = Sigmoid(s) t = MatMul(a, a) z = Sigmoid(t) }"
    )
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {body}')
    counts = [node.dispatches for node in placement(model, load_target("directml")).nodes if node.op == "Sigmoid"]
    assert counts == [1, 0]


def test_top_k_alone_zeroes_a_buffer() -> None:
    body = (
        "(float[{},8] x) => (float[{},2] v, int64[{},2] i) { k = Constant<value = int64[1] {2}>() v, i = TopK(x, k) }"
    )
    for size, alone in (("3", False), ("N", True)):
        text = body.replace("float[{}", f"float[{size}").replace("int64[{}", f"int64[{size}")
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
        (found,) = placement(model, load_target("directml")).nodes
        assert bool(found.alone) == alone
        assert str(found.dispatches) == ("N + 2" if alone else "4")


def test_nothing_is_said_of_what_depends_on_an_unknown_size() -> None:
    """WebGPU's provider sorts long rows in steps, and takes a dispatch for each step of a recurrent layer."""
    for text, counts in (
        ("(float[N] x, int64[1] k) => (float[m] y) { y, i = TopK (x, k) }", None),
        ("(float[2000] x, int64[1] k) => (float[m] y) { y, i = TopK (x, k) }", 1),
        ("(float[4096] x, int64[1] k) => (float[m] y) { y, i = TopK (x, k) }", 80),
        ("(float[N, 1, 4] x, float[1, 6, 4] w, float[1, 6, 2] r) => (float[N, 1, 1, 2] y)"
         " { y = GRU <hidden_size = 2> (x, w, r) }", None),
    ):  # fmt: skip
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
        assert placement(model, load_target("webgpu")).dispatches == counts, text
