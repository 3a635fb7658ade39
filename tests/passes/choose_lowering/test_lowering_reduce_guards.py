"""The form that a reduction takes: each test fails where one guard of the plans or of their costs is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from lowering_helpers import chosen, compiled, operators, result
from onnx import TensorProto, helper

import dmlc

pytestmark = pytest.mark.usefixtures("by_one_calibration")

REDUCTIONS = {"sum": dmlc.reduce_sum, "mean": dmlc.reduce_mean, "max": dmlc.reduce_max, "min": dmlc.reduce_min}


def reduced(op: str, shape: Sequence[Any], axes: Sequence[int], dtype: str = "float32", **options: Any) -> dmlc.Program:
    keepdims = options.pop("keepdims", True)
    return compiled(lambda x: REDUCTIONS[op](x, axes=axes, keepdims=keepdims), shape, dtype, **options)


def model(op_type: str, shape: Sequence[int], opset: int = 13, **attributes: Any) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", None)))
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"], **attributes)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def test_a_short_group_in_the_middle_is_no_long_row() -> None:
    """The reduction of both ends of [256, 2, 4]: 1024 numbers lie together, but no row of them is added alone."""
    assert operators(reduced("mean", (2, 256, 4), [0, 2])) == ["ReduceMean"]
    assert chosen(reduced("mean", (2, 256, 4), [0, 2])) == []


def test_only_sums_of_long_rows_are_added_in_parts() -> None:
    """The kernel of a maximum is as fast along long rows as along short ones."""
    assert chosen(reduced("mean", (4096, 4096, 2, 2), [1, 2, 3], keepdims=False)) == ["reduce-in-steps"]
    assert chosen(reduced("sum", (4096, 256), [1])) == []


def test_averages_of_everything_stay_and_other_means_do_not() -> None:
    pooled = dmlc.compile(model("GlobalAveragePool", [8, 64, 256, 256]), target="cpu")
    assert operators(pooled) == ["GlobalAveragePool"] and chosen(pooled) == []
    assert chosen(reduced("mean", (1, 1000, 256, 2), [1, 3]))[0] == "reduce-outer-first"
    assert chosen(reduced("mean", (8, 64, 256, 256), [2, 3])) != []


@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes_of_integers_are_taken_in_parts(op: str) -> None:
    """They leave no range, as sums of integers may."""
    assert "reduce-in-steps" in chosen(reduced(op, (8, 32, 1024, 4), [0, 1, 3], "int32"))
    assert chosen(reduced("sum", (8, 32, 1024, 4), [0, 1, 3], "int32")) == []
    x = np.random.default_rng(0).integers(-9, 9, (4, 16, 64, 2)).astype(np.int32)
    program = reduced(op, x.shape, [0, 1, 3], "int32", only_rules=["reduce-in-steps"])
    np.testing.assert_array_equal(result(program, x), getattr(x, op)((0, 1, 3), keepdims=True))


def test_axes_of_size_1_are_left_where_none_lies_in_the_way() -> None:
    assert chosen(reduced("max", (1, 16, 32, 32), [1])) == ["reduce-ones-too"]
    assert chosen(reduced("mean", (1, 100, 8, 256, "N"), [1])) == ["sum-by-product"]
    assert "reduce-ones-too" not in chosen(reduced("mean", (100, 8, 256, "N"), [0]))


def test_only_a_pooling_is_taken_as_one() -> None:
    program = dmlc.compile(model("GlobalMaxPool", [256, 512, 8, 2]), target="cpu")
    assert chosen(program) == ["reduce-for-pool"] and operators(program) == ["ReduceMax"]
    asked = reduced("max", (1, 16, 32), [1], only_rules=["reduce-for-pool"])
    assert chosen(asked) == []


def test_axes_that_are_neighbours_are_one_node() -> None:
    for rule in ("reduce-inner-first", "reduce-outer-first"):
        assert chosen(reduced("max", (4, 6, 8), [1, 2], only_rules=[rule])) == []
        assert chosen(reduced("max", (4, 6, 8), [0, 2], only_rules=[rule])) == [rule]


def test_rows_of_maxima_are_not_divided() -> None:
    assert operators(reduced("min", (1024, 100), [0, 1], only_rules=["reduce-in-steps"])) == ["ReduceMin"]
    assert operators(reduced("max", (64, 2048), [1], only_rules=["reduce-in-steps"])) == ["ReduceMax"]
    assert chosen(reduced("sum", (64, 2048), [0], only_rules=["reduce-in-steps"])) == []


def test_rows_that_are_not_long_are_not_divided() -> None:
    for shape in ((32, 2), (4, 512)):
        axes = [0, 1] if shape == (32, 2) else [1]
        assert operators(reduced("sum", shape, axes, only_rules=["reduce-in-steps"])) == ["ReduceSum"]
    assert chosen(reduced("sum", (4, 520), [1], only_rules=["reduce-in-steps"])) == ["reduce-in-steps"]
