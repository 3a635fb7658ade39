"""Normalizations that have a scale and a bias for each channel, as opaque nodes."""

from __future__ import annotations

import numpy as np

from dmlc.ir import Array, DType, Node, Tensor, Value
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, Plain, is_opaque
from dmlc.passes.rewrite import Rewriter

INSTANCE, GROUP = "InstanceNormalization", "GroupNormalization"


def norm_of(value: Value) -> Node | None:
    """The instance or group normalization that the value is, where scale and bias are constants."""
    node = value.producer
    if not (is_opaque(node, INSTANCE) or is_opaque(node, GROUP)) or node is None or len(node.operands) != 3:
        return None
    return node if all(constant_of(v) is not None for v in node.operands[1:]) else None


def affine_of(node: Node) -> tuple[Array, Array]:
    """Scale and bias in f64, so that what is combined rounds once."""
    scale, bias = (constant_of(v) for v in node.operands[1:])
    assert scale is not None and bias is not None
    return scale.array.astype(np.float64), bias.array.astype(np.float64)


def channels(x: Value) -> int | None:
    """The size of axis 1, where it is known."""
    size = x.shape[1] if x.type.rank > 1 else None
    return size if isinstance(size, int) else None


def make_norm(
    rewriter: Rewriter, op_type: str, x: Value, scale: Array, bias: Array, attributes: dict[str, Plain]
) -> Value:
    dtype: DType = x.type.dtype
    operands = [x]
    for array in (scale, bias):
        tensor = Tensor(np.asarray(array).astype(dtype.numpy))
        operands.append(rewriter.add(CONSTANT, (), ConstantAttributes(value=tensor)))
    record = OpaqueAttributes(op_type=op_type, types=(x.type,), attributes=tuple(sorted(attributes.items())))
    return rewriter.add(OPAQUE, operands, record)
