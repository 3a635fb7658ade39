"""Repairs of nodes that DirectML refuses or computes wrongly by the provider's source: numbers, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx import numpy_helper, parser

import dmlc
from dmlc.diagnostics import Source
from dmlc.targets.provider import provider
from tests.rows import each_row
from tools.fault_models import FACTS

#: Repaired facts with the rule that repairs them.
REPAIRED = {
    "cast-int-bool": "truth-by-comparison",
    "matmul-rank": "merge-matmul-batch",
    "split-gate": "slices-of-gate",
    "pow-int": "power-by-products",
    "trilu-rank": "merge-trilu-batch",
    "skip-norm-bias": "plain-skip-norm",
    "skip-norm-broadcast": "plain-skip-norm",
    "mha-bias-broadcast": "full-attention-bias",
    "gemm-batch": "merge-matmul-batch",
    "fused-matmul-rank": "merge-product-batch",
    "fused-gemm-batch": "merge-product-batch",
    "einsum-operands": "einsum-of-pairs",
    "einsum-product": "matmul-of-letters",
    "einsum-letters": "matmul-of-letters",
    "lp-epsilon": "lp-norm-in-parts",
    "quantized-sigmoid": "explicit-zero-points",
    "quantize-blocks": "axis-for-blocks",
    "conv-transpose-line": "explicit-transposed-pads",
    "conv-transpose-size": "explicit-transposed-pads",
    "conv-transpose-start": "explicit-transposed-pads",
    "reshape-allowzero": "plain-reshape",
    "slice-steps": "slice-with-axes",
    "gather-nd-number": "gather-one-number",
    "resize-pytorch-pixel": "first-of-resized",
}


def model(body: str, opset: int = 17) -> Any:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {body}')


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


@each_row("name", REPAIRED)
def test_repaired_node_keeps_its_numbers(name: str) -> None:
    """ONNX Runtime's own kernel of the node is the measure: MatMul of five axes, Cast of 256 to bool."""
    made, feeds = FACTS[name]()
    program = dmlc.compile(made)
    assert REPAIRED[name] in dict(r.fired(program))
    assert not program.placement().findings
    r.same(r.run(made, feeds), program.run(feeds, backend="cpu"), 1e-5)


@pytest.mark.parametrize("name", ["lrn-rank", "lrn-rank-low"])
def test_lrn_of_other_than_four_axes(name: str) -> None:
    """ONNX Runtime's CPU provider takes four axes only; the formula is the measure."""
    made, feeds = FACTS[name]()
    program = dmlc.compile(made)
    assert "merge-lrn-axes" in dict(r.fired(program))
    assert not program.placement().findings
    x, half = feeds["x0"], 1
    squares = np.pad(x**2, [(0, 0), (half, half), *[(0, 0)] * (x.ndim - 2)])
    sums = sum(squares[:, i : i + x.shape[1]] for i in range(3))
    want = x / (1 + 1e-4 / 3 * sums) ** 0.75
    np.testing.assert_allclose(program.run(feeds, backend="cpu")["y0"], want, rtol=1e-5)


@each_row(
    ("left", "right"),
    [
        ([2, 3, 2, 4, 5], [2, 3, 2, 5, 3]),
        ([2, 3, 2, 4, 5], [5, 3]),
        ([4, 5], [2, 3, 2, 5, 3]),
        ([2, 1, 2, 4, 5], [1, 3, 1, 5, 3]),
        ([1, 1, 1, 4, 5], [2, 3, 2, 5, 3]),
        ([2, 3, 2, 4, 5], [2, 5, 3]),
        ([5], [2, 3, 2, 5, 3]),
        ([2, 3, 2, 4, 5], [5]),
        ([2, 1, 3, 1, 2, 4, 5], [2, 2, 1, 2, 1, 5, 3]),
    ],
)
def test_matmul_of_many_axes(left: list[int], right: list[int]) -> None:
    a, b = data(*left), data(*right)
    out = list(np.matmul(a, b).shape)
    made = model(f"(float{left} a, float{right} b) => (float{out} y) {{ y = MatMul(a, b) }}")
    program = dmlc.compile(made)
    assert not program.placement().findings
    np.testing.assert_allclose(program.run({"a": a, "b": b}, backend="cpu")["y"], np.matmul(a, b), rtol=1e-4, atol=1e-5)
    (node,) = [n for n in program.to_onnx().graph.node if n.op_type == "MatMul"]
    ranks = {info.name: len(info.type.tensor_type.shape.dim) for info in program.to_onnx().graph.value_info}
    assert all(ranks.get(name, 0) <= 4 for name in (*node.input, *node.output))


def test_matmul_of_many_axes_and_open_sizes() -> None:
    source = Source(
        "m.dml",
        "model m(a: f32[N, 2, M, 4, 5], b: f32[1, 2, 1, 5, 3]) -> (y) {\n    return matmul(a, b)\n}\n",
    )
    program = dmlc.compile(source)
    assert not program.placement().fails
    a, b = data(2, 2, 3, 4, 5), data(1, 2, 1, 5, 3)
    np.testing.assert_allclose(program.run({"a": a, "b": b}, backend="cpu")["y"], a @ b, rtol=1e-4, atol=1e-5)


def test_matmul_of_four_axes_stays() -> None:
    made = model("(float[2,3,4,5] a, float[2,3,5,6] b) => (float[2,3,4,6] y) { y = MatMul(a, b) }")
    assert r.operators(r.left_alone(made, "merge-matmul-batch")) == ["MatMul"]


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-1, 0, 1])
def test_trilu_of_many_axes(upper: int, k: int) -> None:
    made = model(f"(float[2,2,2,3,4] a) => (float[2,2,2,3,4] y) {{ k = Constant<value = int64 {{{k}}}>()"
                 f" y = Trilu<upper = {upper}>(a, k) }}")  # fmt: skip
    x = data(2, 2, 2, 3, 4)
    program = dmlc.compile(made)
    assert not program.placement().findings
    np.testing.assert_array_equal(program.run({"a": x}, backend="cpu")["y"], r.run(made, {"a": x})["y"])


@each_row("exponent", [0, 1, 2, 3, 7, 10])
@each_row("kind", ["int32", "int64", "float"])
def test_power_of_integers(exponent: int, kind: str) -> None:
    made = model(f"(int32[6] a) => (int32[6] y) {{ k = Constant<value = {kind}[1] {{{exponent}}}>() y = Pow(a, k) }}")
    x = np.array([-3, -1, 0, 1, 2, 5], np.int32)
    program = dmlc.compile(made)
    assert "Pow" not in r.operators(program)
    np.testing.assert_array_equal(program.run({"a": x}, backend="cpu")["y"], x**exponent)


def test_power_that_is_not_of_a_constant_or_not_of_integers_stays() -> None:
    for body in (
        "(int32[6] a, int32[6] b) => (int32[6] y) { y = Pow(a, b) }",
        "(float[6] a) => (float[6] y) { k = Constant<value = float {3.5}>() y = Pow(a, k) }",
    ):
        program = r.left_alone(model(body), "power-by-products")
        assert r.operators(program) == ["Pow"]
        assert not program.placement().fails


@each_row("exponent", [2.5, -1.0, 2.0**31, np.inf, -np.inf, np.nan])
def test_power_of_integers_by_what_is_not_a_count_is_refused(exponent: float) -> None:
    made = model("(int32[6] a) => (int32[6] y) { y = Pow(a, k) }")
    made.graph.initializer.append(numpy_helper.from_array(np.float32(exponent), "k"))
    program = r.left_alone(made, "power-by-products")
    assert r.refusals(program) == ["E0591"]
    assert f"the exponent {exponent} is negative or not an integer" in [m.reason() for m in program.remarks]


GATES = {
    "the other half": ("s, u = Split<axis = 1>(x) v = Sigmoid(u) y = Mul(s, v)", True),
    "the same half": ("s, u = Split<axis = 1>(x) v = Sigmoid(u) y = Mul(u, v)", True),
    "the other way round": ("s, u = Split<axis = 1>(x) v = Sigmoid(s) y = Mul(v, u)", True),
    "between": ("s, u = Split<axis = 1>(x) w = Exp(s) v = Sigmoid(u) y = Mul(w, v)", False),
    "no sigmoid": ("s, u = Split<axis = 1>(x) v = Tanh(u) y = Mul(s, v)", False),
    "a sum": ("s, u = Split<axis = 1>(x) v = Sigmoid(u) y = Add(s, v)", False),
    "another tensor": (
        "z = Exp(x) s, u = Split<axis = 1>(x) p, q = Split<axis = 1>(z) v = Sigmoid(q) y = Mul(s, v)",
        False,
    ),
}  # fmt: skip


@each_row("opset", [13, 21])
@each_row("form", GATES)
def test_gate_of_a_split(form: str, opset: int) -> None:
    body, is_gate = GATES[form]
    if opset >= 18:
        body = body.replace("<axis = 1>", "<axis = 1, num_outputs = 2>")
    made = model(f"(float[2,6] x) => (float[2,3] y) {{ {body} }}", opset)
    program = dmlc.compile(made)
    assert ("slices-of-gate" in dict(r.fired(program))) == is_gate
    assert ("Split" in r.operators(program)) != is_gate
    assert not program.placement().fails
    x = data(2, 6)
    r.same(r.run(made, {"x": x}), program.run({"x": x}, backend="cpu"), 1e-6)


@pytest.mark.parametrize(
    ("body", "is_gate"),
    [
        ("v = Sigmoid(u) w = Reshape(v, k) t = Reshape(s, k) y = Mul(t, w)", True),
        ("w = Reshape(u, k) v = Sigmoid(w) t = Reshape(s, k) y = Mul(t, v)", True),
        ("w = Flatten(u) v = Sigmoid(w) t = Flatten(s) y = Mul(t, v)", True),
        ("v = Sigmoid(u) w = Reshape(v, k) z = Reshape(s, k) t = Exp(z) y = Mul(t, w)", False),
        ("v = Tanh(u) w = Reshape(v, k) t = Reshape(s, k) y = Mul(t, w)", False),
    ],
)
def test_gate_behind_views(body: str, is_gate: bool) -> None:
    made = model(
        f"(float[2,4,3] x) => (float[2,6] y) <int64[2] k = {{2,6}}> {{ s, u = Split<axis = 1>(x) {body} }}", 13
    )
    program = dmlc.compile(made)
    assert ("slices-of-gate" in dict(r.fired(program))) == is_gate
    assert ("Split" in r.operators(program)) != is_gate
    x = data(2, 4, 3)
    r.same(r.run(made, {"x": x}), program.run({"x": x}, backend="cpu"), 1e-6)


def test_gate_is_refused_where_the_split_stays() -> None:
    """The report knows the gate of a model that is not compiled."""
    made, _ = FACTS["split-gate"]()
    from dmlc.placement.report import placement
    from dmlc.targets import load_target

    (found,) = [finding for _, finding in placement(made, load_target("directml")).findings]
    assert (found.effect, "a * sigmoid(b)" in found.limit) == ("wrong", True)


@pytest.mark.parametrize("wrapped", ["part", "gate", "squashed", "all"])
def test_gate_is_known_through_an_identity(wrapped: str) -> None:
    """ONNX Runtime takes it out before nodes are placed."""
    from dmlc.placement.report import placement
    from dmlc.targets import load_target

    there = ("part", "gate", "squashed") if wrapped == "all" else (wrapped,)
    body = "a, b = Split<axis = 1>(x)"
    names = {"part": "a", "gate": "b", "squashed": "s"}
    for place in ("part", "gate", "squashed"):
        if place == "squashed":
            body += f" s = Sigmoid({names['gate']})"
        if place in there:
            body += f" {names[place]}_copy = Identity({names[place]})"
            names[place] += "_copy"
    text = f"g (float[2,4] x) => (float[2,2] y) {{ {body} y = Mul({names['squashed']}, {names['part']}) }}"
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> {text}')
    (found,) = [finding for _, finding in placement(made, load_target("directml")).findings]
    assert found.effect == "wrong"
    assert set(r.operators(dmlc.compile(made))) == {"Slice", "Sigmoid", "Mul"}


NORM = "(float[2,3,4] x, float[2,3,4] s, float[4] g) =>"
SKIP = "com.microsoft.SkipLayerNormalization(x, s, g)"
#: Graphs, and the names of the results that stay.
UNUSED = {
    "mean": (f"{NORM} (float[2,3,4] y) {{ y, m = {SKIP} }}", ["y"]),
    "both before a sum": (f"{NORM} (float[2,3,4] y, float[2,3,4] r) {{ y, m, v, r = {SKIP} }}", ["y", "", "", "r"]),
}


@pytest.mark.parametrize("form", UNUSED)
def test_unused_results_keep_no_node_on_the_cpu(form: str) -> None:
    body, names = UNUSED[form]
    made = model(body)
    program = dmlc.compile(made)
    assert ("drop-unused-result", "exact") in r.fired(program)
    assert not program.placement().findings
    (node,) = program.to_onnx().graph.node
    assert list(node.output) == names
    feeds = {"x": data(2, 3, 4), "s": data(2, 3, 4), "g": data(4)}
    feeds = {info.name: feeds[info.name] for info in made.graph.input}
    r.same(r.run(made, feeds), program.run(feeds, backend="cpu"), 1e-6)


def test_results_without_names_are_counted_by_the_provider() -> None:
    from dmlc.placement.report import placement
    from dmlc.targets import load_target

    made = model("(float[2,4] x, float[4] g) => (float[2,4] y) { y = SimplifiedLayerNormalization(x, g) }")
    assert not placement(made, load_target("directml")).findings
    made.graph.node[0].output.append("")
    assert [f.effect for _, f in placement(made, load_target("directml")).findings] == ["cpu"]
    assert not dmlc.compile(made).placement().findings


@pytest.mark.parametrize("form", [f"{NORM} (float[2,3,4] y, float[2,3,1] m) {{ y, m = {SKIP} }}",
                                  f"{NORM} (float[2,3,4] y, float[2,3,4] r) {{ y, , , r = {SKIP} }}"])  # fmt: skip
def test_used_and_unnamed_results_stay(form: str) -> None:
    r.left_alone(model(form), "drop-unused-result")


@pytest.mark.parametrize("operands", ["x, s, , s, z", "x, s, z, s"])
def test_zero_points_that_are_not_given_are_zero(operands: str) -> None:
    made = model(f"(uint8[4] x, float s, uint8 z) => (uint8[4] y) {{ y = com.microsoft.QLinearSigmoid({operands}) }}")
    program = dmlc.compile(made)
    assert ("explicit-zero-points", "exact") in r.fired(program)
    assert not program.placement().findings
    (node,) = program.to_onnx().graph.node
    assert len(node.input) == 5 and all(node.input)


@pytest.mark.parametrize("kind", ["int8", "int16", "int64", "uint16"])
def test_truth_of_numbers_that_a_byte_does_not_hold(kind: str) -> None:
    """A cast to u8 may wrap, so that 256 is 0, or saturate, so that -1 is."""
    made = model(f"({kind}[4] x) => (bool[4] y) {{ y = Cast<to = 9>(x) }}")
    assert r.operators(dmlc.compile(made)) == ["Equal", "Not"]
    assert r.operators(dmlc.compile(model("(uint8[4] x) => (bool[4] y) { y = Cast<to = 9>(x) }"))) == ["Cast"]


@pytest.mark.parametrize(("flags", "signs"), [("", (-1, 1)), ("<detect_negative = 0>", (1,)),
                                               ("<detect_positive = 0>", (-1,))])  # fmt: skip
def test_infinity_of_halves(flags: str, signs: tuple[int, ...]) -> None:
    made = model(f"(float16[5] x) => (bool[5] y) {{ y = IsInf{flags}(x) }}", 20)
    program = dmlc.compile(made)
    assert ("infinity-of-half", "exact") in r.fired(program)
    assert r.operators(program) == ["Cast", "IsInf"] and program.placement().count("cpu") == 0
    x = np.array([np.inf, -np.inf, np.nan, 65504, 0], np.float16)
    expected = np.isinf(x) & np.isin(np.sign(x), signs)
    np.testing.assert_array_equal(program.run({"x": x}, backend="cpu")["y"], expected)
    for kind in ("float", "double"):  # one has a kernel, the other has numbers that f32 does not hold
        r.left_alone(model(f"({kind}[5] x) => (bool[5] y) {{ y = IsInf{flags}(x) }}", 20), "infinity-of-half")


def test_infinity_of_halves_stays_where_they_have_a_kernel() -> None:
    made = model("(float16[5] x) => (bool[5] y) { y = IsInf(x) }", 20)
    assert "infinity-of-half" not in dict(r.fired(dmlc.compile(made, target="onnx")))


def test_equality_of_bools() -> None:
    made = model("(bool[4] a, bool[4] b) => (bool[4] y) { y = Equal(a, b) }")
    program = dmlc.compile(made)
    assert r.operators(program) == ["Xor", "Not"]
    assert program.placement().count("cpu") == 0
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    np.testing.assert_array_equal(program.run({"a": a, "b": b}, backend="cpu")["y"], a == b)
    numbers = model("(int32[4] a, int32[4] b) => (bool[4] y) { y = Equal(a, b) }")
    assert r.operators(r.left_alone(numbers, "equality-of-truths")) == ["Equal"]


@each_row(("op", "parameter", "dtype"), [("Equal", "T", "bool"), ("IsInf", "T1", "f16")])
def test_rules_for_a_missing_kernel_are_needed_in_each_release(op: str, parameter: str, dtype: str) -> None:
    """They do not ask for the kernel: none that the provider has had takes the dtype."""
    row = provider("dml_ep").row("", op)
    assert row is not None and not any(dtype in kernel.types[parameter] for kernel in row.kernels)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("(float[1,1,2,2] x) => (float[1,1,4,4] y) { s = Constant<value = int64[4] {1,1,4,4}>()"
         ' y = Resize<mode = "nearest", keep_aspect_ratio_policy = "stretch">(x, , , s) }', "stretch"),
        ("(float[1,2,1,2,2,3] x) => (float[1,2,1,2,4,6] y) { s = Constant<value = float[6] {1,1,1,1,2,2}>()"
         ' y = Resize<mode = "nearest">(x, , s) }', "axes of one element"),
        ('(float[2,2,2] x, float[2,2] z) => (float[2] y) { y = Einsum<equation = "abc,de->a">(x, z) }', "five letters"),
        ("(float[1,2,3] x) => (float[1,2,3] y) { s = Constant<value = float[2] {1,1}>()"
         " y = BatchNormalization(x, s, s, s, s) }", "one type"),
        ("(float[2,3,4] x, float[4] g) => (float[2,3,4] y) { y = com.microsoft.SkipLayerNormalization(x, x, g) }",
         "equal shapes"),
        ("(float[2,4,3,3] x) => (float[2,4,3,3] y) { y = LRN<size = 3>(x) }", "four axes"),
        ("(float[1,2,8] x) => (float[1,2,8] y)"
         " { y = com.microsoft.MultiHeadAttention<num_heads = 2, unidirectional = 0, scale = 0.5>(x, x, x) }", "read"),
    ],
)  # fmt: skip
def test_near_misses_are_fine(body: str, what: str) -> None:
    program = dmlc.compile(model(body, 18))
    assert not program.placement().findings, what
    assert not program.diagnostics, what


def test_results_that_are_dropped_have_no_sizes_to_read() -> None:
    body = "y, mean, inv, s = com.microsoft.SkipLayerNormalization(x, z, g, , b)"
    made = model(f"(float[N,T,D] x, float[N,T,D] z, float[D] g, float[D] b) => (float[N,T,D] y) {{ {body} }}")
    program = dmlc.compile(made)
    assert "drop-unused-result" in dict(r.fired(program))
    feeds = {"x": data(2, 3, 8), "z": data(2, 3, 8), "g": data(8), "b": data(8)}
    r.same(r.run(made, feeds), program.run(feeds, backend="cpu"), 1e-5)


def test_optional_results_stay_absent() -> None:
    """The provider leaves a SkipLayerNormalization with Mean to the CPU."""
    body = "y, , , s = com.microsoft.SkipLayerNormalization(x, z, g)"
    made = model(f"(float[2,3,8] x, float[1,3,8] z, float[8] g) => (float[2,3,8] y, float[2,3,8] s) {{ {body} }}")
    program = dmlc.compile(made)
    assert "plain-skip-norm" in dict(r.fired(program))
    (norm,) = [node for node in program.to_onnx().graph.node if node.domain]
    assert [bool(name) for name in norm.output] == [True, False, False, True]
    assert not program.placement().findings
    feeds = {"x": data(2, 3, 8), "z": data(1, 3, 8), "g": data(8)}
    r.same(r.run(made, feeds), program.run(feeds, backend="cpu"), 1e-5)


@each_row(
    ("left", "right"),
    [
        ([65536, 1, 2], [65536, 2, 3]),
        ([65536, 2, 3], [3, 2]),
        ([65536, 2, 3], [1, 3, 2]),
        ([1, 2, 3], [65536, 3, 2]),
        ([2, 65536, 1, 3], [2, 65536, 3, 1]),
        ([65536, 2, 1, 3], [1, 2, 3, 1]),
        ([65536, 2, 3], [3]),
        ([256, 2, 256, 1, 2], [256, 2, 256, 2, 1]),
    ],
)
def test_matmul_of_many_matrices(left: list[int], right: list[int]) -> None:
    a, b = data(*left), data(*right)
    made = model(f"(float{left} a, float{right} b) => (float{list(np.matmul(a, b).shape)} y) {{ y = MatMul(a, b) }}")
    program = dmlc.compile(made)
    assert not program.placement().findings
    np.testing.assert_allclose(program.run({"a": a, "b": b}, backend="cpu")["y"], np.matmul(a, b), rtol=1e-4, atol=1e-5)


def test_matmul_of_a_prime_number_of_matrices_is_refused() -> None:
    made = model("(float[65537,1,2] a, float[65537,2,1] b) => (float[65537,1,1] y) { y = MatMul(a, b) }")
    program = dmlc.compile(made)
    assert r.refusals(program) == ["E0591"]
    assert any("65537" in remark.reason() for remark in program.remarks)


@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("hbwpc,hbwqc->hbwpq", [2, 1, 4, 3, 2], [2, 1, 4, 5, 2]),
        ("abc,bcd->ad", [2, 3, 4], [3, 4, 5]),
        ("abc,cbd->da", [2, 3, 4], [4, 3, 5]),
        ("ab,cd->ac", [2, 3], [4, 5]),
        ("abx,acy->acb", [2, 3, 4], [2, 5, 6]),
        ("abcde,fghij->ae", [2, 1, 2, 1, 3], [1, 2, 1, 2, 2]),
        ("abcde,aefghi->bi", [2, 2, 1, 2, 3], [2, 3, 1, 2, 1, 2]),
        ("abcd,cdbe->ae", [2, 1, 1, 2], [1, 2, 1, 3]),
    ],
)
def test_einsum_of_a_large_product(equation: str, left: list[int], right: list[int]) -> None:
    x, z = data(*left), data(*right)
    want = np.einsum(equation, x, z)
    made = model(f"(float{left} x, float{right} z) => (float{list(want.shape)} y)"
                 f' {{ y = Einsum<equation = "{equation}">(x, z) }}')  # fmt: skip
    program = dmlc.compile(made)
    assert "matmul-of-letters" in dict(r.fired(program))
    assert not program.placement().findings
    np.testing.assert_allclose(program.run({"x": x, "z": z}, backend="cpu")["y"], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "equation",
    ["nd,hdo->hno", "bij,bjk->bik", "abcd,abcd->b", "ab,ab->a", "ab,b->ab", "abcd,abed->abce"],
)
def test_einsum_of_one_operator_or_of_no_larger_product_stays(equation: str) -> None:
    """One GEMM, or a product that is not larger than its factors."""
    terms = equation.partition("->")[0].split(",")
    shapes = [[2 + "abcdehijkno".index(letter) % 3 for letter in term] for term in terms]
    out = [2 + "abcdehijkno".index(letter) % 3 for letter in equation.partition("->")[2]]
    made = model(f"(float{shapes[0]} x, float{shapes[1]} z) => (float{out} y)"
                 f' {{ y = Einsum<equation = "{equation}">(x, z) }}')  # fmt: skip
    assert "Einsum" in r.operators(r.left_alone(made, "matmul-of-letters"))


def test_einsum_of_a_large_product_and_open_sizes() -> None:
    made = model(
        '(float[N,4,3,2] x, float[N,4,2,5] z) => (float[N,3,5] y) { y = Einsum<equation = "ijpc,ijcq->ipq">(x, z) }'
    )
    program = dmlc.compile(made)
    assert "matmul-of-letters" in dict(r.fired(program))
    x, z = data(2, 4, 3, 2), data(2, 4, 2, 5)
    want = np.einsum("ijpc,ijcq->ipq", x, z)
    np.testing.assert_allclose(program.run({"x": x, "z": z}, backend="cpu")["y"], want, rtol=1e-4, atol=1e-5)


def test_exact_leaves_einsum_and_advises() -> None:
    made, _ = FACTS["einsum-product"]()
    program = dmlc.compile(made, exact=True)
    assert r.operators(program) == ["Einsum"]
    assert [d.code.id for d in program.diagnostics] == ["W0611"]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("kind", ["float", "float16"])
def test_lp_norm_of_small_rows(p: int, kind: str) -> None:
    """Rows whose norm is near the epsilon of DirectML, and a row of zeros."""
    x = np.array([[3, 4], [3e-3, 4e-3], [3e-5, -4e-5], [0, 0]], np.float32 if kind == "float" else np.float16)
    made = model(f"({kind}[4,2] x) => ({kind}[4,2] y) {{ y = LpNormalization<axis = 1, p = {p}>(x) }}")
    program = dmlc.compile(made)
    assert "lp-norm-in-parts" in dict(r.fired(program)) and not program.placement().findings
    wide = x.astype(np.float64)
    norm = np.abs(wide).sum(1, keepdims=True) if p == 1 else np.sqrt((wide**2).sum(1, keepdims=True))
    want = np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0)
    np.testing.assert_allclose(program.run({"x": x}, backend="cpu")["y"], want, rtol=2e-3 if kind != "float" else 1e-6)


@pytest.mark.parametrize("shape", [[1, 1, 2, 2], [3, 1, 2, 2], [1, 2, 2, 2], [3, 2, 2, 2]])
def test_attention_bias_that_broadcasts(shape: list[int]) -> None:
    made = model(f"(float[3,2,8] q, float[3,2,8] k, float{shape} e) => (float[3,2,8] y)"
                 " { y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, k, , , e) }")  # fmt: skip
    program = dmlc.compile(made)
    assert ("full-attention-bias" in dict(r.fired(program))) == (shape[:2] != [3, 2])
    assert not program.placement().findings
    feeds = {"q": data(3, 2, 8), "k": data(3, 2, 8), "e": data(*shape)}
    r.same(r.run(made, feeds), program.run(feeds, backend="cpu"), 1e-5)


@each_row(
    ("left", "right"),
    [
        ([2, 3, 2, 4, 5], [2, 3, 2, 5, 3]),
        ([2, 1, 2, 4, 5], [1, 3, 1, 5, 3]),
        ([2, 3, 2, 4, 5], [5, 3]),
        ([1, 1, 1, 4, 5], [1, 1, 5, 3]),
        ([65536, 1, 2], [65536, 2, 3]),
    ],
)
@each_row("op", ["MatMulInteger", "QLinearMatMul", "FusedMatMul"])
def test_opaque_products_of_many_axes(op: str, left: list[int], right: list[int]) -> None:
    shape = list(np.matmul(np.empty(left, np.int8), np.empty(right, np.int8)).shape)
    random = np.random.default_rng(2)
    a, b = (random.integers(0, 9, shape).astype(np.uint8) for shape in (left, right))
    text = {
        "MatMulInteger": f"(uint8{left} a, uint8{right} b) => (int32{shape} y) {{ z = Constant<value = uint8 {{3}}>()"
        " y = MatMulInteger(a, b, z, z) }",
        "QLinearMatMul": f"(uint8{left} a, uint8{right} b) => (uint8{shape} y) {{ s = Constant<value = float {{0.5}}>()"
        " z = Constant<value = uint8 {3}>() y = QLinearMatMul(a, s, z, b, s, z, s, z) }",
        "FusedMatMul": f"(float{left} a, float{right} b) => (float{shape} y)"
        " { y = com.microsoft.FusedMatMul<alpha = 0.5>(a, b) }",
    }[op]
    made = model(text)
    program = dmlc.compile(made)
    assert "merge-product-batch" in dict(r.fired(program))
    assert not program.placement().fails
    feeds = {"a": a, "b": b} if op != "FusedMatMul" else {"a": data(*left), "b": data(*right)}
    r.same(r.run(made, feeds), program.run(feeds, backend="cpu"), 1e-5)


def test_opaque_products_that_stay() -> None:
    four = "(float[2,3,4,5] a, float[2,3,5,6] b) => (float[2,3,4,6] y) { y = com.microsoft.FusedMatMul(a, b) }"
    r.left_alone(model(four), "merge-product-batch")
    columns = ("(uint8[2,2,2,3,4] a, uint8[2,2,2,4,5] b, uint8[5] z) => (int32[2,2,2,3,5] y)"
               " { w = Constant<value = uint8 {3}>() y = MatMulInteger(a, b, w, z) }")  # fmt: skip
    assert r.refusals(dmlc.compile(model(columns))) == ["E0591"]


def test_truth_of_stacked_values_whose_rank_may_change() -> None:
    """The body says float16[] of what is fed as float16[3,u]: the stacked result has a dtype, and no known rank."""
    made = model(
        """(float16[3,u] x, int64 n) => (bool[] y) {
            r, s = Loop(n, "", x) <body: graph = b (int64 i, bool c, float16[] a)
                                              => (bool c, float16[] a, float16[] a) {
                d = Constant<value_int: int = 1>()
            }>
            y = Cast<to: int = 9>(s)
        }""",
        21,
    )
    program = dmlc.compile(made)
    assert r.operators(program) == ["Loop", "Equal", "Not"]
    program.require_sound()
