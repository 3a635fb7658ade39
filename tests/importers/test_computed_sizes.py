"""Shape operands that nodes compute and that say no more than 0 and -1 do: they become constants."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, numpy_helper, parser

import dmlc
from tests.rows import each_row
from tools.canonical_form import canonical_form, operators
from tools.model_checks import run, session

_INTS = "int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64 i3 = {3}, int64[1] zero = {0}, int64[1] rest = {-1}, "
_INTS += "int64[1] four = {4}, int64[1] one = {1}, int64 two = {2}"
_SIZES = " ".join(f"g{i} = Gather (s, i{i}) n{i} = Unsqueeze (g{i}, zero)" for i in range(4))
_HEAD = f"s = Shape (x) {_SIZES}"

#: The list that is the shape operand, and the constant that says the same.
LISTS = {
    "t = Concat <axis = 0> (n0, rest)": [0, -1],
    "t = Concat <axis = 0> (n0, rest, four)": [0, -1, 4],
    "t = Concat <axis = 0> (n0, n1, rest)": [0, 0, -1],
    "t = Concat <axis = 0> (n0, one, rest, n3)": None,  # the last size moves, so that it must be computed
    "t = Concat <axis = 0> (n0, n1, n2, one, rest)": [0, 0, 0, 1, -1],
    "u = Slice (s, zero, one) t = Concat <axis = 0> (u, rest)": [0, -1],
    "t = Concat <axis = 0> (rest, n3)": None,
}


def _model(text: str) -> ModelProto:
    head = f'<ir_version: 8, opset_import: ["" : 18]> g (float[N, C, H, W] x) => (float[] y) <{_INTS}>'
    return parser.parse_model(f"{head} {{ {_HEAD} {text} z = Reshape (x, t) y = Neg (z) }}")


@each_row("target", ["onnx", "cpu", "directml"])
@each_row("text", LISTS)
def test_a_computed_shape_with_what_is_left_is_a_constant(text: str, target: str) -> None:
    source, constant = _model(text), LISTS[text]
    model = dmlc.compile(source, target=target).to_onnx()
    if constant is not None:
        assert [node.op_type for node in model.graph.node] == ["Reshape", "Neg"]
        assert [numpy_helper.to_array(t).tolist() for t in model.graph.initializer] == [constant]
    assert canonical_form(dmlc.compile(model, target=target).to_onnx()) == canonical_form(model)
    for shape in ((2, 3, 4, 8), (1, 1, 4, 4), (3, 2, 1, 12)):
        feeds = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
        assert np.array_equal(run(session(source), feeds)["y"], run(session(model), feeds)["y"])


def test_a_shape_without_what_is_left_is_computed() -> None:
    """Sizes of 0 are sizes there: -1 in place of one would fail."""
    source = _model("g4 = Mul (g1, two) n4 = Unsqueeze (g4, zero) g5 = Div (g3, two) n5 = Unsqueeze (g5, zero) "
                    "t = Concat <axis = 0> (n0, n4, n2, n5)")  # fmt: skip
    model = dmlc.compile(source, target="onnx").to_onnx()
    feeds = {"x": np.zeros((0, 3, 4, 8), np.float32)}
    assert run(session(model), feeds)["y"].shape == run(session(source), feeds)["y"].shape == (0, 6, 4, 4)


#: Counts and ends that nodes compute, with what runs on ONNX Runtime and what is left: a padding of whole windows as
#: PyTorch flattens it, a cut back, and those that may be negative or lie outside.
_WINDOWS = "m = Mod (g2, four) l = Sub (four, m) p = Mod (l, four) f = Concat <axis = 0> (zero3, zero3, p, zero)"
PLACES = {
    f"{_WINDOWS} y = Pad (x, f)": ["Add", "Concat", "Div", "Mul", "Pad", "Shape", "Sub"],
    f"{_WINDOWS} z = Pad (x, f) y = Slice (z, zero, g2, two)": [
        "Add", "Concat", "Div", "Mul", "Pad", "Shape", "Slice", "Sub"
    ],
    f"{_WINDOWS} z = Pad (x, f) h = Shape (z) k = Gather (h, two) q = Div (k, four) "
    "t = Concat <axis = 0> (g0, g1, q, four, g3) y = Reshape (z, t)": [
        "Add", "Concat", "Concat", "Div", "Mul", "Pad", "Reshape", "Shape", "Shape", "Shape", "Sub"
    ],
    "h = Gather (s, at2) m = Mod (h, by4) l = Sub (by4, m) p = Mod (l, by4) p1 = Unsqueeze (p, zero) "
    "f = Concat <axis = 0> (zero3, zero3, p1, zero) z = Pad (x, f) a = Add (h, p) q = Div (a, by4) "
    "q1 = Unsqueeze (q, zero) t = Concat <axis = 0> (g0, g1, q1, four, g3) y = Reshape (z, t)": [
        "Add", "Concat", "Concat", "Div", "Mul", "Pad", "Reshape", "Shape", "Shape", "Shape", "Sub"
    ],
    # a padding to strides, half of it before, in PyTorch's order: of 0 or 1 that is nothing
    "a = Add (g2, i1) q = Div (a, two) d = Mul (q, two) e = Sub (d, g2) h = Div (e, two) k = Sub (e, h) "
    "f = Concat <axis = 0> (zero, zero, h, k, zero3, zero) r = Reshape (f, pairs) "
    "v = Slice (r, rest, least, zero, rest) t = Transpose (v) b = Reshape (t, rest) y = Pad (x, b)": [
        "Add", "Concat", "Div", "Mul", "Pad", "Shape", "Sub"
    ],
    "l = Sub (g2, four) f = Concat <axis = 0> (zero3, zero, zero3, l) y = Pad (x, f)": [
        "Concat", "Gather", "Pad", "Shape", "Sub"
    ],
    "y = Slice (x, zero, g1, two)": ["Gather", "Shape", "Slice"],
    "y = Slice (x, g1, rest, two, back)": ["Gather", "Shape", "Slice"],
}  # fmt: skip


@each_row("target", ["onnx", "cpu", "directml"])
@each_row("text", PLACES)
def test_computed_counts_and_ends_are_sizes_where_that_is_proved(text: str, target: str) -> None:
    gathers = " ".join(f"g{i} = Gather (s, i{i})" for i in range(4))
    ints = "int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}, int64[1] i3 = {3}, int64[1] zero = {0}, "
    ints += "int64[3] zero3 = {0, 0, 0}, int64[1] four = {4}, int64[1] two = {2}, int64[1] rest = {-1}, "
    ints += "int64[1] back = {-1}, int64 at2 = {2}, int64 by4 = {4}, "
    ints += "int64[2] pairs = {-1, 2}, int64[1] least = {-9223372036854775807}"
    head = f'<ir_version: 8, opset_import: ["" : 18]> g (float[N, C, H, W] x) => (float[] y) <{ints}>'
    source = parser.parse_model(f"{head} {{ s = Shape (x) {gathers} {text} }}")
    model = dmlc.compile(source, target=target).to_onnx()
    assert sorted(op_type.removeprefix(":") for op_type in operators(model).elements()) == PLACES[text]
    assert operators(dmlc.compile(model, target=target).to_onnx()) == operators(model)
    for shape in ((2, 3, 5, 8), (1, 2, 8, 1), (2, 7, 3, 2)):
        feeds = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
        assert np.array_equal(run(session(source), feeds)["y"], run(session(model), feeds)["y"])


def test_sizes_that_are_divided_by_a_negative_number_read_back() -> None:
    constants = "int64 k = {-3}, int64 two = {2}, int64 one = {1}, int64 i0 = {0}"
    body = (
        "s = Shape (x) h = Gather (s, i0) a = Mod (h, k) b = Mod (a, two) r = Range (i0, b, one) y = Cast <to = 1> (r)"
    )
    head = '<ir_version: 8, opset_import: ["" : 18]> g (float[H, W] x) => (float[P] y)'
    model = parser.parse_model(f"{head} <{constants}> {{ {body} }}")
    text = dmlc.compile(model, target="onnx").to_bytes("dml").decode()
    again = dmlc.compile(dmlc.Source(text), target="onnx").to_onnx()
    for size in range(1, 8):
        feeds = {"x": np.zeros((size, 2), np.float32)}
        assert run(session(again), feeds)["y"].shape == run(session(model), feeds)["y"].shape
