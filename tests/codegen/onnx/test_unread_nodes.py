"""Sizes that the emitted model reads elsewhere, and the nodes that a Shape read for them."""

from __future__ import annotations

import numpy as np
from onnx import parser

import dmlc
from tools.model_checks import run, session

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def test_random_nodes_that_only_a_shape_reads_stay() -> None:
    text = "r = RandomNormalLike (x) s = Shape (r) y = ConstantOfShape (s) a = Shape (x) z = ConstantOfShape (a)"
    source = parser.parse_model(f"{HEAD} g (float[N, 3] x) => (float[P, Q] y, float[R, S] z) {{ {text} }}")
    made = dmlc.compile(source, target="onnx").to_onnx()
    assert "RandomNormalLike" in {n.op_type for n in made.graph.node}


def test_size_of_an_operand_keeps_its_dim_where_a_name_is_declared() -> None:
    """An exporter names the count of a NonZero later on than the first value that has it."""
    text = (
        "n = NonZero (x) t = Transpose (n) g = GatherND (x, t) s = Shape (g) i = Squeeze (n, zero) k = Shape (i) "
        "o = Expand (one, k) y = Add (g, o)"
    )
    weights = "int64[1] zero = {0}, float[1] one = {1}, float[u0] g"
    source = parser.parse_model(f"{HEAD} g (float[N] x) => (float[M] y) <{weights}> {{ {text} }}")
    program = dmlc.compile(source, target="onnx")
    made = program.to_onnx()
    again = dmlc.compile(made, target="onnx", opset=made.opset_import[0].version).to_onnx()
    assert [n.op_type for n in again.graph.node] == [n.op_type for n in made.graph.node]
    assert "Expand" not in {n.op_type for n in made.graph.node}
    x = np.array([0, 2, 0, 5], np.float32)
    assert run(session(made), {"x": x})["y"].tolist() == [3, 6]
