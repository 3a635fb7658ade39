"""Opaque nodes of constants that only move elements are computed while compiling; what ONNX leaves open is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.passes.fold_constants.between import _OPAQUE_ELEMENTWISE
from tests.kit import run
from tests.rows import each_row

DATA = np.arange(12, dtype=np.float32).reshape(3, 4)


def made(op: str, *constants: Any, opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    """The node of constants added to an input."""
    names = [f"c{i}" for i in range(len(constants))]
    nodes = [helper.make_node(op, names, ["v"], "moved", **attributes), helper.make_node("Add", ["x", "v"], ["y"])]
    weights = [numpy_helper.from_array(np.asarray(c), name) for c, name in zip(constants, names, strict=True)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def operators(model: onnx.ModelProto, **options: Any) -> list[str]:
    return [node.op_type for node in dmlc.compile(model, target="onnx", **options).to_onnx().graph.node]


def i64(*numbers: Any) -> Any:
    return np.array(numbers, np.int64)


FOLDED = {
    "ScatterND": made("ScatterND", DATA, i64([0], [2]), DATA[:2] * 10),
    "ScatterND of elements": made("ScatterND", DATA, i64([0, 1], [2, -1]), np.array([7, 8], np.float32)),
    "GatherND": made("GatherND", DATA, i64([0, 1], [2, 3])),
    "GatherND of rows": made("GatherND", DATA, i64([1], [-1])),
    "Trilu": made("Trilu", DATA, np.array(1, np.int64)),
    "Trilu below": made("Trilu", DATA, upper=0),
    "Tile": made("Tile", DATA, i64(2, 1)),
    "Range of whole floats": made("Range", np.float32(-1), np.float32(4), np.float32(2)),
    "Range of whole floats downwards": made("Range", np.float32(4), np.float32(-1), np.float32(-3)),
}


@each_row("name", FOLDED)
def test_moved_constants_are_computed(name: str) -> None:
    model = FOLDED[name]
    assert operators(model) == ["Add"]
    assert operators(model, exact=True) == ["Add"]
    x = np.array(0.5, np.float32)
    np.testing.assert_array_equal(dmlc.compile(model, target="onnx").run({"x": x})["y"], run(model, x=x)["y"])


KEPT = {
    "updates of one place": made("ScatterND", DATA, i64([0], [0]), DATA[:2]),
    "updates that are added": made("ScatterND", DATA, i64([0], [2]), DATA[:2], reduction="add"),
    "an index out of range": made("GatherND", DATA, i64([7, 0])),
    "batches": made("GatherND", DATA, i64([1], [0], [2]), batch_dims=1),
    "a Range of a fraction": made("Range", np.float32(0), np.float32(1), np.float32(0.1)),
    "a Range beyond the whole floats": made("Range", np.float32(2**25 - 4), np.float32(2**25), np.float32(1)),
    "another operator": made("Celu", DATA),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_onnx_leaves_open_or_no_form_says_stays(name: str) -> None:
    assert "moved" in [n.name for n in dmlc.compile(KEPT[name], target="onnx").to_onnx().graph.node]


def test_operators_of_other_domains_are_others() -> None:
    """They neither are computed nor change places with a reshape, whatever their names are."""
    text = """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> g (float[3, 4] x) => (float[3, 4] y)
        <int64[2] one = {2, 1}, float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
         int64[2] flat = {2, 6}, int64[2] back = {3, 4}, float[6, 4] t, float[2, 6] e>
        { t = com.microsoft.Tile (w, one) c = ReduceMax <keepdims = 0> (t) r = Reshape (x, flat)
          e = com.microsoft.Elu (r) f = Reshape (e, back) y = Add (f, c) }"""
    found = operators(onnx.parser.parse_model(text))
    assert found == ["Tile", "ReduceMax", "Reshape", "Elu", "Reshape", "Add"]
    assert operators(onnx.parser.parse_model(text.replace("com.microsoft.Elu", "Elu"))) == [
        "Tile",
        "ReduceMax",
        "Elu",
        "Add",
    ]


def test_elementwise_operators_have_one_operand() -> None:
    for name in sorted(_OPAQUE_ELEMENTWISE):
        text = f"""<ir_version: 10, opset_import: ["" : 24]> g (float[3, 4] x) => (float[3, 4] y)
            {{ y = {name} (x, x) }}"""
        with pytest.raises(dmlc.DmlcError, match="E0431"):
            dmlc.compile(onnx.parser.parse_model(text)).require_sound()


def test_an_operator_that_is_read_no_better_stays_as_it_is() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[1, 1, 4] x) => (float[1, 1, 2] y)
        <float[1, 1, 3] k = {1, 2, 3}> { w = Add (k, k) y = Conv (x, w) }"""
    program = dmlc.compile(onnx.parser.parse_model(text), target="onnx")
    assert [entry.rule for entry in program.ledger] == ["fold"]
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Conv"]


def test_an_input_that_is_fed_keeps_the_node() -> None:
    model = made("Tile", DATA, i64(2, 1))
    model.graph.input.append(helper.make_tensor_value_info("c0", TensorProto.FLOAT, [3, 4]))
    assert operators(model) == ["Tile", "Add"]


def test_the_limit_on_folded_elements_holds() -> None:
    assert operators(made("Tile", DATA, i64(20, 1)), limits={"folded_elements": 100}) == ["Tile", "Add"]


def test_nothing_along_a_huge_axis_is_not_computed() -> None:
    # the largest of each row would be 2^31 - 1 numbers
    model = made("Softmax", np.zeros((2**31 - 1, 0), np.float32))
    assert operators(model) == ["Softmax", "Add"]
    assert operators(made("Softmax", np.zeros((5, 0), np.float32))) == ["Add"]


def test_positions_of_numbers_other_than_zero_are_computed() -> None:
    mask = np.array([[1, 0, 2], [0, 0, 3]], np.int32)
    weights = [numpy_helper.from_array(mask, "mask")]
    x = helper.make_tensor_value_info("x", TensorProto.INT64, [])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    nodes = [helper.make_node("NonZero", ["mask"], ["v"]), helper.make_node("Add", ["x", "v"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), ir_version=8)
    model.opset_import[0].version = 18
    assert operators(model) == ["Add"]
    wanted = [[0, 0, 1], [0, 2, 2]]
    np.testing.assert_array_equal(dmlc.compile(model, target="onnx").run({"x": np.array(0)})["y"], wanted)
