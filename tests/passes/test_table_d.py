"""Results that another tool changed with its own check green: they stay what they were.

Each is a model of ONNX whose result a plausible rewrite moves: integer means that are merged, functions that keep the
order of numbers but not of ties, and sums in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import dmlc
from tests.rows import each_row

node = helper.make_node


def model(nodes: Sequence[onnx.NodeProto], shape: Sequence[int], dtype: int, out: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", out, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def run(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, {"x": x})[0]
    return result


def search_after(op: str) -> tuple[onnx.ModelProto, tuple[int, ...]]:
    first = node(op, ["x"], ["t"], **({"axis": 1} if "Softmax" in op else {}))
    nodes = [first, node("ArgMax", ["t"], ["y"], axis=1, keepdims=0)]
    return model(nodes, (1, 3), TensorProto.FLOAT, TensorProto.INT64), (0,)


TARGETS = ["directml", "cpu", "onnx"]


@each_row("target", TARGETS)
@each_row("options", [{}, {"exact": True}])
@each_row(
    ("op", "scores", "winner"),
    [
        ("Exp", [100, 200, 20], 0),  # both overflow: a tie
        ("Log", [-1, 2, 3], 0),  # the logarithm of -1 is NaN, which wins
        ("Softmax", [0, 1e-9, 0], 0),  # the gap is rounded away: a tie
        ("Sigmoid", [20, 30, 1], 0),  # both are 1
        ("Tanh", [20, 30, 1], 0),
        ("Sqrt", [-1, 2, 3], 0),
        ("LogSoftmax", [0, 1e-9, 0], 0),
    ],
)
def test_a_search_after_a_rising_function(
    op: str, scores: list[float], winner: int, options: dict[str, Any], target: str
) -> None:
    proto, _ = search_after(op)
    x = np.array([scores], dtype=np.float32)
    assert run(proto, x).tolist() == [winner]
    program = dmlc.compile(proto, target=target, **options)
    out = program.to_onnx()
    assert [n.op_type for n in out.graph.node] == [op, "ArgMax"]
    assert run(out, x).tolist() == [winner]
    assert not program.ledger


def test_a_rising_function_goes_only_where_the_user_says_so() -> None:
    proto, _ = search_after("Exp")
    program = dmlc.compile(proto, target="cpu", allow=("range",))
    assert [n.op_type for n in program.to_onnx().graph.node] == ["ArgMax"]
    assert [e.rewrite_class for e in program.ledger] == ["range"]
    assert run(program.to_onnx(), np.array([[100, 200, 20]], dtype=np.float32)).tolist() == [1]


@each_row("target", TARGETS)
@each_row("options", [{}, {"exact": True}, {"allow": ("range",)}])
def test_integer_means_are_truncated_one_by_one(options: dict[str, Any], target: str) -> None:
    nodes = [
        node("ReduceMean", ["x"], ["t"], axes=[1], keepdims=0),
        node("ReduceMean", ["t"], ["y"], axes=[0], keepdims=0),
    ]
    proto = model(nodes, (2, 2), TensorProto.INT32, TensorProto.INT32)
    x = np.array([[1, 2], [2, 3]], dtype=np.int32)
    assert int(run(proto, x)) == 1
    assert int(run(dmlc.compile(proto, target=target, **options).to_onnx(), x)) == 1
    for seed in range(3):
        x = np.random.default_rng(seed).integers(-9, 10, (2, 2)).astype(np.int32)
        assert run(proto, x) == run(dmlc.compile(proto, target=target, **options).to_onnx(), x)


@pytest.mark.parametrize("target", TARGETS)
def test_sums_in_another_order_are_said_to_be(target: str) -> None:
    """Legal by default, and in the ledger under its class; ``exact`` keeps every bit."""
    nodes = [
        node("ReduceSum", ["x", "one"], ["t"], keepdims=0),
        node("ReduceSum", ["t", "zero"], ["y"], keepdims=0),
    ]
    proto = model(nodes, (64, 64), TensorProto.FLOAT, TensorProto.FLOAT)
    for name, axis in (("one", 1), ("zero", 0)):
        proto.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [1], [axis]))
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((64, 64)) * 10.0 ** rng.integers(-3, 6, (64, 64))).astype(np.float32)
    kept = dmlc.compile(proto, target=target, exact=True)
    assert not kept.ledger
    assert run(kept.to_onnx(), x) == run(proto, x)
    merged = dmlc.compile(proto, target=target)
    assert {e.rewrite_class for e in merged.ledger} == {"reassociates"}
    scale = float(np.abs(x, dtype=np.float64).sum())
    assert abs(float(run(merged.to_onnx(), x)) - float(x.astype(np.float64).sum())) <= 1e-6 * scale
