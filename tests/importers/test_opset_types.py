"""The opset of the result has to take the types of carried nodes, not only their attributes."""

from __future__ import annotations

import pytest
from onnx import ModelProto, TensorProto, helper

import dmlc


def convolution(element_type: int) -> ModelProto:
    shapes = {"x": [1, 2, 4, 4], "w": [2, 2, 1, 1]}
    inputs = [helper.make_tensor_value_info(name, element_type, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("y", element_type, [1, 2, 4, 4])
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], name="first")], "m", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def test_a_type_that_came_later_is_not_lowered() -> None:
    program = dmlc.compile(convolution(TensorProto.BFLOAT16), target="directml")
    assert program.opset == 22
    assert "opset 22, not 21: node first (Conv) has no equal there" in program.artifact("onnx").report
    with pytest.raises(dmlc.DmlcError, match=r"E0501.*node first \(Conv\) of opset 22 has no equal at opset 21"):
        dmlc.compile(convolution(TensorProto.BFLOAT16), target="directml", opset=21)


def test_other_types_are() -> None:
    model = dmlc.compile(convolution(TensorProto.FLOAT), target="directml").to_onnx()
    assert [o.version for o in model.opset_import if o.domain == ""] == [21]
