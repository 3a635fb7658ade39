"""Conditions of the known faults around QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from onnx import NodeProto

from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.placement.values import ValueScope, attribute

#: Operators that ONNX Runtime repeats a quantization behind and before (qdq_propagation.cc), and Identity, which it
#: takes out. The first operand is the data.
_PASSING = frozenset(("Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
_BYTES = ("i8", "u8")
_STEPS = 8
#: The least block of 4-bit weights that ONNX Runtime makes a MatMulNBits of (DQMatMulToMatMulNBits).
_LEAST_BLOCK = 16


def is_between_quantizations(node: NodeProto, scope: ValueScope) -> bool:
    """True if it has a DequantizeLinear of bytes before it and a QuantizeLinear to such bytes behind it.

    Layout operators may be between them: ONNX Runtime repeats the quantization there.
    """
    return _quantizations(node, scope) is not None


def keeps_one_quantization(node: NodeProto, scope: ValueScope) -> bool:
    """True if a DequantizeLinear of bytes before it and a QuantizeLinear behind it have the same numbers."""
    found = _quantizations(node, scope)
    if found is None:
        return False
    before, after = found
    return len(before.input) == len(after.input) and all(
        _is_same(a, b, scope) for a, b in zip(before.input[1:], after.input[1:], strict=True)
    )


def has_blocks(node: NodeProto, scope: ValueScope) -> bool:
    """True if block_size is given, and not for 4-bit weights of a MatMul, of which ONNX Runtime makes MatMulNBits."""
    block = attribute(node, "block_size")
    return isinstance(block, int) and block > 0 and not _becomes_matmul(node, block, scope)


def _quantizations(node: NodeProto, scope: ValueScope) -> tuple[NodeProto, NodeProto] | None:
    before, after = _dequantizing(node.input[0], scope), _quantizing(node.output[0], scope)
    if before is None or after is None:
        return None
    dtype = scope.of(before.input[0]).dtype
    return (before, after) if dtype in _BYTES and scope.of(after.output[0]).dtype == dtype else None


def _dequantizing(name: str, scope: ValueScope) -> NodeProto | None:
    for _ in range(_STEPS):
        made = scope.made_by.get(name)
        if made is None or _is(made, "DequantizeLinear"):
            return made
        if made.op_type not in _PASSING or name != made.output[0]:
            return None
        name = made.input[0]
    return None


def _quantizing(name: str, scope: ValueScope) -> NodeProto | None:
    for _ in range(_STEPS):
        users = scope.users.get(name, ())
        if len(users) != 1 or name in scope.outputs or users[0].input[0] != name:
            return None
        if _is(users[0], "QuantizeLinear"):
            return users[0]
        if users[0].op_type not in _PASSING:
            return None
        name = users[0].output[0]
    return None


def _is(node: NodeProto, op: str) -> bool:
    return node.op_type == op and node.domain in ("", "ai.onnx", MICROSOFT)


def _is_same(a: str, b: str, scope: ValueScope) -> bool:
    if a == b:
        return True
    first, second = scope.floats.get(a), scope.floats.get(b)
    if first is not None and second is not None:
        return first.number == second.number
    numbers = scope.numbers(a)
    return numbers is not None and numbers == scope.numbers(b)


def _becomes_matmul(node: NodeProto, block: int, scope: ValueScope) -> bool:
    if node.op_type != "DequantizeLinear" or scope.of(node.input[0]).dtype not in ("i4", "u4"):
        return False
    fits = block >= _LEAST_BLOCK and block & (block - 1) == 0 and attribute(node, "axis") == 0
    users = scope.users.get(node.output[0], ())
    return (
        fits
        and all(name in scope.constant for name in node.input if name)
        and len(users) == 1
        and node.output[0] not in scope.outputs
        and users[0].op_type == "MatMul"
        and list(users[0].input).index(node.output[0]) == 1
    )
