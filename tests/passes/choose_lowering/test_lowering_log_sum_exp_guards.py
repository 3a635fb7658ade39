"""A log-sum-exp is one node where that is cheaper: the test fails where the guard of its cost is dropped."""

from __future__ import annotations

import onnx
import pytest
from lowering_helpers import chosen, operators
from onnx import TensorProto, helper

import dmlc


@pytest.mark.parametrize(("opset", "stays"), [(13, True), (18, False)])
def test_a_node_of_an_older_opset_stays_where_it_is_written_as_it_is(opset: int, stays: bool) -> None:
    """From opset 18 on its axes are an operand, so that it has to be said anew."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 3]), ("y", [2, 1])))
    node = helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[1])
    graph = helper.make_graph([node], "g", [x], [y])
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    program = dmlc.compile(model, target="cpu", opset=opset)
    assert operators(program) == ["ReduceLogSumExp"] or not stays
    assert chosen(program) == ([] if stays else ["log-sum-exp-in-parts"])
