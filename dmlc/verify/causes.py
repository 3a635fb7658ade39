"""Causes of differences where neither result is wrong: NaN in a selection, numbers beyond a dtype's range.

The causes are found in the values that the models computed on their way, not in the way they were compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.verify.inputs import Feeds
from dmlc.verify.trace import TraceStep, float_feeds

#: Selections for which the winner beside a NaN is unspecified; in ONNX Runtime's own kernels it depends on the order.
SELECTIONS = frozenset(
    {
        *("argmax", "argmin", "topk", "hardmax", "reducemax", "reducemin", "max", "min", "clip", "relu", "sign"),
        *("maxpool", "globalmaxpool", "maxroipool", "nonmaxsuppression", "normalizer"),
    }
)
#: Elementwise functions that are not defined for all numbers.
_PARTIAL = frozenset({"log", "sqrt", "pow", "asin", "acos", "acosh", "atanh", "div", "mod", "reciprocal"})
#: Functions whose finite results may be far larger than their operands.
_STEEP = frozenset(
    {"exp", "pow", "reduceprod", "cumprod", "sinh", "cosh", "reducelogsumexp", "softplus", "softmax", "div", "cast"}
)
#: Functions that make 0 of a number other than 0 where it is too small.
_VANISHING = frozenset(
    {"exp", "softmax", "sigmoid", "mul", "div", "pow", "cast", "reducesumsquare", "reducel2", "reducemean", "matmul"}
)
#: Functions that square what they are given, or multiply it by one over a small deviation.
_NORMALIZATIONS = frozenset(
    f"{kind}normalization" for kind in ("batch", "instance", "group", "layer", "meanvariance", "rms", "lp")
)
#: Operators that may reduce no elements: their results over none differ from kernel to kernel.
_REDUCTIONS = ("reduce", "argm", "topk", "global", "softmax", "logsoftmax", "hardmax", "cum")
#: Sums for which ONNX Runtime from 1.27 saturates integers that wrap elsewhere.
_SUMS = frozenset({"reducesum", "reducel1", "reducemean", "reducel2", "cumsum", "sum", "mean"})
#: Operators that ONNX Runtime from 1.27 computes in f64, and an integer beyond which f64, here too, rounds some.
_IN_F64 = frozenset({"reducesum", "reducel1", "reducemean", "reducel2", "reducesumsquare", "reduceprod", "einsum"})
_LARGEST_IN_F64 = 2.0**53 - 1


# --- NaN


def nan_selected(steps: Sequence[TraceStep]) -> bool:
    """Return whether a NaN reached an operator that selects."""
    return any(({step.op} | step.inner) & SELECTIONS and any(map(_has_nan, step.floats())) for step in steps)


def _has_nan(x: Array) -> bool:
    return bool(np.isnan(x).any())


def reduced_nothing(steps: Sequence[TraceStep]) -> bool:
    """Return whether a reduction had no elements. ONNX Runtime's kernels disagree there, even on the shape."""
    return any(
        step.op.startswith(_REDUCTIONS) and any(x is not None and not x.size for x in step.operands[:1])
        for step in steps
    )


# --- zeros and infinities


def zeros_differ(first: Sequence[TraceStep], second: Sequence[TraceStep]) -> bool:
    """Return whether both divide by equal numbers whose zeros differ in sign.

    Which zero a max or min returns is unspecified, and kernels of ``relu`` and ``where`` lose the sign too.
    """
    there = [x for step in second if (x := _zero_divisor(step)) is not None]
    return any(
        _are_equal(x, y) and not _are_equal(np.signbit(x), np.signbit(y))
        for step in first
        if (x := _zero_divisor(step)) is not None
        for y in there
    )


def _zero_divisor(step: TraceStep) -> Array | None:
    """The floats that a step divides by, where a zero is among them."""
    place = {"div": 1, "floordiv": 1, "mod": 1, "reciprocal": 0, "pow": 0}.get(step.op)
    x = step.operands[place] if place is not None and place < len(step.operands) else None
    return x if x is not None and x.dtype.kind == "f" and bool((x == 0).any()) else None


def _are_equal(x: Array, y: Array) -> bool:
    """Return whether two arrays are equal; if the shapes differ, order is ignored."""
    if x.shape != y.shape:
        x, y = np.sort(x, axis=None), np.sort(y, axis=None)
    return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def rooted_infinity(steps: Sequence[TraceStep]) -> bool:
    """Return whether -infinity was raised to 0.5: ``pow`` gives infinity, a square root gives NaN."""
    for step in steps:
        if step.op == "pow" and len(numbers := list(step.floats())) == 2:
            base, exponent = np.broadcast_arrays(*numbers)
            if ((base == -np.inf) & (exponent == 0.5)).any():
                return True
    return False


# --- integers


def integers_overflowed(steps: Sequence[TraceStep]) -> bool:
    """Return whether a sum or a product of integers may have overflowed its dtype, or f64, in which runtimes add."""
    return any(_leaves_range(step, numbers) for step in steps if (numbers := step.integers()))


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


# --- floats


class Range:
    """Ways in which the floats of some steps left the range of their dtypes, recorded where they first did.

    ``overflowed``: finite operands gave an infinity, because the number was too large. ``undefined``: the function has
    no value there (the logarithm of a negative number; a division by 0, unless underflow made the 0). ``has_poles``:
    some of the undefined values may be infinities.
    """

    def __init__(self, steps: Sequence[TraceStep]) -> None:
        found = {kind for step in steps for kind in _departures(step)}
        self.overflowed = "overflowed" in found
        vanished = "pole" in found and any(map(_vanished, steps))
        self.overflowed |= vanished
        self.has_poles = "pole" in found and not vanished
        self.undefined = "undefined" in found or self.has_poles


def _departures(step: TraceStep) -> set[str]:
    out = set()
    operands = list(step.floats())
    for result in step.made():
        wild = ~np.isfinite(result)
        if not wild.any():
            continue
        if step.op in _PARTIAL:
            out |= _of_elements(step, operands, result, wild)
        elif all(np.isfinite(x).all() for x in operands) and operands:
            if step.op == "reducelogsum":  # the log of a negative sum, an overflow, or 0
                values = result[wild]
                kinds = {"undefined": np.isnan(values), "overflowed": values == np.inf, "pole": values == -np.inf}
                out |= {kind for kind, places in kinds.items() if places.any()}
            else:
                is_overflow = not np.isnan(result).any() or step.op in _STEEP or _is_near(operands)
                out.add("overflowed" if is_overflow else "undefined")
    return out


def _of_elements(step: TraceStep, operands: list[Array], result: Array, wild: Array) -> set[str]:
    """Classify the infinities and NaN that an elementwise function returned for finite operands."""
    try:
        spread = np.broadcast_arrays(result, *operands)[1:]
    except ValueError:
        return {"undefined"}
    if not spread:
        return set()
    wild = wild & np.logical_and.reduce([np.isfinite(x) for x in spread])
    at_zero = np.zeros_like(wild)
    if step.op in ("log", "div", "reciprocal", "mod"):
        at_zero = np.asarray(spread[-1] == 0)
    elif step.op == "pow":
        at_zero = np.asarray(spread[0] == 0)
    undefined = (np.isnan(result) | np.asarray(step.op == "atanh")) & ~at_zero
    kinds = {"pole": at_zero, "undefined": undefined, "overflowed": ~at_zero & ~undefined}
    return {kind for kind, places in kinds.items() if (wild & places).any()}


def _vanished(step: TraceStep) -> bool:
    """Return whether a nonzero number underflowed to 0."""
    operands = list(step.floats())
    for result in step.made() if step.op in _VANISHING and operands else ():
        zero = result == 0
        if step.op in ("exp", "softmax", "sigmoid"):
            if zero.any():
                return True
        elif zero.all() and all(x.any() for x in operands):
            return True
        else:
            try:
                nonzero = [np.asarray(x != 0) for x in np.broadcast_arrays(result, *operands)[1:]]
            except ValueError:
                continue
            if (zero & np.logical_and.reduce(nonzero)).any():
                return True
    return False


def _is_near(arrays: Sequence[Array]) -> bool:
    """Return whether the sum of squares of an array may overflow its dtype."""
    for x in arrays:
        top = float(np.abs(x.astype(np.float64)).max(initial=0))
        with np.errstate(all="ignore"):
            if np.square(np.float64(top)) * x.size > float(np.finfo(x.dtype).max):
                return True
    return False


def at_the_limit(steps: Sequence[TraceStep]) -> bool:
    """Return whether a sum or a product of finite numbers may overflow in one order and not in another."""
    return any(_near_the_largest([*step.floats(), *step.made()]) or _product_may_leave(step)[0] for step in steps)


def _product_may_leave(step: TraceStep) -> tuple[bool, bool]:
    """Return whether a product of finite numbers overflows in some order of them, and whether it vanishes in some."""
    x, made = next(step.floats(), None), next(step.made(), None)
    if step.op != "reduceprod" or x is None or made is None or not made.size or not np.isfinite(x).all():
        return False, False
    with np.errstate(divide="ignore"):
        powers = np.sort(np.log2(np.abs(x.astype(np.float64))), axis=None)
    factors, limits = x.size // made.size, np.finfo(x.dtype)
    highest, lowest = np.maximum(powers[-factors:], 0).sum(), np.minimum(powers[:factors], 0).sum()
    return bool(highest >= limits.maxexp), bool(lowest < limits.minexp - limits.nmant)


def normalized_overflow(steps: Sequence[TraceStep]) -> bool:
    """True if a normalization of finite numbers overflowed whose squares overflow. Written out it need not: the
    deviations of equal numbers are 0."""
    return any(
        step.op in _NORMALIZATIONS
        and all(np.isfinite(x).all() for x in step.floats())
        and any(not np.isfinite(x).all() for x in step.made())
        and _is_near(list(step.floats())[:1])
        for step in steps
    )


def _near_the_largest(arrays: Sequence[Array]) -> bool:
    for x in arrays:
        finite = np.abs(x[np.isfinite(x)].astype(np.float64))
        with np.errstate(all="ignore"):
            if float(finite.max(initial=0)) * max(x.size, 2) > float(np.finfo(x.dtype).max):
                return True
    return False


def underflowed(steps: Sequence[TraceStep], feeds: Feeds) -> bool:
    """Return whether the inputs are so small that their squares lose digits, and a step gave a denormal number or 0."""
    fed = float_feeds(feeds)
    for x in fed:
        finite = np.abs(x[np.isfinite(x)].astype(np.float64))
        if float(finite.max(initial=0)) > float(np.sqrt(np.float64(np.finfo(x.dtype).tiny))):
            return False
    return bool(fed) and any(
        _vanished(step) or any(map(_is_denormal, (*step.floats(), *step.made()))) for step in steps
    )


def _is_denormal(x: Array) -> bool:
    size = np.abs(x)
    return bool(((size > 0) & (size < np.finfo(x.dtype).tiny)).any())


def left_range(
    a: Any, b: Any, places: Array, first: Sequence[TraceStep], second: Sequence[TraceStep] | None, feeds: Feeds
) -> str:
    """Return the reason if floats differ at ``places`` only because partial results left the range, else "".

    ``first`` are the steps of the original, ``second`` those of the result, None if they cannot be observed.
    """
    if any(map(_has_nan, float_feeds(feeds))):
        return ""
    original = Range(first)
    a_wild, b_wild = ~np.isfinite(a[places]), ~np.isfinite(b[places])
    result = Range(second or ())
    if _near_the_largest(float_feeds(feeds)) and (original.overflowed or result.overflowed or second is None):
        return "sums of the inputs overflow"
    if (original.undefined and np.isnan(a[places]).any()) or (original.has_poles and a_wild.any()):
        return ""
    if a_wild.all():
        return "the original's partial results overflowed or are infinite"
    only_result = not original.overflowed and (at_the_limit(first) or normalized_overflow(second or ()))
    if original.overflowed or only_result:
        if b_wild[~a_wild].any():
            fits = second is None or (result.overflowed and (original.undefined or not result.undefined))
        else:
            fits = original.overflowed
        if fits:
            return "partial results overflowed in " + ("the original" if original.overflowed else "the result only")
    if a_wild.any() or b_wild.any():
        return ""
    vanished = underflowed([*first, *(second or ())], feeds) or _rooted_nothing(a[places], b[places], first)
    vanished |= any(_product_may_leave(step)[1] for step in first)
    return "partial results underflowed" if vanished else ""


def _rooted_nothing(a: Array, b: Array, first: Sequence[TraceStep]) -> bool:
    """Return whether both are so small that their squares lose digits, and a step of the original lost some.

    Not for f16: many of its numbers are that small.
    """
    limits = np.finfo(a.dtype)
    most = float(np.abs([a, b]).max(initial=0))
    if limits.bits < 32 or most > float(np.sqrt(np.float64(limits.tiny))):
        return False
    return any(_vanished(step) or any(map(_is_denormal, step.made())) for step in first)
