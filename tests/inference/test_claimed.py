"""Nodes of operators without a rule: ONNX's inference of that node alone, in a process that may end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from onnx import TensorProto, TypeProto, helper, parser

import dmlc
from dmlc.inference import claimed
from dmlc.inference.claimed import claimed_types
from dmlc.workers import Worker, WorkerEnded
from tests.rows import each_row

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, "N"])
VERSIONS = {"": 22}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    claimed._asked.cache_clear()
    claimed._ENDS.clear()
    yield
    claimed._asked.cache_clear()
    claimed._ENDS.clear()
    claimed._WORKER.stop()


def sizes(type: TypeProto | None) -> list[int | str]:
    assert type is not None
    return [d.dim_param or d.dim_value for d in type.tensor_type.shape.dim]


def test_a_node_is_typed_by_onnx() -> None:
    node = helper.make_node("Transpose", ["x"], ["y"])
    assert sizes(claimed_types(node, [FLOATS], VERSIONS)[0]) == ["N", 2]


def test_an_operator_that_onnx_does_not_know_is_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "spawn", lambda self: pytest.fail("asked"))
    node = helper.make_node("Unheard", ["x"], ["y", "z"], domain="elsewhere")
    assert claimed_types(node, [FLOATS], {"elsewhere": 1}) == [None, None]


@each_row("version", [0, -1, 2**40])
def test_versions_that_no_operator_has(version: int) -> None:
    assert claimed_types(helper.make_node("Relu", ["x"], ["y"]), [FLOATS], {"": version}) == [None]


def test_a_node_that_onnx_refuses_has_unknown_types() -> None:
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[5, 6])
    assert claimed_types(node, [FLOATS], VERSIONS) == [None]


def test_a_node_that_ends_the_process_has_unknown_types_and_the_next_is_typed() -> None:
    ending = helper.make_node("Einsum", ["x"], ["y"], equation="$->")  # its sign is never passed, or ends the process
    claimed.TIME_LIMIT, limit = 2.0, claimed.TIME_LIMIT
    try:
        assert claimed_types(ending, [FLOATS], VERSIONS) == [None]
    finally:
        claimed.TIME_LIMIT = limit
    assert sizes(claimed_types(helper.make_node("Relu", ["x"], ["y"]), [FLOATS], VERSIONS)[0]) == [2, "N"]


def test_a_process_that_keeps_ending_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def ended(self: Worker, limit: float, request: object = None) -> object:
        starts.append(request)
        raise WorkerEnded(late=False)

    monkeypatch.setattr(Worker, "exchange", ended)
    for axis in range(10):
        node = helper.make_node("Softmax", ["x"], ["y"], axis=axis)
        assert claimed_types(node, [FLOATS], VERSIONS) == [None]
    assert len(starts) == 3


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Worker) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(Worker, "spawn", refused)
    assert claimed_types(helper.make_node("Relu", ["x"], ["y"]), [FLOATS], VERSIONS) == [None]


def test_the_importer_takes_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    from dmlc.importers import nodes

    monkeypatch.setattr(nodes, "has_rule", lambda domain, op_type, opset: op_type != "LpNormalization")
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[?, ?] y)
        { h = LpNormalization(x) y = Relu(h) }"""
    )
    program = dmlc.compile(model, target="onnx")
    ((_, output),) = program.graph.outputs
    assert str(output.type) == "f32[N, 4]"


def test_no_process_is_started_for_operators_with_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "spawn", lambda self: pytest.fail("asked"))
    model = parser.parse_model(
        """<ir_version: 13, opset_import: ["": 27, "com.elsewhere": 1]> g (float[N, 4] a, float[N, 4] b)
        => (float[?, ?] y) { h = Mul(a, b) k = com.elsewhere.Anything(h) y = Relu(k) }"""
    )
    dmlc.compile(model, target="onnx")
