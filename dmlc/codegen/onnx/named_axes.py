"""Pad and Resize of the axes that they name, written for all axes.

ONNX Runtime's TransposeOptimizer reorders their pads, scales and sizes as if there were one for each axis (1.23.2 to
1.32.0): from opset 18 on, a model with a transpose before such a node fails in the run or computes wrong numbers. Where
the rank is not known, ONNX Runtime does not know it either, and leaves the node alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.ir import Array, ForeignType, Node, Tensor, Value
from dmlc.ir.dtype import i64
from dmlc.ops.constant import constant_of
from dmlc.ops.move import PAD
from dmlc.ops.opaque import OpaqueAttributes, is_opaque

#: The opset from which on axes can be named.
_SINCE = 18


def names_axes(emitter: Emitter, node: Node) -> bool:
    """Return whether the node's form in its model names axes, and can be written for all of them."""
    if emitter.opset < _SINCE:
        return False
    if node.op is PAD:
        return node.origin is not None and any(node.origin.proto.input[3:])
    if is_opaque(node, "Pad"):
        return _operand(node, 3) is not None and _pads_fit(node)
    return is_opaque(node, "Resize") and _resize_axes(node) is not None


def of_all_axes(emitter: Emitter, node: Node) -> list[str]:
    """Return the operands of such an opaque node without named axes."""
    return _pad_operands(emitter, node) if is_opaque(node, "Pad") else _resize_operands(emitter, node)


def _operand(node: Node, index: int) -> Value | None:
    return node.operands[index] if index < len(node.operands) else None


def _normal(axes: Sequence[int], value: Value | None) -> list[int] | None:
    """The axes of a value from 0 on; None where they are none of it, or its rank is not known."""
    if value is None or isinstance(value.type, ForeignType):
        return None
    rank = value.type.rank
    normal = [axis % rank for axis in axes if -rank <= axis < rank]
    return normal if len({*normal}) == len(axes) else None


# --- Pad


def _pads_fit(node: Node) -> bool:
    x, axes, pads = _operand(node, 0), constant_of(_operand(node, 3)), constant_of(_operand(node, 1))
    if axes is None:
        return x is not None and not isinstance(x.type, ForeignType)
    return _normal(_ints(axes), x) is not None and (pads is None or pads.size == 2 * axes.size)


def _pad_operands(emitter: Emitter, node: Node) -> list[str]:
    x, axes, pads = node.operand(0), node.operand(3), node.operand(1)
    rank, data = x.type.rank, constant_of(axes)
    if data is None:
        numbers = constant_of(pads)
        if numbers is None:
            pairs = emitter.op("Reshape", [emitter.of(pads), emitter.ints([2, -1])])
        else:
            pairs = emitter.tensor(Tensor(numbers.array.reshape(2, -1)))
        twice = emitter.op("Expand", [emitter.of(axes), emitter.ints([2, 1])])
        zeros = emitter.array(np.zeros((2, rank)), pads.type.dtype)
        rows = emitter.op("ScatterElements", [zeros, twice, pairs], axis=1)
        whole = emitter.op("Reshape", [rows, emitter.ints([-1])])
    else:
        begins = _normal(_ints(data), x) or []
        places = [*begins, *[axis + rank for axis in begins]]
        whole = _spread(emitter, pads, places, np.zeros(2 * rank))
    return [emitter.of(x), whole, emitter.of(_operand(node, 2))]


# --- Resize


def _resize_axes(node: Node) -> list[int] | None:
    """The axes that a Resize names; None where it names none, or cannot do without."""
    attributes = dict(node.attributes_as(OpaqueAttributes).attributes)
    axes = attributes.get("axes")
    if not isinstance(axes, tuple) or attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    normal = _normal([int(axis) for axis in axes if isinstance(axis, int)], _operand(node, 0))
    counts = {1: 2, 2: 1, 3: 1}
    for place, count in counts.items():
        data = constant_of(_operand(node, place))
        if data is not None and data.size not in (0, count * len(axes)):
            return None
    return normal


def _resize_operands(emitter: Emitter, node: Node) -> list[str]:
    x, axes = node.operand(0), _resize_axes(node) or []
    rank = x.type.rank
    ends = [*axes, *[axis + rank for axis in axes]]
    roi = _spread(emitter, _operand(node, 1), ends, np.repeat([0.0, 1.0], rank))
    scales = _spread(emitter, _operand(node, 2), axes, np.ones(rank))
    sizes = _spread(emitter, _operand(node, 3), axes, x)
    return [emitter.of(x), roi, scales, sizes]


def _ints(data: Tensor) -> list[int]:
    return [int(number) for number in data.array.reshape(-1)]


def _spread(emitter: Emitter, value: Value | None, places: Sequence[int], rest: Array | Value) -> str:
    """The numbers of ``value`` in these places; elsewhere the numbers of ``rest``, or its sizes."""
    if value is None:
        return ""
    data = constant_of(value)
    if data is not None and not data.size:
        return emitter.of(value)
    if isinstance(rest, Value):
        sizes = rest.shape
        if data is not None:
            known = list(sizes)
            for place, number in zip(places, _ints(data), strict=True):
                known[place] = number
            return emitter.sizes(known)
        others, count = emitter.sizes(sizes), len(sizes)
    elif data is not None:
        whole = rest.astype(data.type.dtype.numpy)
        whole[list(places)] = data.array.reshape(-1)
        return emitter.tensor(Tensor(whole))
    else:
        others, count = emitter.tensor(Tensor(rest.astype(value.type.dtype.numpy))), len(rest)
    index = [places.index(i) if i in places else len(places) + i for i in range(count)]
    parts = emitter.op("Concat", [emitter.of(value), others], axis=0)
    return emitter.op("Gather", [parts, emitter.array(index, i64)], axis=0)
