"""Times of nodes and models: what is read from ONNX Runtime's profile, and what is run for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import dmlc
from dmlc.codegen.artifact import Artifact, Signature
from dmlc.diagnostics import Source
from dmlc.ir import TensorType
from dmlc.ir.dtype import f32
from dmlc.runtime import bench, bench_nodes
from dmlc.runtime.session import has_directml

TEXT = "model m(x: f32[N, 4]) -> (y, i) {\n    return reduce_sum(exp(x), axes=[1]), argmax(x, axes=[1])\n}\n"
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def program() -> dmlc.api.Program:
    return dmlc.compile(Source("m.dml", TEXT))


def event(
    place: int | str, microseconds: int, provider: str = "CPUExecutionProvider", op: str = "Exp"
) -> dict[str, Any]:
    label = f"dmlc {place}" if isinstance(place, int) else place
    arguments = {"provider": provider, "op_name": op}
    return {"cat": "Node", "name": f"{label}_kernel_time", "dur": microseconds, "args": arguments}


RUN = {"cat": "Session", "name": "model_run", "dur": 1, "args": {}}


def test_the_first_runs_do_not_count_and_the_rest_give_a_median() -> None:
    times = [900, 800, 3, 9, 5]
    events = [e for t in times for e in (event(0, t), event(0, 1), RUN)]
    found = bench.read_profile(events, ["exp_0"])
    assert found.nodes[0] == bench.NodeTime("exp_0", "Exp", "CPUExecutionProvider", 6.0)  # 5 + 1: twice in a run


def test_nodes_that_onnx_runtime_put_in_stand_apart() -> None:
    events = [event("Memcpy", 7, "DmlExecutionProvider", "MemcpyToHost"), event(1, 2), RUN] * 3
    found = bench.read_profile([{"cat": "Session", "name": "session_initialization", "dur": 9}, *events], ["a", "b"])
    assert set(found.nodes) == {1}
    assert found.own == (bench.NodeTime("Memcpy", "MemcpyToHost", "DmlExecutionProvider", 7.0),)


def test_nodes_inside_others_come_after_them_as_in_the_report() -> None:
    def branch(name: str, op: str) -> Any:
        out = helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])
        one = helper.make_node("Constant", [], [f"{name}_c"], value_float=1.0)
        return helper.make_graph([one, helper.make_node(op, ["x", f"{name}_c"], [name])], name, [], [out])

    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Add"), else_branch=branch("b", "Mul")),
        helper.make_node("Exp", ["y"], ["z"]),
    ]
    inputs = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("z", TensorProto.FLOAT, [3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    program = dmlc.compile(model)
    artifact = program.artifact("onnx")
    order = [(node.op_type, inside) for node, inside in bench.nodes_of(artifact.payload.graph)]
    assert [op for op, _ in order] == [node.op for node in program.placement().nodes]
    assert (order[0], order[-1]) == (("If", False), ("Exp", False))
    assert len(order) == 4
    assert all(inside for _, inside in order[1:-1])
    feeds = {"c": np.array(True), "x": X[0, :3]}
    assert set(bench_nodes.alone(artifact, feeds, "cpu", 1, 0.0)) == {0, 3}
    found = bench.profile(artifact, feeds, "cpu", 2)
    assert {number: node.op for number, node in found.nodes.items()} == {
        0: "If",
        order.index(("Add", True)): "Add",
        3: "Exp",
    }


def test_every_node_is_timed_on_its_provider(program: dmlc.api.Program) -> None:
    artifact = program.artifact("onnx")
    names = [node.name for node in artifact.payload.graph.node]
    found = bench.profile(artifact, {"x": X}, "cpu", 3)
    assert [found.nodes[number].name for number in range(len(names))] == names
    assert {node.provider for node in found.nodes.values()} == {"CPUExecutionProvider"}
    assert all(node.microseconds >= 0 for node in found.nodes.values())
    assert [node.name for node in artifact.payload.graph.node] == names  # the model itself keeps its names


def test_the_whole_model_is_timed_with_its_data_in_place(program: dmlc.api.Program) -> None:
    found = bench.whole(program.artifact("onnx"), {"x": X}, "cpu", 3)
    assert found.on_device
    assert found.idle_microseconds > 0
    assert found.microseconds > 0


def test_data_that_cannot_be_bound_is_copied(program: dmlc.api.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    def refuse(*_: object) -> None:
        raise RuntimeError("no such device")

    monkeypatch.setattr(onnxruntime.OrtValue, "ortvalue_from_numpy", refuse)
    assert not bench.whole(program.artifact("onnx"), {"x": X}, "cpu", 2).on_device


def test_the_sizes_that_were_fed(program: dmlc.api.Program) -> None:
    assert bench.fed_sizes(program.artifact("onnx"), {"x": X}) == {"N": 3}
    assert bench.fed_sizes(program.artifact("onnx"), {}) == {}


def test_sizes_that_a_model_does_not_name_stay_open() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", None])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", None])
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert bench.fed_sizes(dmlc.compile(model).artifact("onnx"), {"x": X}, model) == {"n": 3}


def test_what_goes_wrong_has_a_code(program: dmlc.api.Program) -> None:
    artifact = program.artifact("onnx")
    with pytest.raises(dmlc.DmlcError, match="E0425"):
        bench.profile(artifact, {"x": X[:, :2]}, "cpu", 1)
    name = artifact.payload.graph.node[0].name
    artifact.payload.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(dmlc.DmlcError, match=f"NoSuchOperator.*{name}"):
        bench.profile(artifact, {"x": X}, "cpu", 1)
    for measure in (bench.profile, bench.whole):
        with pytest.raises(dmlc.DmlcError, match="E0554"):
            measure(artifact, {"x": X}, "cpu", 1)


@pytest.mark.skipif(has_directml(), reason="the provider is there")
def test_a_missing_provider(program: dmlc.api.Program) -> None:
    with pytest.raises(dmlc.DmlcError, match="E0553"):
        bench.profile(program.artifact("onnx"), {"x": X}, "dml", 1)


def test_nodes_are_timed_alone_with_what_the_ones_before_them_gave(program: dmlc.api.Program) -> None:
    artifact = program.artifact("onnx")
    found = bench_nodes.alone(artifact, {"x": X}, "cpu", 2, 0.0)
    assert set(found) == set(range(len(artifact.payload.graph.node)))
    assert all(time > 0 for time in found.values())
    idle = bench_nodes.alone(artifact, {"x": X}, "cpu", 1, 1e9)
    assert set(idle.values()) == {0.0}


def test_a_node_that_does_not_run_alone_has_no_time_and_the_rest_has() -> None:
    nodes = [
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("SequenceConstruct", ["a"], ["s"]),
        helper.make_node("SequenceAt", ["s", "zero"], ["b"]),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    zero = helper.make_tensor("zero", TensorProto.INT64, [], [0])
    graph = helper.make_graph(nodes, "g", [x], [y], [zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    four = TensorType(f32, (4,))
    artifact = Artifact("onnx", model, Signature("g", (("x", four),), (("y", four),)))
    assert set(bench_nodes.alone(artifact, {"x": X[0]}, "cpu", 1, 0.0)) == {0, 1, 3}  # a sequence cannot be fed
