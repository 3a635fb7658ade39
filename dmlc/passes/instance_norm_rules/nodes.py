"""Normalizations that have a scale and a bias for each channel, as opaque nodes."""

from __future__ import annotations

import numpy as np

from dmlc.ir import Array, DType, Graph, Node, Tensor, TensorType, Value
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.move import RESHAPE
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, Plain, is_opaque
from dmlc.passes.rewrite import Rewriter

INSTANCE, GROUP, BATCH = "InstanceNormalization", "GroupNormalization", "BatchNormalization"


def norm_of(value: Value) -> Node | None:
    """The instance or group normalization that the value is, where scale and bias are constants."""
    node = value.producer
    if not (is_opaque(node, INSTANCE) or is_opaque(node, GROUP)) or node is None:
        return None
    return node if all(constant_of(v) is not None for v in node.operands[1:]) else None


def affine_of(node: Node) -> tuple[Array, Array]:
    """Scale and bias in f64, so that what is combined rounds once."""
    scale, bias = (constant_of(v) for v in node.operands[1:])
    assert scale is not None and bias is not None
    return scale.array.astype(np.float64), bias.array.astype(np.float64)


_MOST_CHANNELS = 1 << 20


def channels(x: Value, axis: int = 1) -> int | None:
    """The size of the channels' axis, where it is known and not so large that a constant for them is out of place."""
    size = x.shape[axis] if x.type.rank > axis else None
    return size if isinstance(size, int) and size <= _MOST_CHANNELS else None


def along(x: Value, axis: int, other: Value) -> Array | None:
    """The numbers of a constant that goes along one axis of x only, one for each place there, in f64; else None."""
    count, rank, tensor = channels(x, axis), x.type.rank, constant_of(other)
    if count is None or tensor is None or tensor.type.rank > rank:
        return None
    shape = (*[1] * (rank - tensor.type.rank), *tensor.array.shape)
    if any(size != 1 for i, size in enumerate(shape) if i != axis) or shape[axis] not in (1, count):
        return None
    return np.broadcast_to(tensor.array.astype(np.float64).reshape(-1), (count,))


def averages_several(graph: Graph, x: Value, channels_each: int = 1) -> bool:
    """True if each mean of a normalization of ``x`` is proved to be one of two or more elements, or of none.

    Of a single element the deviation is 0 and the result is the bias, whatever the element is. A kernel that computes
    ``x * a + (bias - mean * a)``, as ONNX Runtime's CPU provider does (core/providers/cpu/nn/instance_norm.cc), loses
    digits of the bias there: ``a`` is 1 / sqrt(epsilon). Of several elements, rounding the elements themselves moves
    the result as far.
    """
    return any(graph.dims.at_most(2, size) for size in (channels_each, *x.shape[2:]))


def is_reshape(node: Node | None) -> bool:
    """Return whether the node is a reshape. A reshape to another value's computed shape is opaque; its type has the
    shape."""
    return node is not None and (node.op is RESHAPE or is_opaque(node, "Reshape"))


def number(rewriter: Rewriter, array: Array, dtype: DType) -> Value:
    return rewriter.add(CONSTANT, (), ConstantAttributes(value=Tensor(np.asarray(array).astype(dtype.numpy))))


def make_norm(
    rewriter: Rewriter, op_type: str, x: Value, scale: Array, bias: Array, attributes: dict[str, Plain]
) -> Value:
    """The normalization of ``x`` with new constants."""
    dtype: DType = x.type.dtype
    return carry(
        rewriter, op_type, [x, number(rewriter, scale, dtype), number(rewriter, bias, dtype)], x.type, attributes
    )


def carry(
    rewriter: Rewriter, op_type: str, operands: list[Value | None], type: TensorType, attributes: dict[str, Plain]
) -> Value:
    """An ONNX node of one result."""
    record = OpaqueAttributes(op_type=op_type, types=(type,), attributes=tuple(sorted(attributes.items())))
    return rewriter.add(OPAQUE, operands, record)
