"""Integer arithmetic that kernels lack, or would fail or trap on."""

from __future__ import annotations

import numpy as np

from dmlc.ir import DType, Node, Tensor
from dmlc.ir.dtype import bool_, i32, i64, u64
from dmlc.ops.binary import AND, DIV, FLOORDIV, MAX, MIN, MOD, OR, POW, XOR
from dmlc.ops.choose import CLIP, ClipAttributes
from dmlc.ops.elementwise import NOT, RELU, SIGN
from dmlc.ops.literals import attribute_array
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.legalize.widen import is_of_program
from dmlc.passes.lowering import KEEP, Lowered, lowers


@lowers(RELU, offered=is_of_program)
def relu_as_max(e: Sketch, node: Node, x: Term) -> Lowered:
    """Relu becomes max with 0 where its kernel does not take the dtype, and max has one or nothing wider is exact."""
    home = e.target.compute_dtype(RELU, x.dtype)
    is_max = home is None or (home is not x.dtype and e.target.has_kernel(MAX, x.dtype))
    return e.larger(x, 0) if is_max else KEEP


@lowers(MIN, MAX, offered=is_of_program)
def extreme_by_select(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """Max and Min of integers become a comparison and a selection.

    Max and Min of i64 are wrong on ONNX Runtime's CPU provider, and integers have none below opset 12; comparisons are
    right.
    """
    if e.target.compute_dtype(node.op, a.dtype) is not None:
        return KEEP
    return e.where(a < b if node.op is MIN else b < a, a, b)


@lowers(SIGN, offered=is_of_program)
def sign_by_select(e: Sketch, node: Node, x: Term) -> Lowered:
    """Sign of i64 becomes comparisons, as the kernel of ONNX Runtime's CPU provider compares it wrongly."""
    if e.target.compute_dtype(SIGN, x.dtype) is not None:
        return KEEP
    return e.where(x < 0, -1, (x > 0).cast(x.dtype))


@lowers(CLIP, offered=is_of_program)
def clip_as_extremes(e: Sketch, node: Node, x: Term) -> Lowered:
    """Clip becomes Max and Min where the kernel lacks the dtype.

    It takes no f64 and no integers below opset 12, and is wrong for i64 as Max and Min are.
    """
    if e.target.compute_dtype(CLIP, x.dtype) is not None:
        return KEEP
    a = node.attributes_as(ClipAttributes)
    for limit, bound in ((e.larger, a.min), (e.smaller, a.max)):
        if bound is not None:
            x = limit(x, attribute_array(bound, x.dtype, None))
    return x


@lowers(DIV, MOD, offered=is_of_program)
def guard_division(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """An integer division that could trap the process gets a divisor that cannot: by zero, or of the lowest by -1.

    The first is unspecified and the second wraps to itself. A divisor that is not a constant is kept from both, and a
    divisor that is never negative from the first.
    """
    if not a.dtype.is_integer or "guard-division" in node.history.rules:
        return KEEP
    low, high = e.interval(b)
    if low >= 1 or high <= -2 or _is_safe(b.data, a.dtype):
        return KEEP
    bad = e.equal(b, 0)
    if not _traps(a.dtype):
        # b + (b == 0): no kernel of Where is needed, which small types lack
        return e(node.op, a, b + bad.cast(a.dtype))
    if low >= 0:
        return e(node.op, a, e.where(bad, 1, b))
    minus = e.equal(b, -1)
    out = e(node.op, a, e.where(bad | minus, 1, b))
    return e.where(minus, -a, out) if node.op is DIV else out


def _traps(dtype: DType) -> bool:
    """Return whether dividing the lowest number by -1 may trap: the register has exactly that width."""
    return dtype in (i32, i64)


def _is_safe(divisor: Tensor | None, dtype: DType) -> bool:
    if divisor is None:
        return False
    array = divisor.array
    return not bool(np.any(array == 0)) and not (_traps(dtype) and bool(np.any(array == -1)))


@lowers(FLOORDIV, offered=is_of_program)
def floor_division(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """Floor division becomes the quotient that truncates, less one where it is not exact and the signs differ."""
    dtype = a.dtype
    if not dtype.is_integer:
        return KEEP
    is_positive = e.interval(b)[0] >= 1
    if dtype.kind == "uint" or (is_positive and e.interval(a)[0] >= 0):
        return a / b
    home = i64 if dtype is i64 else i32
    a, b = a.cast(home), b.cast(home)
    quotient = a / b
    rest = a - quotient * b
    below = rest < 0 if is_positive else _is_below(e, rest, b)
    return (quotient - below.cast(home)).cast(dtype)


def _is_below(e: Sketch, rest: Term, divisor: Term) -> Term:
    """The truth of whether the quotient that truncates lies above the exact one: there is a rest, of the other sign."""
    negative = None if divisor.data is None else divisor.data.array < 0
    if negative is None or negative.any() != negative.all():
        sign = divisor < 0 if negative is None else e.number(negative, bool_)
        return e.not_equal(rest, 0) & ((rest < 0) ^ sign)
    return rest > 0 if negative.any() else rest < 0


@lowers(POW, offered=is_of_program)
def integer_power(e: Sketch, node: Node, base: Term, exponent: Term) -> Lowered:
    """A power of integers becomes repeated squaring, which wraps; the kernel goes through floats and loses bits.

    That of a model keeps the kernel where there is one: it also takes negative exponents, which nothing here defines.
    """
    data, dtype = exponent.data, base.dtype
    # The provider has another operator for a constant of one element, which takes no integers (``pow-int``).
    if e.target.is_native(POW, dtype) and (data is None or data.array.size != 1):
        return KEEP
    if not dtype.is_integer or (node.origin is not None and e.graph.opset >= 12):
        return KEEP
    # A rewrite may have made a model's node anew: it still takes negative exponents.
    if e.graph.dims.least == 0 and (data is None or not (data.array >= 0).all()):
        return KEEP
    wide = base.cast(i32 if dtype.bits <= 32 else i64)  # both wrap, and both have every kernel that is needed
    if data is not None and data.array.size and bool(np.all(data.array == data.array.flat[0])):
        out = _constant_power(wide, int(data.array.flat[0])).cast(dtype)
        return out if out.shape == node.result.shape else out * np.ones_like(data.array)
    bits = dtype.bits - (dtype.kind == "int")
    if data is not None:
        bits = max([1, *[int(n).bit_length() for n in data.array.flat]])
    return _power(e, wide, exponent.cast(i32) if dtype.bits < 32 else exponent, bits).cast(dtype)


def _constant_power(base: Term, exponent: int) -> Term:
    """By squaring; the exponent is not negative (a negative constant is refused where the call is read)."""
    out: Term | None = None
    while exponent > 0:
        if exponent & 1:
            out = base if out is None else out * base
        exponent >>= 1
        if exponent:
            base = _square(base)
    return base * 0 + 1 if out is None else out


def _square(base: Term) -> Term:
    """The square, which wraps; of a constant a constant: the device would compute it again in each run."""
    return base * base if base.data is None else base.builder.number(np.square(base.data.array), base.dtype)


def _power(e: Sketch, base: Term, exponent: Term, bits: int) -> Term:
    out: Term | None = None
    for step in range(bits):
        factor = e.where((exponent % 2).cast(bool_), base, 1)
        out = factor if out is None else out * factor
        if step + 1 < bits:
            exponent, base = exponent / 2, _square(base)
    assert out is not None
    return out


@lowers(NOT, offered=is_of_program)
def not_by_arithmetic(e: Sketch, node: Node, x: Term) -> Lowered:
    """BitwiseNot below opset 18 becomes the number with all bits set, less x."""
    if not x.dtype.is_integer or e.target.takes("BitwiseNot", x.dtype):
        return KEEP
    return (x.dtype.highest if x.dtype.kind == "uint" else -1) - x


@lowers(AND, OR, XOR, offered=is_of_program)
def bits_by_arithmetic(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """BitwiseAnd, Or and Xor below opset 18 become arithmetic.

    The bits are taken apart along a new last axis, combined and put together again, all in u64, which has the kernels.
    ``x & (2^k - 1)`` is a remainder.
    """
    dtype = a.dtype
    if not dtype.is_integer or e.target.takes("BitwiseAnd", dtype):
        return KEEP
    for x, mask in ((a, b), (b, a)):
        size = _size_of_mask(mask)
        if node.op is AND and x.data is None and 1 < size <= dtype.highest:
            return x % size
    powers = np.left_shift(np.uint64(1), np.arange(dtype.bits, dtype=np.uint64))
    bits = [e.unsqueeze(x.cast(u64), axes=(x.rank,)) / powers % 2 for x in (a, b)]
    both = bits[0] * bits[1]
    if node.op is not AND:
        total = bits[0] + bits[1]
        both = total - both if node.op is OR else total % 2
    return e.matmul(both, e.number(powers, u64)).cast(dtype)


def _size_of_mask(mask: Term) -> int:
    """One more than a constant mask of all low bits; 0 for another."""
    if mask.data is None or mask.data.array.ndim:
        return 0
    size = int(mask.data.array) + 1
    return size if size & (size - 1) == 0 else 0


RULES = (
    relu_as_max,
    extreme_by_select,
    sign_by_select,
    clip_as_extremes,
    guard_division,
    floor_division,
    integer_power,
    not_by_arithmetic,
    bits_by_arithmetic,
)
