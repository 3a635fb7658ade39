"""Tensors that are filled with one number, beside what has the result's shape, and slices that end at a known size."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import dmlc
from dmlc import Source
from tests.rows import each_row
from tools.model_checks import run, session

X = np.array([[1, -2, 3], [0.5, 6, -7]], np.float32)


def made(body: str, inputs: str = "float[N, T] x", constants: str = "") -> ModelProto:
    head = '<ir_version: 8, opset_import: ["": 17]>'
    model = parser.parse_model(f"{head} g ({inputs}) => (float y) {f'<{constants}>' if constants else ''} {{ {body} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def compiled(model: ModelProto, target: str = "onnx") -> tuple[list[str], ModelProto]:
    out = dmlc.compile(model, target=target).to_onnx()
    return [node.op_type for node in out.graph.node], out


def filled(model: ModelProto, value: object) -> ModelProto:
    """The model with the value of its ConstantOfShape; the text form has no tensors of every type."""
    tensor = onnx.numpy_helper.from_array(np.asarray(value).reshape(1), "value")
    node = next(n for n in model.graph.node if n.op_type == "ConstantOfShape")
    node.attribute.append(onnx.helper.make_attribute("value", tensor))
    return model


FILL = "s = Shape (x) f = ConstantOfShape (s)"


@each_row(
    "row",
    [
        (f"{FILL} y = Add (x, f)", ["Identity"]),
        (f"{FILL} y = Sub (f, x)", ["Sub"]),
        (f"{FILL} y = Max (x, f)", ["Max"]),
        (f"{FILL} c = Greater (x, f) y = Where (c, x, f)", ["Greater", "Where"]),
        (f"{FILL} c = Greater (x, f) y = Where (c, f, f)", ["Greater", "Where"]),
    ],
)
@pytest.mark.parametrize("target", ["onnx", "cpu", "directml"])
def test_zeros_of_a_computed_shape_are_one_zero(target: str, row: tuple[str, list[str]]) -> None:
    body, wanted = row
    model = made(body)
    kinds, out = compiled(model, target)
    assert kinds == wanted
    np.testing.assert_array_equal(run(session(out), {"x": X})["y"], run(session(model), {"x": X})["y"])


@each_row("value", [np.float32(1), np.float32(2.5), np.float32(-0.0)])
def test_other_numbers_are_one_number_too(value: np.float32) -> None:
    model = filled(made(f"{FILL} y = Mul (x, f)"), value)
    kinds, out = compiled(model)
    assert "ConstantOfShape" not in kinds
    got, want = (run(session(m), {"x": X})["y"] for m in (out, model))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@each_row(
    "row",
    [
        (
            "s = Shape (w) f = ConstantOfShape (s) y = Add (x, f)",
            "float[N, T] x, float[M, N, T] w",
            "the fill is larger",
        ),
        ("s = Shape (w) f = ConstantOfShape (s) y = Add (x, f)", "float[N, 1] x, float[N, T] w", "the fill is wider"),
        (
            "n = NonZero (x) z = Cast <to = 1> (n) s = Shape (z) f = ConstantOfShape (s) y = Mul (z, f)",
            "float[N, T] x",
            "the size depends on data",
        ),
        ("s = Shape (x) f = ConstantOfShape (s) y = Mul (f, f)", "float[N, T] x", "no other operand has the shape"),
    ],
)
def test_a_fill_that_gives_the_result_its_shape_stays(row: tuple[str, str, str]) -> None:
    body, inputs, _ = row
    model = made(body, inputs)
    kinds, out = compiled(model)
    assert "ConstantOfShape" in kinds
    feeds = {i.name: np.ones([2, 3][-len(i.type.tensor_type.shape.dim) :], np.float32) for i in model.graph.input[:1]}
    feeds |= {
        i.name: np.ones([4, 2, 3][-len(i.type.tensor_type.shape.dim) :], np.float32) for i in model.graph.input[1:]
    }
    if inputs.startswith("float[N, 1]"):
        feeds["x"] = np.ones((2, 1), np.float32)
    np.testing.assert_array_equal(run(session(out), feeds)["y"], run(session(model), feeds)["y"])


def test_a_fill_of_the_language_is_one_number() -> None:
    text = "model m(x: f32[N, M]) -> (y) {\n    return max(x, full(shape=[N, M], value=0.5, dtype=f32))\n}\n"
    program = dmlc.compile(Source(text, name="t.dml"), target="onnx")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Max"]
    np.testing.assert_array_equal(program.run({"x": X})["y"], np.maximum(X, np.float32(0.5)))
    assert any(entry.rule == "drop-fill" for entry in program.ledger)


def test_a_fill_with_an_open_size_stays() -> None:
    text = "model m(x: f32[N, M]) -> (y) {\n    return max(x, full(shape=[N, M], value=N, dtype=f32))\n}\n"
    program = dmlc.compile(Source(text, name="t.dml"), target="onnx")
    assert not any(entry.rule == "drop-fill" for entry in program.ledger)
    np.testing.assert_array_equal(program.run({"x": X})["y"], np.maximum(X, np.float32(2)))


# --- slices


CONSTANTS = "int64 one = {1}, int64[1] o = {1}, int64[1] z = {0}, int64[1] m = {-1}"
END = "s = Shape (x) t = Gather (s, one) e = Unsqueeze (t, z)"


@each_row("call", ["Slice (x, z, e, o)", "Slice (x, z, e, m)", "Slice (x, z, e, o, o)"])
@each_row("target", ["onnx", "cpu", "directml"])
def test_a_slice_that_ends_at_the_own_size_goes(target: str, call: str) -> None:
    model = made(f"{END} v = {call} y = Relu (v)", constants=CONSTANTS)
    kinds, out = compiled(model, target)
    assert kinds == ["Relu"]
    np.testing.assert_array_equal(run(session(out), {"x": X})["y"], np.maximum(X, 0))


@each_row(
    "call",
    [
        ("Slice (x, z, e, z)", "the size of another axis"),
        ("Slice (x, o, e, o)", "it starts behind the first element"),
        ("Slice (x, z, e, o, m)", "it goes backward"),
        ("Slice (x, z, e)", "the first axis, by default"),
    ],
)
def test_other_slices_stay(call: tuple[str, str]) -> None:
    model = made(f"{END} v = {call[0]} y = Relu (v)", constants=CONSTANTS)
    kinds, out = compiled(model)
    assert "Slice" in kinds
    np.testing.assert_array_equal(run(session(out), {"x": X})["y"], run(session(model), {"x": X})["y"])


@each_row(
    ("inputs", "constants", "body"),
    [
        ("int64[N] x", "", f"{FILL} y = Pow (f, x)"),
        ("int64[N] x", "int64[1] c = {2}", "s = Shape (x) f = Expand (c, s) y = Pow (f, x)"),
        ("int64[N] x", "int64[1] m = {-1}", "t = Unsqueeze (x, m) u = Pow (t, t) y = Squeeze (u, m)"),
    ],
)
@pytest.mark.parametrize("target", ["onnx", "cpu", "directml"])
def test_an_integer_power_of_a_model_keeps_its_kernel(target: str, inputs: str, constants: str, body: str) -> None:
    model = made(body, inputs, constants)
    model = filled(model, np.int64(2)) if "ConstantOfShape" in body else model
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    operators, out = compiled(model, target)
    assert operators == ["Pow"]
    feeds = {"x": np.array([-3, -1, 0, 1, 2, 9, 15])}  # the kernel gives 0 for a negative exponent
    np.testing.assert_array_equal(run(session(out), feeds)["y"], run(session(model), feeds)["y"])
