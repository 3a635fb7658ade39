"""Statistics of a model: counts, dispatches and bytes, of what is known and what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dmlc.ir import TensorType, symbol
from dmlc.ir.dtype import f32
from dmlc.placement.statistics import Statistics, statistics
from dmlc.targets import load_target

F32 = TensorProto.FLOAT


def info(name: str, shape: Any, dtype: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes: list, inputs: list, outputs: list, weights: dict[str, Any] | None = None, **more: Any) -> Any:
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=more.pop("opsets", [helper.make_opsetid("", 18)]), **more)


def of(nodes: list, shape: Any, weights: dict[str, Any] | None = None, **more: Any) -> Statistics:
    found = model(nodes, [info("x", shape)], [info("y", None)], weights, **more)
    bytes_before = found.SerializeToString()
    out = statistics(found)
    assert found.SerializeToString() == bytes_before
    return out


def test_nodes_dispatches_and_bytes() -> None:
    axes = np.array([1], np.int64)
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Identity", ["e"], ["i"]),
        helper.make_node("Reshape", ["i", "shape"], ["r"]),
        helper.make_node("ReduceSum", ["r", "axes"], ["y"], keepdims=0),
    ]
    found = of(nodes, [2, 3, 4], {"shape": np.array([6, 4], np.int64), "axes": axes})
    assert found.nodes == {"Exp": 1, "Identity": 1, "ReduceSum": 1, "Reshape": 1}
    assert (found.total, found.opset, found.unknown, found.external_bytes) == (4, 18, 0, 0)
    assert found.dispatches == 2
    assert found.bytes_moved == 2 * 24 * 4 + (24 * 4 + 6 * 4 + 8)


def test_named_sizes_give_expressions() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    n = symbol("N")
    assert of(nodes, ["N", 4]).bytes_moved == 32 * n
    top = [helper.make_node("TopK", ["x", "k"], ["y", "i"])]
    found = of(top, ["N", 4], {"k": np.array([1], np.int64)})
    assert found.dispatches == n + 2  # alone, it zeroes a buffer first


def test_sizes_that_nobody_knows() -> None:
    found = of([helper.make_node("Relu", ["x"], ["y"])], None)
    assert (found.bytes_moved, found.unknown, found.dispatches) == (None, 1, 1)
    found = of([helper.make_node("TopK", ["x", "k"], ["y", "i"])], None, {"k": np.array([1], np.int64)})
    assert found.dispatches is None
    nodes = [helper.make_node("Odd", ["x"], ["h"], domain="my.own"), helper.make_node("Relu", ["h"], ["y"])]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.own", 1)]
    found = of(nodes, [4], opsets=opsets)
    assert (found.nodes, found.unknown, found.dispatches) == ({"Relu": 1, "my.own.Odd": 1}, 1, 1)


def test_types_that_the_caller_knows() -> None:
    nodes = [helper.make_node("Odd", ["x"], ["h"], domain="my.own"), helper.make_node("Relu", ["h"], ["y"])]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.own", 1)]
    made = model(nodes, [info("x", [4])], [info("y", None)], opsets=opsets)
    known = {"h": TensorType(f32, (2,)), "y": TensorType(f32, (2,))}
    assert statistics(made, known).bytes_moved == 8 + 8  # Odd runs nobody knows where
    # A made-up size means something only where an input has it.
    assert statistics(made, {**known, "y": TensorType(f32, (symbol("unknown_3"),))}).bytes_moved is None
    known = dict.fromkeys("xhy", TensorType(f32, (symbol("unknown_3"),)))
    assert statistics(made, known).bytes_moved == 8 * symbol("unknown_3")


def test_own_operators_of_onnx_runtime_pass_types_on() -> None:
    nodes = [
        helper.make_node("SimplifiedLayerNormalization", ["x", "w"], ["h"]),
        helper.make_node("Gelu", ["h"], ["y"], domain="com.microsoft"),
    ]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    found = of(nodes, [3, 4], {"w": np.ones(4, np.float32)}, opsets=opsets)
    assert found.bytes_moved == (48 + 16 + 48) + (48 + 48)


def test_what_is_computed_of_shapes_stays_on_the_cpu() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "i"], ["n"]),
        helper.make_node("Concat", ["n", "m"], ["t"], axis=0),
        helper.make_node("Cast", ["w"], ["v"], to=TensorProto.FLOAT16),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    weights = {"i": np.array([0], np.int64), "m": np.array([-1], np.int64), "w": np.ones(3, np.float32)}
    found = of(nodes, ["N", 4], weights)
    assert (found.total, found.dispatches) == (5, 0)
    assert isinstance(found.bytes_moved, int) and found.bytes_moved < 100  # sizes alone, on the CPU


def test_a_gather_reads_what_it_takes() -> None:
    made = model(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        [info("ids", [5], TensorProto.INT64)],
        [info("y", None)],
        {"table": np.zeros((1000, 8), np.float32)},
    )
    assert statistics(made).bytes_moved == 5 * 8 + 2 * (5 * 8 * 4)


def test_graphs_inside_nodes_count_once() -> None:
    inner = helper.make_graph([helper.make_node("Exp", ["x"], ["a"])], "then", [], [info("a", [4])])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "else", [], [info("b", [4])])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)]
    made = model(nodes, [info("x", [4]), info("c", [], TensorProto.BOOL)], [info("y", [4])])
    found = statistics(made)
    assert found.nodes == {"Exp": 1, "Identity": 1, "If": 1}
    assert (found.dispatches, found.bytes_moved) == (1, 32)


def test_functions_count_as_their_bodies() -> None:
    body = helper.make_function(
        "my", "Twice", ["a"], ["b"],
        [helper.make_node("Exp", ["a"], ["t"]), helper.make_node("Exp", ["t"], ["b"])],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    nodes = [helper.make_node("Twice", ["x"], ["y"], domain="my")]
    found = of(nodes, [4], opsets=opsets, functions=[body])
    assert (found.nodes, found.dispatches) == ({"Exp": 2}, 2)


def test_weights_outside_are_counted_and_never_read() -> None:
    made = model([helper.make_node("Mul", ["x", "w"], ["y"])], [info("x", [4])], [info("y", [4])])
    weight = made.graph.initializer.add(name="w", data_type=F32, dims=[2**20, 4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="nowhere.bin")
    found = statistics(made)
    assert found.external_bytes == 2**24
    weight.external_data.add(key="length", value="17")
    assert statistics(made).external_bytes == 17


@pytest.mark.parametrize(("version", "dispatches"), [(3, 1), (10, 2)])
def test_weights_of_old_models_are_listed_as_inputs(version: int, dispatches: int) -> None:
    """Before IR version 4 such a weight is a constant; since then it may be overridden."""
    made = model(
        [helper.make_node("Neg", ["w"], ["h"]), helper.make_node("Add", ["x", "h"], ["y"])],
        [info("x", [2, 2]), info("w", [2])],
        [info("y", None)],
        {"w": np.ones(2, np.float32)},
    )
    made.ir_version = version
    assert statistics(made).dispatches == dispatches


def test_a_target_says_where_nodes_run() -> None:
    made = model([helper.make_node("Det", ["x"], ["y"])], [info("x", [4, 4])], [info("y", None)])
    assert statistics(made).dispatches == 0, "DirectML's provider has no kernel"
    assert statistics(made, None, load_target("cpu")) == statistics(made, None, load_target("directml"))
    top = [helper.make_node("TopK", ["x", "k"], ["y", "i"])]
    held = model(top, [info("x", [3, 4])], [info("y", None)], {"k": np.array([1], np.int64)})
    assert statistics(held).dispatches == 3 + 1


def test_a_model_that_onnx_refuses_is_counted_all_the_same() -> None:
    found = of([helper.make_node("NoSuchOperator", ["x"], ["y"])], [4])
    assert found.nodes == {"NoSuchOperator": 1}
