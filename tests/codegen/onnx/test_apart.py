"""Quotients whose products ONNX Runtime's optimizer would change: it makes b / a of 1 / a * b."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, parser

import dmlc
from tests.rows import each_row
from tools.model_checks import run, session

KINDS = {"int32": (TensorProto.INT32, np.int32), "int64": (TensorProto.INT64, np.int64)}
A, B = [2, 1, -1, 3], [6, 7, 5, -9]
#: 1 / a * b, with quotients that truncate.
PRODUCT = [0, 7, -5, 0]

#: The nodes between the operands a and b and the result y, by what hides the constant or the product.
FORMS = {
    "scalar": "q = Div (one, a) y = Mul (q, b)",
    "other order": "q = Div (one, a) y = Mul (b, q)",
    "one element": "q = Div (ones, a) y = Mul (q, b)",
    "a node's constant": "o = Constant <value = TYPE {1}> () q = Div (o, a) y = Mul (q, b)",
    "difference": "o = Sub (two, one) q = Div (o, a) y = Mul (q, b)",
    "cast": "o = Cast <to = KIND> (near) q = Div (o, a) y = Mul (q, b)",
    "identity": "o = Identity (one) q = Div (o, a) p = Identity (q) y = Mul (p, b)",
    "sum with zero": "q = Div (one, a) p = Add (q, zero) y = Mul (p, b)",
    "quotient by one": "q = Div (one, a) p = Div (q, one) y = Mul (p, b)",
    "branch": (
        "m = ReduceMax <keepdims = 0> (a) c = Greater (m, zero) "
        "y = If (c) <then_branch = t () => (TYPE[n] r) { q = Div (one, a) r = Mul (q, b) }, "
        "else_branch = e () => (TYPE[n] s) { p = Div (one, b) s = Mul (a, p) }>"
    ),
    "quotient of a branch": (
        "m = ReduceMax <keepdims = 0> (a) c = Greater (m, zero) "
        "q = If (c) <then_branch = t () => (TYPE[n] r) { r = Div (one, a) }, "
        "else_branch = e () => (TYPE[n] s) { s = Div (one, b) }> y = Mul (q, b)"
    ),
    "loop": (
        "y = Loop (ones_i64, yes, a) <body = l (int64 i, bool go, TYPE[n] x) => (bool again, TYPE[n] r) "
        "{ again = Identity (go) q = Div (one, x) r = Mul (q, b) }>"
    ),
}


def source_of(form: str, dtype: str, opset: int, size: str = "n") -> ModelProto:
    kind = KINDS[dtype][0]
    weights = "TYPE one = {1}, TYPE two = {2}, TYPE zero = {0}, TYPE[1] ones = {1}, float near = {1.4}, "
    weights += "int64 ones_i64 = {1}, bool yes = {1}"
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    text = f"{head} g (TYPE[{size}] a, TYPE[{size}] b) => (TYPE[{size}] y) <{weights}> {{ {form} }}"
    return parser.parse_model(
        text.replace("TYPE[n]", f"TYPE[{size}]").replace("TYPE", dtype).replace("KIND", str(kind))
    )


def operators(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def recompiled(model: ModelProto, target: dmlc.TargetName) -> ModelProto:
    return dmlc.compile(model, target=target, opset=model.opset_import[0].version).to_onnx()


def results(model: ModelProto, feeds: dict[str, np.ndarray]) -> Iterator[np.ndarray]:
    for optimized in (False, True):
        yield run(session(model, optimized=optimized), feeds)["y"]


@each_row("form", FORMS)
@each_row("turn", range(3))
def test_product_of_quotient_of_one_truncates(turn: int, form: str) -> None:
    """Each form at each opset; the targets take turns."""
    dtype, opset, size = (("int64", 17, "n"), ("int32", 13, "4"), ("int64", 11, "4"))[turn]
    target: dmlc.TargetName = ("directml", "cpu", "onnx")[(turn + list(FORMS).index(form)) % 3]
    source = source_of(FORMS[form], dtype, opset, size)
    feeds = {name: np.array(numbers, KINDS[dtype][1]) for name, numbers in (("a", A), ("b", B))}
    made = dmlc.compile(source, target=target, opset=opset).to_onnx()
    for found in results(made, feeds):
        assert found.dtype == KINDS[dtype][1] and found.tolist() == PRODUCT
    assert operators(recompiled(made, target)) == operators(made)


def test_product_of_quotient_of_one_by_a_value_of_unknown_rank_truncates() -> None:
    text = "q = Div (one, s) y = Mul (q, b)"
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    shapes = "int64[4] a, int64[4] b, int64[r] k"
    source = parser.parse_model(
        f"{head} g ({shapes}) => (int64[] y) <int64 one = {{1}}> {{ s = Reshape (a, k) {text} }}"
    )
    source.graph.output[0].type.tensor_type.ClearField("shape")
    made = dmlc.compile(source).to_onnx()
    feeds = {"a": np.array(A), "b": np.array(B), "k": np.array([4])}
    assert [found.tolist() for found in results(made, feeds)] == [PRODUCT, PRODUCT]
    assert operators(recompiled(made, "directml")) == operators(made)


def test_product_in_a_branch_of_quotient_of_a_size_outside_truncates() -> None:
    """A session that fixes the size makes the dividend, which a branch takes from outside, the constant 1."""
    branches = "then_branch = t () => (int64[4] r) { q = Div (s, a) r = Mul (q, b) }, "
    branches += "else_branch = e () => (int64[4] z) { z = Identity (a) }"
    text = f"s = Shape (x) m = ReduceMax <keepdims = 0> (a) c = Greater (m, zero) y = If (c) <{branches}>"
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    inputs = "int64[4] a, int64[4] b, float[w] x"
    source = parser.parse_model(f"{head} g ({inputs}) => (int64[4] y) <int64 zero = {{0}}> {{ {text} }}")
    made = dmlc.compile(source).to_onnx()
    options = onnxruntime.SessionOptions()
    options.add_free_dimension_override_by_name("w", 1)
    fixed = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {"a": np.array(A), "b": np.array(B), "x": np.zeros(1, np.float32)}
    assert run(fixed, feeds)["y"].tolist() == PRODUCT


@each_row("dtype", ["float", "double", "float16"])
@each_row("opset", [11, 17])
@each_row("target", ["directml", "cpu"])
def test_product_of_floats_keeps_the_axes_of_the_one(target: dmlc.TargetName, opset: int, dtype: str) -> None:
    numpy = {"float": np.float32, "double": np.float64, "float16": np.float16}[dtype]
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    one = 0x3C00 if dtype == "float16" else 1  # the parser takes the bits
    weight = f"{dtype}[1, 1] one = {{{one}}}"
    text = "q = Div (one, a) y = Mul (q, b)"
    source = parser.parse_model(f"{head} g ({dtype}[n] a, {dtype}[n] b) => ({dtype}[k, n] y) <{weight}> {{ {text} }}")
    made = dmlc.compile(source, target=target, opset=opset).to_onnx()
    for found in results(made, {"a": np.array([2, 4], numpy), "b": np.array([6, 8], numpy)}):
        assert found.tolist() == [[3, 2]]


@pytest.mark.parametrize(
    "form",
    {
        "dividend of two": "q = Div (two, a) y = Mul (q, b)",
        "dividend of data": "q = Div (b, a) y = Mul (q, b)",
        "no product": "y = Div (one, a)",
        "by a node between": "q = Div (one, a) n = Neg (q) y = Mul (n, b)",
    }.values(),
)
def test_quotients_that_onnx_runtime_leaves_alone_stay(form: str) -> None:
    source = source_of(form, "int64", 17)
    assert operators(dmlc.compile(source, target="onnx").to_onnx()) == operators(source)


@pytest.mark.parametrize("shape", ["", "[1]"])
def test_quotients_of_a_float_one_stay(shape: str) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    text = "q = Div (one, a) y = Mul (q, b)"
    source = parser.parse_model(
        f"{head} g (float[n] a, float[n] b) => (float[n] y) <float{shape} one = {{1}}> {{ {text} }}"
    )
    assert "Max" not in operators(dmlc.compile(source, target="onnx").to_onnx())


def test_quotients_behind_many_nodes_stay() -> None:
    """A scaled value of open sizes, with more operands behind it than are looked at."""
    adds = " ".join(f"x{i + 1} = Add (x{i}, w{i}) " if i % 2 else f"x{i + 1} = Tanh (x{i}) " for i in range(80))
    weights = ", ".join(f"float[1] w{i} = {{{i}.5}}" for i in range(1, 80, 2))
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    text = f"x0 = Relu (x) {adds} q = Div (x80, s) y = Mul (q, x)"
    source = parser.parse_model(f"{head} g (float[n, m] x, float s) => (float[n, m] y) <{weights}> {{ {text} }}")
    made = dmlc.compile(source, target="onnx").to_onnx()
    assert "Max" not in operators(made)
