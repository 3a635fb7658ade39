"""Operations on each element of one or two tensors."""

from __future__ import annotations

import math

import numpy as np

from dmlc.codegen.onnx.apart import apart
from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import Lowering, lowers
from dmlc.ir import DType, Node, Operation, Value
from dmlc.ir.dtype import f16, f64
from dmlc.ops import binary as b
from dmlc.ops import elementwise as e
from dmlc.ops.choose import CAST, CLIP, WHERE, CastAttributes, ClipAttributes

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
    gated = apart(emitter, x, f64) if node.result.type.dtype is f64 else x
    return emitter.op("Mul", [gated, emitter.op("Sigmoid", [x])])


@lowers(b.MUL)
def mul(emitter: Emitter, node: Node) -> str:
    names = [emitter.of(v) for v in node.operands]
    first, second = node.operand("a"), node.operand("b")
    if node.result.type.dtype is f64:
        for number, (x, gate) in enumerate(((first, second), (second, first))):
            if _is_gate_of(gate, x):
                names[number] = apart(emitter, names[number], f64)
                break
    return emitter.op("Mul", names)


def _is_gate_of(gate: Value, x: Value) -> bool:
    """Return whether a value is the sigmoid of ``x``, or of a product of ``x``.

    ONNX Runtime makes QuickGelu of ``x * sigmoid(x)``. Up to 1.30 it does so for f64 too, for which it has no kernel,
    and does not load the model with its default optimizations (QuickGeluFusion; measured with 1.23.0 to 1.32.0).
    """
    if gate.producer is None or gate.producer.op is not e.SIGMOID:
        return False
    inner = gate.producer.operand(0)
    factors = inner.producer.operands if inner.producer is not None and inner.producer.op is b.MUL else ()
    return any(value is x for value in (inner, *factors))


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


# --- Lowerings of ``where``, ``clip`` and ``cast``


@lowers(WHERE)
def where(emitter: Emitter, node: Node) -> str:
    return emitter.op("Where", [emitter.of(v) for v in node.operands])


@lowers(CLIP)
def clip(emitter: Emitter, node: Node) -> str:
    """ONNX's Clip without a bound takes the largest finite number for it, so that infinities end there: where the
    program has none, infinity is written."""
    a = node.attributes_as(ClipAttributes)
    dtype, every = node.result.type.dtype, needs_bounds(node, emitter.opset)
    bounds = [_bound(emitter, dtype, *pair, every=every) for pair in ((a.min, dtype.lowest), (a.max, dtype.highest))]
    return emitter.op("Clip", [emitter.operand(node, 0), *bounds])


def needs_bounds(node: Node, opset: int) -> bool:
    """Return whether a Clip is written with both bounds: before opset 12 ONNX Runtime's CPU provider computes one of
    f16 in f32, and a bound that is left out is the largest f32."""
    return node.op is CLIP and opset < 12 and node.result.type.dtype is f16


def _bound(emitter: Emitter, dtype: DType, bound: float | None, outermost: float, *, every: bool) -> str:
    if not dtype.is_float:
        return "" if bound is None else emitter.scalar(bound, dtype)
    if not every and bound == math.copysign(float(np.finfo(dtype.numpy).max), outermost):
        return ""
    return emitter.scalar(outermost if bound is None else bound, dtype)


@lowers(CAST)
def cast(emitter: Emitter, node: Node) -> str:
    """A cast to the operand's own dtype is its name."""
    return emitter.cast(
        emitter.operand(node, 0), node.attributes_as(CastAttributes).to, have=node.operand("x").type.dtype
    )
