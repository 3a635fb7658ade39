"""Operators that a provider leaves to the CPU, in those that it has kernels of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmlc.ir import DType, Graph, Node, Operation
from dmlc.ir.dtype import bool_, f32, i32, i64
from dmlc.ops.binary import EQUAL, MOD, OR, XOR
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import ROUND, SIGN
from dmlc.ops.index import GATHER_ELEMENTS, ONE_HOT, OneHotAttributes
from dmlc.ops.move import (
    PAD,
    RESHAPE,
    SLICE,
    SPLIT,
    SQUEEZE,
    TRANSPOSE,
    UNSQUEEZE,
    PadAttributes,
    SliceAttributes,
    SplitAttributes,
)
from dmlc.ops.normalize import LOG_SOFTMAX
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, axes_of
from dmlc.ops.scan import CUMSUM
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Function, Lowered, NodeRule, lowers, simplifies
from dmlc.passes.primitives import softmax

#: f32 holds every integer up to this.
_EXACT = float(2**24)


@lowers(MOD)
def remainder_by_division(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """A remainder of 64-bit integers becomes a - (a / b) * b, with b added where the signs differ.

    The provider has no kernel of Mod for them, and one of Div, which truncates. Where neither number is negative
    nothing needs to be added. A remainder by zero is unspecified.
    """
    if not a.dtype.is_integer or not e.target.leaves("Mod", a.dtype) or e.target.leaves("Div", a.dtype):
        return KEEP
    rest = a - a / b * b
    is_positive = e.interval(b)[0] >= 0
    if a.dtype.kind == "uint" or (is_positive and e.interval(a)[0] >= 0):
        return rest
    negative = rest < 0
    if is_positive:
        return e.where(negative, rest + b, rest)
    return e.where(e.not_equal(rest, 0) & (negative ^ (b < 0)), rest + b, rest)


def replaces(
    operators: dict[Operation, str], *needs: str, home: DType | None = None
) -> Callable[[Function], type[NodeRule]]:
    """Make a function the lowering of operators without a kernel, if there are kernels of what it ``needs``: in its own
    dtype, or in ``home``."""

    def is_absent(rule: Any, node: Node, graph: Graph) -> bool:
        dtype, ask = node.operand(0).type.dtype, rule.capabilities
        return ask.leaves(operators[node.op], dtype) and all(ask.computes(op, home or dtype) for op in needs)

    return lowers(*operators, offered=is_absent)


@replaces({OR: "Or", XOR: "Xor", EQUAL: "Equal"}, "Equal", home=i32)
def truths_by_integers(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``a | b`` of truths becomes ``!(!a & !b)``; ``a ^ b`` and ``a == b`` compare integers."""
    if a.dtype is not bool_:
        return KEEP
    if node.op is OR:
        return ~(~a & ~b)
    same = e.equal(a.cast(i32), b.cast(i32))
    return same if node.op is EQUAL else ~same


@replaces({ROUND: "Round", SIGN: "Sign"}, "Where", "Floor", "Less")
def steps_by_comparison(e: Sketch, node: Node, x: Term) -> Lowered:
    """``round`` and ``sign`` become comparisons and choices.

    The number below and the distance to it are exact. Half of the number below is a whole one where that is even.
    """
    if node.op is SIGN:  # zeros and NaN are their own
        return e.where(x > 0, 1, e.where(x < 0, -1, x))
    low = e.floor(x)
    part, half = x - low, low * 0.5
    before = np.nextafter(np.asarray(0.5, x.dtype.numpy), np.asarray(0, x.dtype.numpy))
    least = e.where(e.floor(half) < half, e.number(before, x.dtype), 0.5)
    return e.where(part > least, low + 1, low)


@replaces({LOG_SOFTMAX: "LogSoftmax"}, "ReduceMax", "Sub", "Exp", "ReduceSum", "Log")
def log_softmax_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """``log_softmax`` becomes the distance to the maximum less the logarithm of the sum of its powers."""
    return softmax(e, node.op, x, axes_of(node))


def _is_known_axis(rule: NodeRule, node: Node, graph: Graph) -> bool:
    ask = rule.capabilities
    if not all(ask.computes(op, i32) for op in ("Equal", "Where")):
        return False
    if node.op is ONE_HOT:
        return isinstance(node.attributes_as(OneHotAttributes).depth, int) and ask.kernel("OneHot") is None
    axes, x = axes_of(node), node.operand("x")
    is_known = len(axes) == 1 and isinstance(x.shape[axes[0]], int)
    return is_known and ask.leaves("Hardmax", x.type.dtype) and ask.computes("ArgMax", x.type.dtype)


@lowers(ONE_HOT, HARDMAX, offered=_is_known_axis)
def one_hot_by_comparison(e: Sketch, node: Node, x: Term) -> Lowered:
    """``one_hot``, and ``hardmax`` over one axis, become a comparison of the index with the places of the axis."""
    wide = i64 if e.target.computes("Equal", i64) else i32  # the dtype in which i64 is compared
    if node.op is HARDMAX:
        (axis,) = axes_of(node)
        index = e.argmax(x, axes=(axis,), ties="first", dtype=wide, keepdims=True)
        return e.equal(index, _places(index, x.shape[axis], axis)).cast(x.dtype)
    a = node.attributes_as(OneHotAttributes)
    index = e.unsqueeze(x.cast(wide if x.dtype is i64 else i32), axes=(a.axis,))
    if e.interval(x)[0] < 0:
        index = e.where(index < 0, index + a.depth, index)
    hot = e.equal(index, _places(index, a.depth, a.axis))
    if (a.on, a.off) == (1, 0):
        return hot.cast(a.dtype)
    return e.where(hot, e.number(a.on, a.dtype), e.number(a.off, a.dtype))


def _places(index: Term, depth: object, axis: int) -> np.ndarray[Any, Any]:
    assert isinstance(depth, int)
    return np.arange(depth).reshape([depth] + [1] * (index.rank - axis - 1))


@replaces({SLICE: "Slice"}, "Gather")
def slice_by_gather(e: Sketch, node: Node, x: Term) -> Lowered:
    """A slice of integers with known ends becomes a gather of the elements along each axis."""
    for axis, start, end, step in node.attributes_as(SliceAttributes).rows():
        size = x.shape[axis]
        if not (isinstance(size, int) and isinstance(start, int) and isinstance(end, int)):
            return KEEP
        places = np.arange(size)[start:end:step]
        if len(places) != size or step < 0:
            x = e.gather(x, e.number(places, i64), axis=axis, batch_axes=0)
    return x


@replaces({PAD: "Pad"}, "Concat")
def pad_by_concat(e: Sketch, node: Node, x: Term) -> Lowered:
    """A pad of integers becomes a concat with constants along each axis."""
    a, rank = node.attributes_as(PadAttributes), x.rank
    if not all(isinstance(size, int) for size in (*x.shape, *a.pads)):
        return KEEP
    for axis in range(rank):
        sizes = [[count if i == axis else size for i, size in enumerate(x.shape)] for count in a.pads[axis::rank]]
        ends = [e.number(np.full(shape, a.value), x.dtype) if shape[axis] else None for shape in sizes]
        parts = [part for part in (ends[0], x, ends[1]) if part is not None]
        x = e.concat(*parts, axis=axis) if len(parts) > 1 else x
    return x


@replaces({SQUEEZE: "Squeeze", SPLIT: "Split"}, "Reshape", "Gather")
def parts_by_gather(e: Sketch, node: Node, x: Term) -> Lowered:
    """``squeeze`` of integers becomes a reshape, ``split`` with known sizes a gather for each part."""
    if node.op is SQUEEZE:
        return x.reshape(node.result.shape)
    axis, first, out = node.attributes_as(SplitAttributes).axis, 0, []
    for value in node.results:
        size = value.shape[axis]
        if not isinstance(size, int):
            return KEEP
        out.append(e.gather(x, e.number(np.arange(first, first + size), i64), axis=axis, batch_axes=0))
        first += size
    return out


_NARROWED = {
    GATHER_ELEMENTS: "GatherElements",
    TOP_K: "TopK",
    ARGMAX: "ArgMax",
    ARGMIN: "ArgMin",
    REDUCE_MAX: "ReduceMax",
    REDUCE_MIN: "ReduceMin",
    CUMSUM: "CumSum",
}


@replaces(_NARROWED)
def integers_in_narrower(e: Sketch, node: Node, x: Term, *others: Term) -> Lowered:
    """A choice or running sum of integers is made in f32 or i32, where that holds each of them.

    ``gather_elements`` and ``top_k`` take floats alone; ``cumsum``, and what finds an extreme, no i64.
    """
    home = f32 if node.op in (GATHER_ELEMENTS, TOP_K) else i32
    if not x.dtype.is_integer or not e.target.computes("Cast", x.dtype, "T1"):
        return KEEP
    if home is i32 and (x.dtype is not i64 or not x.type.is_static or 0 in x.shape):
        return KEEP  # an extreme of nothing is the lowest number of its type
    most = _EXACT if home is f32 else float(i32.highest)
    ends = (*e.interval(x), *(e.interval(e.of(node.result)) if node.op is CUMSUM else ()))
    if max(map(abs, ends)) > most or not e.target.computes(_NARROWED[node.op], home):
        return KEEP
    made = e.again(node, x.cast(home))
    return [made[0].cast(node.results[0].type.dtype), *made[1:]]


_VIEWS = {RESHAPE: "Reshape", SQUEEZE: "Squeeze", UNSQUEEZE: "Unsqueeze", TRANSPOSE: "Transpose"}


@simplifies(CAST, fed_by=tuple(_VIEWS), optional=False)
def cast_before_view(e: Sketch, node: Node, x: Term) -> Lowered:
    """The cast of a view of i64 becomes a view of the cast, where the provider has no kernel of the view.

    Casts of several views of one value become one.
    """
    view = e.made_by(x, *_VIEWS)
    if x.dtype is not i64 or view is None:
        return KEEP
    name = _VIEWS[view.op]
    kernel = e.target.kernel(name)
    if not e.target.leaves(name, i64) and (kernel is None or "T" not in kernel.int64):
        return KEEP
    return e.again(view, e.of(view.operand(0)).cast(node.result.type.dtype))
