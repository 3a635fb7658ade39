"""Compiling what was compiled changes nothing: each reduction and normalization before each kind of node."""

from __future__ import annotations

from itertools import product

import pytest
from onnx import ModelProto, parser, shape_inference

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row
from tools.canonical_form import canonical_form

TARGETS = ("onnx", "cpu", "directml")
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
#: Reductions over an inner axis and over axes that stand apart, in both forms, and what else is written in parts.
FIRST = (
    *[f"Reduce{name} <keepdims = 0> (x, {axes})" for name in REDUCTIONS for axes in ("inner", "apart")],
    "ReduceLogSumExp <keepdims = 1> (x, inner)",
    "ArgMax <axis = 1, keepdims = 0> (x)",
    "Softmax <axis = 1> (x)",
    "LogSoftmax <axis = 0> (x)",
    "Hardmax <axis = 1> (x)",
    "LpNormalization <axis = 0> (x)",
    "MeanVarianceNormalization <axes = [1, 2]> (x)",
)
THEN = (
    "ReduceMean <keepdims = 0> (y)",
    "ReduceMax <keepdims = 0> (y, zero)",
    "ReduceSum <keepdims = 1> (y, zero)",
    "Transpose (y)",
    "Reshape (y, flat)",
    "Unsqueeze (y, zero)",
    "Neg (y)",
)
#: Integers have a type of their own, and no mean.
_INDEX = "ArgMax"


def source(first: str, then: str, dtype: str, sizes: str) -> ModelProto:
    """The model of two nodes, the second of the result of the first."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g ({dtype}[{sizes}] x) => ({dtype} z)
    <int64[1] zero = {{0}}, int64[1] flat = {{-1}}, int64[1] inner = {{1}}, int64[2] apart = {{0, 2}},
    int64[1] last = {{2}}> {{ y = {first} z = {then} }}"""
    model = parser.parse_model(text)
    model.graph.output[0].ClearField("type")
    (output,) = shape_inference.infer_shapes(model).graph.output
    model.graph.output[0].CopyFrom(output)
    return model


def check(model: ModelProto, target: str) -> None:
    once = dmlc.compile(model, target=target).to_onnx()
    program = dmlc.compile(once, target=target)
    assert canonical_form(program.to_onnx()) == canonical_form(once), (target, [e.text for e in program.ledger])


@each_row("first", FIRST)
def test_two_nodes(first: str) -> None:
    """The targets take turns."""
    for number, then in enumerate(THEN, FIRST.index(first)):
        if not (first.startswith(_INDEX) and then.startswith("ReduceMean")):
            check(source(first, then, "float", "4, 5, 6"), TARGETS[number % 3])


@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_a_log_sum_exp_that_costs_more_than_its_parts(dtype: str) -> None:
    """The lowering is chosen by cost on the CPU, where the axes that it drops merge with what follows too."""
    for then in THEN:
        check(source("ReduceLogSumExp <keepdims = 0> (x, last)", then, dtype, "64, 50, 600"), "cpu")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["cpu", "directml"])
def test_a_log_sum_exp_of_a_program(target: str, dtype: str) -> None:
    g = dmlc.Graph("m")
    x = g.input("x", dtype=dtype, shape=(4, 1, 6))
    total = dmlc.reduce_log_sum_exp(x, axes=[1, 2], keepdims=False)
    g.output("y", dmlc.reduce_max(total, axes=[0], keepdims=False))
    once = dmlc.compile(g, target=target).to_onnx()
    assert "Squeeze" not in [node.op_type for node in once.graph.node]
    assert canonical_form(dmlc.compile(once, target=target).to_onnx()) == canonical_form(once)


def test_a_model_of_another_domain_alone() -> None:
    """It gets the definition of its operator too, for which it imports ONNX's own operators."""
    text = """<ir_version: 8, opset_import: ["ai.onnx.ml" : 1]> g (float[3, 4] x, int64[2] i) => (float[3, 2] y)
    { y = ai.onnx.ml.ArrayFeatureExtractor (x, i) }"""
    model = parser.parse_model(text)
    once = dmlc.compile(model, target="directml").to_onnx()
    assert [node.op_type for node in once.graph.node] == ["Gather"]
    check(model, "directml")
    assert [node.op_type for node in dmlc.compile(model, target="cpu").to_onnx().graph.node] == [
        "ArrayFeatureExtractor"
    ]


def test_a_log_sum_exp_of_nothing_over_computed_axes() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[2, 0, 4] x, int64[1] a) => (float[2, 1, 4] y)
    { y = ReduceLogSumExp (x, a) }"""
    model = parser.parse_model(text)
    assert "Exp" not in [node.op_type for node in dmlc.compile(model, target="directml").to_onnx().graph.node]
    check(model, "directml")


SUMS = [
    f"{operation}(x, axes=[{axis}], keepdims={keepdims})"
    for operation in ("reduce_sum", "reduce_mean", "reduce_l1", "reduce_sum_square")
    for axis, keepdims in ((0, "true"), (1, "false"))
]


@each_row(("turn", "dtype"), enumerate(("i8", "u8", "i16", "i32", "u64")))
def test_sums_of_integers(turn: int, dtype: str) -> None:
    """They are products with ones, in a type that has a kernel, with a reshape on each side. The targets take turns."""
    for number, (call, sizes) in enumerate(product(SUMS, ("3, 4", "n, m", "n, 4, m"))):
        target = TARGETS[(turn + number + number // 3) % 3]
        text = f"model m(x: {dtype}[{sizes}]) -> (y) {{\n    y = {call} * 2\n    return y\n}}\n"
        once = dmlc.compile(Source("m.dml", text), target=target).to_onnx()
        again = dmlc.compile(once, target=target, opset=once.opset_import[0].version).to_onnx()
        assert [n.op_type for n in again.graph.node] == [n.op_type for n in once.graph.node], (text, target)
