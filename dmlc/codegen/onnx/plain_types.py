"""The types of values that plain operators make of operands whose sizes are all numbers.

ONNX's own inference says the same and much more, but its schemas take longer to load than a small program to compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from dmlc.codegen.onnx.writer import ELEMENT_TYPE
from dmlc.ir import FOREIGN, DType, TensorType
from dmlc.ir.dtype import bool_, i64

_DTYPES = {number: dtype for dtype, number in ELEMENT_TYPE.items()}

_LIKE_FIRST = frozenset(
    (
        *("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Identity", "Log", "Neg", "Not", "Reciprocal", "Relu", "Round"),
        *("LogSoftmax", "Sigmoid", "Sign", "Sin", "Softmax", "Sqrt", "Tanh"),
    )
)
_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Div", "Pow", "And", "Or"))
_COMPARISONS = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
_SEARCHES = frozenset(("ArgMax", "ArgMin"))
_DOMAINS = ("", "ai.onnx")
#: A constant of more numbers is no shape.
_MOST_AXES = 64


def told_types(model: ModelProto, types: Mapping[str, TensorType]) -> Mapping[str, TensorType]:
    """``types`` and those of all other values that nodes make; ``types`` alone where one of them is not plain."""
    if model.functions or model.ir_version < 4 or not all(map(_is_static, types.values())):
        return types
    look = _Look(model.graph, types)
    for node in model.graph.node:
        if any(name and name not in look.types for name in node.output):
            made = look.made(node)
            if made is None:
                return types
            look.types[node.output[0]] = made
    return look.types


def _is_static(type: TensorType) -> bool:
    return type.dtype is not FOREIGN and all(isinstance(size, int) for size in type.shape)


class _Look:
    """One walk over the nodes; ``constants`` are what no input stands for."""

    def __init__(self, graph: GraphProto, types: Mapping[str, TensorType]) -> None:
        self.types: dict[str, TensorType] = dict(types)
        inputs = {info.name for info in graph.input}
        self.constants: dict[str, TensorProto] = {t.name: t for t in graph.initializer if t.name not in inputs}
        for name, tensor in self.constants.items():
            dtype = _DTYPES.get(tensor.data_type)
            if dtype is not None:
                self.types[name] = TensorType(dtype, tuple(tensor.dims))

    def made(self, node: NodeProto) -> TensorType | None:
        """The type of a plain node's only result."""
        operands = [self.types.get(name) for name in node.input]
        if node.domain not in _DOMAINS or len(node.output) != 1 or not operands:
            return None
        first, op = operands[0], node.op_type
        if first is None:
            return None
        if op in _LIKE_FIRST:
            return first
        given = {a.name: a for a in node.attribute}
        if (op in _ARITHMETIC or op in _COMPARISONS) and not given and len(operands) == 2:
            return _stretched(first, operands[1], first.dtype if op in _ARITHMETIC else bool_)
        if op == "Cast" and "to" in given:
            dtype = _DTYPES.get(given["to"].i)
            return None if dtype is None else TensorType(dtype, first.shape)
        if op == "Reshape":
            shape = self._ints(node)
            return TensorType(first.dtype, shape) if shape is not None and all(size > 0 for size in shape) else None
        if op in _SEARCHES:
            return _reduced(first, (given["axis"].i if "axis" in given else 0,), given, i64)
        if op.startswith("Reduce"):
            axes = tuple(given["axes"].ints) if "axes" in given else self._ints(node)
            return _reduced(first, axes, given, first.dtype) if axes else None
        return None

    def _ints(self, node: NodeProto) -> tuple[int, ...] | None:
        """The numbers that are its second operand, where that is a constant of few."""
        tensor = self.constants.get(node.input[1]) if len(node.input) == 2 else None
        if (
            tensor is None
            or len(tensor.dims) != 1
            or tensor.dims[0] > _MOST_AXES
            or tensor.data_type != TensorProto.INT64
        ):
            return None
        has_data = len(tensor.raw_data) == 8 * tensor.dims[0]
        return tuple(numpy_helper.to_array(tensor).tolist()) if has_data else None


def _stretched(a: TensorType, b: TensorType | None, dtype: DType) -> TensorType | None:
    shapes: list[Any] = [a.shape, () if b is None else b.shape]
    try:
        return None if b is None else TensorType(dtype, np.broadcast_shapes(*shapes))
    except ValueError:  # a broken model: onnx says so
        return None


def _reduced(
    type: TensorType, axes: tuple[int, ...], given: Mapping[str, AttributeProto], dtype: DType
) -> TensorType | None:
    if not all(-type.rank <= axis < type.rank for axis in axes):
        return None
    dropped = {axis % type.rank for axis in axes}
    if "keepdims" not in given or given["keepdims"].i:
        return TensorType(dtype, tuple([1 if axis in dropped else size for axis, size in enumerate(type.shape)]))
    return TensorType(dtype, tuple([size for axis, size in enumerate(type.shape) if axis not in dropped]))
