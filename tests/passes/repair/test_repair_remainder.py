"""Remainders of 64-bit integers, of which the DirectML execution provider has no kernel."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from repair_helpers import KINDS, model, node

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row
from tools.model_checks import run, session

NUMBERS = {
    "i64": [7, -7, 7, -7, 0, 6, -6, 2**62 + 1, -(2**63), 5, -1, 2**63 - 1],
    "u64": [7, 0, 2**64 - 1, 2**63, 5, 6, 9, 1, 2, 3, 4, 100],
}
NUMPY = {"i64": np.int64, "u64": np.uint64}
DIVISORS = {
    "i64": [3, 3, -3, -3, 5, 3, 3, 10, 7, -5, 2**40, -2],
    "u64": [3, 3, 10, 2**63, 7, 3, 2**64 - 1, 1, 5, 2, 4, 7],
}


def rules(program: dmlc.Program) -> list[str]:
    return [entry.rule for entry in program.ledger]


@pytest.mark.parametrize("dtype", ["i64", "u64"])
@pytest.mark.parametrize("form", ["text", "model"])
def test_any_signs(dtype: str, form: str) -> None:
    a, b = (np.array(numbers[dtype], NUMPY[dtype]) for numbers in (NUMBERS, DIVISORS))
    if form == "text":
        source = Source("m.dml", f"model m(a: {dtype}[12], b: {dtype}[12]) -> (y) {{\n    return a % b\n}}\n")
    else:
        kind = KINDS[dtype]
        source = model(node("Mod", ["a", "b"], ["y"]), [("a", kind, [12]), ("b", kind, [12])], [("y", kind, [12])])
    program = dmlc.compile(source)
    assert "remainder-by-division" in rules(program)
    assert program.placement().count("cpu") == 0
    assert np.array_equal(program.run({"a": a, "b": b}, backend="cpu")["y"], np.mod(a, b))


def test_columns_of_indices_need_no_correction() -> None:
    """A decoder of heat maps: the column of a flat index."""
    source = Source("m.dml", "model m(x: f32[4, 30]) -> (y) {\n    return argmax(x, axes=[1], dtype=i64) % 5\n}\n")
    program = dmlc.compile(source)
    assert program.placement().count("cpu") == 0
    assert "Where" not in [n.op_type for n in program.to_onnx().graph.node]
    x = np.random.default_rng(0).normal(size=(4, 30)).astype(np.float32)
    assert np.array_equal(program.run({"x": x}, backend="cpu")["y"], x.argmax(1, keepdims=True) % 5)


@pytest.mark.parametrize("picked", ["top_k(x, k=3, axis=1)", "gather_elements"])
def test_selected_and_gathered_indices_need_no_correction(picked: str) -> None:
    """A detection decoder: columns of the flat positions that top-k selects, some of them picked again."""
    body = "    _, i = top_k(x, k=3, axis=1)\n"
    if picked == "gather_elements":
        body += "    _, j = top_k(cast(i, to=f32), k=2, axis=1)\n    i2 = gather_elements(i, j, axis=1)\n"
    last = "i2" if picked == "gather_elements" else "i"
    source = Source("m.dml", f"model m(x: f32[4, 30]) -> (y) {{\n{body}    return cast({last}, to=i64) % 7\n}}\n")
    program = dmlc.compile(source)
    assert "remainder-by-division" in rules(program)
    assert "Where" not in [n.op_type for n in program.to_onnx().graph.node]
    x = np.random.default_rng(0).normal(size=(4, 30)).astype(np.float32)
    found = program.run({"x": x}, backend="cpu")["y"]
    assert np.array_equal(found, dmlc.compile(source, target="numpy").run({"x": x})["y"])


@pytest.mark.parametrize(
    "text",
    [
        "n = NonZero (x) y = Mod (n, seven)",
        "s = Shape (x) y = Mod (s, seven)",
        "s = Shape (x) g = Gather (s, one) u = Unsqueeze (g, zero) c = Concat <axis = 0> (u, zero) y = Mod (c, seven)",
        "s = Size (x) d = Div (s, three) a = Add (d, one) y = Mod (a, seven)",
    ],
)
def test_sizes_and_positions_of_a_model_are_not_corrected(text: str) -> None:
    weights = "int64 seven = {7}, int64 three = {3}, int64 one = {1}, int64[1] zero = {0}"
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    source = parser.parse_model(f"{head} g (float[N, M] x) => (int64[] y) <{weights}> {{ {text} }}")
    program = dmlc.compile(source, target="directml")
    found = [n.op_type for n in program.to_onnx().graph.node]
    assert "Mod" not in found and "Where" not in found
    x = np.random.default_rng(0).integers(0, 2, (4, 30)).astype(np.float32)
    assert np.array_equal(run(session(program.to_onnx()), {"x": x})["y"], run(session(source), {"x": x})["y"])


def test_differences_of_indices_are_corrected() -> None:
    text = (
        "model m(x: f32[4, 30]) -> (y) {\n    _, i = top_k(x, k=3, axis=1)\n    return (cast(i, to=i64) - 9) % 7\n}\n"
    )
    source = Source("m.dml", text)
    program = dmlc.compile(source)
    assert "Where" in [n.op_type for n in program.to_onnx().graph.node]
    x = np.random.default_rng(0).normal(size=(4, 30)).astype(np.float32)
    found = program.run({"x": x}, backend="cpu")["y"]
    assert np.array_equal(found, dmlc.compile(source, target="numpy").run({"x": x})["y"])


def test_a_size_as_the_divisor_needs_one_comparison() -> None:
    """The sizes of a model may be 0, of which a remainder is unspecified."""
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    text = "s = Shape <start = 1, end = 2> (x) y = Mod (i, s)"
    source = parser.parse_model(f"{head} g (float[N, M] x, int64[4] i) => (int64[4] y) {{ {text} }}")
    program = dmlc.compile(source, target="directml")
    found = [n.op_type for n in program.to_onnx().graph.node]
    assert found.count("Less") == 1 and "Xor" not in found
    again = dmlc.compile(program.to_onnx(), target="directml").to_onnx()
    assert [n.op_type for n in again.graph.node] == found
    feeds = {"x": np.zeros((2, 3), np.float32), "i": np.array([-7, -3, 2, 2**40])}
    assert np.array_equal(run(session(program.to_onnx()), feeds)["y"], [2, 0, 2, 1])


def test_a_constant_divisor_needs_one_comparison() -> None:
    source = Source("m.dml", "model m(x: i64[12]) -> (y) {\n    return x % 10\n}\n")
    program = dmlc.compile(source)
    assert "Xor" not in [n.op_type for n in program.to_onnx().graph.node]
    x = np.array(NUMBERS["i64"])
    assert np.array_equal(program.run({"x": x}, backend="cpu")["y"], x % 10)


@pytest.mark.parametrize(("dtype", "target"), [("i32", "directml"), ("i64", "cpu"), ("f32", "directml")])
def test_what_has_a_kernel_stays(dtype: str, target: str) -> None:
    source = Source("m.dml", f"model m(x: {dtype}[12]) -> (y) {{\n    return x % 10\n}}\n")
    assert "remainder-by-division" not in rules(dmlc.compile(source, target=target))


@pytest.mark.parametrize("dtype", ["i64", "u64"])
def test_means_of_wide_integers_leave_none_on_the_cpu(dtype: str) -> None:
    source = Source("m.dml", f"model m(x: {dtype}[2, 6]) -> (y) {{\n    return reduce_mean(x, axes=[1])\n}}\n")
    program = dmlc.compile(source)
    assert program.placement().count("cpu") == 0
    x = np.array(NUMBERS[dtype], NUMPY[dtype]).reshape(2, 6)
    totals = [sum(int(number) for number in row) for row in x]
    wanted = [[abs(total) // 6 * (1 if total >= 0 else -1)] for total in totals]
    assert program.run({"x": x}, backend="cpu")["y"].tolist() == wanted


HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


def same_numbers(source: onnx.ModelProto, feeds: dict[str, np.ndarray], want: object) -> None:
    made = dmlc.compile(source, target="directml").to_onnx()
    for optimize in (False, True):
        assert np.array_equal(run(session(made, optimized=optimize), feeds)["y"], want)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("one", ["o = Identity (one)", "o = Sub (two, one)"])
def test_remainders_of_one_by_sizes(one: str, size: int) -> None:
    """ONNX Runtime makes b / a of 1 / a * b, of integers too."""
    weights = "int64 one = {1}, int64 two = {2}, int64 zero = {0}"
    text = f"{one} s = Shape (x) h = Gather (s, zero) y = Mod (o, h)"
    source = parser.parse_model(f"{HEAD} g (float[n, m] x) => (int64 y) <{weights}> {{ {text} }}")
    assert "remainder-by-division" in rules(dmlc.compile(source, target="directml"))
    same_numbers(source, {"x": np.zeros((size, 3), np.float32)}, 1 % size)


@pytest.mark.parametrize("divisor", [1, 2, 5, -1, -2, -5])
def test_remainders_of_one_by_numbers(divisor: int) -> None:
    source = parser.parse_model(f"{HEAD} g (int64 h) => (int64 y) <int64 one = {{1}}> {{ y = Mod (one, h) }}")
    same_numbers(source, {"h": np.array(divisor)}, 1 % divisor)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_remainders_of_one_in_a_program(size: int) -> None:
    text = "model m(x: f32[h, w], k: i64[h]) -> (y) {\n    y = k + 1 % size(x, axis=0)\n    return y\n}\n"
    made = dmlc.compile(Source("m.dml", text)).to_onnx()
    feeds = {"x": np.zeros((size, 3), np.float32), "k": np.arange(size)}
    for optimize in (False, True):
        assert np.array_equal(run(session(made, optimized=optimize), feeds)["y"], np.arange(size) + 1 % size)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_remainders_of_a_size_that_the_session_fixes(width: int) -> None:
    """A dividend that is a size becomes the constant 1 in a session with that size."""
    text = "h = Shape (x) w = Shape (z) y = Mod (h, w)"
    source = parser.parse_model(f"{HEAD} g (float[n] x, float[m] z) => (int64[1] y) {{ {text} }}")
    made = dmlc.compile(source, target="directml").to_onnx()
    assert fixed(made, "n", {"x": np.zeros(1, np.float32), "z": np.zeros(width, np.float32)}) == 1 % width


@each_row("target", ["directml", "cpu"])
@each_row("width", [1, 2, 5])
@each_row("height", ["1", "size(x, axis=0)"])
def test_products_of_quotients_of_sizes(height: str, width: int, target: dmlc.TargetName) -> None:
    body = f"y = k + {height} // size(z, axis=0) * size(z, axis=0)"
    text = f"model m(x: f32[n], z: f32[m], k: i64[h]) -> (y) {{\n    {body}\n    return y\n}}\n"
    made = dmlc.compile(Source("m.dml", text), target=target).to_onnx()
    feeds = {"x": np.zeros(1, np.float32), "z": np.zeros(width, np.float32), "k": np.zeros(1, np.int64)}
    assert fixed(made, "n", feeds) == 1 // width * width


def fixed(model: onnx.ModelProto, dim: str, feeds: dict[str, np.ndarray]) -> object:
    """The result of a session with the default optimizations that has the dim as 1."""
    options = onnxruntime.SessionOptions()
    options.add_free_dimension_override_by_name(dim, 1)
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return run(made, feeds)["y"].item()


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_products_of_quotients_of_one(dtype: str) -> None:
    text = (
        f"model m(a: u8[4]) -> (y) {{\n    b = (a as {dtype}) + 1\n    y = onnx.Div(1, b) * (b + 6)\n    return y\n}}\n"
    )
    made = dmlc.compile(Source("m.dml", text), target="cpu").to_onnx()
    for optimize in (False, True):
        found = run(session(made, optimized=optimize), {"a": np.array([0, 1, 4, 255], np.uint8)})["y"]
        assert np.array_equal(found, [7, 0, 0, 0])
