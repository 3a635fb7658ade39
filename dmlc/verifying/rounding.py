"""Numbers that are rounded otherwise: the noise of which the spread of a model's results is measured.

Results that are multiples of 1/64 stay as they are: small integers and halves are computed without rounding.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dmlc.ir import Array, Node
from dmlc.ops.elementwise import ELU, GELU, HARD_SIGMOID, SIGMOID, SILU, SOFTPLUS, UNARY
from dmlc.ops.normalize import LAYER_NORM, MEAN_VARIANCE_NORM
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.verifying.inputs import Feeds

#: The most units in the last place of a move.
UNITS = 2
#: The most units of one of several results of a function that are equal.
_UNITS_OF_EQUALS = 8
#: The sample that rounds nothing otherwise.
_EVEN = 3
#: Sums of up to this many terms move as single numbers do.
_SMALL_SUM = 32
#: Multiples of this part of 1 need no rounding.
_PARTS = 64
#: Bits of a number times this are as good as random in the upper places (D. Knuth, TAOCP 3, 6.4: the golden ratio).
_GOLDEN: dict[int, Any] = {2: np.uint16(0x9E37), 4: np.uint32(0x9E3779B1), 8: np.uint64(0x9E3779B97F4A7C15)}
#: Functions whose kernels add numbers of the size of 1 or of the operand: that is how exact their results are.
_CANCELLING = (ELU, GELU, HARD_SIGMOID, SIGMOID, SILU, SOFTPLUS)
#: Another mean that a normalization takes away is that far from it, in units.
_SHIFTS = (0, 1, -1, 2, -2)
#: Products of the operand and a number that is computed so.
_SCALED = (GELU, SILU)
_SUMS = (REDUCE_SUM, REDUCE_MEAN)
#: Functions that kernels compute of vectors in one way, and of the numbers left over in another: equal operands may
#: give results that differ by where they stand.
_APPROXIMATE = frozenset(op.name.replace("_", "") for op in UNARY if op.rounding == "approximate")
_SHARES = ("softmax", "logsoftmax")
#: A number over a sum with it, or times the reciprocal of the sum.
_QUOTIENTS = ("softsign",)
#: Logarithms of sums, and the one of which the terms may cancel.
_LOGARITHMS = ("reducelogsum", "reducelogsumexp", "logsoftmax")
_OF_TERMS = "reducelogsum"


@dataclass(frozen=True, slots=True)
class Noise:
    """One way to round otherwise. With ``ties`` it depends on nothing but a number and the seed, so that equal numbers
    stay equal: no rounding decides which of two equal ones is the first, but at ``places`` that kernels decide."""

    seed: int
    ties: bool

    @property
    def is_even(self) -> bool:
        """One sample rounds nothing otherwise, but that equal numbers give equal results: they may cancel then."""
        return self.seed == _EVEN

    def units(self, x: Array, places: Any = False, form: int = 0) -> Array:
        """Whole numbers from -2 to 2 without 0, one for each element. Those of an odd seed have the other signs than
        those of the seed before, so that each element moves up and down. Several equal ones at ``places`` take more,
        so that any of them becomes the largest. Another ``form`` has others."""
        seed, turned = divmod(self.seed, 2)
        rng, width = np.random.default_rng([seed, x.size]), 2 * UNITS
        drawn = numbers_of(x, seed + form, width) if self.ties else rng.integers(0, width, x.shape, np.int8)
        numbers = np.asarray(drawn)
        units = numbers - UNITS + (numbers >= UNITS)
        if self.ties and np.any(places):
            units = np.where(places, rng.integers(-_UNITS_OF_EQUALS, _UNITS_OF_EQUALS + 1, x.shape), units)
        return np.asarray(-units if turned else units)

    def factors(self, made: Rounded) -> Array:
        """A factor near 1 for each element of a float array, of its dtype."""
        x, limits = made.x, np.finfo(made.x.dtype)
        with np.errstate(all="ignore"):
            if self.is_even:
                return np.where(np.isfinite(x) & (x != 0), made.even / x, 1).astype(x.dtype)
            steps = np.where(made.rounded, self.units(x, made.places, made.form), 0) * made.orders
            steps = steps + 0.5 * (steps < 0) * self._keeps  # a factor of 1 + eps moves some numbers by two units
            return np.asarray(np.where(self._vanishes(x), 0, 1 + steps * limits.eps)).astype(x.dtype)

    def factor(self, name: str, one: Array) -> Array:
        """A factor near 1 for all elements of the value of that name."""
        seed, turned = divmod(self.seed, 2)
        units = 0 if self.is_even else (-UNITS, -1, 1, UNITS)[(zlib.crc32(name.encode()) + seed * 7 // 3) % 4]
        return np.asarray(1 + (-units if turned else units) * np.finfo(one.dtype).eps, one.dtype)

    def terms(self, made: Rounded) -> Array:
        """A number to add to each element of a float array that has a ``size``."""
        with np.errstate(all="ignore"):
            moved = made.even if self.is_even else self._by_size(made, made.size)
            return np.where(np.isfinite(made.x) | np.isnan(moved), moved - made.x, 0).astype(made.x.dtype)

    def moved(self, feeds: Feeds, fixed: frozenset[str]) -> Feeds:
        """The float arrays that may move, rounded otherwise."""
        moving = {n: x for n, x in feeds.items() if n not in fixed and isinstance(x, np.ndarray) and not self.is_even}
        return {n: self._moved(x) for n, x in moving.items() if x.dtype.kind == "f" and x.size}

    @property
    def _keeps(self) -> bool:
        """Every other pair of samples keeps inputs that are small multiples of 1/64, where ties stay ties."""
        return self.ties and bool(self.seed // 2 % 2)

    def _moved(self, x: Array) -> Array:
        """An infinity and a NaN stay what they are, and finite numbers finite."""
        limits = np.finfo(x.dtype)
        with np.errstate(all="ignore"):
            wide: Any = np.longdouble if x.dtype == np.float64 else np.float64
            units = np.where(is_rounded(x), self.units(x), 0) if self._keeps else self.units(x)
            made = x.astype(wide) * (1 + units * wide(limits.eps))
            inside = np.clip(made, wide(limits.min), wide(limits.max)).astype(x.dtype)
        return np.where(np.isfinite(x), inside, x)

    def result(self, node: Node, operands: Sequence[Array | None], x: Any) -> Any:
        """A float result of a node as another kernel might give it."""
        if not isinstance(x, np.ndarray | np.generic) or x.dtype.kind != "f" or not x.size:
            return x
        op, x = node.op, np.asarray(x)
        made = Rounded.by(op.name, operands, x, _centring(node, operands))
        with np.errstate(all="ignore"):
            if self.is_even:
                return made.even
            size = made.size if made.size is not None else _sizes_at(node, operands, x)
            if size is None:
                return np.asarray(x * self.factors(made))
            return self._by_size(made, size, coarse=made.size is not None or op in _CANCELLING)

    def _by_size(self, made: Rounded, size: Any, *, coarse: bool = True) -> Array:
        """The elements moved by units of a size. Every other sample of ``coarse`` ones has no digit below a unit."""
        x, unit = made.x, np.finfo(made.x.dtype).eps * size
        moved = x + self.units(x, made.places, made.form) * made.orders * unit
        if coarse and not self.seed % 2:
            shift = _SHIFTS[self.seed // 2 % len(_SHIFTS)] if made.centred else 0
            moved = np.where(unit == 0, x, (np.round(x.astype(np.float64) / unit) + shift) * unit)
        kept = np.where(np.isfinite(x) | np.isnan(size), moved, x)
        return np.asarray(np.where(self._vanishes(x), 0, kept)).astype(x.dtype)

    def _vanishes(self, x: Array) -> Array:
        """Numbers below the normal ones become 0 half the time, as in kernels."""
        return np.asarray((np.abs(x) < np.finfo(x.dtype).tiny) & (x != 0) & (self.seed % 2 == 0))


@dataclass(frozen=True, slots=True)
class Centring:
    """A normalization that takes the mean over ``axes`` away and, with ``variance``, divides by the deviation."""

    axes: tuple[int, ...]
    epsilon: float
    variance: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """A float array that an operator made, and how it rounds.

    ``rounded`` elements are; whether those at ``places`` equal others depends on the kernel. They move by
    ``orders`` times two units, of ``size`` if that is not the number itself. ``even`` ones agree for equal operands.
    The same function of other shapes, another ``form``, may round equal operands otherwise.
    """

    x: Array
    rounded: Array
    places: Any
    orders: float
    size: Any
    even: Array
    centred: bool
    form: int

    @classmethod
    def by(cls, op: str, operands: Sequence[Array | None], x: Array, centring: Centring | None = None) -> Rounded:
        """A sum of n terms in another order moves by up to n / 2 units (N. J. Higham, Accuracy and Stability of
        Numerical Algorithms, 2002, section 4.2): large ones move by more than two."""
        orders = max(1.0, terms_of(op, operands, x) / _SMALL_SUM)
        groups, size = None, rounded_sizes(op, operands, x)
        if centring is not None:
            groups = _groups(centring, operands)
            size = None if x.dtype == np.float16 else _size_in_groups(centring, operands, x)  # f16 is centred in f32
        places = _places_of_sums(op, operands, x) if _is_sum(op) else places_of_kernels(op, operands, x, groups)
        even = _even(op, operands, x) if centring is None else _without_spread(centring, operands, x)
        shapes = [None if y is None else y.shape for y in operands]
        form = zlib.crc32(repr((op, shapes, x.shape)).encode()) if _is_sum(op) or is_approximated(op) else 0
        centred = size is not None and groups is not None
        return cls(x, is_rounded(x, operands), places, orders, size, even, centred, form)


def _is_sum(op: str) -> bool:
    """Return whether an operator reduces and rounds."""
    return op.lower().startswith("reduce") and not op.lower().endswith(("max", "min"))


def _without_spread(centring: Centring, operands: Sequence[Array | None], x: Array) -> Array:
    """Results of a normalization, of which nothing but the shift is left where all numbers of a group are equal."""
    data, shift = operands[0], operands[2] if len(operands) > 2 else None
    assert data is not None
    top, low = (function(data, axis=centring.axes, keepdims=True) for function in (np.max, np.min))
    near = _UNITS_OF_EQUALS * np.finfo(x.dtype).eps * np.maximum(np.abs(top), np.abs(low))
    return np.where(top - low <= near, 0 if shift is None else shift, x).astype(x.dtype)


def _even(op: str, operands: Sequence[Array | None], x: Array) -> Array:
    """Results of an approximated function, equal for equal operands; differences of numbers that are
    almost equal are 0."""
    name, arrays = op.lower().replace("_", ""), [y for y in operands[:2] if y is not None]
    if name in ("add", "sub") and len(arrays) == 2:
        near = _UNITS_OF_EQUALS * np.finfo(x.dtype).eps * np.maximum(*map(np.abs, arrays))
        return np.where(np.abs(x) <= near, 0, x).astype(x.dtype)
    if name not in _APPROXIMATE or not arrays or arrays[0].shape != x.shape:
        return x
    first, group = np.unique(arrays[0], return_index=True, return_inverse=True)[1:]
    return np.asarray(x.reshape(-1)[first][group].reshape(x.shape))


def rounded_sizes(op: str, operands: Sequence[Array | None], x: Array) -> Any:
    """The largest numbers, in units of the result, that kernels round on the way to each; None if that is the result
    itself: the sum of which a logarithm is taken is rounded. It is NaN where the terms of such a sum cancel."""
    name, terms = op.lower().replace("_", ""), operands[0] if operands else None
    if name not in _LOGARITHMS:
        return None
    size = np.maximum(np.abs(x), 1)
    if name != _OF_TERMS or terms is None:
        return size
    top = np.abs(terms)[is_rounded(terms)].max(initial=0).astype(np.float64)
    with np.errstate(all="ignore"):
        lost = top / np.exp(x.astype(np.float64))
        return np.where(lost * np.finfo(x.dtype).eps > 1 / _SMALL_SUM, np.nan, np.fmax(size, lost))


def _sizes_at(node: Node, operands: Sequence[Array | None], x: Array) -> Any:
    """As ``rounded_sizes``, for what the attributes of a node tell too."""
    operand, op, size = operands[0] if operands else None, node.op, np.abs(x)
    if operand is None:
        return None
    if op in _CANCELLING:
        added = np.clip(np.abs(operand), 0 if op in _SCALED else 1, 32)
        return np.where((op is ELU) & (operand > 0), size, np.maximum(size, added))
    if op in _SUMS and operand.size:
        axes = node.attributes_as(ReduceAttributes).axes
        top = np.abs(operand).max(axis=axes).reshape(x.shape) / (operand.size / x.size if op is REDUCE_MEAN else 1)
        rounded = is_rounded(operand).any(axis=axes).reshape(x.shape)
        return np.where(rounded, np.maximum(size, top), np.where(is_rounded(x), size, 0))
    return None


def _centring(node: Node, operands: Sequence[Array | None]) -> Centring | None:
    """Return the way in which a node of the language centres its operand."""
    a: Any = node.attributes
    if node.op is MEAN_VARIANCE_NORM:
        return Centring(a.axes, a.epsilon, a.variance)
    x = operands[0] if node.op is LAYER_NORM else None
    return None if x is None else Centring(tuple(range(a.axis, x.ndim)), a.epsilon)


def _groups(centring: Centring, operands: Sequence[Array | None]) -> Array:
    """A number for the content of the group that each element of the operand of a normalization is in."""
    x = operands[0]
    assert x is not None
    return np.asarray(np.broadcast_to(np.expand_dims(_contents(x, centring.axes), centring.axes), x.shape))


def _contents(x: Array, axes: tuple[int, ...]) -> Array:
    """A number for the content of each group along the axes."""
    outer = [size for axis, size in enumerate(x.shape) if axis not in {a % x.ndim for a in axes}]
    rows = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim)).reshape(math.prod(outer), -1)
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1]).reshape(outer)


def axes_of(x: Array, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The axes over which a reduction may give a shape."""
    for count in range(x.ndim + 1):
        for axes in combinations(range(x.ndim), count):
            kept = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
            if shape in (kept, tuple([n for i, n in enumerate(x.shape) if i not in axes])):
                yield axes


def _size_in_groups(centring: Centring, operands: Sequence[Array | None], made: Array) -> Any:
    """The largest number of each group of a normalization, in units of its results: so large are the numbers that are
    rounded before the mean is taken away."""
    x, *scale = [operand for operand in operands if operand is not None]
    axes = centring.axes
    top = np.abs(x).max(axis=axes, keepdims=True, initial=np.finfo(x.dtype).tiny)
    if centring.variance:
        top = top / np.sqrt(x.var(axis=axes, keepdims=True) + centring.epsilon)
        if scale:
            top = top * np.abs(scale[0])
    return np.maximum(np.abs(made), top)


def terms_of(op: str, operands: Sequence[Array | None], x: Array) -> int:
    """The number of terms of each element that an operator adds; 1 if it adds none."""
    source = operands[0] if operands else None
    return max(source.size // max(x.size, 1), 1) if _is_sum(op) and source is not None else 1


def _places_of_sums(op: str, operands: Sequence[Array | None], x: Array) -> Any:
    """The sums that are equal although their terms, or the order of these, are not; of their logarithms all equal ones,
    which are approximated."""
    operand = operands[0] if operands else None
    values, group, count = np.unique(x, return_inverse=True, return_counts=True)
    tied = (count > 1) & is_rounded(values)
    if operand is None or not tied.any():
        return False
    if op.lower().replace("_", "") not in _LOGARITHMS:
        terms = [_contents(operand, axes) for axes in axes_of(operand, x.shape)]
        tied &= np.any([_differ(each, group, len(values)) for each in terms], axis=0)
    return tied[group].reshape(x.shape)


def places_of_kernels(op: str, operands: Sequence[Array | None], x: Array, groups: Any = None) -> Any:
    """The elements whose equality to others depends on the kernel.

    Of an approximated function these are equal because their operands are, or although these differ in size: another
    kernel rounds them apart, unless all are rounded to a limit such as 1, which quotients may miss. Of a softmax and a
    normalization they are equal although their operands, or the ``groups`` that these are in, are not."""
    operand, name = operands[0] if operands else None, op.lower().replace("_", "")
    shares = name in _SHARES or "norm" in name
    if not is_approximated(name) or operand is None or operand.shape != x.shape:
        return False
    values, group, count = np.unique(x, return_inverse=True, return_counts=True)
    differ = _differ(operand if shares else np.abs(operand), group, len(values))
    places = differ if shares else ~differ | is_rounded(values) | (name in _QUOTIENTS)
    if groups is not None:
        places |= _differ(groups, group, len(values))
    return (places & (count > 1))[group].reshape(x.shape)


def is_approximated(op: str) -> bool:
    """Return whether kernels approximate a function, or divide by a sum, each in its own way."""
    name = op.lower().replace("_", "")
    return name in _SHARES or "norm" in name or name in _APPROXIMATE


def numbers_near(x: Array, among: Array) -> Array:
    """For each element, how many of the numbers are as close to it as rounding moves one."""
    numbers = np.sort(among.astype(np.float64), axis=None)
    x = np.where(np.isfinite(x), x, 0)
    reach = UNITS * np.finfo(x.dtype).eps * np.abs(x.astype(np.float64))
    return np.asarray(np.searchsorted(numbers, x + reach, "right") - np.searchsorted(numbers, x - reach, "left"))


def _differ(numbers: Array, group: Array, count: int) -> Array:
    """For each group of elements, whether the numbers in it differ."""
    lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(lowest, group.reshape(-1), numbers.reshape(-1))
    np.maximum.at(highest, group.reshape(-1), numbers.reshape(-1))
    return np.asarray(lowest != highest)


def numbers_of(x: Array, seed: int, end: int) -> Array:
    """Whole numbers from 0 to ``end`` that depend on nothing but the numbers and the seed."""
    numbers = np.ascontiguousarray(x + x.dtype.type(0))  # -0 is 0
    size = numbers.dtype.itemsize
    golden = _GOLDEN[size]
    with np.errstate(over="ignore"):
        mixed = numbers.view(golden.dtype) + golden.dtype.type((2 * seed + 1) * 40503 % 65521)
        mixed = (mixed ^ (mixed >> golden.dtype.type(4 * size))) * golden
        mixed = (mixed ^ (mixed >> golden.dtype.type(4 * size))) * golden >> golden.dtype.type(8 * size - 12)
    return np.asarray((mixed % end).astype(np.int8)).reshape(np.shape(x))


def is_rounded(x: Array, operands: Sequence[Array | None] = ()) -> Array:
    """The elements that are not small multiples of 1/64, and those that are by chance: e to the power 1e-9 is 1."""
    parts = x.astype(np.float64) * _PARTS
    own = np.isfinite(x) & ((parts != np.round(parts)) | (np.abs(parts) * np.finfo(x.dtype).eps > 1))
    floats = [y for y in operands if y is not None and y.dtype.kind == "f" and _fits(y.shape, x.shape)]
    return np.asarray(np.logical_or.reduce([own, *(np.isfinite(x) & is_rounded(y) for y in floats)]))


def _fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Return whether an operand broadcasts to a result."""
    pairs = zip(shape[::-1], into[::-1], strict=False)
    return len(shape) <= len(into) and all(size in (1, other) for size, other in pairs)
