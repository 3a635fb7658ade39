"""Conditions of the known faults of sums in f16."""

from __future__ import annotations

from onnx import NodeProto

from dmlc.ir import Shape, product
from dmlc.placement.bounds import bound_of
from dmlc.placement.typed_node import TypedNode
from dmlc.placement.values import ValueScope, attribute
from dmlc.targets.directml import MEASURED_SUM

#: The largest f16.
_LARGEST = 65504


def sums_many(node: TypedNode) -> bool:
    """True if each result is of more than 4096 elements."""
    x, y = node.given(0), node.results[0]
    if x is None or x.shape is None or y.shape is None or not x.static or not y.static or y.empty:
        return False
    return _count(x.shape) > MEASURED_SUM * _count(y.shape)


def _count(shape: Shape) -> int:
    count = product(shape)
    return count if isinstance(count, int) else 0


def powers_overflow(node: NodeProto, scope: ValueScope) -> bool:
    """True if nothing shows that the sum of the powers of each window is within f16."""
    bound, x = bound_of(node.input[0], scope), scope.of(node.input[0])
    exponent, window = attribute(node, "p"), attribute(node, "kernel_shape")
    sizes = window if isinstance(window, list) else list(x.shape[2:]) if x.shape is not None else None
    if bound is None or sizes is None or not all(isinstance(size, int) for size in sizes):
        return True
    power = exponent if isinstance(exponent, int) else 2
    return bool(_count(tuple(sizes)) * bound**power > _LARGEST)
