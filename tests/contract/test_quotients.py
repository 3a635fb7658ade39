"""``/`` is real division, ``//`` floors, and ``onnx.Div`` of integers truncates: in a program and in the builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import dmlc
from tests.rows import each_row

INPUTS = "n: {0}[4, 3], k: {0}[3]"
DTYPES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def program(expression: str, dtype: str = "i32", extra: str = "") -> dmlc.Source:
    text = f"model m({INPUTS.format(dtype)}{extra}) -> (y) {{\n    y = {expression}\n    return y\n}}\n"
    return dmlc.Source(text, name="m.dml")


def arrays(dtype: str) -> dict[str, np.ndarray]:
    kind = np.dtype({"i": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    low = 0 if dtype[0] == "u" else -100
    return {
        "n": np.linspace(low, 100, 12).astype(kind).reshape(4, 3),
        "k": np.array([3, 7, 2] if dtype[0] == "u" else [3, -7, 2], kind),
    }


def truncated(n: int, k: int) -> int:
    """The quotient, by Python's integers."""
    quotient = abs(n) // abs(k)
    return quotient if (n < 0) == (k < 0) else -quotient


def expected(inputs: dict[str, np.ndarray]) -> list[list[int]]:
    return [[truncated(int(n), int(k)) for n, k in zip(row, inputs["k"], strict=True)] for row in inputs["n"]]


def refused(call: Callable[[], object]) -> dmlc.Diagnostic:
    with pytest.raises(dmlc.DmlcError) as caught:
        call()
    return caught.value.diagnostics[0]


# --- the error


@each_row(
    ("expression", "message", "help"),
    [
        ("n / k", "/ is real division, and n is i32", "write n // k to round down, or (n as f32) / (k as f32)"),
        ("n / 2", "/ is real division, and n is i32", "write n // 2 to round down, or (n as f32) / 2"),
        ("100 / n", "/ is real division, and n is i32", "write 100 // n to round down, or 100 / (n as f32)"),
        (
            "(n + k) / n[0]",
            "/ is real division, and (n + k) is i32",
            "write (n + k) // n[0] to round down, or ((n + k) as f32) / (n[0] as f32)",
        ),
        ("n / N", "/ is real division, and n is i32", "write n // N to round down, or (n as f32) / N"),
    ],
)
def test_integers_by_slash_are_refused_with_what_to_write(expression: str, message: str, help: str) -> None:
    found = refused(lambda: dmlc.compile(program(expression, extra=", x: f32[N]")))
    assert (found.code.id, found.message, found.help) == ("E0343", message, help)
    for mended in help.removeprefix("write ").split(" to round down, or "):
        dmlc.compile(program(mended, extra=", x: f32[N]"))


@each_row(
    ("call", "help"),
    [
        (lambda n, k: n / k, 'write n // k to round down, or n.astype("float32") / k.astype("float32")'),
        (lambda n, k: n / 2, 'write n // 2 to round down, or n.astype("float32") / 2'),
        (lambda n, k: 2 / (n + 1), 'write 2 // (n + 1) to round down, or 2 / (n + 1).astype("float32")'),
        (lambda n, k: np.divide(n, k), 'write n // k to round down, or n.astype("float32") / k.astype("float32")'),
    ],
)
def test_the_builder_refuses_them_with_its_own_words(call: Callable[[Any, Any], Any], help: str) -> None:
    g = dmlc.Graph("g")
    n, k = g.input("n", "i32", (4, 3)), g.input("k", "i32", (3,))
    found = refused(lambda: call(n, k))
    assert (found.code.id, found.help) == ("E0343", help)


def test_floats_literals_and_dims_have_real_quotients() -> None:
    x = np.array([1.0, 2.0, 5.0], np.float32)
    text = "model m(x: f32[N]) -> (a, b, c, d) {\n    return x / 2, 7 / x, x / N, x * (1 / 2)\n}\n"
    out = dmlc.compile(dmlc.Source(text, name="m.dml")).run({"x": x})
    for name, values in {"a": x / 2, "b": 7 / x, "c": x / 3, "d": x / 2}.items():
        np.testing.assert_allclose(out[name], values, rtol=1e-6)
    found = refused(lambda: dmlc.compile(program("n * (1 / 2)")))
    assert (found.code.id, "n // 2" in found.help) == ("E0311", True)


# --- the quotient of ONNX


@each_row("dtype", DTYPES)
def test_onnx_div_of_integers_truncates_on_every_target_and_in_the_reference(dtype: str) -> None:
    inputs = arrays(dtype)
    wanted = expected(inputs)
    for target, backends in {"directml": ("cpu", "reference"), "cpu": ("cpu",), "numpy": ("numpy",)}.items():
        made = dmlc.compile(program("onnx.Div(n, k)", dtype), target=target)
        for backend in backends:
            found = made.run(inputs, backend=backend)["y"]
            assert (found.dtype, found.tolist()) == (inputs["n"].dtype, wanted), (target, backend)


def test_onnx_div_of_floats_is_the_operator_of_onnx() -> None:
    text = "model m(x: f32[3]) -> (y) {\n    y = onnx.Div(x, 2)\n    return y\n}\n"
    made = dmlc.compile(dmlc.Source(text, name="m.dml"))
    assert made.run({"x": np.array([1, -3, 5], np.float32)})["y"].tolist() == [0.5, -1.5, 2.5]


def test_the_rules_see_a_quotient_of_integers() -> None:
    made = dmlc.compile(program("onnx.Div(n, 1)"), target="cpu")
    assert [e.rule for e in made.ledger] == ["neutral-operand"]
    assert not [node.op_type for node in made.to_onnx().graph.node if node.op_type == "Div"]
    assert refused(lambda: dmlc.compile(program("onnx.Div(n, 0)"))).code.id == "E0319"


def test_the_builder_has_the_same_quotient() -> None:
    g = dmlc.Graph("m")
    n, k = g.input("n", "i32", (4, 3)), g.input("k", "i32", (3,))
    g.output("y", dmlc.onnx.Div(n, k))
    inputs = arrays("i32")
    assert dmlc.compile(g, target="numpy").run(inputs)["y"].tolist() == expected(inputs)
    assert "onnx.Div(n, k)" in dmlc.compile(g).to_bytes("dml").decode()


# --- the text of it


@each_row("expression", ["onnx.Div(n, k)", "onnx.Div(n, 2)", "onnx.Div(-7, n)", "onnx.Div(onnx.Div(n, k), 3)"])
def test_the_text_compiles_again_to_the_same_bytes(expression: str) -> None:
    made = dmlc.compile(program(expression), target="onnx")
    text = made.to_bytes("dml").decode()
    assert text.count("onnx.Div(") == expression.count("onnx.Div(") and " / " not in text
    again = dmlc.compile(dmlc.Source(text, name="m.dml"), target="onnx")
    assert again.to_bytes("dml") == text.encode()
    third = dmlc.compile(dmlc.Source(again.to_bytes("dml").decode(), name="m.dml"), target="onnx")
    assert third.to_bytes("onnx") == again.to_bytes("onnx")
    assert operators(again) == operators(made)


def test_a_model_with_div_of_integers_is_written_and_read_again() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> m (int32[4,3] n, int32[3] k, float[3] x, float[3] w)'
        "=> (int32[4,3] y, float[3] z) { y = Div(n, k) z = Div(x, w) }"
    )
    text = dmlc.compile(model, target="onnx").to_bytes("dml").decode()
    assert "y = onnx.Div(n, k)" in text and "z = x / w" in text
    again = dmlc.compile(dmlc.Source(text, name="m.dml"), target="onnx")
    assert operators(again).count("Div") == 2
    assert again.to_bytes("dml") == text.encode()


def operators(program: dmlc.Program) -> list[str]:
    return [node.op_type for node in program.to_onnx().graph.node]
