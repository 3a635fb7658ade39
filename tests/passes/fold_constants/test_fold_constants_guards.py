"""Near misses of ``fold-constants``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper
from pass_helpers import Building, check_numbers, context, evaluate, names, remarks, run

import dmlc
from dmlc.ir import symbol
from dmlc.ir.dtype import bool_, f32, i16, i32, i64, u8
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.move import CONCAT, EXPAND, PAD, SLICE
from dmlc.passes.fold_constants import FoldConstants

PASS = FoldConstants()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("number", [np.ones((2, 3)), [1.0, 1.0, 2.0]])
def test_ones_that_broadcast_and_others_beside_a_one(number: Any, swapped: bool) -> None:
    b = Building()
    x, c = b.input("x", (3,)), b.constant(number)
    graph = b.done(b(MUL, c, x) if swapped else b(MUL, x, c))
    check_numbers(PASS, graph)
    assert names(graph) == ["mul"]


def test_a_constant_without_elements_is_not_neutral() -> None:
    b = Building()
    graph = b.done(b(ADD, b.input("x", (1,)), b.constant(np.zeros(0))))
    check_numbers(PASS, graph)


@pytest.mark.parametrize(
    ("source", "middle", "to"),
    [(f32, i32, i16), (i32, bool_, i32), (u8, bool_, i64), (f32, bool_, f32), (bool_, f32, i32)],
)
def test_casts_through_what_loses_something(source: Any, middle: Any, to: Any) -> None:
    b = Building()
    graph = b.done(b(CAST, b(CAST, b.input("x", (4,), source), to=middle), to=to))
    feeds = {"x": np.array([70000, 3, 0, 1]).astype(source.numpy)}
    before = evaluate(graph, feeds)
    run(PASS, graph)
    assert names(graph) == (["cast"] if source is bool_ else ["cast", "cast"])
    np.testing.assert_array_equal(evaluate(graph, feeds)[0], before[0])


def test_an_integer_that_wraps_is_cast() -> None:
    b = Building()
    graph = b.done(b(CAST, b.constant([300, -1], i32), to=u8))
    check_numbers(PASS, graph, feeds={"x": np.zeros(0)})
    assert names(graph) == []


def test_expands_that_broadcasting_makes_needless_and_others() -> None:
    b = Building()
    x, full, row = b.input("x", (1, 3)), b.input("full", (2, 3)), b.input("row", (1, 3))
    wide = b(EXPAND, x, shape=[2, 3])
    check = b.input("check", (1, 3), bool_)
    graph = b.done(b(ADD, wide, full), b(ADD, wide, row), b(WHERE, check, wide, row), b(MUL, wide, wide))
    check_numbers(PASS, graph)
    assert names(graph).count("expand") == 1
    assert [v.shape for _, v in graph.outputs] == [(2, 3)] * 4
    operands = [[v.shape for v in value.producer.operands] for _, value in graph.outputs if value.producer]
    assert operands == [[(1, 3), (2, 3)], [(2, 3), (1, 3)], [(1, 3), (2, 3), (1, 3)], [(1, 3), (2, 3)]]


def test_a_concat_with_nothing_is_what_it_was() -> None:
    b = Building()
    graph = b.done(b(CONCAT, b.input("x", (3,)), b.input("e", (0,)), axis=0))
    check_numbers(PASS, graph)
    assert names(graph) == []


def test_sizes_that_are_not_known_are_not_folded() -> None:
    n = symbol("n")
    b = Building(n=(1, 9))
    b.input("x", ("n",))
    c = b.constant(np.arange(20))
    graph = b.done(b(PAD, c, pads=[0, n]), b(SLICE, c, starts=[n], ends=[n + 2]))
    said = remarks(run(PASS, graph, context()))
    assert names(graph) == ["pad", "slice"]
    assert any(text.startswith("its sizes are not known") for text in said)
    assert any(text.startswith("its attributes hold sizes") for text in said)


def test_large_data_in_a_file_of_its_own_is_not_read(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mul", ["w", "two"], ["v"]), helper.make_node("Add", ["x", "v"], ["y"])]
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1000]) for name in "xy"]
    w = numpy_helper.from_array(np.arange(1000, dtype=np.float32), "w")
    two = numpy_helper.from_array(np.full(1000, 2, np.float32), "two")
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [w, two])
    external_data_helper.set_external_data(graph.initializer[0], "apart.data")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    program = dmlc.compile(tmp_path / "m.onnx")
    assert [n.op_type for n in program.to_onnx().graph.node] == ["Mul", "Add"]
    assert any("is in another file" in r.reason() for r in program.remarks)


def test_a_loop_of_known_count_is_no_branch() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [helper.make_tensor_value_info(*i) for i in (("i", 7, []), ("go", 9, []), ("s", 1, [3]))],
        [helper.make_tensor_value_info(*i) for i in (("on", 9, []), ("t", 1, [3]))],
    )
    weights = [numpy_helper.from_array(np.array(4), "count"), numpy_helper.from_array(np.array(True), "yes")]
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Loop", ["count", "yes", "x"], ["y"], body=body)], "g", infos[:1],
                              infos[1:], weights)  # fmt: skip
    program = dmlc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert program.run({"x": np.ones(3, np.float32)}, "cpu")["y"].tolist() == [5, 5, 5]
