"""A name of a dim that only declarations use names one size: it never makes two sizes equal."""

from __future__ import annotations

import numpy as np
from onnx import parser

import dmlc
from tests.kit import run
from tests.rows import each_row

X = np.array([[1, 0, 3, 4], [0, 6, 0, 8]], np.float32)
HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[N, C] x) => '
#: The places of the numbers that are not 0, and of the positive ones.
TWO = "a = NonZero(x)  o = Constant <value_float = 3.5> ()  m = Sub(x, o)  r = Relu(m)  b = NonZero(r)  "

#: Models that declare one name for two sizes that differ, or for one size twice.
MODELS = {
    "two values": HEAD
    + "(int64[2, u] a, int64[2, u] b, int64[4] sizes) {"
    + TWO
    + "p = Shape(a)  q = Shape(b)  sizes = Concat <axis = 0> (p, q) }",
    "compared": HEAD
    + "(int64[2, u] a, int64[2, u] b, bool[2] y) {"
    + TWO
    + "p = Shape(a)  q = Shape(b)  y = Equal(p, q) }",
    "two axes of a value": HEAD
    + "(int64[2, u] a, int64[2, u] b, int64[u, u] y, int64[2] s) {"
    + TWO
    + """f = Constant <value_int = 0> ()  c = Gather(a, f)  d = Gather(b, f)
        i = Constant <value_ints = [1]> ()  z = Constant <value_ints = [0]> ()
        e = Unsqueeze(c, i)  h = Unsqueeze(d, z)  y = Mul(e, h)  s = Shape(y) }""",
    "one value in two ways": HEAD
    + """(int64[2, u] a, int64[2, u] b, int64[4] sizes) {
        a = NonZero(x)  b = Neg(a)  p = Shape(a)  q = Shape(b)  sizes = Concat <axis = 0> (p, q) }""",
}


@each_row("target", ["directml", "cpu", "onnx"])
@each_row("name", MODELS)
def test_sizes_of_one_claimed_name_keep_their_values(name: str, target: str) -> None:
    model = parser.parse_model(MODELS[name])
    names = [output.name for output in model.graph.output]
    expected = run(model, x=X)
    found = dmlc.compile(model, target=target).run({"x": X}, backend="cpu")
    for output in names:
        np.testing.assert_array_equal(found[output], expected[output])


def test_a_claimed_name_names_the_first_size_that_has_it() -> None:
    model = parser.parse_model(MODELS["two values"])
    types = {
        o.name: o.type.tensor_type.shape.dim[1] for o in dmlc.compile(model, target="onnx").to_onnx().graph.output[:2]
    }
    assert types["a"].dim_param == "u"


@each_row("declared", ["float[] r", "float[a, b] r", "float[1, b] r"])
def test_the_inputs_of_a_scan_are_typed_as_they_are_fed(declared: str) -> None:
    """A cast to bool inside of the body is repaired for DirectML only if its operand's type is known."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 12]> g (float[2, 1, 2] x) => (bool[2, 1, 2] y) {{
            y = Scan <num_scan_inputs = 1, body = b ({declared}) => (bool[] q) {{ q = Cast <to = 9> (r) }}> (x)
        }}"""
    )
    x = np.array([0.25, 0, -3, np.nan], np.float32).reshape(2, 1, 2)
    found = dmlc.compile(model, target="directml").run({"x": x}, backend="cpu")["y"]
    np.testing.assert_array_equal(found, x != 0)
