"""Constants that are broadcast or filled: folded where they are small or disappear, left where they are large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

CONSTANTS = "one = Constant<value_float = 1.5>() row = Constant<value_floats = [1.0, 2.0]>() "


def model(body: str, inputs: str = "float[2] x") -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (float y) {{ {CONSTANTS} {body} }}'
    made = parser.parse_model(text)
    for info in made.graph.output:
        info.type.tensor_type.ClearField("shape")
    return made


def check(made: ModelProto, want: list[str]) -> None:
    program = dmlc.compile(made, target="onnx")
    kinds = [node.op_type for node in program.to_onnx().graph.node if node.op_type != "Identity"]
    assert sorted(kinds) == sorted(want)
    feeds = {i.name: np.random.default_rng(0).random(2, np.float32) for i in made.graph.input}
    expected = dmlc.compile(made, target="onnx", only_rules=[]).run(feeds)
    for name, value in program.run(feeds).items():
        np.testing.assert_array_equal(value, expected[name])


@each_row(
    ("body", "want"),
    [
        ("s = Constant<value_ints = [30, 2]>() e = Expand(row, s) y = MatMul(e, x)", ["MatMul"]),
        ("s = Constant<value_ints = [5000, 2]>() e = Expand(row, s) y = MatMul(e, x)", ["Expand", "MatMul"]),
        (
            "s = Constant<value_ints = [5000, 2]>() e = Expand(row, s) m = ReduceMax<keepdims = 0>(e) y = Add(m, x)",
            ["Add"],
        ),
        (
            "s = Constant<value_ints = [5000, 2]>() e = Expand(row, s) m = ReduceMax<keepdims = 0>(e) p = Add(m, x) "
            "q = MatMul(e, p) r = ReduceMax<keepdims = 0>(q) y = Add(p, r)",
            ["Expand", "ReduceMax", "Add", "MatMul", "ReduceMax", "Add"],
        ),
        ("s = Constant<value_ints = [9000]>() f = ConstantOfShape(s) m = ReduceMax<keepdims = 0>(f) k = Exp(m) "
         "y = Add(k, x)", ["Add"]),
        ("s = Constant<value_ints = [262145]>() f = ConstantOfShape(s) m = ReduceMax<keepdims = 0>(f) y = Add(m, x)",
         ["ConstantOfShape", "ReduceMax", "Add"]),  # even though only a node that folds uses it
        ("s = Constant<value_ints = [9000]>() f = ConstantOfShape(s) i = Constant<value_ints = [1, 5]>() "
         "p = ScatterElements(f, i, row) m = ReduceMax<keepdims = 0>(p) y = Add(m, x)",
         ["ConstantOfShape", "ScatterElements", "ReduceMax", "Add"]),
        ("s = Constant<value_ints = [5000, 2]>() e = Expand(row, s) n = NonZero(e) c = Cast<to = 1>(n) "
         "m = ReduceMax<keepdims = 0>(c) y = Add(m, x)", ["Expand", "NonZero", "Cast", "ReduceMax", "Add"]),
        ("s = Constant<value_ints = [9000]>() f = ConstantOfShape(s) m = Exp(f) n = Neg(m) y = ReduceMax(n)", []),
        ("s = Constant<value_ints = [4500, 2]>() f = ConstantOfShape(s) y = MatMul(f, x)",
         ["ConstantOfShape", "MatMul"]),
        ("a = Constant<value_int = 0>() b = Constant<value_int = 9000>() c = Constant<value_int = 3>() "
         "f = Range(a, b, c) g = Cast<to = 1>(f) m = ReduceMax<keepdims = 0>(g) y = Add(m, x)", ["Add"]),
    ],
)  # fmt: skip
def test_fills(body: str, want: list[str]) -> None:
    check(model(body), want)


def test_a_fill_of_many_elements_is_never_made() -> None:
    """2^40 elements: the limit holds before anything is computed."""
    made = model("s = Constant<value_ints = [1048576, 1048576]>() e = Expand(one, s) m = Sin(e) y = ReduceMax(m)")
    kinds = [node.op_type for node in dmlc.compile(made, target="onnx").to_onnx().graph.node]
    assert "Expand" in kinds


def test_flattened_pads_of_torch_script_become_constants() -> None:
    """Pads as TorchScript writes them: filled up with zeros, in pairs, turned around."""
    body = (
        "p = Constant<value_ints = [1, 2, 3, 4]>() n = Constant<value_ints = [4]>() z = ConstantOfShape(n) "
        "c = Concat<axis = 0>(p, zi) two = Constant<value_ints = [-1, 2]>() r = Reshape(c, two) "
        "a = Constant<value_ints = [-1]>() e = Constant<value_ints = [-9223372036854775807]>() "
        "o = Constant<value_ints = [0]>() v = Slice(r, a, e, o, a) t = Transpose<perm = [1, 0]>(v) "
        "f = Reshape(t, a) k = Cast<to = 7>(f) y = Pad(x, k)"
    )
    made = model(body, "float[1, 1, 2, 2] x")
    value = helper.make_tensor("v", TensorProto.INT64, [1], [0])
    fill = next(n for n in made.graph.node if n.op_type == "ConstantOfShape")
    fill.attribute.append(helper.make_attribute("value", value))
    fill.output[0] = "zi"
    program = dmlc.compile(made, target="onnx")
    (pad,) = program.to_onnx().graph.node
    assert pad.op_type == "Pad"
    feeds: dict[str, Any] = {"x": np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)}
    expected = dmlc.compile(made, target="onnx", only_rules=[]).run(feeds)
    np.testing.assert_array_equal(program.run(feeds)["y"], expected["y"])


@pytest.mark.parametrize(
    ("call", "binding", "is_folded"),
    [
        ("full(shape=[], value=2, dtype=f32)", {}, True),
        ("full(shape=[], value=N * M, dtype=f32)", {"N": 2, "M": 3}, True),
        ("full(shape=[], value=N * M, dtype=f32)", {"N": 2}, False),
        ("full(shape=[1], value=2, dtype=f32)", {}, False),
    ],
)
def test_filled_scalars_fold_where_their_number_is_known(call: str, binding: dict[str, int], is_folded: bool) -> None:
    source = Source("t.dml", f"model m(x: f32[N, M]) -> (y) {{\n    return x * {call}\n}}\n")
    program = dmlc.compile(source, target="cpu", bind=binding)
    assert any(entry.rule == "fill-scalar" for entry in program.ledger) is is_folded
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x * (2 if "value=2" in call else 6))


@pytest.mark.parametrize(
    "element", [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.INT4, TensorProto.COMPLEX64]
)
def test_a_fill_of_a_type_without_numbers_of_its_own_stays(element: int) -> None:
    value = helper.make_tensor("value", element, [1], [1])
    node = helper.make_node("ConstantOfShape", ["s"], ["y"], value=value)
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [2, 3])
    out = helper.make_tensor_value_info("y", element, [2, 3])
    graph = helper.make_graph([node], "g", [], [out], [shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    assert [n.op_type for n in dmlc.compile(model, target="onnx").to_onnx().graph.node] == ["ConstantOfShape"]
