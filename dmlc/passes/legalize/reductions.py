"""Reductions of integers and bool.

ONNX Runtime's CPU provider adds and multiplies integers in f64 from version 1.27 on, which loses bits above 2^53 and
saturates; it has no kernels for unsigned and narrow types, and compares i64 wrongly. The forms of this module are exact
everywhere. Matrix products wrap there and are faster than the reductions; DirectML has integer sums that wrap and no
integer matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dmlc.ir import Dim, Graph, Node, product
from dmlc.ir.dtype import f64, i32, i64, u32, u64
from dmlc.ops.choose import CAST
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
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, HardmaxAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import around, groups
from dmlc.passes.legalize.widen import NARROW, is_for_cpu, is_of_program, is_promised_for_cpu
from dmlc.passes.lowering import KEEP, Lowered, NodeRule, lowers


def _axes(node: Node) -> tuple[int, ...]:
    return node.attributes_as(ReduceAttributes).axes


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
    on_provider, axes = e.target.sums_on_provider, _axes(node)
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
    dtype, axes = x.dtype, _axes(node)
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
    lacking = [axis for axis in _axes(node) if not x.dtype.is_float and _may_lack(e.graph, x, axis)]
    if not lacking:
        return KEEP
    lowest = x.dtype.lowest if node.op is REDUCE_MAX else x.dtype.highest
    identity = bool(lowest) if x.dtype.kind == "bool" else int(lowest)
    if any(x.shape[axis] == 0 for axis in _axes(node)):
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
    for first, last in reversed(groups(_axes(node))):
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
    if not _axes(node):
        return x
    count = _count(e, [x.shape[axis] for axis in _axes(node)])

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
    axes = node.attributes_as(HardmaxAttributes).axes
    if x.dtype is not f64 or len(axes) != 1:
        return KEEP
    index = e.argmax(x, axes=axes, ties="first", dtype=i64, keepdims=False)
    return e.one_hot(index, depth=x.shape[axes[0]], axis=axes[0], on=1, off=0, dtype=f64)


RULES = (
    select_biased,
    hardmax_by_index,
    sum_of_parts,
    wrapping_sum,
    wrapping_product,
    extreme_of_nothing,
    extreme_by_index,
    extreme_biased,
    exact_mean,
)
