"""Sizes that depend on data, and that a model declares by the name of an input's dim."""

from __future__ import annotations

import numpy as np
from onnx import parser

import dmlc
from tests.rows import each_row
from tools.model_checks import run, session

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
FEEDS = {
    "x": np.array([[1, 0, 2], [0, 0, 0], [1, 0, 2], [3, 4, 0]], np.float32),
    "b": np.array([True, False, True, False]),
    "boxes": np.array([[[0, 0, 1, 1], [0, 0, 1, 1], [5, 5, 6, 6], [8, 8, 9, 9]]], np.float32),
    "scores": np.ones((1, 1, 4), np.float32),
    "most": np.array([2], np.int64),
    "go": np.array(True),
    "n": np.array(2, np.int64),
}
#: Nodes that make r, the number of true elements of b.
COUNT = "c = Cast <to = 7> (b) r = ReduceSum (c)"
#: Nodes that make q, and the type that the model declares for it.
COUNTS = {
    "Compress": ("q = Compress <axis = 0> (x, b)", "float[N, C] q"),
    "Compress of elements": ("g = Greater (x, zero) f = Reshape (g, minus) q = Compress (x, f)", "float[N] q"),
    "NonZero": ("q = NonZero (x)", "int64[2, N] q"),
    "Unique": ("q = Unique <axis = 0> (x)", "float[N, C] q"),
    "NonMaxSuppression": ("q = NonMaxSuppression (boxes, scores, most)", "int64[N, 3] q"),
    "node behind it": ("p = Compress <axis = 0> (x, b) q = Relu (p)", "float[N, C] q"),
    "window of it": ("p = Compress <axis = 0> (x, b) q = Slice (p, zero_i, most, zero_i)", "float[N, C] q"),
    "window of a count": (f"{COUNT} q = Slice (x, zero_i, r, zero_i)", "float[N, C] q"),
    "largest of a count": (f"{COUNT} v, q = TopK <axis = 0> (x, r)", "int64[N, C] q"),
    "pads of a count": (f"{COUNT} p = Concat <axis = 0> (r, zero_i, zero_i, zero_i) q = Pad (x, p)", "float[N, C] q"),
    "range of a count": (f"{COUNT} t = Squeeze (r) q = Range (first, t, step)", "int64[N] q"),
    "branch": (
        "q = If (go) <then_branch = t () => (float[K, C] r) { r = Compress <axis = 0> (x, b) }, "
        "else_branch = e () => (float[N, C] s) { s = Identity (x) }>",
        "float[N, C] q",
    ),
    "loop": (
        "q = Loop (n, go, x) <body = l (int64 i, bool g, float[K, C] v) => (bool h, float[L, C] w) "
        "{ h = Identity (g) w = Concat <axis = 0> (v, x) }>",
        "float[N, C] q",
    ),
}


@each_row("count", COUNTS)
@each_row("target", ["directml", "cpu", "onnx"])
def test_size_that_data_decide_is_not_the_declared_one(target: dmlc.TargetName, count: str) -> None:
    nodes, declared = COUNTS[count]
    inputs = "float[N, C] x, bool[N] b, float[1, N, 4] boxes, float[1, 1, N] scores, int64[1] most, bool go, int64 n"
    weights = "float zero = {0}, int64[1] minus = {-1}, int64[1] zero_i = {0}, int64 first = {0}, int64 step = {1}"
    text = f"{nodes} k = Shape (q) y = ConstantOfShape (k) s = Shape (x) z = ConstantOfShape (s)"
    outputs = "float[k0, k1] z"
    source = parser.parse_model(f"{HEAD} g ({inputs}) => ({outputs}) <{weights}, {declared}> {{ {text} }}")
    source.graph.output.add(name="y").type.tensor_type.elem_type = 1
    wanted = run(session(source), FEEDS)
    found = run(session(dmlc.compile(source, target=target).to_onnx()), FEEDS)
    assert {name: array.shape for name, array in found.items()} == {n: a.shape for n, a in wanted.items()}
    assert found["y"].shape != found["z"].shape


def test_size_of_a_computed_shape_is_the_declared_one() -> None:
    """Exporters declare sizes behind shapes that dmlc cannot follow: these are believed."""
    text = "q = Reshape (x, k) s = Shape (x) y = Reshape (q, s)"
    inputs = "float[N, C] x, int64[2] k"
    source = parser.parse_model(f"{HEAD} g ({inputs}) => (float[N, C] y) <float[N, C] q> {{ {text} }}")
    made = dmlc.compile(source, target="onnx").to_onnx()
    assert [n.op_type for n in made.graph.node] == ["Reshape"]
