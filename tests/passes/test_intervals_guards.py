"""Ranges of values with open ends: each test fails where one guard of ``intervals`` is dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import parser

import dmlc
from dmlc import text
from dmlc.diagnostics import Source
from dmlc.importers import import_model
from dmlc.passes.intervals import Intervals


def of(expression: str, kind: str = "f16") -> tuple[float, float]:
    inputs = f"x: {kind}[3, 4], z: {kind}[3, 4]"
    graph = text.load(Source("t.dml", f"model t({inputs}) -> (y) {{\n    y = {expression}\n    return y\n}}\n"))
    return Intervals(graph).of(graph.outputs[0][1])


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("relu(x) * (-exp(z))", -math.inf, 0),
        ("(-exp(z)) * relu(x)", -math.inf, 0),
        ("exp(x) / (exp(z) + 1.0)", 0, math.inf),
        ("(-exp(x)) / (-exp(z) - 1.0)", 0, math.inf),
    ],
)
def test_zero_times_infinity_and_infinity_over_infinity(expression: str, low: float, high: float) -> None:
    assert of(expression) == (low, high)


def test_a_cast_between_floats_keeps_the_range() -> None:
    assert of("sigmoid(x) as f16", "f32") == (0, 1)


def test_what_is_infinite_less_itself_is_not_zero() -> None:
    assert of("sigmoid(x) - sigmoid(x)") != (0, 0)  # two values, as long as none is shared
    for made in ("exp(x)", "(-exp(x))"):
        graph = text.load(
            Source("t.dml", f"model t(x: f16[3]) -> (y) {{\n    e = {made}\n    y = e - e\n    return y\n}}\n")
        )
        assert not all(map(math.isfinite, Intervals(graph).of(graph.outputs[0][1])))


def test_a_sum_that_is_open_above_keeps_its_lower_end() -> None:
    low, high = of("reduce_sum(exp(x) - 5.0, axes=[1])")
    assert -25 < low < -19 and high == math.inf


def test_an_index_is_within_its_axis() -> None:
    graph = text.load(Source("t.dml", "model t(x: f16[3, 4]) -> (v, i) {\n    v, i = top_k(sigmoid(x), k=2, axis=1)\n"
                                      "    return v, i\n}\n"))  # fmt: skip
    low, high = Intervals(graph).of(graph.outputs[1][1])
    assert low <= 0 and high == 3


def test_lowest_number_of_a_dtype_is_finite() -> None:
    assert of("where(x > z, sigmoid(x), -3.4028234663852886e+38)", "f32") == (-3.4028234663852886e38, 1)


@pytest.mark.parametrize(
    ("value", "signed"),
    [
        ("s = CumSum(x, zero)", True),
        ("s = ArgMax <axis = 1> (x)", False),
        ("s = NonZero(x)", False),
        ("v, s = TopK(x, two)", False),
    ],
)
def test_remainders_of_positions_are_not_negative(value: str, signed: bool) -> None:
    """The provider has no Mod of i64: a remainder that may be negative takes a Where."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (int64[3, 4] x) => (int64[] y)
        <int64 zero = {{0}}, int64[1] two = {{2}}, int64 three = {{3}}> {{ {value} y = Mod(s, three) }}"""
    )
    program = dmlc.compile(model, target="directml")
    assert ("Where" in [node.op_type for node in program.to_onnx().graph.node]) == signed
    x = np.arange(-9, 3).reshape(3, 4)
    with_operator = dmlc.compile(model, target="cpu")
    np.testing.assert_array_equal(program.run({"x": x}, "cpu")["y"], with_operator.run({"x": x}, "cpu")["y"])


def test_positions_of_unknown_rank_have_an_interval() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[] u) => (int64[] y) { a = ArgMax(u) y = Shape(a) }"""
    )
    graph = import_model(model)
    (shape,) = [value for _, value in graph.outputs]
    assert shape.producer is not None and shape.producer.operands
    assert all(Intervals(graph).of(v) == (0, 1) for v in shape.producer.operands if v is not None)
    assert Intervals(graph).of(shape)[0] == 0


def test_a_value_of_unknown_rank_may_be_anything() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[12] x, int64[n] s) => (float[a, b] y) '
        "{ r = Reshape (x, s) t = Transpose <perm = [1, 0]> (r) y = Relu (t) }"
    )
    graph = import_model(model)
    relu = graph.outputs[0][1].producer
    assert relu is not None and relu.op.name == "relu"
    assert Intervals(graph).of(relu.operand("x"))[0] < -1e38
    assert "within-bounds" not in {entry.rule for entry in dmlc.compile(model, target="onnx").ledger}


def test_elements_that_are_moved_to_unknown_sizes_stay_in_their_interval() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[12] x, int64[2] s) => (float[a, b] y) '
        "{ e = Sigmoid (x) r = Reshape (e, s) y = Relu (r) }"
    )
    assert [n.op_type for n in dmlc.compile(model, target="onnx").to_onnx().graph.node] == ["Sigmoid", "Reshape"]
    text = (
        '<ir_version: 8, opset_import: ["": 18]> g (int64[4] x, int64[2] s) => (int64[a, b] y) '
        "<int64[4] w = {1, 2, 3, 4}> { r = Reshape (w, s) y = Abs (r) }"
    )
    assert [n.op_type for n in dmlc.compile(parser.parse_model(text), target="onnx").to_onnx().graph.node] == [
        "Reshape"
    ]


def test_infinities_may_be_fed_where_they_are_not_excluded() -> None:
    graph = text.load(Source("t.dml", "model t(x: f16[3]) -> (y) {\n    return tanh(x) + (x - x)\n}\n"))
    total = graph.outputs[0][1].producer
    assert total is not None
    less = total.operand("b")
    assert Intervals(graph).of(less) == (0, 0)
    assert Intervals(graph, finite=False).of(less) == (-math.inf, math.inf)
    assert Intervals(graph, finite=False).of(total.operand("a")) == (-1, 1)


@pytest.mark.parametrize(("expression", "kind", "low", "high"), [
    ("!x", "u8", 0, 255), ("!x", "i32", -(2**31), 2**31 - 1), ("sign(x)", "i8", -1, 1), ("sign(x)", "u8", 0, 255),
])  # fmt: skip
def test_bounds_of_functions_of_integers_fit_the_dtype(expression: str, kind: str, low: int, high: int) -> None:
    assert of(expression, kind) == (low, high)
