"""Outputs whose node the DirectML provider would replace by one that computes the activation behind it as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests.rows import each_row
from tools.fault_models import activated
from tools.model_checks import optimized_copy

HEAD = "model m(a: f32[2, 3], b: f32[3, 3], c: f32[2, 3]) -> (y, z)"
#: A program with two outputs, and whether the first is the only operand of an activation that is fused into its node.
PROGRAMS = {
    "matmul, sigmoid": ("s = matmul(a, b)\n return s, sigmoid(s)", True),
    "matmul, tanh": ("s = matmul(a, b)\n return s, tanh(s)", True),
    "add, relu": ("s = a + c\n return s, relu(s)", True),
    "add, sigmoid": ("s = a + c\n return s, sigmoid(s)", False),
    "mul, relu": ("s = a * c\n return s, relu(s)", False),
    "matmul, exp": ("s = matmul(a, b)\n return s, exp(s)", False),
    "two uses": ("s = matmul(a, b)\n return s, sigmoid(s) + exp(s)", False),
    "not an output": ("s = matmul(a, b)\n return a + 1, sigmoid(s)", False),
}


@each_row("name", PROGRAMS)
def test_output_of_a_fused_node_is_a_copy(name: str) -> None:
    body, is_lost = PROGRAMS[name]
    program = dmlc.compile(Source("m.dml", f"{HEAD} {{\n {body}\n}}\n"))
    model = program.to_onnx()
    assert ("Identity" in [node.op_type for node in model.graph.node]) == is_lost
    for made in (model, optimized_copy(model)):
        assert not [f for _, f in placement(made, load_target("directml")).findings if f.effect == "fails"]
    random = np.random.default_rng(3)
    shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in model.graph.input}
    feeds = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    want, got = program.run(feeds, backend="reference"), program.run(feeds, backend="cpu")
    for key in want:
        np.testing.assert_allclose(got[key], want[key], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["cpu", "onnx"])
def test_other_targets_copy_nothing(target: str) -> None:
    program = dmlc.compile(activated()[0], target=target)
    assert [node.op_type for node in program.to_onnx().graph.node] == ["MatMul", "Sigmoid"]


def test_compiling_again_changes_nothing() -> None:
    first = dmlc.compile(activated()[0]).to_onnx()
    again = dmlc.compile(first).to_onnx()
    assert [node.op_type for node in again.graph.node] == ["MatMul", "Sigmoid", "Identity"]
    assert [node.op_type for node in first.graph.node] == ["MatMul", "Sigmoid", "Identity"]


@pytest.mark.parametrize(("host", "activation"), [("MatMul", "Relu"), ("Add", "LeakyRelu"), ("Add", "Relu")])
def test_imported_node_keeps_its_result(host: str, activation: str) -> None:
    made, feeds = activated(host, activation)
    program: Any = dmlc.compile(made)
    assert not program.placement().fails
    assert placement(made, load_target("directml")).fails
    near, _ = activated(host, activation, both=False)
    assert not placement(near, load_target("directml")).fails
    assert "Identity" not in [node.op_type for node in dmlc.compile(near).to_onnx().graph.node]
    assert set(program.run(feeds, backend="cpu")) == {"y0", "y1"}
