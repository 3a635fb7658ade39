"""A convolution with constant weights, as the rules see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlc.ir import Array, Node, StoredTensor, Tensor, Value
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.rewrite import Rewriter
from dmlc.records import dataclass


@dataclass(frozen=True, slots=True)
class Conv:
    """``weight`` is [outputs, inputs / groups, ...], ``bias`` has an element for each output, if there is one."""

    node: Node
    weight: Tensor
    bias: Tensor | None

    @property
    def channels(self) -> int:
        size = self.weight.type.shape[0]
        assert isinstance(size, int)
        return size


def conv_of(value: Value) -> Conv | None:
    """The convolution that the value is; None where its weights are not known, or lie in a file of their own."""
    node = value.producer
    if node is None or not is_opaque(node, "Conv"):
        return None
    weight = constant_of(node.operands[1])
    bias = constant_of(node.operands[2]) if len(node.operands) > 2 else None
    if weight is None or (bias is None and len(node.operands) > 2 and node.operands[2] is not None):
        return None
    if any(isinstance(t, StoredTensor) and t.is_apart for t in (weight, bias)):
        return None
    return Conv(node, weight, bias)


def channel_values(tensor: Tensor, conv: Conv) -> Array | None:
    """The elements of a tensor that varies by the channels of the convolution's result alone, one for each channel.

    None for another tensor, and for one that broadcasts the result to more axes.
    """
    rank = conv.node.result.type.rank
    shape = (*[1] * (rank - tensor.type.rank), *tensor.type.shape)
    if len(shape) != rank or any(size != 1 for axis, size in enumerate(shape) if axis != 1):
        return None
    if shape[1] not in (1, conv.channels):
        return None
    values: Array = np.broadcast_to(tensor.array.reshape(-1), (conv.channels,))
    return values


def rebuilt(rewriter: Rewriter, conv: Conv, weight: Array | None, bias: Array | None) -> Value:
    """The convolution with other weights and another bias (None: its own)."""
    dtype = conv.weight.dtype
    node = conv.node
    operands: list[Value | None] = [node.operand(0), node.operand(1), *node.operands[2:3]]
    if weight is not None:
        operands[1] = _constant(rewriter, weight.astype(dtype.numpy))
    if bias is not None:
        operands[2:] = [_constant(rewriter, bias.astype(dtype.numpy))]
    return rewriter.add(OPAQUE, operands, node.attributes_as(OpaqueAttributes))


def _constant(rewriter: Rewriter, array: Array) -> Value:
    return rewriter.add(CONSTANT, (), ConstantAttributes(value=Tensor(array)))


def wide(tensors: Sequence[Tensor]) -> list[np.ndarray[Any, Any]]:
    """The data in f64, so that folding rounds once."""
    return [t.array.astype(np.float64) for t in tensors]
