"""Reductions of integers and bool.

ONNX Runtime's CPU provider adds and multiplies integers in f64 from version 1.27 on, which loses bits above 2^53 and
saturates; it has no kernels for unsigned and narrow types, and compares i64 wrongly. The forms of this module are exact
everywhere. Matrix products wrap there and are faster than the reductions; DirectML has integer sums that wrap and no
integer matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from dmlc.ir import Dim, DType, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import f64, i32, i64, u32, u64
from dmlc.ops.binary import ADD, AND, DIV, FLOORDIV, LESS, MOD, MUL, NOT_EQUAL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import ABS
from dmlc.ops.index import FULL, GATHER_ELEMENTS, ONE_HOT, FullAttributes, IndexAttributes, OneHotAttributes
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import PAD, SLICE, SPLIT, PadAttributes, SliceAttributes, SplitAttributes
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
)
from dmlc.ops.scan import CUMPROD, CUMSUM, ScanAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes, HardmaxAttributes
from dmlc.passes.legalize.widen import NARROW, LegalRule
from dmlc.passes.node_maker import Maker, around, dtype_of, groups
from dmlc.passes.rewrite import Match, Rewriter


class IntegerReduction(LegalRule):
    """A rule for reductions of integers."""

    keeps_promise = True
    for_cpu = True

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node).is_integer


class SumOfParts(IntegerReduction):
    """L1 and sum_square of integers become sums of elements that wrap by themselves."""

    name = "sum-of-parts"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_L1, REDUCE_SUM_SQUARE)

    def make(self, node: Node, make: Maker) -> Value:
        x = node.operand("x")
        part = make(MUL, x, x) if node.op is REDUCE_SUM_SQUARE else x if dtype_of(node).kind == "uint" else make(ABS, x)
        return make(REDUCE_SUM, part, attributes=node.attributes)


class WrappingSum(LegalRule):
    """A sum of integers becomes products with ones, or another form, that wraps modulo 2^n on every runtime."""

    name = "wrapping-sum"
    keeps_promise = True
    for_cpu = True
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)

    def wants(self, node: Node, graph: Graph) -> bool:
        if not dtype_of(node).is_integer:
            return False
        # Sums of numbers of 32 bits stay far below 2^53, so the provider's sum is exact on the CPU too.
        return not (self.capabilities.sums_on_provider and _is_narrow(node.operand("x")))

    def make(self, node: Node, make: Maker) -> Value:
        a, x, dtype = node.attributes_as(ReduceAttributes), node.operand("x"), dtype_of(node)
        if not a.axes:
            return x
        if not self.capabilities.sums_on_provider:
            return make.reshape(_by_products(make, x, a.axes), node.result.shape)
        if dtype.bits <= 32:
            return make.cast(make(REDUCE_SUM, make.cast(x, i64), attributes=a), dtype)
        summed = make.cast(x, i64)
        for axis in a.axes:
            summed = _last(make, make(CUMSUM, _not_empty(make, summed, axis, 0), attributes=_along(axis)), axis)
        return make.cast(make.reshape(summed, node.result.shape), dtype)


def _is_narrow(x: Value) -> bool:
    """Return whether the value is an i64 converted from a type of up to 32 bits."""
    producer = x.producer
    return (
        x.type.dtype is i64
        and producer is not None
        and producer.op is CAST
        and producer.operand("x").type.dtype in NARROW
    )


def _by_products(make: Maker, x: Value, axes: Sequence[int]) -> Value:
    """Sums as products with vectors of ones; the result has the elements of the sum in order, in some shape."""
    dtype, shape = x.type.dtype, x.shape
    for first, last in reversed(groups(axes)):
        before, size, after = around(shape, first, last)
        shape = (*shape[:first], *shape[last:])
        ones = make(FULL, attributes=FullAttributes(shape=(size,), value=1, dtype=dtype))
        if after == 1:
            x = make(MATMUL, make.reshape(x, (before, size)), ones)
        else:
            x = make(MATMUL, ones, make.reshape(x, (before, size, after)))
    return x


def _along(axis: int) -> ScanAttributes:
    return ScanAttributes(axis=axis, exclusive=False, reverse=False)


def _last(make: Maker, x: Value, axis: int) -> Value:
    """The last slice along an axis, which stays as size 1."""
    size = x.shape[axis]
    return make(SLICE, x, attributes=SliceAttributes(starts=(size - 1,), ends=(size,), axes=(axis,), steps=(1,)))


def _not_empty(make: Maker, x: Value, axis: int, identity: int | bool) -> Value:
    """``x`` with one element more in front of an axis that may have none."""
    return _one_more(make, x, axis, identity) if _may_be_empty(make.rewriter.graph, x.shape[axis]) else x


def _one_more(make: Maker, x: Value, axis: int, identity: int | bool) -> Value:
    pads = [0] * (2 * x.type.rank)
    pads[axis] = 1
    return make(PAD, x, attributes=PadAttributes(pads=tuple(pads), value=identity))


def _may_be_empty(graph: Graph, size: Dim) -> bool:
    return size == 0 or graph.dims.promises_empty(size)


class WrappingProduct(IntegerReduction):
    """A product of integers becomes multiplications of halves, which wrap modulo 2^n, until one is left."""

    name = "wrapping-product"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_PROD,)

    def make(self, node: Node, make: Maker) -> Value:
        a, dtype = node.attributes_as(ReduceAttributes), dtype_of(node)
        if not a.axes:
            return node.operand("x")
        home = i32 if dtype.bits <= 32 else i64
        x = make.cast(node.operand("x"), home)
        if self.capabilities.is_native(REDUCE_PROD, home):
            return make.cast(make(REDUCE_PROD, x, attributes=a), dtype)
        for axis in a.axes:
            size = x.shape[axis]
            if isinstance(size, int):
                x = _product(make, x, axis, size)
            else:
                x = _last(make, make(CUMPROD, _not_empty(make, x, axis, 1), attributes=_along(axis)), axis)
        return make.cast(make.reshape(x, node.result.shape), dtype)


def _product(make: Maker, x: Value, axis: int, size: int) -> Value:
    full = 1 if size == 0 else 1 << (size - 1).bit_length()
    if full != size:
        pads = [0] * (2 * x.type.rank)
        pads[axis] = full - size
        x = make(PAD, x, attributes=PadAttributes(pads=tuple(pads), value=1))
    while full > 1:
        full //= 2
        halves = make.rewriter.add_node(SPLIT, [x], SplitAttributes(axis=axis, sizes=(full, full)))
        x = make(MUL, *halves.results)
    return x


class ExtremeOfNothing(LegalRule):
    """The largest or smallest of perhaps no integers gets one more element, the identity."""

    name = "extreme-of-nothing"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MAX, REDUCE_MIN)

    def wants(self, node: Node, graph: Graph) -> bool:
        if dtype_of(node).is_float:
            return False  # ONNX Runtime gives the infinities by itself
        return any(_may_lack(graph, node.operand("x"), axis) for axis in node.attributes_as(ReduceAttributes).axes)

    def make(self, node: Node, make: Maker) -> Value:
        dtype, x = dtype_of(node), node.operand("x")
        lowest = dtype.lowest if node.op is REDUCE_MAX else dtype.highest
        identity = bool(lowest) if dtype.kind == "bool" else int(lowest)
        axes = node.attributes_as(ReduceAttributes).axes
        if any(x.shape[axis] == 0 for axis in axes):
            return make(FULL, attributes=FullAttributes(shape=node.result.shape, value=identity, dtype=dtype))
        for axis in axes:
            if _may_lack(make.rewriter.graph, x, axis):
                x = _one_more(make, x, axis, identity)
        return make(node.op, x, attributes=node.attributes)


def _may_lack(graph: Graph, x: Value, axis: int) -> bool:
    """Return whether a max or min along the axis may reduce no elements and not give the identity by itself.

    An imported model keeps its kernel's result, except where ``ExtremeByIndex`` uses an arg reduction, which would
    fail.
    """
    size = x.shape[axis]
    return _may_be_empty(graph, size) or (x.type.dtype in (i64, u64) and graph.dims.interval(size)[0] < 1)


class ExtremeByIndex(LegalRule):
    """The largest or smallest i64, which kernels compare wrongly, becomes the element at its argmax or argmin."""

    name = "extreme-by-index"
    for_cpu = True
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MAX, REDUCE_MIN)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node) in (i64, u64)

    def make(self, node: Node, make: Maker) -> Value:
        x, find = node.operand("x"), ARGMAX if node.op is REDUCE_MAX else ARGMIN
        for first, last in reversed(groups(node.attributes_as(ReduceAttributes).axes)):
            shape, axis, flat = x.shape, first, x
            if last - first > 1:
                flat, axis = make.reshape(x, around(shape, first, last)), 1
            index = make(find, flat, attributes=ArgAttributes(axes=(axis,), ties="first", dtype=i64, keepdims=True))
            best = make(GATHER_ELEMENTS, flat, index, attributes=IndexAttributes(axis=axis))
            x = make.reshape(best, (*shape[:first], *[1] * (last - first), *shape[last:]))
        return make.reshape(x, node.result.shape)


class ExtremeBiased(LegalRule):
    """The largest or smallest u32 is computed as i32 in the same order: less 2^31."""

    name = "extreme-biased"
    for_cpu = True
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MAX, REDUCE_MIN)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node) is u32

    def make(self, node: Node, make: Maker) -> Value:
        least = make.constant(i32.lowest, i32)
        found = make(node.op, biased(make, node.operand("x"), i32), attributes=node.attributes)
        return make.cast(make(ADD, found, least), u32)


def biased(make: Maker, x: Value, home: DType) -> Value:
    """An unsigned tensor as the signed type of the same width, in the same order."""
    return make(ADD, make.cast(x, home), make.constant(home.lowest, home))


class ExactMean(IntegerReduction):
    """The mean of integers becomes the exact sum, divided and truncated.

    Sums of up to 32 bits fit i64. Wider numbers are taken apart into a high half h and a low half l, so that the sum
    is 2^32 H + L. With H = q n + r the quotient is 2^32 q + (2^32 r + L) // n, and nothing of it overflows.
    """

    name = "exact-mean"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MEAN,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if self.capabilities.has_provider:
            # The provider fails on every integer type, or leaves the node to the CPU: in an imported model too
            return Match(node) if self.wants(node, graph) else None
        return super().match(node, graph)

    def make(self, node: Node, make: Maker) -> Value:
        a, x, dtype = node.attributes_as(ReduceAttributes), node.operand("x"), dtype_of(node)
        if not a.axes:
            return x
        count = _count(make, [x.shape[axis] for axis in a.axes])

        def total(value: Value) -> Value:
            return make(REDUCE_SUM, make.cast(value, i64), attributes=a)

        if dtype.bits <= 32:
            return make.cast(make(DIV, total(x), count), dtype)
        return make.cast(_wide_mean(make, x, count, total), dtype)


def _count(make: Maker, sizes: Sequence[Dim]) -> Value:
    """Return the number of elements as a scalar; with symbolic sizes it is the sum of that many ones."""
    size = product(sizes)
    if isinstance(size, int):
        return make.constant(size, i64)
    ones = make(FULL, attributes=FullAttributes(shape=(size,), value=1, dtype=i64))
    return make(MATMUL, ones, ones)


def _wide_mean(make: Maker, x: Value, count: Value, total: Callable[[Value], Value]) -> Value:
    base, split = make.constant(2**32, i64), make.constant(2**32, x.type.dtype)
    low = make(MOD, x, split)
    high = make(DIV, make(SUB, x, low), split)
    high_sum, low_sum = total(high), total(low)
    quotient = make(FLOORDIV, high_sum, count)
    rest = make(ADD, make(MUL, make(MOD, high_sum, count), base), low_sum)
    floor = make(ADD, make(MUL, quotient, base), make(DIV, rest, count))
    if x.type.dtype.kind == "uint":
        return floor
    zero = make.constant(0, i64)
    up = make(AND, make(LESS, floor, zero), make(NOT_EQUAL, make(MOD, rest, count), zero))
    return make(ADD, floor, make.cast(up, i64))


class SelectBiased(LegalRule):
    """A selection over u64 becomes one over i64 in the same order: less 2^63."""

    name = "select-biased"
    for_cpu = True
    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, ARGMIN, TOP_K)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node) is u64

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, make = match.root, Maker(rewriter)
        found = rewriter.add_node(node.op, [biased(make, node.operand("x"), i64)], node.attributes)
        if node.op is not TOP_K:
            return found.results
        values, indices = found.results
        return [make.cast(make(ADD, values, make.constant(i64.lowest, i64)), u64), indices]


class HardmaxByIndex(LegalRule):
    """Hardmax of f64, which has no kernel anywhere, becomes argmax and one_hot."""

    name = "hardmax-by-index"
    roots: ClassVar[tuple[Operation, ...]] = (HARDMAX,)

    def wants(self, node: Node, graph: Graph) -> bool:
        return dtype_of(node) is f64 and len(node.attributes_as(HardmaxAttributes).axes) == 1

    def make(self, node: Node, make: Maker) -> Value:
        x, axes = node.operand("x"), node.attributes_as(HardmaxAttributes).axes
        index = make(ARGMAX, x, attributes=ArgAttributes(axes=axes, ties="first", dtype=i64, keepdims=False))
        record = OneHotAttributes(depth=x.shape[axes[0]], axis=axes[0], on=1, off=0, dtype=f64)
        return make(ONE_HOT, index, attributes=record)


RULES: Sequence[type[LegalRule]] = (
    SelectBiased,
    HardmaxByIndex,
    SumOfParts,
    WrappingSum,
    WrappingProduct,
    ExtremeOfNothing,
    ExtremeByIndex,
    ExtremeBiased,
    ExactMean,
)
