"""Shape operands that nodes compute and that say no more than 0 and -1 do: they become constants."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import dmlc
from tools.canonical_form import canonical_form
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


@pytest.mark.parametrize("target", ["onnx", "cpu", "directml"])
@pytest.mark.parametrize("text", LISTS)
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
