"""Small ONNX models, written by their nodes: what the tests of the verifier share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from dmlc import verifying

#: Verification with half of the inputs of the command: tests that need more say so.
verify_models, verify_graph = partial(verifying.verify_models, inputs=12), partial(verifying.verify_graph, inputs=12)

F16, F32, F64 = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE
I32, I64, U8 = TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8
BF16, BOOL = TensorProto.BFLOAT16, TensorProto.BOOL

node = helper.make_node


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray[Any, Any]:
    """One number is a scalar."""
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def model(
    *nodes: NodeProto,
    x: Sequence[int | str | None] | None = (2, 3),
    dtype: int = F32,
    inputs: Mapping[str, tuple[int, Sequence[int | str | None] | None]] | None = None,
    constants: Mapping[str, np.ndarray[Any, Any]] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 18,
    ir: int = 9,
) -> ModelProto:
    """A model of one input ``x``, or of ``inputs``; outputs have the types that ONNX Runtime infers."""
    fed = {"x": (dtype, x)} if inputs is None else inputs
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, elem, shape) for name, (elem, shape) in fed.items()],
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def chain(*ops: str | tuple[str, dict[str, Any]], **options: Any) -> ModelProto:
    """Unary operators, one after the other, from x to y."""
    nodes, value = [], "x"
    for number, op in enumerate(ops):
        name, attributes = (op, {}) if isinstance(op, str) else op
        result = "y" if number == len(ops) - 1 else f"v{number}"
        nodes.append(node(name, [value], [result], **attributes))
        value = result
    return model(*nodes, **options)


def reductions(op: str, *axes: tuple[int, ...], keepdims: int = 1, **options: Any) -> ModelProto:
    """A chain of reductions of opset 18, from x to y."""
    nodes, constants, value = [], {}, "x"
    for number, group in enumerate(axes):
        result = "y" if number == len(axes) - 1 else f"v{number}"
        constants[f"axes{number}"] = ints(*group)
        nodes.append(node(op, [value, f"axes{number}"], [result], keepdims=keepdims))
        value = result
    return model(*nodes, constants=constants, **options)


ARGMAX = ("ArgMax", {"axis": -1, "keepdims": 1})
