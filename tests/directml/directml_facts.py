"""A model for each row of ``failures`` in dml_ep.json: the smallest that the row speaks of, with data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

_TYPES = {
    "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "i64": TensorProto.INT64, "u8": TensorProto.UINT8,
    "u32": TensorProto.UINT32, "bool": TensorProto.BOOL,
}  # fmt: skip
#: A model and its data.
Fact = tuple[ModelProto, dict[str, np.ndarray]]


def _model(
    node: tuple[str, dict[str, Any]],
    data: dict[str, np.ndarray],
    results: list[tuple[str, list[int]]],
    opset: int,
    **constants: Any,
) -> Fact:
    op, attributes = node
    domain, _, op = op.rpartition(".")
    names = [f"y{i}" for i in range(len(results))]
    made = helper.make_node(op, [*data, *constants], names, domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in data.items()
    ]
    outputs = [helper.make_tensor_value_info(n, _TYPES[t], shape) for n, (t, shape) in zip(names, results, strict=True)]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([made], "fact", inputs, outputs, weights)
    versions = {"": opset} | ({domain: 1} if domain else {})
    imports = [helper.make_opsetid(name, version) for name, version in versions.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10), data


def _of(*shape: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    return {"x": (np.arange(int(np.prod(shape))) % 7 + 1).astype(dtype).reshape(shape)}


def _image(op: str, out: list[int], opset: int, **attributes: Any) -> Fact:
    scales = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)} if op == "Resize" else {}
    return _model((op, attributes), _of(1, 1, 4, 4), [("f32", out)] * (2 if op == "MaxPool" else 1), opset, **scales)


def _max_pool() -> Fact:
    node = ("MaxPool", {"kernel_shape": [2, 2], "storage_order": 1})
    return _model(node, _of(1, 1, 4, 4), [("f32", [1, 1, 3, 3]), ("i64", [1, 1, 3, 3])], 12)


def _layer_norm() -> Fact:
    results = [("f32", [2, 4]), ("f32", [2, 1])]
    return _model(("LayerNormalization", {}), _of(2, 4), results, 17, scale=np.ones(4, np.float32))


def _group_norm() -> Fact:
    ones = np.ones(2, np.float32)
    return _model(
        ("GroupNormalization", {"num_groups": 1}), _of(1, 2, 3), [("f32", [1, 2, 3])], 21, scale=ones, bias=ones
    )


def _scatter() -> Fact:
    index, updates = np.zeros((1, 4), np.int64), np.ones((1, 4), np.float32)
    node = ("ScatterElements", {"reduction": "add"})
    return _model(node, _of(2, 4), [("f32", [2, 4])], 16, index=index, updates=updates)


def _batch_norm() -> Fact:
    one = np.ones(2, np.float32)
    results = [("f32", [1, 2, 3]), ("f32", [2]), ("f32", [2])]
    node = ("BatchNormalization", {"training_mode": 1})
    return _model(node, _of(1, 2, 3), results, 15, scale=one, bias=one, mean=one, variance=one)


def _rnn() -> Fact:
    weights = {"w": np.full((1, 2, 3), 0.1, np.float32), "r": np.full((1, 2, 2), 0.1, np.float32)}
    return _model(("RNN", {"hidden_size": 2, "layout": 1}), _of(1, 4, 3), [("f32", [1, 4, 1, 2])], 14, **weights)


def _einsum(equation: str, operands: int) -> Fact:
    data = {name: array for i in range(operands) for name, array in ((f"x{i}", _of(3, 3)["x"]),)}
    return _model(("Einsum", {"equation": equation}), data, [("f32", [3, 3])], 12)


#: By the row's id.
FACTS: dict[str, Callable[[], Fact]] = {
    "reduce-integers": lambda: _model(
        ("ReduceMean", {}), _of(2, 3, dtype="int64"), [("i64", [2, 1])], 18, axes=np.array([1])
    ),
    "reduce-unsigned": lambda: _model(
        ("ReduceMean", {}), _of(2, 3, dtype="uint32"), [("u32", [2, 1])], 18, axes=np.array([1])
    ),
    "reduce-f64": lambda: _model(
        ("ReduceMax", {}), _of(2, 3, dtype="float64"), [("f64", [2, 1])], 20, axes=np.array([1])
    ),
    "rank": lambda: _model(("Neg", {}), _of(*[1] * 8, 3), [("f32", [1] * 8 + [3])], 13),
    "cast-bool": lambda: _model(
        ("Cast", {"to": TensorProto.BOOL}), {"x": np.array([0.25, -3, 0, 1], np.float32)}, [("bool", [4])], 19
    ),
    "log-sum-exp": lambda: _model(
        ("ReduceLogSumExp", {}), {"x": np.array([[100, 100]], np.float32)}, [("f32", [1, 1])], 18, axes=np.array([1])
    ),
    "empty": lambda: _model(("ReduceMax", {}), _of(0, 3), [("f32", [1, 3])], 20, axes=np.array([0])),
    "pad-negative": lambda: _model(("Pad", {}), _of(5), [("f32", [4])], 13, pads=np.array([0, -1])),
    "pad-negative-attribute": lambda: _model(("Pad", {"pads": [0, -1]}), _of(5), [("f32", [4])], 10),
    "reduce-bytes-18": lambda: _model(
        ("ReduceMax", {}), _of(2, 3, dtype="uint8"), [("u8", [2, 1])], 18, axes=np.array([1])
    ),
    "layer-norm-results": _layer_norm,
    "group-norm": _group_norm,
    "resize-cubic": lambda: _image("Resize", [1, 1, 8, 8], 13, mode="cubic"),
    "resize-outside": lambda: _image("Resize", [1, 1, 8, 8], 18, mode="linear", antialias=1, exclude_outside=1),
    "resize-extrapolation": lambda: _image("Resize", [1, 1, 8, 8], 13, mode="linear", extrapolation_value=2.0),
    "scatter-reduction": _scatter,
    "max-pool-order": _max_pool,
    "batch-norm-training": _batch_norm,
    "rnn-layout": _rnn,
    "einsum-operands": lambda: _einsum("ab,bc,cd->ad", 3),
    "einsum-ellipsis": lambda: _einsum("...b,bc->...c", 2),
    "gelu": lambda: _model(("Gelu", {}), _of(2, 4), [("f32", [2, 4])], 20),
    "fast-gelu": lambda: _model(("com.microsoft.FastGelu", {}), _of(2, 4), [("f32", [2, 4])], 17),
}
