"""Conditions of the known faults of ConvTranspose."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.onnx_schema.transposed_conv import TransposedAxis, transposed_axes
from dmlc.placement.typed_node import TypedNode
from dmlc.placement.values import attribute

#: The axes of a tensor of one spatial axis.
_LINE = 3


def pads_a_line(node: TypedNode) -> bool:
    """True if the operand has one spatial axis, and output_padding is given."""
    x = node.given(0)
    return x is not None and x.rank == _LINE and attribute(node.proto, "output_padding") is not None


def has_wrong_size(node: TypedNode) -> bool:
    """True if the result has another size than the provider expects: that of a Conv's padding, without dilations."""
    return any(axis.has_wrong_size for axis in _axes(node))


def has_wrong_start(node: TypedNode) -> bool:
    """True if output_padding changes how the padding of an output_shape is shared out."""
    return any(axis.has_wrong_start for axis in _axes(node))


def _axes(node: TypedNode) -> Sequence[TransposedAxis]:
    x, weights = node.given(0), node.given(1)
    if x is None or weights is None or x.shape is None or weights.shape is None:
        return ()
    return transposed_axes(lambda name: attribute(node.proto, name), x.shape, weights.shape) or ()
