"""Values that stay f64 where f32 is asked for: each test fails where one guard of ``narrow-f64`` is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import repair_helpers as r

import dmlc

F64 = r.DOUBLE
F32: dict[str, Any] = {"f64": "f32"}


def casts(program: dmlc.Program) -> list[str]:
    return [i for n in program.to_onnx().graph.node if n.op_type == "Cast" for i in n.input]


def text(program: dmlc.Program) -> str:
    return next(e.text for e in program.ledger if e.rule == "narrow-f64")


def test_a_sequence_keeps_the_type_of_its_elements() -> None:
    nodes = [r.node("SequenceConstruct", ["x", "x"], ["s"]), r.node("SequenceAt", ["s", "i"], ["y"])]
    program = dmlc.compile(r.model(nodes, [("x", F64, [3])], [("y", F64, [3])], i=np.array(0)), **F32)
    assert "SequenceConstruct" in text(program) and not casts(program)
    x = np.array([1, 2, 1 / 3])
    np.testing.assert_array_equal(program.run({"x": x}, "cpu")["y"], x)


def test_what_makes_f64_of_no_f64_stays() -> None:
    nodes = [r.node("EyeLike", ["x"], ["e"], dtype=F64), r.node("MatMul", ["e", "w"], ["y"])]
    m = r.model(nodes, [("x", r.FLOAT, [3, 3]), ("w", F64, [3, 3])], [("y", F64, [3, 3])])
    program = dmlc.compile(m, **F32)
    assert "EyeLike stayed f64" in text(program)
    w = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(program.run({"x": w.astype(np.float32), "w": w}, "cpu")["y"], w)


def tree() -> onnx.ModelProto:
    """A regressor of one split; its thresholds have the type of the operand."""
    values, weights = r.helper.make_tensor("v", F64, [3], [0.5, 0, 0]), r.helper.make_tensor("w", F64, [2], [1.0, 2.0])
    made = r.node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_featureids=[0] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids=[0, 1, 2],
        nodes_treeids=[0] * 3, nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
        nodes_values_as_tensor=values, target_ids=[0, 0], target_nodeids=[1, 2], target_treeids=[0, 0],
        target_weights_as_tensor=weights,
    )  # fmt: skip
    m = r.model(
        [made, r.node("Exp", ["z"], ["e"])],
        [("x", F64, [3, 2]), ("z", F64, [3])],
        [("y", r.FLOAT, [3, 1]), ("e", F64, [3])],
    )
    m.opset_import.append(r.helper.make_opsetid("ai.onnx.ml", 3))
    return m


def test_attributes_of_the_type_of_an_operand() -> None:
    m = tree()
    program = dmlc.compile(m, **F32)
    assert "TreeEnsembleRegressor stayed f64" in text(program)
    feed = {"x": np.array([[0, 0], [1, 0], [0.25, 9]]), "z": np.zeros(3)}
    np.testing.assert_array_equal(program.run(feed, "cpu")["y"], r.run(m, feed)["y"])


def test_attributes_that_lie_in_a_file(tmp_path: Path) -> None:
    """They are not looked at, and may be of that type too."""
    m = tree()
    values = next(a.t for a in m.graph.node[0].attribute if a.name == "nodes_values_as_tensor")
    (tmp_path / "values.bin").write_bytes(np.array([0.5, 0, 0]).tobytes())
    values.ClearField("double_data")
    values.data_location = onnx.TensorProto.EXTERNAL
    values.external_data.add(key="location", value="values.bin")
    weights = next(a for a in m.graph.node[0].attribute if a.name == "target_weights_as_tensor")
    weights.t.CopyFrom(r.helper.make_tensor("w", r.FLOAT, [2], [1.0, 2.0]))
    (tmp_path / "m.onnx").write_bytes(m.SerializeToString())
    program = dmlc.compile(tmp_path / "m.onnx", **F32)
    assert "TreeEnsembleRegressor stayed f64" in text(program)


@pytest.mark.parametrize("apart", [True, False])
def test_weights_in_a_file_are_cast_where_they_are_used(tmp_path: Path, apart: bool) -> None:
    """Others are written as f32 at once."""
    w = np.arange(600.0)
    m = r.model([r.node("Mul", ["x", "w"], ["y"])], [("x", F64, [600])], [("y", F64, [600])], w=w)
    onnx.save(m, tmp_path / "m.onnx", save_as_external_data=apart, location="w.bin", size_threshold=0)
    program = dmlc.compile(tmp_path / "m.onnx", **F32, skip_rules=["fold"])
    kinds = [i.data_type for i in program.to_onnx().graph.initializer]
    assert kinds == ([F64] if apart else [r.FLOAT])
    assert len(casts(program)) == 2 + apart
    np.testing.assert_array_equal(program.run({"x": w}, "cpu")["y"], w * w)


def test_an_operation_with_a_number_of_f64_is_said_anew() -> None:
    """The form of its model names that number, which is no longer there."""
    m = r.model(r.node("Pad", ["x", "p", "v"], ["y"]), [("x", F64, [3])], [("y", F64, [5])], p=[1, 1], v=np.float64(2))
    program = dmlc.compile(m, **F32)
    assert [n.name for n in program.to_onnx().graph.node if n.op_type == "Pad"] != [""]
    np.testing.assert_array_equal(program.run({"x": np.ones(3)}, "cpu")["y"], [2, 1, 1, 1, 2])


def test_branches_stay() -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        info = r.helper.make_tensor_value_info(name, F64, [3])
        return r.helper.make_graph([r.node(op, ["x"], [name])], name, [], [info])

    made = r.node("If", ["c"], ["y"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Neg"))
    program = dmlc.compile(r.model(made, [("c", r.BOOL, []), ("x", F64, [3])], [("y", F64, [3])]), **F32)
    assert "If stayed f64" in text(program)
    found = program.run({"c": np.array(False), "x": np.ones(3)}, "cpu")["y"]
    assert found.dtype == np.float64 and (found == -1).all()
