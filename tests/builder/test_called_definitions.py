"""Operators without a kernel in a model that the builder calls: the way that ``docs/builder.md`` names."""

from __future__ import annotations

from onnx import parser

import dmlc

MODEL = '<ir_version: 8, opset_import: ["" : 18]> g (float[N, 4] x) => (float[N, 4] y) { y = Mish(x) }'


def test_compiling_the_compiled_model_puts_the_definition_there() -> None:
    g = dmlc.Graph("m")
    g.output("y", dmlc.function(parser.parse_model(MODEL))(g.input("x", "f32", ("N", 4))))
    once = dmlc.compile(g, target="directml").to_onnx()
    assert [node.op_type for node in once.graph.node] == ["Mish"]
    twice = dmlc.compile(dmlc.compile(g, target="onnx").to_onnx(), target="directml").to_onnx()
    assert [node.op_type for node in twice.graph.node] == ["Softplus", "Tanh", "Mul"]
