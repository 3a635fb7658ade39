"""ONNX graphs written by hand: what dmlc is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET, IR_VERSION = 21, 10


class Net:
    """A graph that is written node by node; values are names.

    ``kind`` of a reduction is ``Sum``, ``Max`` and so on.
    """

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[TensorProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._count = 0

    def input(self, name: str, shape: Sequence[int], dtype: Any = np.float32) -> str:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        name = self._name("c")
        self._constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def op(self, op_type: str, *operands: str, **attributes: Any) -> str:
        return self.many(op_type, *operands, results=1, **attributes)[0]

    def many(self, op_type: str, *operands: str, results: int, **attributes: Any) -> list[str]:
        names = [self._name("v") for _ in range(results)]
        self._nodes.append(helper.make_node(op_type, list(operands), names, **attributes))
        return names

    def reduce(self, kind: str, x: str, axes: Sequence[int], *, keep: bool = False) -> str:
        return self.op(f"Reduce{kind}", x, self.ints(axes), keepdims=int(keep))

    def chain(self, kind: str, x: str, axes: Sequence[int]) -> str:
        """One reduction an axis, in the order given; axes stay, of size 1."""
        for axis in axes:
            x = self.reduce(kind, x, [axis], keep=True)
        return x

    def ints(self, numbers: Sequence[int]) -> str:
        return self.constant(list(numbers), np.int64)

    def scalar(self, number: float) -> str:
        return self.constant(number, np.float32)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", x, self.ints(shape))

    def transpose(self, x: str, order: Sequence[int]) -> str:
        return x if list(order) == sorted(order) else self.op("Transpose", x, perm=list(order))

    def model(self, *outputs: str) -> ModelProto:
        ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self._nodes, "net", self._inputs, ends, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        return typed(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION))

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


def typed(model: ModelProto) -> ModelProto:
    """The model with the types of its outputs, which ONNX infers."""
    from onnx import shape_inference

    inferred = shape_inference.infer_shapes(model, strict_mode=True)
    del inferred.graph.value_info[:]
    return inferred
