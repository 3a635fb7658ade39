"""Layer and RMS normalization: one node where the target has it, and the same numbers everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_session import TARGETS, assert_same, check, kinds, lower, run, session

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.normalize import rms_norm
from dmlc.codegen.onnx.writer import value_info
from dmlc.ir import DType, Graph, TensorType, symbol
from dmlc.ir.dtype import f16, f32, f64
from dmlc.ops.normalize import LAYER_NORM, RMS_NORM, NormAttributes
from dmlc.runtime.reference import evaluate
from dmlc.targets import load_target
from tests.rows import each_row

OPS = (LAYER_NORM, RMS_NORM)


def build(op: Any, dtype: DType = f32, shape: Any = (3, 4, 8), group: Any = (8,), axis: int = 2) -> Graph:
    graph = Graph("m")
    x = graph.add_input("x", TensorType(dtype, shape))
    scale = graph.add_input("scale", TensorType(dtype, group))
    operands = [x, scale]
    if op is LAYER_NORM:
        operands.append(graph.add_input("bias", TensorType(dtype, group)))
    node = graph.add(op, operands, NormAttributes(axis=axis, epsilon=1e-3))
    graph.add_output("y", node.result)
    return graph


def feeds(dtype: DType, shape: Any = (3, 4, 8), group: Any = (8,), mean: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {"x": rng.standard_normal(shape) + mean, "scale": rng.random(group) + 0.5, "bias": rng.random(group)}
    return {name: array.astype(dtype.numpy) for name, array in arrays.items()}


def compare(graph: Graph, target: str, opset: int, fed: dict[str, np.ndarray]) -> list[str]:
    fed = {v.name: fed[v.name] for v in graph.inputs if v.name is not None}
    want = evaluate(graph, fed)
    artifact = lower(graph, target, opset)
    check(artifact.payload)
    assert_same(run(session(artifact.payload, optimize=False), fed), want)
    return kinds(artifact)


@each_row("dtype", [f16, f32, f64], ids=str)
@each_row("opset", [11, 13, 16, 17, 18, 21])
@each_row("target", TARGETS)
@each_row("op", OPS, ids=lambda op: op.name)
def test_the_same_numbers(op: Any, target: str, opset: int, dtype: DType) -> None:
    found = compare(build(op, dtype), target, opset, feeds(dtype))
    if op is LAYER_NORM:
        assert ("LayerNormalization" in found) == (len(found) == 1) == (opset >= 17 and dtype is not f64)
    else:
        own = target != "onnx" and dtype is not f64
        assert ("SimplifiedLayerNormalization" in found) == (len(found) == 1) == own


@pytest.mark.parametrize(("dtype", "count"), [(f32, 1), (f16, 1), (f64, 6)], ids=str)
def test_rms_normalization_of_onnx_itself_from_opset_23_on(dtype: DType, count: int) -> None:
    """Only a model that is ahead of the target has that opset, so the lowering is asked alone."""
    graph = build(RMS_NORM, dtype)
    emitter = Emitter(graph, load_target("onnx"), 23)
    (node,) = graph
    emitter.begin("norm")
    emitter.finish(node, (rms_norm(emitter, node),))
    emitter.proto.input.extend([value_info(v.name or "", v.type) for v in graph.inputs])
    emitter.outputs({})
    emitter.proto.initializer.extend(emitter.shared.weights)
    model = onnx.helper.make_model(emitter.proto, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    assert len(model.graph.node) == count
    assert (model.graph.node[0].op_type == "RMSNormalization") == (count == 1)
    fed = {name: array for name, array in feeds(dtype).items() if name != "bias"}
    assert_same(run(session(model), fed), evaluate(graph, fed))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_several_axes(op: Any) -> None:
    graph = build(op, group=(4, 8), axis=1)
    assert len(compare(graph, "directml", 21, feeds(f32, group=(4, 8)))) == 1


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_scale_that_must_be_broadcast_is_written_in_parts(op: Any) -> None:
    """DirectML wants the sizes of the normalized axes, and ONNX Runtime wanted them too before 1.2x."""
    found = compare(build(op, group=(1,)), "directml", 21, feeds(f32, group=(1,)))
    assert "Mul" in found


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_group_that_may_be_empty(op: Any) -> None:
    n = symbol("N")
    graph = build(op, shape=(3, n), group=(n,), axis=1)
    graph.declare_dim("N", (0, 9))
    for size in (0, 5):
        compare(graph.clone(), "directml", 21, feeds(f32, (3, size), (size,)))


@pytest.mark.parametrize("mean", [10.0, 1000.0])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_large_mean_costs_no_more_digits_than_in_parts(op: Any, mean: float) -> None:
    """The reference, which is in parts, carries the rounding of the mean: as large as the mean, times 2^-24. One node
    may not be worse against the true value, which f64 gives, unless its kernel is: up to ONNX Runtime 1.24
    LayerNormalization subtracted the squared mean from the mean square (measured 2026-11)."""
    fed = feeds(f32, (64, 256), (256,), mean=mean)
    graph = build(op, shape=(64, 256), group=(256,), axis=1)
    fed = {v.name: fed[v.name] for v in graph.inputs if v.name is not None}
    exact = build(op, f64, (64, 256), (256,), 1)
    true = evaluate(exact, {k: v.astype(np.float64) for k, v in fed.items()})["y"]
    artifact = lower(graph, "directml", 21)
    (kind,) = kinds(artifact)
    found = run(session(artifact.payload, optimize=False), fed)["y"]
    bound = 4 * 2.0**-24 * (mean if op is LAYER_NORM else 1) + 2e-6
    alone = run_alone(kind, fed)
    assert np.max(np.abs(found - true)) <= max(bound, np.max(np.abs(alone - true)))


def run_alone(kind: str, fed: dict[str, np.ndarray]) -> np.ndarray:
    """The result of one normalization node over axis 1 that dmlc did not make."""
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node(kind, list(fed), ["y"], axis=1, epsilon=1e-3)
    values = [helper.make_tensor_value_info(name, float32, array.shape) for name, array in fed.items()]
    result = helper.make_tensor_value_info("y", float32, fed["x"].shape)
    graph = helper.make_graph([node], "alone", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return run(session(model, optimize=False), fed)["y"]
