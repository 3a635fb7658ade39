"""The importer never names a size as the model does, wherever the model names it."""

from __future__ import annotations

import numpy as np
from onnx import parser

import dmlc
from tests.kit import run
from tests.rows import each_row

_BODIES = {
    "formal of a loop": "y = Loop (n, c, s) <body = b (int64 i, bool ci, float[NAME] v) => (bool co, float[q] o)"
    " { co = Identity (ci) o = Expand (v, h) }>",
    "value of a loop in a loop": "y = Loop (n, c, s) <body = b (int64 i, bool ci, float[r] v) => (bool co, float[q] o)"
    " { co = Identity (ci) o = Loop (n, ci, v) <body = d (int64 j, bool di, float[NAME] w) => (bool e, float[t] u)"
    " { e = Identity (di) u = Expand (w, h) }> }>",
}


@each_row("number", range(4))
@each_row("body", _BODIES)
def test_a_size_without_a_name_is_not_one_named_in_a_body(body: str, number: int) -> None:
    """Taken for the same size, the Expand to the shape of ``z`` changes nothing and goes."""
    text = (
        '<ir_version: 8, opset_import: ["" : 18]> g (float[N] x, bool[N] m, int64 n, bool c, float[K] s)'
        " => (float[a] y) { z = Compress <axis = 0> (x, m) h = Shape (z) BODY }"
    )
    model = parser.parse_model(text.replace("BODY", _BODIES[body].replace("NAME", f"unknown_{number}")))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {
        "x": np.arange(4, dtype=np.float32),
        "m": np.array([True, False, True, True]),
        "n": np.array(2),
        "c": np.array(True),
        "s": np.ones(1, np.float32),
    }
    emitted = dmlc.compile(model, target="onnx").to_onnx()
    (expected,), (found,) = run(model, feeds).values(), run(emitted, feeds).values()
    assert expected.shape == (3,)
    assert np.array_equal(expected, found)


def test_dims_of_a_function_are_its_own() -> None:
    """The body of the loop names its dim as the model does another one, and each call gives it another size."""
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
      g (float[K] x, int64 n, bool c, float[M] s, float[L] t) => (float[a] y, float[b] z)
      { h = Shape (x) k = Constant <value_ints = [4]> () y = own.f (n, c, s, h) z = own.f (n, c, t, k) }
      <domain: "own", opset_import: ["" : 18]> f (n, c, s, h) => (y)
      { y = Loop (n, c, s) <body = b (int64 i, bool ci, float[K] v) => (bool co, float[q] o)
        { co = Identity (ci) o = Expand (v, h) }> }"""
    model = parser.parse_model(text)
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    feeds = {
        "x": np.zeros(3, np.float32),
        "n": np.array(2),
        "c": np.array(True),
        "s": np.ones(1, np.float32),
        "t": np.ones(1, np.float32),
    }
    emitted = dmlc.compile(model, target="onnx").to_onnx()
    found = run(emitted, {info.name: feeds[info.name] for info in emitted.graph.input})
    assert [array.shape for array in found.values()] == [(3,), (4,)]
