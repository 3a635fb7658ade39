"""Near misses of ``cse`` and ``dce``: each test fails where one of their guards is dropped."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.diagnostics import Source

node = helper.make_node


def _branch(name: str, number: float) -> onnx.GraphProto:
    made = node("Constant", [], [name], value=numpy_helper.from_array(np.array([number], np.float32)))
    return helper.make_graph([made], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])])


def test_branches_of_one_condition_are_not_compared() -> None:
    nodes = [
        node("If", ["c"], ["a"], then_branch=_branch("t1", 1), else_branch=_branch("e1", 2)),
        node("If", ["c"], ["b"], then_branch=_branch("t2", 30), else_branch=_branch("e2", 40)),
        node("Add", ["a", "b"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    program = dmlc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    for condition, want in ((True, 31), (False, 42)):
        assert program.run({"c": np.array(condition)}, "cpu")["y"].tolist() == [want]


@pytest.mark.parametrize("rule", ["cse", "dce"])
def test_they_may_be_left_out(rule: str) -> None:
    lines = ("a = exp(x)", "b = exp(x)", "unused = sin(x)", "y = a + b", "return y")
    source = Source("t.dml", "model t(x: f32[3]) -> (y) {\n    " + "\n    ".join(lines) + "\n}\n")
    assert "cse" in {e.rule for e in dmlc.compile(source, target="onnx").ledger}
    program = dmlc.compile(source, target="onnx", skip_rules=[rule])
    assert rule not in {e.rule for e in program.ledger}
    operators = sorted(n.op_type for n in program.to_onnx().graph.node)
    assert operators == (["Add", "Exp", "Exp"] if rule == "cse" else ["Add", "Exp", "Sin"])
