"""Means, variances and deviations as models write them: what the rules of ``fuse-layer-norm`` look for."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from dmlc.ir import Node, Value, product
from dmlc.ops.binary import ADD, DIV, MAX, MUL
from dmlc.ops.choose import CAST, CLIP, ClipAttributes
from dmlc.ops.elementwise import RELU
from dmlc.ops.move import EXPAND, TRANSPOSE, TransposeAttributes
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.passes.patterns import (
    Seen,
    both_ways,
    broadcasts,
    difference_of,
    inverse_root_of,
    made_by,
    plus_constant,
    reduction_of,
    root_of,
    scalar_of,
    square_of,
    through_cast,
)
from dmlc.passes.rewrite import Miss


class Average(Struct, frozen=True):
    """A sum over ``axes`` of ``x``, or of its squares, times a number.

    ``excess`` is that number times the count of the elements: 1 for a mean, None where the count is not known.
    """

    x: Value
    axes: tuple[int, ...]
    keepdims: bool
    excess: float | None

    @property
    def is_mean(self) -> bool:
        tolerance = 4 * float(np.finfo(self.x.type.dtype.numpy).eps)
        return self.excess is not None and abs(self.excess - 1) <= tolerance

    @property
    def stands_in_place(self) -> bool:
        """Return whether its axes line up with the axes of x: kept, or dropped with no axes in front of them."""
        return self.keepdims or self.axes == tuple(range(len(self.axes)))

    def why_no_mean(self) -> Miss | None:
        if self.is_mean:
            return None
        if self.excess is None:
            return Miss("the number of elements along axes {0} is not known", (list(self.axes),), self.x)
        text = "the root is taken of {0:.9g} times the mean of squares over axes {1}"
        return Miss(text, (self.excess, list(self.axes)), self.x)


def bare(value: Value) -> Value:
    """Return the value before casts to a wider float, which change no number."""
    node = made_by(value, CAST)
    while node is not None:
        inner = node.operand("x")
        if not (inner.type.dtype.is_float and inner.type.dtype.bits < value.type.dtype.bits):
            break
        value, node = inner, made_by(inner, CAST)
    return value


def average_of(value: Value, seen: Seen, *, squared: bool) -> Average | None:
    """The mean or scaled sum that the value is; with ``squared`` that of squares, and ``x`` is what is squared."""
    mine: Seen = []
    value, factor = _scaled(_without_expand(through_cast(value, mine), mine), mine)
    ops = (REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE) if squared else (REDUCE_MEAN, REDUCE_SUM)
    found = reduction_of(through_cast(value, mine), mine, *ops)
    if found is None:
        return None
    x: Value | None = found.x
    if squared and found.node.op is not REDUCE_SUM_SQUARE:
        x = square_of(_narrow(found.x, mine), mine)
    if x is None:
        return None
    excess: float | None = factor
    if found.node.op is not REDUCE_MEAN:
        count = product([found.x.shape[a] for a in found.axes])
        excess = factor * count if isinstance(count, int) else None
    seen.extend(mine)
    return Average(x, found.axes, found.keepdims, excess)


def _without_expand(value: Value, seen: Seen) -> Value:
    """Return the operand of an expand, since the users broadcast it anyway; shapes are compared by the rules."""
    node = made_by(value, EXPAND)
    if node is None or node.result.type.rank != node.operand("x").type.rank:
        return value
    seen.append(node)
    return node.operand("x")


def _narrow(value: Value, seen: Seen) -> Value:
    """Return the operand of a cast to a wider float."""
    return through_cast(value, seen) if bare(value) is not value else value


def _scaled(value: Value, seen: Seen) -> tuple[Value, float]:
    """Return the value that a constant multiplies or divides, and the factor."""
    node = made_by(value, MUL, DIV)
    if node is None:
        return value, 1.0
    pairs = both_ways(node) if node.op is MUL else ((node.operand("a"), node.operand("b")),)
    for inner, other in pairs:
        number = scalar_of(other)
        if number is not None and not broadcasts(other, inner) and (node.op is MUL or number != 0):
            seen.append(node)
            return inner, float(number) if node.op is MUL else 1 / float(number)
    return value, 1.0


class Centred(Struct, frozen=True):
    """``x`` less its mean, perhaps transposed: axis ``j`` is then axis ``perm[j]`` of x.

    ``flipped`` is the mean less ``x``. ``axes`` are the mean's axes as they are in the result.
    """

    x: Value
    mean: Average
    perm: tuple[int, ...] | None
    flipped: bool

    @property
    def axes(self) -> tuple[int, ...]:
        if self.perm is None:
            return self.mean.axes
        return tuple([j for j, a in enumerate(self.perm) if a in self.mean.axes])

    def is_like(self, other: Centred) -> bool:
        """Return whether both are equal up to the sign."""
        return (bare(self.x), self.mean.axes, self.perm) == (bare(other.x), other.mean.axes, other.perm)


def centred_of(value: Value, seen: Seen) -> Centred | None:
    mine: Seen = []
    value = _narrow(value, mine)
    perm: tuple[int, ...] | None = None
    moved = made_by(value, TRANSPOSE)
    if moved is not None:
        mine.append(moved)
        perm = moved.attributes_as(TransposeAttributes).perm
        value = moved.operand("x")
    pair = difference_of(value, mine)
    if pair is None:
        return None
    for flipped in (False, True):
        x, other = pair[::-1] if flipped else pair
        tried: Seen = []
        mean = average_of(other, tried, squared=False)
        if mean is None or bare(mean.x) is not bare(x) or not mean.stands_in_place or not mean.is_mean:
            continue
        seen.extend((*mine, *tried))
        return Centred(x, mean, perm, flipped)
    return None


class Spread(Struct, frozen=True):
    """A mean of squares of ``data``. ``centred`` says what data is less its mean, if it is.

    ``moments`` is the mean of squares less the square of the mean; data is then not centred yet.
    """

    data: Value
    average: Average
    centred: Centred | None = None
    moments: bool = False


def spread_of(value: Value, seen: Seen) -> Spread | None:
    mine: Seen = []
    average = average_of(value, mine, squared=True)
    if average is not None:
        seen.extend(mine)
        return Spread(average.x, average, centred_of(average.x, []))
    return _moments_of(value, seen)


def _moments_of(value: Value, seen: Seen) -> Spread | None:
    """The variance as the mean of squares less the square of the mean, perhaps kept from going below 0."""
    mine: Seen = []
    node = made_by(value, MAX, RELU, CLIP)
    if node is not None:
        inner = _kept_above_zero(node)
        if inner is None:
            return None
        mine.append(node)
        value = inner
    pair = difference_of(value, mine)
    if pair is None:
        return None
    average = average_of(pair[0], mine, squared=True)
    mean = square_of(pair[1], mine)
    first = None if mean is None else average_of(mean, mine, squared=False)
    if average is None or first is None or bare(first.x) is not bare(average.x):
        return None
    if not (first.is_mean and first.stands_in_place):
        return None
    seen.extend(mine)
    return Spread(average.x, average, Centred(average.x, first, None, False), moments=True)


def _kept_above_zero(node: Node) -> Value | None:
    if node.op is RELU:
        return node.operand("x")
    if node.op is CLIP:
        if not node.result.type.dtype.is_float:
            return None
        bounds = node.attributes_as(ClipAttributes)
        finite = float(np.finfo(node.result.type.dtype.numpy).max)
        return node.operand("x") if bounds.min == 0 and bounds.max in (None, finite) else None
    a, b = node.operand("a"), node.operand("b")
    if scalar_of(a) == 0:
        return b
    return a if scalar_of(b) == 0 else None


class Deviation(Struct, frozen=True):
    """The root of a mean of squares plus ``epsilon``; ``why_not`` is what else is there."""

    spread: Spread
    epsilon: float = 0.0
    why_not: Miss | None = None


_NO_EPSILON = Miss("there is no epsilon under the root: a group of zeros gives NaN, which the fused operator need not")
_NO_ROOT = Miss("it is divided by the mean of squares itself, not by its root")
_VARIABLE = Miss("epsilon is not a constant, and the fused operator takes a number")


def deviation_of(value: Value, seen: Seen, *, inverse: bool) -> Deviation | None:
    """``sqrt(mean of squares + epsilon)``, or one over it, in any spelling."""
    mine: Seen = []
    inner = through_cast(_without_expand(value, mine), mine)
    under = inverse_root_of(inner, mine) if inverse else root_of(inner, mine)
    if under is None:
        return None if inverse else _epsilon_outside(inner)
    under = through_cast(under, mine)
    plus = plus_constant(under, mine)
    if plus is not None:
        found = spread_of(plus[0], mine)
        if found is None:
            return None
        seen.extend(mine)
        small = Miss("epsilon is {0}, not above 0", (plus[1],)) if not plus[1] > 0 else None
        return Deviation(found, plus[1], small)
    found = spread_of(under, mine)
    if found is not None:
        seen.extend(mine)
        return Deviation(found, why_not=_NO_EPSILON)
    return _epsilon_given(under)


def _epsilon_outside(value: Value) -> Deviation | None:
    plus = plus_constant(value, [])
    if plus is None:
        return None
    under = root_of(plus[0], [])
    found = spread_of(plus[0] if under is None else under, [])
    if found is None:
        return None
    if under is None:
        return Deviation(found, why_not=_NO_ROOT)
    return Deviation(found, why_not=Miss("epsilon {0:.3g} is added to the root, not under it", (plus[1],)))


def _epsilon_given(under: Value) -> Deviation | None:
    node = made_by(under, ADD)
    if node is None:
        return None
    for inner, other in both_ways(node):
        found = spread_of(inner, []) if other.type.rank == 0 or other.shape == (1,) else None
        if found is not None:
            return Deviation(found, why_not=_VARIABLE)
    return None
