"""Elements on the way of a model that nothing defines.

An inner value counts only if it arrives, which ``dependence`` finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.verifying.fills import (
    chosen_numbers,
    numbers_instead,
    places_instead,
    shuffled,
    signs,
    turned,
    turns,
)
from dmlc.verifying.rounding import UNITS, axes_of, is_approximated, is_rounded, numbers_near
from dmlc.verifying.subject import TraceStep
from dmlc.verifying.verdict import OVERFLOWED, UNSPECIFIED

#: Casts whose results for NaN and numbers out of range are unspecified.
_CASTS = frozenset({"cast", "castlike"})
#: Conversions that saturate: only conversions of NaN and infinities are unspecified.
_QUANTIZATIONS = frozenset({"quantizelinear", "dynamicquantizelinear"})
_INTEGER_QUOTIENTS = frozenset({"div", "mod", "floordiv"})
#: Selections for which the winner beside a NaN is unspecified; in ONNX Runtime's own kernels it depends on the order.
SELECTIONS = frozenset(
    {
        *("argmax", "argmin", "topk", "hardmax", "reducemax", "reducemin", "max", "min", "clip", "relu", "sign"),
        *("maxpool", "globalmaxpool", "maxroipool", "nonmaxsuppression", "normalizer"),
    }
)
#: Selections of places; results in the order of their operand; and the most close results that samples tell apart.
_OF_PLACES, _MANY = ("argmax", "argmin", "topk", "hardmax"), 8
_SAME_ORDER = ("reshape", "flatten", "squeeze", "unsqueeze", "identity")
#: Selections among single elements.
_ELEMENTWISE = frozenset({"max", "min", "clip", "relu", "sign"})
#: Elementwise functions that are not defined for all numbers, and the operand at which a 0 gives an infinity.
_PARTIAL = {"log": 0, "div": 1, "mod": 1, "reciprocal": 0, "pow": 0} | dict.fromkeys(
    ("sqrt", "asin", "acos", "acosh", "atanh"), -1
)
#: Functions whose finite results may be far larger than their operands.
_STEEP = frozenset(
    {"exp", "pow", "reduceprod", "cumprod", "sinh", "cosh", "reducelogsumexp", "softplus", "softmax", "div", "cast"}
)
#: Functions of single numbers, whose results order as their operands do.
_FUNCTIONS = frozenset(
    {"exp", "log", "softmax", "logsoftmax", "sigmoid", "softplus", "sinh", "cosh", "tanh", "erf", "reducelogsumexp"}
)
#: Functions of powers of e: for large numbers below 0 they are 0.
_POWERS_OF_E = frozenset({"exp", "softmax", "logsoftmax", "sigmoid", "softplus", "reducelogsumexp"})
#: Functions of one element of each operand.
_ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
#: Functions that take the root of a sum of squares, or divide by one.
_ROOTS = frozenset({"reducel2", "lpnormalization", "lpnorm", "l2norm"})
#: Normalizations that take a mean away.
_CENTRING = frozenset(
    {"layernorm", "layernormalization", "instancenormalization", "meanvariancenorm", "meanvariancenormalization"}
)
#: Functions that make 0 of a number other than 0 if it is too small.
_VANISHING = frozenset({"exp", "softmax", "sigmoid", "mul", "div", "pow", "cast", "reducesumsquare", "reducel2"})
#: Operators that may reduce no elements: their results over none differ from kernel to kernel, even in shape.
_REDUCTIONS = ("reduce", "argm", "topk", "global", "softmax", "logsoftmax", "hardmax", "cum")
#: Functions of a tensor and of indices into it.
_INDEXED = frozenset({"gather", "gatherelements", "gathernd", "scatterelements"})
#: Functions whose results do not depend on an order, so that they do not overflow in another one.
_ONE_BY_ONE = frozenset(
    {
        *("identity", "reshape", "transpose", "squeeze", "unsqueeze", "flatten", "expand", "tile", "slice", "split"),
        *("gather", "gatherelements", "gathernd", "concat", "pad", "where", "compress", "cast", "abs", "neg", "relu"),
        *("max", "min", "clip", "reducemax", "reducemin", "argmax", "argmin", "topk", "hardmax", "maxpool", "sign"),
        *("equal", "less", "greater", "lessorequal", "greaterorequal", "isnan", "isinf", "tanh", "sigmoid", "erf"),
    }
)
#: Sums for which ONNX Runtime from 1.27 saturates integers that wrap elsewhere.
_SUMS = frozenset({"reducesum", "reducel1", "reducemean", "reducel2", "cumsum", "sum", "mean"})
#: Operators that ONNX Runtime from 1.27 computes in f64, and an integer beyond which f64, here too, rounds some.
_IN_F64 = frozenset({"reducesum", "reducel1", "reducemean", "reducel2", "reducesumsquare", "reduceprod", "einsum"})
_LARGEST_IN_F64 = 2.0**53 - 1


@dataclass(frozen=True, slots=True, eq=False)
class UndefinedElements:
    """The elements of one value, at ``places``, that nothing defines, and other elements that may stand there."""

    value: str
    array: Array
    places: Array
    reason: str
    kind: str = UNSPECIFIED
    #: Numbers that may stand at each of the places; by default integers of all kinds.
    fills: tuple[Any, ...] = ()

    def fill(self, array: Array, choice: int, *, mixed: bool = False) -> None:
        """Put other numbers there; ``mixed`` takes a number of another choice at each place."""
        fills = self.fills or self.integers()
        with np.errstate(all="ignore"):
            if not mixed:
                array[self.places] = np.asarray(fills[choice % len(fills)]).astype(array.dtype)
                return
            chosen = np.random.default_rng(choice).integers(0, len(fills), int(self.places.sum()))
            numbers = array[self.places]
            for number, other in enumerate(fills):
                here = chosen == number
                numbers[here] = np.broadcast_to(other, numbers.shape)[here].astype(array.dtype)
            array[self.places] = numbers

    def integers(self) -> tuple[Any, ...]:
        """The computed ones, the lowest, the largest, 0, 1, one whose square is large, different ones, those of the
        defined elements.

        Functions of two numbers may not tell the first four apart: a largest unsigned number squared wraps to 1.
        """
        rest, count = self.array[~self.places], int(self.places.sum())
        if self.array.dtype.kind == "b":
            return False, True
        limits = np.iinfo(self.array.dtype)
        found = (
            self.array[self.places],
            limits.min,
            limits.max,
            0,
            1,
            math.isqrt(limits.max) // 2,
            *shuffled(count, 2),
        )
        return (*found, np.resize(rest, count)) if rest.size else found


#: Reasons for which a result may fail too.
OVER_NOTHING = "a reduction over nothing, which ONNX does not define"
OUTSIDE = "an index that the axis does not hold"
INFINITE = "an inner value of the original is infinite"
UNDERFLOWS = "an inner value of the original underflows"
_SQUARES = "squares of inner values underflow"
_CLOSE = "kernels round the results of a function apart"
_NO_INTEGER = "a float that no integer holds is cast"
_OTHER_ORDER = "a sum or product overflows in another order"


@dataclass(slots=True)
class Definitions:
    """Choices of elements that count as defined: ``empty`` reductions over nothing, ``selections`` among NaN.

    With ``ranges`` partial results that left the range of their dtype are not, or that do so in another order. Without
    ``functions`` that holds for sums and products alone: which of two numbers is larger is decided by functions too.
    """

    ranges: bool = False
    functions: bool = True
    empty: bool = False
    selections: bool = False


def undefined_elements(steps: Sequence[TraceStep], defined: Definitions) -> list[UndefinedElements]:
    """The elements of the steps' results that nothing defines."""
    out: list[UndefinedElements] = []
    carried = _Carried(frozenset(name for step in steps if step.op in _SUMS for name in step.reads))
    cast: set[str] = set()
    rounded: dict[str, Array] = {}
    for step in steps:
        unspecified = [*unspecified_casts(step)]
        cast.update(one.value for one in unspecified)
        out += [*unspecified, *_selected_casts(step, cast), *divisions_by_zero(step), *_roots_of_infinity(step)]
        out += _centred_infinities(step)
        out += () if defined.selections else _selected_nans(step)
        out += _overflowed_integers(step)
        out += () if defined.empty else _reductions_of_nothing(step)
        out += _outside(step)
        vanishes = step.op == "exp" and not carried.summed.isdisjoint(step.writes)  # the logarithm of such a sum
        out += [*_close_selections(step, rounded), *_powers_next_to_1(step)] if defined.ranges else ()
        if defined.ranges and (defined.functions or vanishes or step.op not in _FUNCTIONS):
            out += _out_of_range(step, carried)
    return out


def _undefined(step: TraceStep, number: int, places: Any, reason: str, **more: Any) -> Iterator[UndefinedElements]:
    made = step.results[number]
    if made is not None and number < len(step.writes) and step.writes[number] and np.any(places):
        yield UndefinedElements(step.writes[number], made, np.broadcast_to(places, made.shape), reason, **more)


# --- unspecified elements


def unspecified_casts(step: TraceStep) -> Iterator[UndefinedElements]:
    """The integers made of floats that no integer of their dtype holds."""
    x, made = next(iter(step.operands), None), next(iter(step.results), None)
    if step.op not in _CASTS | _QUANTIZATIONS or x is None or made is None:
        return
    if x.dtype.kind != "f" or made.dtype.kind not in "iu" or x.shape != made.shape:
        return
    if step.op in _QUANTIZATIONS:
        places = ~np.isfinite(x)
        places = np.full_like(places, places.any()) if step.op.startswith("dynamic") else places
    else:
        limits, number = np.iinfo(made.dtype), x.astype(np.float64)
        with np.errstate(all="ignore"):
            places = ~((number > float(limits.min) - 1) & (number < limits.max + 1.0))
    yield from _undefined(step, 0, places, _NO_INTEGER)


def _selected_casts(step: TraceStep, cast: set[str]) -> Iterator[UndefinedElements]:
    """Results of selections along axes among such integers: the floats may be selected instead, and then cast.

    ``cast`` are the values that such integers are in.
    """
    if step.op not in _ONE_BY_ONE or cast.isdisjoint(step.reads):
        return
    cast.update(step.writes)
    for number, made in enumerate(step.results if step.op in SELECTIONS - _ELEMENTWISE else ()):
        fills = numbers_instead(made) if made is not None and made.dtype.kind == "f" else ()
        yield from _undefined(step, number, True, _NO_INTEGER, fills=fills)


def divisions_by_zero(step: TraceStep) -> Iterator[UndefinedElements]:
    """The quotients of integers divided by zero: some ways divide by 1 there."""
    numbers, made = step.integers(), next(iter(step.results), None)
    if step.op in _INTEGER_QUOTIENTS and len(numbers) == 2 and made is not None and made.dtype.kind in "iu":
        places, whole = (_spread_to(made, x) for x in (numbers[1] == 0, numbers[0]))
        if places is not None and whole is not None:
            for one in _undefined(step, 0, places, "an integer is divided by zero"):
                yield replace(one, fills=(whole[one.places], *one.integers()))


def selects_nan(step: TraceStep) -> bool:
    """Return whether a NaN reaches an operator that selects."""
    return step.sees_nan or (
        bool(({step.op} | step.inner) & SELECTIONS) and any(np.isnan(x).any() for x in step.floats())
    )


def _close_selections(step: TraceStep, rounded: dict[str, Array]) -> Iterator[UndefinedElements]:
    """Results of selections among many results of a function that are equal but for rounding, in which kernels differ:
    no few samples show each of them as the largest. ``rounded`` are the places of such results, by value."""
    x, made = next(iter(step.operands), None), next(iter(step.results), None)
    if x is None or made is None or not step.writes:
        return
    if step.op in _SAME_ORDER and step.reads[0] in rounded:
        rounded[step.writes[0]] = rounded[step.reads[0]].reshape(made.shape)
    elif step.op in _OF_PLACES and step.reads[0] in rounded:
        places = rounded[step.reads[0]]
        places = places & (numbers_near(x, x[places]) > _MANY)
        for number, chosen in enumerate(step.results):
            if chosen is not None and (step.op == "hardmax" or chosen.dtype.kind in "iu"):
                is_hot = step.op == "hardmax"
                fills = turned(chosen[places]) if is_hot else places_instead(step, chosen.reshape(-1))
                yield from _undefined(step, number, places if is_hot else places.any(), _CLOSE, fills=fills)
    elif made.dtype.kind == "f" and made.size > _MANY and is_approximated(step.op):
        rounded[step.writes[0]] = is_rounded(made)


def makes_no_turn(step: TraceStep) -> bool:
    """Return whether a loop stacks nothing."""
    return step.op in ("loop", "scan") and any(x is not None and not x.size for x in step.results)


def _selected_nans(step: TraceStep) -> Iterator[UndefinedElements]:
    """Results of selections among NaN."""
    if not selects_nan(step):
        return
    selection = next(iter(sorted({step.op} | step.inner, key=lambda op: (op not in SELECTIONS, op))))
    for number, made in enumerate(step.results):
        if made is None:
            continue
        nans = [_spread_to(made, np.isnan(x)) for x in step.floats()]
        is_elementwise = step.op in _ELEMENTWISE and all(x is not None for x in nans)
        places = np.logical_or.reduce(nans) if is_elementwise else np.ones(made.shape, bool)
        if made.dtype.kind == "f":
            others = [*chosen_numbers(step, made), *turns(made.shape)]
            fills = (*numbers_instead(made, places), *[other[places] for other in others])
        else:
            fills = places_instead(step, made[places])
        yield from _undefined(step, number, places, f"a NaN reaches {selection} in both models", fills=fills)


def _roots_of_infinity(step: TraceStep) -> Iterator[UndefinedElements]:
    """-infinity raised to 0.5: ``pow`` gives infinity, a square root gives NaN."""
    for base, exponent in _powers(step):
        fills = (np.inf, np.nan)
        yield from _undefined(step, 0, (base == -np.inf) & (exponent == 0.5), "-infinity is raised to 0.5", fills=fills)


def _powers_next_to_1(step: TraceStep) -> Iterator[UndefinedElements]:
    """1 raised to NaN is 1 and a number next to 1 raised to NaN is NaN: rounding decides which."""
    for base, exponent in _powers(step):
        places = np.isnan(exponent) & (np.abs(base - 1) <= 2 * UNITS * np.finfo(base.dtype).eps) & (base != 1)
        yield from _undefined(
            step, 0, places, "a number next to 1 is raised to NaN", kind=OVERFLOWED, fills=(1.0, np.nan)
        )


def _powers(step: TraceStep) -> Iterator[Sequence[Array]]:
    """Base and exponent of a power of floats."""
    numbers, made = list(step.floats()), next(iter(step.results), None)
    if step.op == "pow" and len(numbers) == 2 and made is not None and made.dtype.kind == "f":
        yield np.broadcast_arrays(*numbers)


def _centred_infinities(step: TraceStep) -> Iterator[UndefinedElements]:
    """Normalized infinities and their mean, in bodies too: a kernel may add numbers, or their distances from the
    first."""
    centred = step.operands[:1] if step.op in _CENTRING else step.operands if step.inner & _CENTRING else ()
    if any(np.isinf(x).any() for x in centred if x is not None and x.dtype.kind == "f"):
        for number, made in enumerate(step.results):
            if made is not None and made.dtype.kind == "f":
                fills = np.nan, np.inf, -np.inf, 0.0
                reason = "an infinity is taken from an infinity"
                yield from _undefined(step, number, ~np.isfinite(made), reason, kind=OVERFLOWED, fills=fills)


def _reductions_of_nothing(step: TraceStep) -> Iterator[UndefinedElements]:
    """Results of a reduction over nothing, and of a graph inside the node that has reductions and reads nothing."""
    read = step.operands[:1] if step.op.startswith(_REDUCTIONS) else step.operands
    reduces = any(op.startswith(_REDUCTIONS) for op in (step.op, *step.inner))
    if reduces and any(x is not None and not x.size for x in read):
        yield from _everywhere(step, OVER_NOTHING)


def _everywhere(step: TraceStep, reason: str) -> Iterator[UndefinedElements]:
    for number, made in enumerate(step.results):
        fills = numbers_instead(made) if made is not None and made.dtype.kind == "f" else ()
        yield from _undefined(step, number, True, reason, fills=fills)


def _outside(step: TraceStep) -> Iterator[UndefinedElements]:
    """Results of a selection by indices that no axis holds."""
    x, *others = step.operands or (None,)
    indices = [y for y in others[:1] if y is not None and y.dtype.kind in "iu" and y.size]
    if step.op not in _INDEXED or x is None or not indices:
        return
    most = max(x.shape, default=0) if x.size else 0
    if not x.size or indices[0].max() >= most or indices[0].min() < -most:
        yield from _everywhere(step, OUTSIDE)


def _overflowed_integers(step: TraceStep) -> Iterator[UndefinedElements]:
    """Sums and products of integers that may overflow their dtype, or f64, in which runtimes add."""
    numbers = step.integers()
    if numbers and _leaves_range(step, numbers):
        reason = "a sum of integers overflows, or f64 does not hold it: runtimes wrap, saturate or round"
        for number, made in enumerate(step.results):
            if made is not None and made.dtype.kind in "iu":
                yield from _undefined(step, number, True, reason, kind=OVERFLOWED)


def _leaves_range(step: TraceStep, numbers: list[Array]) -> bool:
    sizes = [np.abs(x.astype(np.float64)) for x in numbers]
    with np.errstate(all="ignore"):
        if step.op in _SUMS:
            largest = max(float(x.sum()) for x in sizes)
        elif step.op == "reducesumsquare":
            largest = float((sizes[0] ** 2).sum())
        elif step.op in ("reduceprod", "cumprod"):
            largest = float(np.maximum(sizes[0], 1).prod())
        elif step.op in ("matmul", "matmulinteger", "gemm", "einsum"):
            tops = [float(x.max(initial=0)) for x in sizes]
            largest = reduce(lambda a, b: a * b, tops) * max(x.size for x in sizes)
        elif step.op == "pow":
            top = float(sizes[0].max(initial=0))
            largest = float(np.power(top, sizes[-1].max(initial=0))) if len(sizes) > 1 else np.inf
        else:
            return False
    most = float(np.iinfo(numbers[0].dtype).max)
    return largest > (min(most, _LARGEST_IN_F64) if step.op in _IN_F64 else most)


# --- floats that left the range of their dtype


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """Results of a step that are infinite or NaN although its operands are numbers: ``overflowed`` are too large, at a
    ``pole`` a number is divided by 0 or the logarithm of 0 is taken, elsewhere the function is ``undefined``."""

    overflowed: Array
    pole: Array
    undefined: Array


def departures(step: TraceStep, made: Array) -> Departures:
    """Classify the infinities and NaN that a function gave for finite operands."""
    operands, nan = list(step.floats()), np.isnan(made)
    nothing = np.zeros(made.shape, bool)
    wild = ~np.isfinite(made)
    if step.op in _PARTIAL:
        spread = [_spread_to(made, x) for x in operands]
        if not spread or any(x is None for x in spread):
            return Departures(nothing, nothing, wild if operands else nothing)
        wild = wild & np.logical_and.reduce([np.isfinite(x) for x in spread])
        place = _PARTIAL[step.op]
        at_zero = np.asarray(spread[place] == 0) if 0 <= place < len(spread) else nothing
        undefined = (nan | (step.op == "atanh")) & ~at_zero
        return Departures(wild & ~at_zero & ~undefined, wild & at_zero, wild & undefined)
    if not operands or not all(np.isfinite(x).all() for x in operands):
        return Departures(nothing, nothing, nothing)
    if step.op == "reducelogsum":  # the log of a negative sum, an overflow, or 0
        large = nan & any(map(_sum_overflows, operands))
        return Departures((made == np.inf) | large, made == -np.inf, nan & ~large)
    if not nan.any() or step.op in _STEEP or any(map(_squares_overflow, operands)):
        return Departures(wild, nothing, nothing)
    return Departures(nothing, nothing, wild)


def _squares_overflow(x: Array) -> bool:
    top = float(np.abs(x.astype(np.float64)).max(initial=0))
    with np.errstate(all="ignore"):
        return bool(np.square(np.float64(top)) * x.size > float(np.finfo(x.dtype).max))


def _squares_vanish(x: Array) -> bool:
    """Return whether numbers are so small that their squares lose digits."""
    top = float(np.abs(x[np.isfinite(x)].astype(np.float64)).max(initial=0))
    return 0 < top < float(np.sqrt(np.float64(np.finfo(x.dtype).tiny)))


@dataclass(frozen=True, slots=True)
class _Carried:
    """Values that are ``summed`` on the way, and those that are infinite because what they are made of is."""

    summed: frozenset[str]
    values: set[str] = field(default_factory=set)

    def ways(self, step: TraceStep, infinite: Array) -> tuple[Any, ...]:
        """The numbers instead of infinities that a step carries on; none if they follow from those before it.

        A power of e that is summed may be NaN, and the logarithm of such a sum: a softmax takes the largest operand
        away first, infinity less infinity.
        """
        follows = not self.values.isdisjoint(step.reads)
        is_moved = step.op in _ONE_BY_ONE
        if follows or not is_moved:
            self.values.update(step.writes)
        if follows or is_moved:
            return ()
        nan = step.op == "reducelogsumexp" or (step.op == "exp" and not self.summed.isdisjoint(step.writes))
        largest = np.copysign(float(np.finfo(infinite.dtype).max), infinite)
        others = [largest / (1 + order) for order in shuffled(infinite.size, 0)]  # each may be the smallest of them
        return (infinite, largest, *others, *[np.nan] * nan)


def _out_of_range(step: TraceStep, carried: _Carried) -> Iterator[UndefinedElements]:
    """Overflows, also those in another order, infinities at a 0 of either sign, and numbers that vanished."""
    operands = list(step.floats())
    for number, made in enumerate(step.results):
        if made is None or made.dtype.kind != "f" or not made.size or not any(x.size for x in operands):
            continue
        found, limits = departures(step, made), np.finfo(made.dtype)
        infinite = np.isinf(made) & ~found.overflowed & ~found.pole & ~found.undefined
        ways = carried.ways(step, made[infinite]) if infinite.any() else ()
        if ways:
            yield from _undefined(step, number, infinite, INFINITE, kind=OVERFLOWED, fills=ways)
        if found.overflowed.any():
            largest = np.copysign(float(limits.max), made[found.overflowed])
            reason = "an inner value of the original overflows"
            fills: tuple[Any, ...] = (made[found.overflowed], largest, 0.0)
            fills += numbers_instead(made, found.overflowed) if np.isnan(fills[0]).any() else ()
            bias = _spread_to(made, operands[2]) if step.op in _CENTRING and len(operands) > 2 else None
            fills += () if bias is None else (bias[found.overflowed],)  # over a deviation that is infinite
            yield from _undefined(step, number, found.overflowed, reason, kind=OVERFLOWED, fills=fills)
        pole = found.pole & np.isinf(made)
        if step.op == "reducelogsum":
            fills = (-np.inf, np.nan, -float(limits.max))
            lost = _cancelled(operands[0], made)
            yield from _undefined(step, number, lost, "the terms of a sum cancel", kind=OVERFLOWED, fills=fills)
        if pole.any() and step.op not in ("log", "reducelogsum"):
            fills = tuple(signs(made[pole]))
            yield from _undefined(step, number, pole, "a zero of another sign is divided by", fills=fills)
        if step.op == "mul" and not carried.summed.isdisjoint(step.writes):  # 0 times a sum of large numbers
            large = np.logical_or.reduce([_spread_to(made, _is_large(step, x)) for x in operands])
            places = large & (made == 0)
            yield from _undefined(step, number, places, _OTHER_ORDER, kind=OVERFLOWED, fills=(0.0, np.nan))
        rest = np.isfinite(made) & _may_overflow(step, operands, made)
        if rest.any():
            x, large = made[rest], _is_large(step, made)[rest]
            infinite = np.copysign(np.inf, x)
            others: tuple[Any, ...] = (
                x,
                infinite,
                np.where(large, infinite, -infinite),
                np.where(large, infinite, np.nan),
            )
            others += (np.nan, 0.0) if step.op in _CENTRING else ()
            yield from _undefined(step, number, rest, _OTHER_ORDER, kind=OVERFLOWED, fills=others)
            continue
        if step.op in _ROOTS and _squares_vanish(operands[0]):
            yield from _undefined(step, number, True, _SQUARES, kind=OVERFLOWED, fills=numbers_instead(made))
            continue
        small = _vanished(step, operands, made)
        if small is not None and small.any():
            far = 2 * float(limits.tiny)  # more than what comparisons take for nothing
            near = (made[small], far, -far)
            yield from _undefined(step, number, small, UNDERFLOWS, kind=OVERFLOWED, fills=near)


def _cancelled(x: Array, made: Array) -> Array:
    """The results of a sum of rounded terms of which no digit is left."""
    lost = np.zeros(made.shape, bool)
    for axes in axes_of(x, made.shape) if is_rounded(x).any() else ():
        with np.errstate(all="ignore"):
            total, size = (y.astype(np.float64).sum(axes).reshape(made.shape) for y in (x, np.abs(x)))
            lost |= (np.abs(total) <= np.finfo(x.dtype).eps * size) & (size > 0)
    return lost


def _may_overflow(step: TraceStep, operands: list[Array], made: Array) -> Any:
    """The places where a sum or a product of finite numbers may overflow in one order and not in another: all or none,
    unless each result is made of one element of each operand."""
    if step.op in _ONE_BY_ONE:
        return False
    if step.op in _SUMS:
        return any(map(_sum_overflows, [*operands, made]))
    large = [_is_large(step, x) for x in (*operands, made)]
    if step.op in _ARITHMETIC:
        places = np.logical_or.reduce([_spread_to(made, x) for x in large])
        return places & (made != 0) if step.op in ("mul", "div") else places  # 0 times any number
    return any(x.any() for x in large) or _product_may_leave(step, operands[0], made)


def _sum_overflows(x: Array) -> bool:
    """Return whether the elements of one sign do."""
    wide = x[np.isfinite(x)].astype(np.longdouble)
    return bool(max(wide[wide > 0].sum(), -wide[wide < 0].sum()) > np.finfo(x.dtype).max)


def _is_large(step: TraceStep, x: Array) -> Array:
    """The elements of which as many as the array has overflow; those below 0 count for nothing in powers of e."""
    size = x if step.op in _POWERS_OF_E else np.abs(x)
    return np.asarray(np.isfinite(x) & (size > np.finfo(x.dtype).max / max(x.size, 2)))


def _product_may_leave(step: TraceStep, x: Array, made: Array) -> bool:
    """Return whether a product of finite numbers overflows, vanishes or loses digits in some order of them."""
    if step.op != "reduceprod" or not np.isfinite(x).all() or not x.size:
        return False
    with np.errstate(divide="ignore"):
        powers = np.sort(np.log2(np.abs(x.astype(np.float64))), axis=None)
    count, limits = x.size // made.size, np.finfo(x.dtype)
    highest, lowest = np.maximum(powers[-count:], 0).sum(), np.minimum(powers[:count], 0).sum()
    return bool(highest >= limits.maxexp or lowest < limits.minexp)


def _vanished(step: TraceStep, operands: list[Array], made: Array) -> Array | None:
    """The results that are 0 or no normal number although the operands are not 0. Many numbers of f16 are not normal:
    there only zeros count."""
    if step.op not in _VANISHING:
        return None
    lost = made == 0 if made.dtype == np.float16 else np.abs(made) < np.finfo(made.dtype).tiny
    if step.op in ("exp", "softmax", "sigmoid"):
        return np.asarray(lost)
    nonzero = [_spread_to(made, x != 0) for x in operands]
    if any(x is None for x in nonzero):
        return np.asarray(lost) & bool(all(x.any() for x in operands))
    return np.asarray(lost & np.logical_and.reduce(nonzero))


def _spread_to(made: Array, places: Array) -> Any:
    """The places in the shape of a result; None if they do not broadcast."""
    try:
        return np.broadcast_to(places, made.shape)
    except ValueError:
        return None
