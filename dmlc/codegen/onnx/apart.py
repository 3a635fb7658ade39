"""Nodes that keep ONNX Runtime's optimizer from merging two others into one that computes something else."""

from __future__ import annotations

from dmlc.codegen.onnx.writer import NodeWriter
from dmlc.ir import DType, ForeignType, Node, Value
from dmlc.ir.dtype import f16, f32, f64, i32, i64
from dmlc.ops import binary as b
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import NEG
from dmlc.ops.opaque import is_opaque

#: A dividend is followed back over this many values before it counts as known when a session is created.
_MOST_VALUES = 64


def apart(writer: NodeWriter, name: str, dtype: DType) -> str:
    """Return a copy of a value by a node that ONNX Runtime neither removes nor looks through.

    It removes Identity, Expand to the same shape, and arithmetic with 0 or 1, before it looks for patterns.
    """
    if dtype.is_integer and writer.opset < 12:  # Max takes floats only
        return writer.op("Neg", [writer.op("Neg", [name])])
    return writer.op("Max", [name, name])


def may_divide_one(writer: NodeWriter, node: Node) -> bool:
    """Return whether ONNX Runtime's DivMulFusion may change a product of the node's result.

    It makes ``b / a`` of ``1 / a * b`` where the dividend is a constant 1 of one element, also one that it computed
    itself while the session was created (followed for integers, which sizes are). The quotients of i32 and i64
    truncate; of floats, the result loses the axes that only the dividend has (onnxruntime, ``div_mul_fusion.cc``;
    measured with 1.23.0 to 1.32.0).
    """
    if (node.op is not b.DIV and not is_opaque(node, "Div")) or not _may_meet_product(writer, node.result):
        return False
    dividend, divisor = node.operands
    if dividend is None or divisor is None or not _loses(dividend, divisor):
        return False
    data = constant_of(dividend)
    if data is not None:
        return data.size == 1 and bool(data.array.reshape(())[()] == 1)
    if dividend.type.dtype.is_float or constant_of(divisor) is not None:  # a quotient by a constant is one by then
        return False
    return all(not isinstance(size, int) or size == 1 for size in dividend.shape) and not _reads_data(writer, dividend)


def _may_meet_product(writer: NodeWriter, quotient: Value) -> bool:
    """Return whether a use of the quotient may be a product, or become one."""
    ends = writer.graph.output if writer.is_outermost else None  # the output of a branch may go on outside
    return any(user is not ends and not _is_apart(user) for user in quotient.users)


def _is_apart(user: Node) -> bool:
    """Return whether ONNX Runtime does not look through an operation, between a quotient and its products."""
    return user.op in (b.MAX, NEG) or is_opaque(user, "Max") or is_opaque(user, "Neg")


def _loses(dividend: Value, divisor: Value) -> bool:
    """Return whether ``b / a`` differs from ``1 / a * b`` by more than rounding."""
    if dividend.type.dtype in (i32, i64):
        return True
    if dividend.type.dtype not in (f16, f32, f64):
        return False
    return dividend.type.rank > (0 if isinstance(divisor.type, ForeignType) else divisor.type.rank)


def _reads_data(writer: NodeWriter, value: Value) -> bool:
    """Return whether a value needs the numbers of an input. Shapes are known where a session fixes the sizes."""
    captured = writer.shared.captured
    pending, seen = [value], {value}
    while pending and len(seen) <= _MOST_VALUES:
        found = pending.pop()
        producer = found.producer
        if is_opaque(producer, "Shape") or is_opaque(producer, "Size"):
            continue
        if producer is None and found not in captured:
            return True
        for operand in [captured[found]] if producer is None else producer.operands:
            if operand is not None and operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return False
