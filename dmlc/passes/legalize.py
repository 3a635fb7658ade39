"""``legalize``: every node gets a form that the target's kernels compute, with the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from dmlc.diagnostics import DmlcError, Label, fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Attributes, Dim, DType, Graph, Node, Tensor, product
from dmlc.ir.dtype import bool_, f64, i8, i16, i32, i64, u8, u16, u32, u64
from dmlc.ops.binary import AND, DIV, FLOORDIV, MAX, MIN, MOD, OR, POW, XOR
from dmlc.ops.choose import CAST, CLIP, ClipAttributes
from dmlc.ops.elementwise import NOT, RELU, SIGN
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, GatherAttributes
from dmlc.ops.literals import attribute_array
from dmlc.ops.move import PadAttributes
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    axes_of,
)
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import around, groups
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, NodeRule, lowers
from dmlc.passes.manager import PassContext
from dmlc.passes.repair import absent
from dmlc.passes.repair.operators import truth_by_comparison
from dmlc.passes.rewrite import RewritePass, Rule, rules_of
from dmlc.targets.needed_kernels import NEEDS, Need

# --- Which nodes are offered

#: From here on a lower opset takes what a higher one does, but for types that the language lacks.
_WIDE_OPSET = 20


def is_of_program(rule: Any, node: Node, graph: Graph) -> bool:
    """Return whether a node is not as an imported model has it, which is what its user runs.

    It may be imported with an older opset, whose operator may not take its type.
    """
    return bool(node.origin is None or graph.opset < min(node.origin.version, _WIDE_OPSET))


def is_promised(rule: Any, node: Node, graph: Graph) -> bool:
    """The same for what the language says and ONNX does not (integers that wrap): imported models have what their
    runtime does."""
    return graph.dims.least > 0 and is_of_program(rule, node, graph)


def is_for_cpu(rule: Any, node: Node, graph: Graph) -> bool:
    """The same for what ONNX Runtime's CPU provider lacks or computes wrongly: a node that the execution provider
    computes stays where the CPU need not run it."""
    return is_of_program(rule, node, graph) and not rule.capabilities.is_native(node.op, node.operand(0).type.dtype)


def is_promised_for_cpu(rule: Any, node: Node, graph: Graph) -> bool:
    """Both."""
    return is_promised(rule, node, graph) and is_for_cpu(rule, node, graph)


#: Integer types whose sums i64 holds, and f64 too unless there are millions of the largest.
NARROW: tuple[DType, ...] = (i8, i16, i32, u8, u16, u32)


# --- Integer arithmetic that kernels lack, or would fail or trap on


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


# --- Reductions of integers and bool


@lowers(REDUCE_L1, REDUCE_SUM_SQUARE, offered=is_promised_for_cpu)
def sum_of_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """L1 and sum_square of integers become sums of elements that wrap by themselves."""
    if not x.dtype.is_integer:
        return KEEP
    part = x * x if node.op is REDUCE_SUM_SQUARE else x if x.dtype.kind == "uint" else e.abs(x)
    return e(REDUCE_SUM, part, attributes=node.attributes)


@lowers(REDUCE_SUM, offered=is_promised_for_cpu)
def wrapping_sum(e: Sketch, node: Node, x: Term) -> Lowered:
    """A sum of integers becomes products with ones, or another form, that wraps modulo 2^n on every runtime."""
    on_provider, axes = e.target.sums_on_provider, axes_of(node)
    # Sums of numbers of 32 bits stay far below 2^53, so the provider's sum is exact on the CPU too.
    if not x.dtype.is_integer or (on_provider and _is_narrow(x)):
        return KEEP
    if not axes:
        return x
    if not on_provider:
        return _by_products(e, x, axes).reshape(node.result.shape)
    wide = x.cast(i64)
    if x.dtype.bits <= 32:
        return e(REDUCE_SUM, wide, attributes=node.attributes).cast(x.dtype)
    for axis in axes:
        whole = e.cumsum(_not_empty(e, wide, axis, 0), axis=axis, exclusive=False, reverse=False)
        wide = _last(e, whole, axis)
    return wide.reshape(node.result.shape).cast(x.dtype)


def _is_narrow(x: Term) -> bool:
    """Return whether the value is an i64 converted from a type of up to 32 bits."""
    producer = x.value.producer
    is_cast = x.dtype is i64 and producer is not None and producer.op is CAST
    return is_cast and producer is not None and producer.operand("x").type.dtype in NARROW


def _by_products(e: Sketch, x: Term, axes: Sequence[int]) -> Term:
    """Sums as products with vectors of ones; the result has the elements of the sum in order, in some shape."""
    shape = x.shape
    for first, last in reversed(groups(axes)):
        before, size, after = around(shape, first, last)
        shape = (*shape[:first], *shape[last:])
        ones = e.full(shape=(size,), value=1, dtype=x.dtype)
        if after == 1:
            x = e.matmul(x.reshape((before, size)), ones)
        else:
            x = e.matmul(ones, x.reshape((before, size, after)))
    return x


def _last(e: Sketch, x: Term, axis: int) -> Term:
    """The last slice along an axis, which stays as size 1."""
    size = x.shape[axis]
    return e.slice(x, starts=(size - 1,), ends=(size,), axes=(axis,), steps=(1,))


def _not_empty(e: Sketch, x: Term, axis: int, identity: int) -> Term:
    """``x`` with one element more in front of an axis that may have none."""
    return _padded(e, x, axis, 1, identity) if _may_be_empty(e.graph, x.shape[axis]) else x


def _padded(e: Sketch, x: Term, axis: int, count: int, identity: int | bool) -> Term:
    """``x`` with more elements in front of an axis."""
    pads = [0] * (2 * x.rank)
    pads[axis] = count
    return e.pad(x, pads=tuple(pads), value=identity)


def _may_be_empty(graph: Graph, size: Dim) -> bool:
    return size == 0 or graph.dims.promises_empty(size)


@lowers(REDUCE_PROD, offered=is_promised_for_cpu)
def wrapping_product(e: Sketch, node: Node, x: Term) -> Lowered:
    """A product of integers becomes multiplications of halves, which wrap modulo 2^n, until one is left."""
    dtype, axes = x.dtype, axes_of(node)
    if not dtype.is_integer:
        return KEEP
    if not axes:
        return x
    home = i32 if dtype.bits <= 32 else i64
    wide = x.cast(home)
    if e.target.is_native(REDUCE_PROD, home):
        return e.again(node, wide)[0].cast(dtype)
    for axis in axes:
        size = wide.shape[axis]
        if isinstance(size, int):
            wide = _product(e, wide, axis, size)
        else:
            whole = e.cumprod(_not_empty(e, wide, axis, 1), axis=axis, exclusive=False, reverse=False)
            wide = _last(e, whole, axis)
    return wide.reshape(node.result.shape).cast(dtype)


def _product(e: Sketch, x: Term, axis: int, size: int) -> Term:
    full = 1 if size == 0 else 1 << (size - 1).bit_length()
    if full != size:
        x = _padded(e, x, axis, full - size, 1)
    while full > 1:
        full //= 2
        first, second = e.parts(x, axis, full, full)
        x = first * second
    return x


@lowers(REDUCE_MAX, REDUCE_MIN, offered=is_of_program)
def extreme_of_nothing(e: Sketch, node: Node, x: Term) -> Lowered:
    """The largest or smallest of perhaps no integers gets one more element, the identity.

    ONNX Runtime gives the infinities of floats by itself.
    """
    lacking = [axis for axis in axes_of(node) if not x.dtype.is_float and _may_lack(e.graph, x, axis)]
    if not lacking:
        return KEEP
    lowest = x.dtype.lowest if node.op is REDUCE_MAX else x.dtype.highest
    identity = bool(lowest) if x.dtype.kind == "bool" else int(lowest)
    if any(x.shape[axis] == 0 for axis in axes_of(node)):
        return e.full(shape=node.result.shape, value=identity, dtype=x.dtype)
    for axis in lacking:
        x = _padded(e, x, axis, 1, identity)
    return e.again(node, x)


def _may_lack(graph: Graph, x: Term, axis: int) -> bool:
    """Return whether a max or min along the axis may reduce no elements and not give the identity by itself.

    An imported model keeps its kernel's result, except where ``extreme-by-index`` uses an arg reduction, which would
    fail.
    """
    size = x.shape[axis]
    return _may_be_empty(graph, size) or (x.dtype in (i64, u64) and graph.dims.interval(size)[0] < 1)


@lowers(REDUCE_MAX, REDUCE_MIN, offered=is_for_cpu)
def extreme_by_index(e: Sketch, node: Node, x: Term) -> Lowered:
    """The largest or smallest i64, which kernels compare wrongly, becomes the element at its argmax or argmin."""
    if x.dtype not in (i64, u64):
        return KEEP
    find = e.argmax if node.op is REDUCE_MAX else e.argmin
    for first, last in reversed(groups(axes_of(node))):
        shape, axis, flat = x.shape, first, x
        if last - first > 1:
            flat, axis = x.reshape(around(shape, first, last)), 1
        index = find(flat, axes=(axis,), ties="first", dtype=i64, keepdims=True)
        x = e.gather_elements(flat, index, axis=axis).reshape((*shape[:first], *[1] * (last - first), *shape[last:]))
    return x.reshape(node.result.shape)


@lowers(REDUCE_MAX, REDUCE_MIN, offered=is_for_cpu)
def extreme_biased(e: Sketch, node: Node, x: Term) -> Lowered:
    """The largest or smallest u32 is computed as i32 in the same order: less 2^31."""
    if x.dtype is not u32:
        return KEEP
    return (e.again(node, x.cast(i32) + i32.lowest)[0] + i32.lowest).cast(u32)


def _is_mean(rule: NodeRule, node: Node, graph: Graph) -> bool:
    """The provider fails on a mean of every integer type, or leaves the node to the CPU: in an imported model too."""
    return rule.capabilities.has_provider or is_promised_for_cpu(rule, node, graph)


@lowers(REDUCE_MEAN, offered=_is_mean)
def exact_mean(e: Sketch, node: Node, x: Term) -> Lowered:
    """The mean of integers becomes the exact sum, divided and truncated.

    Sums of up to 32 bits fit i64. Wider numbers are taken apart into a high half h and a low half l, so that the sum
    is 2^32 H + L. With H = q n + r the quotient is 2^32 q + (2^32 r + L) // n, and nothing of it overflows.
    """
    if not x.dtype.is_integer:
        return KEEP
    if not axes_of(node):
        return x
    count = _count(e, [x.shape[axis] for axis in axes_of(node)])

    def total(value: Term) -> Term:
        return e(REDUCE_SUM, value.cast(i64), attributes=node.attributes)

    if x.dtype.bits <= 32:
        return (total(x) / count).cast(x.dtype)
    return _wide_mean(e, x, count, total).cast(x.dtype)


def _count(e: Sketch, sizes: Sequence[Dim]) -> Term:
    """Return the number of elements as a scalar; with symbolic sizes it is the sum of that many ones."""
    size = product(sizes)
    if isinstance(size, int):
        return e.number(size, i64)
    ones = e.full(shape=(size,), value=1, dtype=i64)
    return e.matmul(ones, ones)


def _wide_mean(e: Sketch, x: Term, count: Term, total: Callable[[Term], Term]) -> Term:
    base = e.number(2**32, i64)
    split = e.number(2**32, x.dtype)
    low = x % split
    high_sum, low_sum = total((x - low) / split), total(low)
    quotient = high_sum // count
    rest = high_sum % count * base + low_sum
    floor = quotient * base + rest / count
    if x.dtype.kind == "uint":
        return floor
    return floor + ((floor < 0) & e.not_equal(rest % count, 0)).cast(i64)


@lowers(ARGMAX, ARGMIN, TOP_K, offered=is_for_cpu)
def select_biased(e: Sketch, node: Node, x: Term) -> Lowered:
    """A selection over u64 becomes one over i64 in the same order: less 2^63."""
    if x.dtype is not u64:
        return KEEP
    found = e.again(node, x.cast(i64) + i64.lowest)
    return found if node.op is not TOP_K else [(found[0] + i64.lowest).cast(u64), found[1]]


@lowers(HARDMAX, offered=is_of_program)
def hardmax_by_index(e: Sketch, node: Node, x: Term) -> Lowered:
    """Hardmax of f64, which has no kernel anywhere, becomes argmax and one_hot."""
    axes = axes_of(node)
    if x.dtype is not f64 or len(axes) != 1:
        return KEEP
    index = e.argmax(x, axes=axes, ties="first", dtype=i64, keepdims=False)
    return e.one_hot(index, depth=x.shape[axes[0]], axis=axes[0], on=1, off=0, dtype=f64)


# --- What the rules above leave: the table's rule raises where it finds nothing


@lowers(GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, offered=is_of_program)
def signed_indices(e: Sketch, node: Node, x: Term, i: Term, *updates: Term) -> Lowered:
    """Unsigned indices are cast to i64: ONNX takes i32 and i64, and GatherND i64 only."""
    is_nd = node.op is GATHER and node.attributes_as(GatherAttributes).batch_axes > 0
    return e.again(node, x, i.cast(i64)) if i.dtype in (u32, u64) or (is_nd and i.dtype is not i64) else KEEP


def _in_home(rule: NodeRule, match: LoweredNode) -> str:
    dtype = _dtype(match.root)
    return f"{match.root.op.name} of {dtype.name} in {rule.capabilities.compute_dtype(match.root.op, dtype)}"


def _lacks_kernel(rule: NodeRule, node: Node, graph: Graph) -> bool:
    if not is_of_program(rule, node, graph):
        return False
    dtype = _dtype(node)
    home = rule.capabilities.compute_dtype(node.op, dtype)
    if home is None:
        raise _refuse(node, dtype)
    return home is not dtype


@lowers(*NEEDS, offered=_lacks_kernel, describe=_in_home)
def widen_dtype(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A node whose dtype has no kernel is computed in a wider one, with casts around it.

    The rule of the table: it comes after the others, so what it cannot do nobody can.
    """
    dtype, need = _dtype(node), NEEDS[node.op]
    home = e.target.compute_dtype(node.op, dtype)
    assert home is not None
    which = range(len(operands)) if need.operands is None else need.operands
    wide = [x.cast(home) if x is not None and i in which else x for i, x in enumerate(operands)]
    made = e.results(node.op, *wide, attributes=_adapted(node.attributes, dtype))
    back = range(len(made)) if need.results is None else need.results
    return [
        x.cast(old.type.dtype) if i in back else x for i, (x, old) in enumerate(zip(made, node.results, strict=True))
    ]


def _refuse(node: Node, dtype: DType) -> DmlcError:
    labels = [Label(span) for span in node.spans[:1]]
    kernels = " and ".join(name for name, _ in NEEDS[node.op].kernels)
    message = f"{node.op.name} of {dtype.name} has no exact form: ONNX Runtime has no such kernel of {kernels}"
    wide = "f32" if dtype is f64 else "a dtype that it takes"
    return fail(codes.NO_EXACT_FORM, message, *labels, help=f"cast the operand to {wide}, if the precision suffices")


def _dtype(node: Node) -> DType:
    need: Need = NEEDS[node.op]
    return node.operand(need.operands[0] if need.operands else 0).type.dtype


def _adapted(attributes: Attributes, dtype: DType) -> Attributes:
    if isinstance(attributes, PadAttributes) and dtype.kind == "bool":
        return replace(attributes, value=int(attributes.value))
    return attributes


_RULES = rules_of(globals())


class Legalize(RewritePass, frozen=True):
    """Nodes whose dtype has no kernel at the opset are computed in another, with casts that lose nothing; integer
    operations that a kernel computes wrongly, or traps on, are spelled by others. ``exact``; a second run changes
    nothing.

    Raises ``DmlcError`` E0502 where nothing exact exists.
    """

    name: ClassVar[str] = "legalize"
    summary: ClassVar[str] = "Give every node a form that the target's kernels compute exactly."
    requires: ClassVar[tuple[str, ...]] = ("lowered-hardmax",)
    ensures: ClassVar[tuple[str, ...]] = ("legal-types",)

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        if context.capabilities.table is None:
            return []
        # The other rules make remainders and casts to bool that the provider may have no kernel for, or a wrong one.
        own = (truth_by_comparison, *rules_of(vars(absent)))
        return (*_RULES, *own) if context.capabilities.has_provider else _RULES
