"""Types written into a model: they are those of ONNX's own inference wherever both know one, and real ones at run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, TypeProto, parser, shape_inference

import dmlc
from dmlc.inference.annotate import annotate, graphs_of
from dmlc.ir import TensorType, symbol
from dmlc.ir.dtype import f32
from tests.inference.test_rules_against_node_tests import CASES


def declared(graph: GraphProto) -> dict[str, TypeProto]:
    """The types of all values of a graph and of those inside its nodes."""
    out = {info.name: info.type for infos in (graph.value_info, graph.output) for info in infos}
    for node in graph.node:
        for inner in graphs_of(node):
            out |= declared(inner)
    return out


def sizes(type: TypeProto) -> list[int | None] | None:
    if not type.tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else None for d in type.tensor_type.shape.dim]


def contradictions(model: ModelProto) -> Iterator[str]:
    """Values that ONNX's inference and ours give different types."""
    theirs = ModelProto.FromString(shape_inference.infer_shapes(model, data_prop=True).SerializeToString())
    ours = ModelProto.FromString(model.SerializeToString())
    annotate(ours)
    known = declared(ours.graph)
    for name, type in declared(theirs.graph).items():
        mine = known.get(name)
        if mine is None or not type.HasField("tensor_type") or not mine.HasField("tensor_type"):
            continue
        if type.tensor_type.elem_type and mine.tensor_type.elem_type != type.tensor_type.elem_type:
            yield f"{name}: element {mine.tensor_type.elem_type}, not {type.tensor_type.elem_type}"
        a, b = sizes(mine), sizes(type)
        if a is None or b is None:
            continue
        if len(a) != len(b) or any(x is not None and y is not None and x != y for x, y in zip(a, b, strict=True)):
            yield f"{name}: {a}, not {b}"


def without_declarations(model: ModelProto) -> ModelProto:
    out = ModelProto.FromString(model.SerializeToString())
    del out.graph.value_info[:]
    for info in out.graph.output:
        info.ClearField("type")
    return out


def test_the_node_tests_are_typed_as_onnx_types_them() -> None:
    wrong = {}
    for name, model, _, _ in CASES:
        found = list(contradictions(without_declarations(model)))
        if found:
            wrong[name] = found
    assert not wrong


MODELS = {
    "branches": """<ir_version: 8, opset_import: ["": 18]> g (bool c, float[N, 4] x) => (float[?, ?] y) {
        h = If(c) <then_branch = t () => (float[a, b] p) { q = Relu(x) p = Exp(q) },
                   else_branch = e () => (float[c, d] r) { r = Neg(x) }>
        y = Abs(h) }""",
    "a computed reshape": """<ir_version: 8, opset_import: ["": 18]> g (float[N, 4, 6] x) => (float[?, ?] y)
        <int64[1] zero = {0}, int64[1] rest = {-1}> { s = Shape(x) n = Gather(s, zero) l = Concat(n, rest)
        r = Reshape(x, l) y = Tanh(r) }""",
    "an overridden shape": """<ir_version: 8, opset_import: ["": 18]> g (float[4, 6] x, int64[2] s) => (float[?, ?] y)
        <int64[2] s = {3, 8}> { r = Reshape(x, s) y = Tanh(r) }""",
}


def test_branches_that_agree_give_their_type() -> None:
    model = parser.parse_model(MODELS["branches"])
    annotate(model)
    found = declared(model.graph)
    assert str(found["h"].tensor_type.shape.dim[0].dim_param) == "N"
    assert found["q"].tensor_type.shape.dim[1].dim_value == 4


def test_sizes_of_a_computed_list_are_followed() -> None:
    model = parser.parse_model(MODELS["a computed reshape"])
    annotate(model)
    assert [d.dim_param or d.dim_value for d in declared(model.graph)["r"].tensor_type.shape.dim] == ["N", 24]


def test_the_default_of_an_input_is_not_a_fact() -> None:
    model = parser.parse_model(MODELS["an overridden shape"])
    annotate(model)
    assert sizes(declared(model.graph)["r"]) == [None, None]


def test_given_types_are_believed() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "mine": 1]> g (float[N] x) => (float[?, ?] y) {
        h = mine.Unknown(x) r = Neg(h) y = Tanh(r) }"""
    )
    annotate(model, {"h": TensorType(f32, (symbol("N"), 3))})
    assert sizes(declared(model.graph)["r"]) == [None, 3]


@pytest.mark.parametrize("name", MODELS)
def test_models_are_typed_as_onnx_types_them(name: str) -> None:
    assert not list(contradictions(parser.parse_model(MODELS[name])))


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("step", [-3, -1, 1, 2])
def test_slices_have_the_sizes_that_come_out(size: int, step: int) -> None:
    """Backwards ONNX clamps a start below the first element to it, where NumPy takes nothing."""
    for start in (-9, -2, -1, 0, 1, 9):
        for end in (-9, -2, -1, 0, 1, 9):
            weights = f"int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{0}}, int64[1] t = {{{step}}}"
            text = f"""<ir_version: 8, opset_import: ["": 18]> g (float[{size}, 2] x) => (float[?, 2] y) <{weights}>
                {{ h = Slice(x, s, e, a, t) y = Neg(h) }}"""
            model = parser.parse_model(text)
            x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            expected = session.run(None, {"x": x})[0]
            annotate(model)
            assert sizes(declared(model.graph)["h"]) == list(expected.shape)
            model.graph.output[0].type.tensor_type.shape.dim[0].Clear()
            np.testing.assert_array_equal(dmlc.compile(model, target="onnx").run({"x": x})["y"], expected)
