"""Sizes of -1, which some exporters declare for sizes that they do not know."""

from __future__ import annotations

import onnx
from onnx import parser

import dmlc
from tests.rows import each_row

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
MODELS = {
    "shape computed": (
        "g (float[-1, -1, 8] x) => (float[-1, -1, 4] y) <int64 i = {0}, int64[1] k = {-1}, int64[1] h = {4}, "
        "int64[1] z = {0}> { s = Shape (x) n = Gather (s, i) u = Unsqueeze (n, z) c = Concat <axis = 0> (u, k, h) "
        "r = Reshape (x, c) y = Softmax (r) }"
    ),
    "branch": (
        "g (float[-1, -1, 8] x, bool c) => (float[-1, -1, 4] y) <int64[3] k = {0, -1, 4}> { y = If (c) <"
        "then_branch = t () => (float[-1, -1, 4] r) { q = Reshape (x, k) r = Softmax (q) }, "
        "else_branch = e () => (float[-1, -1, 4] s) { p = Reshape (x, k) s = Relu (p) }> }"
    ),
    "loop": (
        "g (float[-1, -1, 8] x, int64 n, bool go) => (float[-1, -1, -1] y) { y = Loop (n, go, x) <"
        "body = l (int64 i, bool c, float[-1, -1, 8] v) => (bool d, float[-1, -1, 8] w) "
        "{ d = Identity (c) w = Relu (v) }> }"
    ),
    "declared between": (
        "g (float[-1, -1, 8] x) => (float[-1, -1, 8] y) <float[-1, -1, 8] r> "
        "{ r = Relu (x) s = Shape (r) q = ConstantOfShape (s) y = Add (q, r) }"
    ),
}


@each_row("name", MODELS)
@each_row("target", ["directml", "cpu", "onnx"])
def test_sizes_of_minus_one_are_open_in_the_emitted_model(target: dmlc.TargetName, name: str) -> None:
    source = parser.parse_model(f"{HEAD} {MODELS[name]}")
    onnx.checker.check_model(source, full_check=True)
    before = source.SerializeToString()
    made = dmlc.compile(source, target=target).to_onnx()
    assert source.SerializeToString() == before
    onnx.checker.check_model(made, full_check=True)
    assert "dim_value: -1" in str(source)
    assert "dim_value: -1" not in str(made)
