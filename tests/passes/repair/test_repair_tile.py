"""Tile of f64, which DirectML's TILE does not take."""

from __future__ import annotations

import numpy as np
import pytest
import repair_helpers as r
from onnx import ModelProto

from tests.rows import each_row

RULE = "tile-by-expand"


def tile(repeats: list[int], shape: list[object], kind: int = r.DOUBLE, opset: int = 21) -> ModelProto:
    made = r.node("Tile", ["x", "repeats"], ["y"])
    return r.model(made, [("x", kind, shape)], [("y", kind, None)], opset=opset, repeats=np.array(repeats, np.int64))


@each_row("repeats", [[2, 1], [1, 3], [4, 2], [1, 1]])
@each_row("shape", [[2, 3], ["N", 3], ["N", "M"]])
@each_row("opset", [13, 21])
def test_tile_of_f64(repeats: list[int], shape: list[object], opset: int) -> None:
    x = np.arange(6, dtype=np.float64).reshape(2, 3)
    r.repaired(tile(repeats, shape, opset=opset), "rank", RULE, {"x": x}, exact=True)


def test_many_axes() -> None:
    x = np.arange(16, dtype=np.float64).reshape(1, 2, 1, 2, 1, 2, 1, 2)
    r.repaired(tile([3, 2, 1, 1, 1, 1, 5, 2], list(x.shape)), "rank", RULE, {"x": x})


@each_row("shape", [[2, 3, 1], ["N", 3, "M"]])
def test_axes_that_are_not_repeated_need_no_nodes(shape: list[object]) -> None:
    x = np.arange(6, dtype=np.float64).reshape(2, 3, 1)
    program = r.repaired(tile([1, 3, 1], shape), "rank", RULE, {"x": x})
    assert [op for op in r.operators(program) if op in ("Reshape", "Expand")] == ["Reshape", "Expand", "Reshape"]


def test_negative_repeats_are_left() -> None:
    assert r.operators(r.left_alone(tile([-1, 1], [2, 3]), RULE)) == ["Tile"]


@pytest.mark.emits_invalid("the source fails in each run")
def test_computed_counts_that_do_not_fit_are_left() -> None:
    """The one count is known only when the least of a large weight has folded, and there are two axes."""
    nodes = [r.node("ReduceMin", ["w"], ["least"]), r.node("Cast", ["least"], ["k"], to=r.KINDS["i64"])]
    nodes.append(r.node("Tile", ["x", "k"], ["y"]))
    weight = np.linspace(2, 3, 3000, dtype=np.float32)
    m = r.model(nodes, [("x", r.DOUBLE, [4, 4])], [("y", r.DOUBLE, None)], opset=17, w=weight)
    assert r.operators(r.left_alone(m, RULE)) == ["Tile"]


@each_row("shape", [[4], [4, 4]])
def test_the_first_form_stays_at_its_opset(shape: list[object]) -> None:
    """It repeats the axis that its third operand names."""
    made = r.node("Tile", ["x", "tiles", "axis"], ["y"])
    lists = {"tiles": np.float64([2]), "axis": np.float64([len(shape) - 1])}
    m = r.model(made, [("x", r.DOUBLE, shape)], [("y", r.DOUBLE, [*shape[:-1], 8])], opset=5, **lists)
    made_at_5 = r.left_alone(m, RULE).to_onnx()
    assert ([entry.version for entry in made_at_5.opset_import], made_at_5.graph.node[:]) == ([5], [made])


def test_other_operators_with_a_list_are_left() -> None:
    made = r.node("CenterCropPad", ["x", "k"], ["y"])
    m = r.model(made, [("x", r.DOUBLE, [4, 4])], [("y", r.DOUBLE, [2, 2])], k=np.array([2, 2]))
    x = np.arange(16, dtype=np.float64).reshape(4, 4)
    r.same(r.run(m, {"x": x}), r.left_alone(m, RULE).run({"x": x}, "cpu"))


def test_other_types_keep_it() -> None:
    assert r.operators(r.left_alone(tile([2, 1], [2, 3], r.FLOAT), RULE)) == ["Tile"]
    assert r.operators(r.left_alone(tile([2, 1], [2, 3]), RULE, target="cpu")) == ["Tile"]
