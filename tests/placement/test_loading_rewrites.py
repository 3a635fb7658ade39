"""Dispatches of nodes that ONNX Runtime makes one of while it loads a model: as many as of the model that it makes."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

from dmlc.placement.node import PROVIDER
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests.rows import each_row
from tools.model_checks import optimized_copy

#: Inputs, nodes, and the dispatches of the nodes in order.
GEMM = {
    "two axes": ("float[m, 4] x, float[4, 3] w, float[3] b", "h = MatMul(x, w) y = Add(h, b)", [0, 1]),
    "the bias first": ("float[m, 4] x, float[4, 3] w, float[3] b", "h = MatMul(x, w) y = Add(b, h)", [0, 1]),
    "a bias for each row": ("float[m, 4] x, float[4, 3] w, float[m, 1] b", "h = MatMul(x, w) y = Add(h, b)", [0, 1]),
    "three axes": ("float[2, 5, 4] x, float[4, 3] w, float[3] b", "h = MatMul(x, w) y = Add(h, b)", [0, 1]),
    "two layers": (
        "float[m, 4] x, float[4, 4] w, float[4] b",
        "h = MatMul(x, w) a = Add(h, b) i = MatMul(a, w) y = Add(i, b)",
        [0, 1, 0, 1],
    ),
    "an open size": ("float[m, 5, 4] x, float[4, 3] w, float[3] b", "h = MatMul(x, w) y = Add(h, b)", [1, 1]),
    "a bias of more axes": ("float[2, 5, 4] x, float[4, 3] w, float[1, 3] b", "h = MatMul(x, w) y = Add(h, b)", [1, 1]),
    "one bias": ("float[m, 4] x, float[4, 3] w, float[1] b", "h = MatMul(x, w) y = Add(h, b)", [1, 1]),
    "matrices of a batch": ("float[2, 5, 4] x, float[2, 4, 3] w, float[3] b", "h = MatMul(x, w) y = Add(h, b)", [1, 1]),
    "used twice": (
        "float[m, 4] x, float[4, 3] w, float[3] b",
        "h = MatMul(x, w) a = Add(h, b) y = Mul(a, h)",
        [1, 1, 1],
    ),
}
TRANSPOSED = {
    "the second": ("float[2, 5, 4] x, float[2, 3, 4] z", "t = Transpose<perm = [0, 2, 1]>(z) y = MatMul(x, t)", [0, 1]),
    "the first": ("float[2, 4, 5] x, float[2, 4, 3] z", "t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(t, z)", [0, 1]),
    "both": (
        "float[4, 5] x, float[3, 4] z",
        "t = Transpose<perm = [1, 0]>(x) u = Transpose<perm = [1, 0]>(z) y = MatMul(t, u)",
        [0, 0, 1],
    ),
    "other axes": ("float[2, 5, 4] x, float[4, 3, 2] z", "t = Transpose<perm = [2, 0, 1]>(z) y = MatMul(x, t)", [1, 1]),
}


def dispatches(model: ModelProto) -> list[object]:
    report = placement(model, load_target("directml"))
    assert {node.where for node in report.nodes} == {PROVIDER}
    return [node.dispatches for node in report.nodes]


def parsed(signature: str, nodes: str, type: str = "float") -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({signature}) => (float y) {{ {nodes} }}'
    model = parser.parse_model(text.replace("float", type))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@each_row("name", GEMM)
def test_a_product_and_its_bias_are_one_dispatch(name: str) -> None:
    signature, nodes, wanted = GEMM[name]
    model = parsed(signature, nodes)
    assert dispatches(model) == wanted
    assert sum(dispatches(optimized_copy(model))) == sum(wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TRANSPOSED)
def test_a_product_takes_its_transposes(name: str) -> None:
    signature, nodes, wanted = TRANSPOSED[name]
    model = parsed(signature, nodes)
    assert dispatches(model) == wanted
    made = [node.op_type for node in optimized_copy(model, "extended").graph.node]
    assert len(made) == sum(wanted), made


def test_f64_is_not_fused() -> None:
    model = parsed(*GEMM["two axes"][:2], type="double")
    assert [node.op_type for node in optimized_copy(model).graph.node] == ["MatMul", "Add"]
    report = placement(model, load_target("directml"))
    assert not any("Gemm" in node.why for node in report.nodes)


def test_bytes_between_the_nodes_are_not_moved() -> None:
    signature, nodes, _ = GEMM["two axes"]
    report = placement(parsed(signature, nodes), load_target("directml"), binding={"m": 5})
    assert [node.bytes for node in report.nodes] == [0, 4 * (5 * 4 + 4 * 3 + 3 + 5 * 3)]
