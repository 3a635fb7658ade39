"""Outputs that a model declares by name alone: they are given the type that is known."""

from __future__ import annotations

import onnx
from import_helpers import info, model, node
from onnx import helper

import dmlc


def test_an_output_without_a_type_is_given_the_one_that_is_known() -> None:
    m = model(
        [node("Flatten", ["x"], ["y"]), node("NonZero", ["x"], ["p"])],
        [info("x", ["batch", 3, 4])],
        [onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto(name="p")],
    )
    out = dmlc.compile(m).to_onnx()
    onnx.checker.check_model(out, full_check=True)
    y, p = [i.type.tensor_type for i in out.graph.output]
    assert (y.elem_type, p.elem_type) == (onnx.TensorProto.FLOAT, onnx.TensorProto.INT64)
    assert [d.dim_param or d.dim_value for d in y.shape.dim] == ["batch", 12]
    assert p.shape.dim[0].dim_value == 3
    assert p.shape.dim[1].WhichOneof("value") is None


def test_an_output_of_unknown_type_stays_without_one() -> None:
    made = helper.make_node("Odd", ["x"], ["y"], domain="somewhere")
    m = model([made], [info("x", ["batch"])], [onnx.ValueInfoProto(name="y")])
    m.opset_import.append(helper.make_opsetid("somewhere", 1))
    out = dmlc.compile(m, target="onnx").to_onnx()
    assert not out.graph.output[0].HasField("type")


def test_an_output_that_holds_a_sequence_is_given_its_type() -> None:
    m = model([node("SequenceConstruct", ["x", "x"], ["y"])], [info("x", [2])], [onnx.ValueInfoProto(name="y")])
    out = dmlc.compile(m, target="onnx").to_onnx()
    assert out.graph.output[0].type.sequence_type.elem_type.tensor_type.elem_type == onnx.TensorProto.FLOAT
