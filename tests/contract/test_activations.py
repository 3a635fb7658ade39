"""The activations of the language: the same numbers on every target, at old and new opsets, in every float type."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from onnx.parser import parse_model

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

#: Each call, and its definition for one number.
CALLS: dict[str, Callable[[float], float]] = {
    "gelu(x)": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu(x, approximate=none)": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu(x, approximate=tanh)": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu(x)": lambda x: x / (1 + math.exp(-x)),
    "softplus(x)": lambda x: max(x, 0) + math.log1p(math.exp(-abs(x))),
    "softsign(x)": lambda x: x / (1 + abs(x)),
    "elu(x)": lambda x: x if x > 0 else math.expm1(x),
    "elu(x, alpha=0.5)": lambda x: x if x > 0 else 0.5 * math.expm1(x),
    "leaky_relu(x)": lambda x: x if x > 0 else 0.01 * x,
    "leaky_relu(x, alpha=-0.25)": lambda x: x if x > 0 else -0.25 * x,
    "hard_sigmoid(x)": lambda x: min(max(0.2 * x + 0.5, 0), 1),
    "hard_sigmoid(x, alpha=0.5, beta=0.25)": lambda x: min(max(0.5 * x + 0.25, 0), 1),
}
#: A kernel may add numbers as large as the operand in the dtype itself.
TOLERANCE = {"f16": 8e-3, "f32": 2e-6, "f64": 1e-12}
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
X = np.concatenate([np.linspace(-9, 9, 73), [0.0, -0.0, 1e-3, -1e-3, 30, -30]])


def program(call: str, dtype: str) -> Source:
    return Source("m.dml", f"model m(x: {dtype}[N]) -> (y) {{\n    y = {call}\n    return y\n}}\n")


def operators(made: dmlc.Program) -> list[str]:
    return [f"{node.domain}.{node.op_type}".lstrip(".") for node in made.to_onnx().graph.node]


@each_row("call", CALLS)
@each_row("dtype", NUMPY)
def test_numbers(call: str, dtype: str) -> None:
    x = X.astype(NUMPY[dtype])
    expected = np.array([CALLS[call](float(value)) for value in x])
    ways = [("numpy", None), ("directml", 21), ("directml", 13), ("cpu", 21), ("cpu", 11), ("onnx", 21), ("onnx", 17)]
    turn = [*CALLS].index(call) + [*NUMPY].index(dtype)
    for target, opset in ways[turn % 2 :: 2]:
        if dtype == "f64" and target != "numpy" and call.startswith("gelu") and "tanh" not in call:
            continue  # ONNX Runtime has no Erf of f64
        made = dmlc.compile(program(call, dtype), target=target, opset=opset)
        for backend in ("reference", "numpy" if target == "numpy" else "cpu"):
            got = made.run({"x": x}, backend=backend)["y"]
            assert got.dtype == x.dtype
            np.testing.assert_allclose(
                got.astype(np.float64),
                expected,
                rtol=TOLERANCE[dtype],
                atol=TOLERANCE[dtype],
                err_msg=f"{target} {opset}",
            )


def test_the_error_function_of_f64_is_refused_where_no_kernel_has_it() -> None:
    with pytest.raises(dmlc.DmlcError, match="E0502"):
        dmlc.compile(program("gelu(x)", "f64"), target="cpu")


@each_row(
    ("call", "target", "opset", "expected"),
    [
        ("gelu(x)", "directml", 21, ["com.microsoft.Gelu"]),
        ("gelu(x)", "directml", 12, ["com.microsoft.Gelu"]),
        ("gelu(x, approximate=tanh)", "directml", 21, ["Mul", "Mul", "Add", "Mul", "Sigmoid", "Mul"]),
        ("gelu(x)", "cpu", 21, ["Gelu"]),
        ("gelu(x, approximate=tanh)", "onnx", 20, ["Gelu"]),
        ("gelu(x)", "onnx", 19, ["Mul", "Mul", "Erf", "Add", "Mul"]),
        ("silu(x)", "directml", 21, ["Sigmoid", "Mul"]),
        ("leaky_relu(x)", "directml", 21, ["LeakyRelu"]),
        ("hard_sigmoid(x)", "onnx", 11, ["HardSigmoid"]),
        ("softplus(x)", "cpu", 21, ["Softplus"]),
    ],
)
def test_operators(call: str, target: str, opset: int, expected: list[str]) -> None:
    made = dmlc.compile(program(call, "f32"), target=target, opset=opset)
    assert sorted(operators(made)) == sorted(expected)


def test_exact_compilation_takes_the_same_operators() -> None:
    """The language does not say how an activation is rounded, so its lowering needs no permission."""
    made = dmlc.compile(program("gelu(x)", "f32"), target="directml", exact=True)
    assert operators(made) == ["com.microsoft.Gelu"]


def test_silu_shares_its_sigmoid() -> None:
    text = "model m(x: f32[N]) -> (y, z) {\n    y = silu(x)\n    z = sigmoid(x)\n    return y, z\n}\n"
    for target in ("directml", "cpu", "onnx"):
        made = dmlc.compile(Source("m.dml", text), target=target)
        assert sorted(operators(made)) == ["Mul", "Sigmoid"]


@each_row("text", ["silu(x)", "sigmoid(x) * x", "x * sigmoid(x * 1.5)"])
@each_row("target", ["directml", "cpu", "onnx"])
def test_onnx_runtime_makes_no_quick_gelu_of_f64(text: str, target: str) -> None:
    """Up to 1.30 it has no kernel of the QuickGelu that its optimizer makes, and refuses the model."""
    assert operators(dmlc.compile(program(text, "f64"), target=target))[-3:] == ["Sigmoid", "Max", "Mul"]
    assert "Max" not in operators(dmlc.compile(program(text, "f32"), target=target))
    assert "Max" not in operators(dmlc.compile(program("x * sigmoid(x + 1)", "f64"), target=target))


@each_row(
    ("node", "text"),
    [
        ("Gelu(x)", "gelu(x)"),
        ('Gelu<approximate="tanh">(x)', "gelu(x, approximate=tanh)"),
        ("LeakyRelu<alpha=0.25>(x)", "leaky_relu(x, alpha=0.25)"),
        ("HardSigmoid<beta=0.25>(x)", "hard_sigmoid(x, beta=0.25)"),
        ("Elu(x)", "elu(x)"),
        ("Softplus(x)", "softplus(x)"),
    ],
)
def test_operators_of_models_become_operations(node: str, text: str) -> None:
    model = parse_model(f'<ir_version: 9, opset_import: ["": 20]> m (float[N] x) => (float[N] y) {{ y = {node} }}')
    (line,) = [line for line in dmlc.compile(model).artifact("dml").payload.splitlines() if " = " in line]
    made = dmlc.compile(program(text, "f32"), target="onnx")
    (same,) = [line for line in made.artifact("dml").payload.splitlines() if " = " in line]
    assert line == same


def test_the_builder_has_them() -> None:
    g = dmlc.Graph("m")
    x = g.input("x", dtype="float32", shape=(3,))
    g.output("a", dmlc.gelu(x, approximate="none"))
    g.output("b", dmlc.gelu(x, approximate="tanh"))
    g.output("c", dmlc.silu(x) + dmlc.leaky_relu(x, alpha=0.5) + dmlc.hard_sigmoid(x, alpha=0.5, beta=0))
    found = dmlc.compile(g).run({"x": np.array([-1, 0, 2], np.float32)})
    np.testing.assert_allclose(found["a"], [-0.15865525, 0, 1.9544997], rtol=1e-5)
    np.testing.assert_allclose(found["b"], [-0.15880801, 0, 1.9545977], rtol=1e-5)
    np.testing.assert_allclose(found["c"], [-0.26894143 - 0.5, 0, 1.7615942 + 2 + 1], rtol=1e-5)
