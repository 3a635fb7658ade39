"""A log-sum-exp is one node where that is cheaper: the test fails where the guard of its cost is dropped."""

from __future__ import annotations

import onnx
import pytest
from lowering_helpers import chosen, operators
from onnx import TensorProto, helper

import dmlc


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize(("rows", "columns", "stays"), [(2, 3, True), (2, 2, True), (8, 1000, False)])
def test_the_node_of_a_model_stays_where_its_few_elements_cost_less(
    rows: int, columns: int, stays: bool, opset: int
) -> None:
    """It is one node at any opset: from 18 on its axes are an operand."""
    infos = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [rows, columns]), ("y", [rows, 1]))
    ]
    node = helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[1])
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    program = dmlc.compile(model, target="cpu", opset=opset)
    assert (operators(program) == ["ReduceLogSumExp"]) is stays
    assert [name for name in chosen(program) if name.startswith("log")] == ([] if stays else ["log-sum-exp-in-parts"])
