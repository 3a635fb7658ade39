"""Operations that cut nothing off: positive, near-miss and numerical tests of ``within-bounds``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

RULE = "within-bounds"
INPUTS = "x: f32[3, 4], z: f32[3, 4], h: f16[3, 4], i: i32[3, 4], u: u8[3, 4]"
SPECIAL = np.array([[0.0, -0.0, np.inf, -np.inf], [np.nan, 1e30, -1e30, 3.4e38], [0.5, -2.5, 1e-40, -1.0]], np.float32)


def compiled(expression: str, inputs: str = INPUTS, **options: object) -> dmlc.Program:
    text = f"model m({inputs}) -> (y) {{\n    return {expression}\n}}\n"
    return dmlc.compile(Source("m.dml", text), target="onnx", **options)  # type: ignore[arg-type]


def classes(program: dmlc.Program) -> list[str]:
    return [entry.rewrite_class for entry in program.ledger if entry.rule == RULE]


def feeds(program: dmlc.Program, x: np.ndarray = SPECIAL) -> dict[str, np.ndarray]:
    """Infinities, a NaN and both zeros for floats; all kinds of integers."""
    whole = np.arange(-6, 6).reshape(3, 4)
    with np.errstate(all="ignore"):
        given = {"x": x, "z": x.T.reshape(3, 4), "h": x.astype(np.float16)}
        given |= {"i": whole.astype(np.int32) * 2**28, "u": whole.astype(np.uint8)}
    return {value.name: given[value.name] for value in program.source_graph.inputs}


HOLDS = [
    "relu(exp(x))", "abs(softmax(x, axes=[1]))", "abs(x * x)", "relu(x ** 2)", "relu(sqrt(abs(x)))",
    "clip(tanh(x), min=-1, max=1)", "clip(sigmoid(h), min=-0.5)", "clip(exp(x), min=-1)", "min(sin(x), 2)",
    "max(-2, cos(x))", "max(reduce_sum_square(x, axes=[1]), 0)", "max(reduce_l2(x, axes=[1]), -1)",
    "max(reduce_mean(abs(x), axes=[1]), 0)", "relu(sqrt(relu(x) / (exp(z) + 1)))", "relu((1 / (relu(x) + 1)) ** 2)",
    "abs(min(relu(x), relu(z)))", "relu(concat(exp(x), relu(z), axis=0))", "relu(relu(x) as f16)",
    "max(tanh(x) * tanh(z), -1)", "min(clip(x, min=2, max=5), clip(z, min=6, max=7))",
    "abs((erf(x) + 1) * 2)", "abs(one_hot(argmax(x, axes=[1], keepdims=false), depth=4))",
]  # fmt: skip
HOLDS_EXACTLY = [
    "abs(u)", "relu(clip(i, min=0, max=9))", "max(u, 0)", "clip(i % 7, min=0, max=6)", "min(u, 255)",
    "abs(argmax(x, axes=[1]))", "abs((i > 0) as i32)", "clip(i // 1 % 5, max=4)",
]  # fmt: skip


@each_row(("expression", "kind"), [
    *[(expression, "reassociates") for expression in HOLDS],
    *[(expression, "exact") for expression in HOLDS_EXACTLY],
])  # fmt: skip
def test_what_changes_nothing_goes(expression: str, kind: str) -> None:
    program = compiled(expression)
    assert classes(program) == [kind]
    assert classes(compiled(expression, exact=True)) == [kind] * (kind == "exact")
    # NaN beside a number: either may be chosen
    chooses = expression.startswith(("min(clip", "abs(min", "abs(one_hot"))
    given = feeds(program, np.nan_to_num(SPECIAL, nan=7) if chooses else SPECIAL)
    with np.errstate(all="ignore"):
        (got,) = program.run(given, backend="cpu").values()
        (expected,) = program.run(given, backend="reference").values()
    # a kernel rounds in its last places; what was infinite or NaN is so still
    rtol = {"float16": 2e-3, "float32": 1e-6}.get(got.dtype.name, 0)
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=rtol)


@each_row("expression", [
    "relu(x)", "abs(tanh(x))", "clip(tanh(x), min=-0.9)", "clip(tanh(x), max=0.9)", "max(exp(x), 1e-6)",
    "min(sin(x), 0.5)", "relu(exp(x) - 1)", "abs(i)", "clip(i, min=-2147483647)", "max(u, 1)", "relu(x * z)",
    "max(relu(x), relu(z))", "relu(reduce_sum(x, axes=[1]))", "min(u, 254)", "clip(u, min=0, max=254)",
    "relu(x / (exp(z) + 1))", "abs(reduce_max(x, axes=[1]))", "relu(exp(x) + 1)", "max(exp(x), -exp(z))",
])  # fmt: skip
def test_what_may_change_something_stays(expression: str) -> None:
    assert classes(compiled(expression)) == []


@pytest.mark.parametrize("expression", [
    "clip(x, min=-3.4028234663852886e38, max=3.4028234663852886e38)", "clip(h, max=65504)",
    "clip(h as f32, min=-65504)",
    "clip(exp(x), max=3.4028234663852886e38)", "min(h, 65504)", "clip(h * 1 - h, min=-65504)",
])  # fmt: skip
def test_a_bound_on_infinities_stays(expression: str) -> None:
    """Models of T5 cut the infinities of f16 off like this."""
    program = compiled(expression)
    assert classes(program) == []
    given = feeds(program)
    with np.errstate(all="ignore"):
        (got,), (expected,) = (program.run(given, backend=name).values() for name in ("cpu", "reference"))
    np.testing.assert_array_equal(np.isposinf(got), np.isposinf(expected))


@pytest.mark.parametrize(
    "call", ["max(reduce_max(tanh(x)), -3.4028234663852886e38)", "min(exp(-exp(x)), 3.4028234663852886e38)"]
)
def test_the_bounds_of_a_log_sum_exp_stay(call: str) -> None:
    """It is written out with them, whatever is known: to compile the model again changes nothing."""
    assert classes(compiled(call)) == []
    text = "model m(x: f32[N, 4]) -> (y) {\n    return reduce_log_sum_exp(tanh(x), axes=[1])\n}\n"
    model = dmlc.compile(Source("m.dml", text), target="directml").to_onnx()
    again = dmlc.compile(model, target="directml").to_onnx()
    assert [node.op_type for node in again.graph.node] == [node.op_type for node in model.graph.node]


def test_what_is_broadcast_or_constant_stays() -> None:
    assert classes(compiled("max(exp(x), reduce_min(-exp(z)))")) == ["reassociates"]
    assert classes(compiled("max(reduce_sum_square(x), -exp(z))")) == []
    assert classes(compiled("max(2, min(x, 1))")) == []


@pytest.mark.parametrize(
    "expression",
    [
        "relu(x)",
        "abs(x * 2)",
        "clip(x, min=0, max=1)",
        "max(x, -1)",
        "clip(x + z, max=2)",
        "abs(x / 2)",
    ],
)
def test_promised_ranges_are_relied_on_and_named(expression: str) -> None:
    inputs = "x: f32[3, 4] in 0.0..1.0, z: f32[3, 4] in -1.0..1.0"
    program = compiled(expression, inputs)
    (entry,) = [entry for entry in program.ledger if entry.rule == RULE]
    assert "promised: x in 0.0..1.0" in entry.text
    assert program.verify(6).ok
    assert classes(compiled(expression, inputs, exact=True)) == []
    assert classes(compiled(expression, inputs.replace(" in 0.0..1.0", "").replace(" in -1.0..1.0", ""))) == []


def decided(expression: str, inputs: str = INPUTS) -> list[str]:
    """The rewrite classes; the numbers are compared."""
    program = compiled(expression, inputs)
    given = feeds(program)
    (got,), (expected,) = (program.run(given, backend=name).values() for name in ("cpu", "reference"))
    np.testing.assert_array_equal(got, expected)
    return [entry.rewrite_class for entry in program.ledger if entry.rule == "decided-comparison"]


@pytest.mark.parametrize(
    "expression",
    [
        "argmax(x, axes=[1]) < 0", "i % 7 <= 6", "i % 7 > 6", "argmax(x, axes=[1]) == 4", "u >= 0",
        "where((i % 7 < 0) ^ ((i > 0) & (u < 0)), i - 1, i)",
    ],
)  # fmt: skip
def test_a_comparison_that_bounds_decide_is_its_truth(expression: str) -> None:
    assert set(decided(expression)) == {"exact"}


def test_a_product_with_zero_is_zero_of_integers_alone() -> None:
    for expression, rules in (
        ("i * 0 + i", ["product-with-zero", "neutral-operand"]),
        ("x * 0 + x", []),
        ("i - cast(i % 7 < 0, to=i32)", ["decided-comparison", "cast-of-fill", "neutral-operand"]),
        ("i * 2", []),
    ):
        program = compiled(expression)
        assert [entry.rule for entry in program.ledger] == rules
        assert program.verify(4).ok


def test_other_comparisons_stay() -> None:
    for expression in ("argmax(x, axes=[1]) < 1", "i % 7 <= 5", "u > 0", "argmax(x, axes=[1]) == 3", "exp(x) < 0"):
        assert decided(expression) == []
    promised = compiled("i < 9", "i: i32[3, 4] in 0..8")
    assert [entry.rewrite_class for entry in promised.ledger] == ["reassociates"]


def test_a_promise_that_is_not_needed_is_not_named() -> None:
    program = compiled("relu(exp(x))", "x: f32[3, 4] in 0.0..1.0")
    (entry,) = [entry for entry in program.ledger if entry.rule == RULE]
    assert "promised" not in entry.text


def test_a_guarded_norm_is_a_norm() -> None:
    """The guard stands between the sum and its root in many exports."""
    program = compiled("sqrt(max(reduce_sum(x * x, axes=[1]), 0))")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["ReduceL2"]


def test_a_model_of_onnx() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[N, 4] y) {\n'
        "  s = Sigmoid(x)\n  r = Relu(s)\n  c = Clip(r)\n  y = Abs(c)\n}"
    )
    program = dmlc.compile(model, target="directml")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Sigmoid"]
