"""Integer arithmetic that kernels lack, or would fail or trap on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import DType, Graph, Node, Operation, Tensor, Value
from dmlc.ir.dtype import bool_, i32, i64, u64
from dmlc.ops.binary import (
    ADD,
    AND,
    DIV,
    EQUAL,
    FLOORDIV,
    LESS,
    MAX,
    MIN,
    MOD,
    MUL,
    NOT_EQUAL,
    OR,
    POW,
    SUB,
    XOR,
)
from dmlc.ops.choose import CLIP, WHERE, ClipAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import NEG, NOT, RELU, SIGN
from dmlc.ops.literals import attribute_array
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import UNSQUEEZE, NewAxesAttributes
from dmlc.passes.intervals import RangedRule
from dmlc.passes.legalize.widen import LegalRule
from dmlc.passes.node_maker import Maker, dtype_of


class ReluAsMax(LegalRule):
    """Relu becomes max with 0 where its kernel does not take the dtype, and max has one or nothing wider is exact."""

    name = "relu-as-max"
    roots: ClassVar[tuple[Operation, ...]] = (RELU,)

    def wants(self, node: Node, graph: Graph) -> bool:
        dtype = dtype_of(node)
        home = self.capabilities.compute_dtype(RELU, dtype)
        return home is None or (home is not dtype and self.capabilities.has_kernel(MAX, dtype))

    def make(self, node: Node, make: Maker) -> Value:
        return make(MAX, node.operand("x"), make.constant(0, dtype_of(node)))


class ExtremeBySelect(LegalRule):
    """Max and Min of integers become a comparison and a selection.

    Max and Min of i64 are wrong on ONNX Runtime's CPU provider, and integers have none below opset 12; comparisons are
    right.
    """

    name = "extreme-by-select"
    roots: ClassVar[tuple[Operation, ...]] = (MIN, MAX)

    def wants(self, node: Node, graph: Graph) -> bool:
        return self.capabilities.compute_dtype(node.op, dtype_of(node)) is None

    def make(self, node: Node, make: Maker) -> Value:
        a, b = node.operand("a"), node.operand("b")
        smaller = make(LESS, a, b) if node.op is MIN else make(LESS, b, a)
        return make(WHERE, smaller, a, b)


class SignBySelect(LegalRule):
    """Sign of i64 becomes comparisons, as the kernel of ONNX Runtime's CPU provider compares it wrongly."""

    name = "sign-by-select"
    roots: ClassVar[tuple[Operation, ...]] = (SIGN,)

    def wants(self, node: Node, graph: Graph) -> bool:
        return self.capabilities.compute_dtype(SIGN, dtype_of(node)) is None

    def make(self, node: Node, make: Maker) -> Value:
        x, dtype = node.operand("x"), dtype_of(node)
        zero = make.constant(0, dtype)
        above = make.cast(make(LESS, zero, x), dtype)
        return make(WHERE, make(LESS, x, zero), make.constant(-1, dtype), above)


class ClipAsExtremes(LegalRule):
    """Clip becomes Max and Min where the kernel lacks the dtype.

    It takes no f64 and no integers below opset 12, and is wrong for i64 as Max and Min are.
    """

    name = "clip-as-extremes"
    roots: ClassVar[tuple[Operation, ...]] = (CLIP,)

    def wants(self, node: Node, graph: Graph) -> bool:
        return self.capabilities.compute_dtype(CLIP, dtype_of(node)) is None

    def make(self, node: Node, make: Maker) -> Value:
        a, dtype = node.attributes_as(ClipAttributes), dtype_of(node)
        out = node.operand("x")
        for op, bound in ((MAX, a.min), (MIN, a.max)):
            if bound is not None:
                out = make(op, out, make.constant(attribute_array(bound, dtype, None), dtype))
        return out


class GuardDivision(RangedRule, LegalRule):
    """An integer division that could trap the process gets a divisor that cannot: by zero, or of the lowest by -1.

    The first is unspecified and the second wraps to itself. A divisor that is not a constant is kept from both, and a
    divisor that is never negative from the first.
    """

    name = "guard-division"
    roots: ClassVar[tuple[Operation, ...]] = (DIV, MOD)

    def wants(self, node: Node, graph: Graph) -> bool:
        dtype = dtype_of(node)
        if not dtype.is_integer or self.name in node.history.rules:
            return False
        low, high = self.interval(node.operand("b"), graph)
        return not (low >= 1 or high <= -2 or _is_safe(constant_of(node.operand("b")), dtype))

    def make(self, node: Node, make: Maker) -> Value:
        a, b, dtype = node.operand("a"), node.operand("b"), dtype_of(node)
        bad = make(EQUAL, b, make.constant(0, dtype))
        if not _traps(dtype):
            # b + (b == 0): no kernel of Where is needed, which small types lack
            return make(node.op, a, make(ADD, b, make.cast(bad, dtype)))
        if self.interval(b, make.rewriter.graph)[0] >= 0:
            return make(node.op, a, make(WHERE, bad, make.constant(1, dtype), b))
        minus = make(EQUAL, b, make.constant(-1, dtype))
        safe = make(WHERE, make(OR, bad, minus), make.constant(1, dtype), b)
        out = make(node.op, a, safe)
        return make(WHERE, minus, make(NEG, a), out) if node.op is DIV else out


def _traps(dtype: DType) -> bool:
    """Return whether dividing the lowest number by -1 may trap: the register has exactly that width."""
    return dtype in (i32, i64)


def _is_safe(divisor: Tensor | None, dtype: DType) -> bool:
    if divisor is None:
        return False
    array = divisor.array
    return not bool(np.any(array == 0)) and not (_traps(dtype) and bool(np.any(array == -1)))


class FloorDivision(RangedRule, LegalRule):
    """Floor division becomes the quotient that truncates, less one where it is not exact and the signs differ."""

    name = "floor-division"
    roots: ClassVar[tuple[Operation, ...]] = (FLOORDIV,)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node).is_integer

    def make(self, node: Node, make: Maker) -> Value:
        dtype = dtype_of(node)
        if dtype.kind == "uint":
            return make(DIV, node.operand("a"), node.operand("b"))
        is_positive = self.is_positive(node.operand("b"), make.rewriter.graph)
        if is_positive and self.interval(node.operand("a"), make.rewriter.graph)[0] >= 0:
            return make(DIV, node.operand("a"), node.operand("b"))
        home = i64 if dtype is i64 else i32
        a, b, zero = make.cast(node.operand("a"), home), make.cast(node.operand("b"), home), make.constant(0, home)
        quotient = make(DIV, a, b)
        rest = make(SUB, a, make(MUL, quotient, b))
        below = make(LESS, rest, zero) if is_positive else _is_below(make, rest, b, zero)
        return make.cast(make(SUB, quotient, make.cast(below, home)), dtype)


def _is_below(make: Maker, rest: Value, divisor: Value, zero: Value) -> Value:
    """The truth of whether the quotient that truncates lies above the exact one: there is a rest, of the other sign."""
    data = constant_of(divisor)
    negative = None if data is None else data.array < 0
    if negative is None or negative.any() != negative.all():
        sign = make(LESS, divisor, zero) if negative is None else make.constant(negative, bool_)
        return make(AND, make(NOT_EQUAL, rest, zero), make(XOR, make(LESS, rest, zero), sign))
    return make(LESS, zero, rest) if negative.any() else make(LESS, rest, zero)


class IntegerPower(LegalRule):
    """A power of integers becomes repeated squaring, which wraps; the kernel goes through floats and loses bits.

    That of a model keeps the kernel where there is one: it also takes negative exponents, which nothing here defines.
    """

    name = "integer-power"
    roots: ClassVar[tuple[Operation, ...]] = (POW,)

    def wants(self, node: Node, graph: Graph) -> bool:
        data = constant_of(node.operand("b"))
        # The provider has another operator for a constant of one element, which takes no integers (``pow-int``).
        if self.capabilities.is_native(POW, dtype_of(node)) and (data is None or data.array.size != 1):
            return False
        if not dtype_of(node).is_integer or (node.origin is not None and graph.opset >= 12):
            return False
        # A rewrite may have made a model's node anew: it still takes negative exponents.
        return graph.dims.least > 0 or (data is not None and bool((data.array >= 0).all()))

    def make(self, node: Node, make: Maker) -> Value:
        dtype = dtype_of(node)
        home = i32 if dtype.bits <= 32 else i64  # both wrap, and both have every kernel that is needed
        base, exponent = make.cast(node.operand("a"), home), node.operand("b")
        data = constant_of(exponent)
        if data is not None and data.array.size and bool(np.all(data.array == data.array.flat[0])):
            power = _constant_power(make, base, int(data.array.flat[0]))
            out = make.cast(power, dtype)
            return (
                out
                if out.shape == node.result.shape
                else make(MUL, out, make.constant(np.ones_like(data.array), dtype))
            )
        bits = dtype.bits - (dtype.kind == "int")
        if data is not None:
            bits = max([1, *[int(n).bit_length() for n in data.array.flat]])
        if dtype.bits < 32:
            exponent = make.cast(exponent, i32)
        return make.cast(_power(make, base, exponent, bits), dtype)


def _constant_power(make: Maker, base: Value, exponent: int) -> Value:
    """By squaring; the exponent is not negative (a negative constant is refused where the call is read)."""
    out: Value | None = None
    while exponent > 0:
        if exponent & 1:
            out = base if out is None else make(MUL, out, base)
        exponent >>= 1
        if exponent:
            base = _square(make, base)
    if out is None:
        one = make.constant(1, base.type.dtype)
        return make(ADD, make(MUL, base, make.constant(0, base.type.dtype)), one)
    return out


def _square(make: Maker, base: Value) -> Value:
    """The square, which wraps; of a constant a constant: the device would compute it again in each run."""
    data = constant_of(base)
    return make(MUL, base, base) if data is None else make.constant(np.square(data.array), base.type.dtype)


def _power(make: Maker, base: Value, exponent: Value, bits: int) -> Value:
    one = make.constant(1, base.type.dtype)
    two = make.constant(2, exponent.type.dtype)
    out: Value | None = None
    for step in range(bits):
        factor = make(WHERE, make.cast(make(MOD, exponent, two), bool_), base, one)
        out = factor if out is None else make(MUL, out, factor)
        if step + 1 < bits:
            exponent = make(DIV, exponent, two)
            base = _square(make, base)
    assert out is not None
    return out


class NotByArithmetic(LegalRule):
    """BitwiseNot below opset 18 becomes the number with all bits set, less x."""

    name = "not-by-arithmetic"
    roots: ClassVar[tuple[Operation, ...]] = (NOT,)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node).is_integer and not self.capabilities.takes("BitwiseNot", dtype_of(node))

    def make(self, node: Node, make: Maker) -> Value:
        dtype = dtype_of(node)
        ones = dtype.highest if dtype.kind == "uint" else -1
        return make(SUB, make.constant(ones, dtype), node.operand("x"))


class BitsByArithmetic(LegalRule):
    """BitwiseAnd, Or and Xor below opset 18 become arithmetic.

    The bits are taken apart along a new last axis, combined and put together again, all in u64, which has the kernels.
    """

    name = "bits-by-arithmetic"
    roots: ClassVar[tuple[Operation, ...]] = (AND, OR, XOR)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node).is_integer and not self.capabilities.takes("BitwiseAnd", dtype_of(node))

    def make(self, node: Node, make: Maker) -> Value:
        dtype = dtype_of(node)
        masked = _low_bits(make, node) if node.op is AND else None
        if masked is not None:
            return masked
        powers = make.constant(np.left_shift(np.uint64(1), np.arange(dtype.bits, dtype=np.uint64)), u64)
        two = make.constant(2, u64)
        a, b = [self._bits(make, node.operand(i), powers, two) for i in (0, 1)]
        if node.op is AND:
            bits = make(MUL, a, b)
        elif node.op is OR:
            bits = make(SUB, make(ADD, a, b), make(MUL, a, b))
        else:
            bits = make(MOD, make(ADD, a, b), two)
        return make.cast(make(MATMUL, bits, powers), dtype)

    def _bits(self, make: Maker, value: Value, powers: Value, two: Value) -> Value:
        last = NewAxesAttributes(axes=(value.type.rank,))
        wide = make(UNSQUEEZE, make.cast(value, u64), attributes=last)
        return make(MOD, make(DIV, wide, powers), two)


def _low_bits(make: Maker, node: Node) -> Value | None:
    """``x & (2^k - 1)`` as a remainder; None for other masks."""
    for mask, x in ((node.operand("b"), node.operand("a")), (node.operand("a"), node.operand("b"))):
        data = constant_of(mask)
        if data is None or data.array.ndim or constant_of(x) is not None:
            continue
        size = int(data.array) + 1
        dtype = dtype_of(node)
        if size > 1 and size & (size - 1) == 0 and size <= dtype.highest:
            return make(MOD, x, make.constant(size, dtype))
    return None


RULES: Sequence[type[LegalRule]] = (
    ReluAsMax,
    ExtremeBySelect,
    SignBySelect,
    ClipAsExtremes,
    GuardDivision,
    FloorDivision,
    IntegerPower,
    NotByArithmetic,
    BitsByArithmetic,
)
