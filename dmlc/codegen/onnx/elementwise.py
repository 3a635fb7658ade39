"""Operations on each element of one or two tensors."""

from __future__ import annotations

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import Lowering, lowers
from dmlc.ir import Node, Operation, Value
from dmlc.ir.dtype import f64, i32, i64
from dmlc.ops import binary as b
from dmlc.ops import elementwise as e
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import is_opaque

#: Operations of two operands that are one ONNX operator, at every opset and for every dtype that they have here.
_ONE_TO_ONE: dict[Operation, str] = {
    b.ADD: "Add", b.SUB: "Sub", b.DIV: "Div", b.POW: "Pow", b.MIN: "Min", b.MAX: "Max",
    b.EQUAL: "Equal", b.LESS: "Less", b.GREATER: "Greater",
}  # fmt: skip

#: Operations that are one operator on bool and another one on the bits of integers (from opset 18 on).
_LOGICAL: dict[Operation, tuple[str, str]] = {
    e.NOT: ("Not", "BitwiseNot"),
    b.AND: ("And", "BitwiseAnd"),
    b.OR: ("Or", "BitwiseOr"),
    b.XOR: ("Xor", "BitwiseXor"),
}


def _same(op_type: str) -> Lowering:
    def lower(emitter: Emitter, node: Node) -> str:
        return emitter.op(op_type, [emitter.of(v) for v in node.operands])

    return lower


def _logical(logical: str, bitwise: str) -> Lowering:
    def lower(emitter: Emitter, node: Node) -> str:
        op_type = logical if node.operand(0).type.dtype.kind == "bool" else bitwise
        return emitter.op(op_type, [emitter.of(v) for v in node.operands])

    return lower


def _unary(op: e.UnaryOperation) -> Lowering:
    def lower(emitter: Emitter, node: Node) -> str:
        return emitter.op(op.onnx, [emitter.operand(node, 0)], **e.attributes_of(op, node.attributes))

    return lower


for _unary_op in e.UNARY:
    if _unary_op.onnx:
        lowers(_unary_op)(_unary(_unary_op))
for _op, _name in _ONE_TO_ONE.items():
    lowers(_op)(_same(_name))
for _op, _names in _LOGICAL.items():
    lowers(_op)(_logical(*_names))


@lowers(e.SILU)
def silu(emitter: Emitter, node: Node) -> str:
    x = emitter.operand(node, 0)
    gated = _apart(emitter, x) if node.result.type.dtype is f64 else x
    return emitter.op("Mul", [gated, emitter.op("Sigmoid", [x])])


@lowers(b.MUL)
def mul(emitter: Emitter, node: Node) -> str:
    names = [emitter.of(v) for v in node.operands]
    first, second = node.operand("a"), node.operand("b")
    if node.result.type.dtype is f64:
        for number, (x, gate) in enumerate(((first, second), (second, first))):
            if _is_gate_of(gate, x):
                names[number] = _apart(emitter, names[number])
                break
    elif any(_may_divide_one(operand) for operand in node.operands):
        names = [emitter.op("Neg", [name]) for name in names]
    return emitter.op("Mul", names)


#: So many values are looked at before a quotient counts as one of sizes.
_MOST_VALUES = 64


def _may_divide_one(x: Value | None) -> bool:
    """True for a quotient of integers whose dividend is, or may become while a session is created, the constant 1.

    ONNX Runtime makes ``b / a`` of ``1 / a * b``, for i32 and i64 too, whose quotients truncate (DivMulFusion; measured
    with 1.23.0 to 1.32.0). The product of the opposite numbers is the same one, also where it wraps. By a constant the
    quotient of such a dividend is a constant too.
    """
    if x is None or x.producer is None or x.producer.op is not b.DIV or x.type.dtype not in (i32, i64):
        return False
    if constant_of(x.producer.operand(1)) is not None:
        return False
    dividend = x.producer.operand(0)
    data = constant_of(dividend)
    if data is not None:
        return data.size == 1 and bool(data.array.reshape(())[()] == 1)
    return all(not isinstance(size, int) or size == 1 for size in dividend.shape) and not _reads_data(dividend)


def _reads_data(value: Value) -> bool:
    """True where a number of an input is needed; shapes are known where a session fixes the sizes. Of more values than
    a size is computed of, that is not found out."""
    pending, seen = [value], {value}
    while pending and len(seen) <= _MOST_VALUES:
        producer = pending.pop().producer
        if producer is None:
            return True
        if is_opaque(producer, "Shape") or is_opaque(producer, "Size"):
            continue
        for operand in producer.operands:
            if operand is not None and operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return False


def _is_gate_of(gate: Value, x: Value) -> bool:
    """True for the sigmoid of ``x``, or of a product of ``x``."""
    if gate.producer is None or gate.producer.op is not e.SIGMOID:
        return False
    inner = gate.producer.operand(0)
    factors = inner.producer.operands if inner.producer is not None and inner.producer.op is b.MUL else ()
    return any(value is x for value in (inner, *factors))


def _apart(emitter: Emitter, x: str) -> str:
    """The maximum of ``x`` with itself.

    ONNX Runtime makes QuickGelu of ``x * sigmoid(x)``. Up to 1.30 it does so for f64 too, for which it has no kernel,
    and does not load the model with its default optimizations (QuickGeluFusion; measured with 1.23.0 to 1.32.0).
    """
    return emitter.op("Max", [x, x])


@lowers(b.NOT_EQUAL)
def not_equal(emitter: Emitter, node: Node) -> str:
    return emitter.op("Not", [emitter.op("Equal", [emitter.of(v) for v in node.operands])])


def _or_equal(op_type: str, strict: str, opposite: str) -> Lowering:
    def lower(emitter: Emitter, node: Node) -> str:
        operands = [emitter.of(v) for v in node.operands]
        if emitter.opset >= 12:
            return emitter.op(op_type, operands)
        if node.operand("a").type.dtype.is_float:  # NaN is neither
            return emitter.op("Or", [emitter.op(strict, operands), emitter.op("Equal", operands)])
        return emitter.op("Not", [emitter.op(opposite, operands)])

    return lower


lowers(b.LESS_EQUAL)(_or_equal("LessOrEqual", "Less", "Greater"))
lowers(b.GREATER_EQUAL)(_or_equal("GreaterOrEqual", "Greater", "Less"))


@lowers(b.FLOORDIV)
def floordiv(emitter: Emitter, node: Node) -> str:
    """Lower floor division of floats to the floor of the rounded quotient.

    ONNX Runtime's CPU provider keeps f16 in f32 between nodes without f16 kernels, so explicit casts round the
    quotient.
    """
    dtype = node.result.type.dtype
    home = dtype.accumulator
    quotient = emitter.op("Div", [emitter.cast(emitter.of(v), home, have=dtype) for v in node.operands])
    rounded = emitter.cast(emitter.cast(quotient, dtype, have=home), home, have=dtype)
    return emitter.cast(emitter.op("Floor", [rounded]), dtype, have=home)


@lowers(b.MOD)
def mod(emitter: Emitter, node: Node) -> str:
    """ONNX's Mod has the divisor's sign for integers. For floats it is C's fmod, with the dividend's sign: where the
    signs differ the divisor is added, as NumPy does."""
    a, c = emitter.operand(node, 0), emitter.operand(node, 1)
    dtype = node.result.type.dtype
    if dtype.is_integer:
        return emitter.op("Mod", [a, c], fmod=0)
    rest = emitter.op("Mod", [a, c], fmod=1)
    zero = emitter.scalar(0, dtype)
    signs = emitter.op("Xor", [emitter.op("Less", [rest, zero]), emitter.op("Less", [c, zero])])
    inexact = emitter.op("Not", [emitter.op("Equal", [rest, zero])])
    return emitter.op("Where", [emitter.op("And", [signs, inexact]), emitter.op("Add", [rest, c]), rest])
