"""Models made in memory, and the question that every test asks: the same results as before?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import dmlc

node = helper.make_node
FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def info(name: str, shape: Sequence[Any] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name: str, data: Any, dtype: Any = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[TensorProto] = (),
    *,
    opset: int = 17,
    ir: int = 8,
    domains: Mapping[str, int] | None = None,
    **more: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights, **more)
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(d, v) for d, v in (domains or {}).items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir)


def run(m: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    return run_all(m, [feeds])[0]


def run_all(m: onnx.ModelProto, inputs: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """The results for each of the inputs."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [session.run(None, dict(feeds)) for feeds in inputs]


def same(m: onnx.ModelProto, feeds: Mapping[str, Any], *, target: str = "directml", **options: Any) -> onnx.ModelProto:
    """Compile, run both, compare to the last bit; the compiled model."""
    out = dmlc.compile(m, target=target, **options).to_onnx()
    for old, new in zip(run(m, feeds), run(out, feeds), strict=True):
        _equal(old, new)
    return out


def _equal(old: Any, new: Any) -> None:
    if isinstance(old, list):
        assert len(old) == len(new)
        for a, b in zip(old, new, strict=True):
            _equal(a, b)
    elif old is None:
        assert new is None
    else:
        assert np.asarray(old).dtype == np.asarray(new).dtype
        np.testing.assert_array_equal(new, old)


def operators(m: onnx.ModelProto) -> list[str]:
    return [n.op_type for n in m.graph.node if n.op_type != "Identity"]
