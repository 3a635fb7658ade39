"""Elements that nothing defines, such as the integer of a NaN, and the elements of an output that depend on them.

An excuse for an undefined element holds only where that element arrives: a model may compute one in each run and select
another value behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmlc.ir import Array
from dmlc.verify.inputs import Feeds
from dmlc.verify.trace import Patch, Side, TraceStep

#: Casts whose results for NaN and numbers out of range are unspecified.
_CASTS = frozenset({"cast", "castlike"})
#: Conversions that saturate: only those of NaN and infinities are unspecified.
_QUANTIZATIONS = frozenset({"quantizelinear", "dynamicquantizelinear"})
_INTEGER_QUOTIENTS = frozenset({"div", "mod", "floordiv"})


@dataclass(frozen=True, slots=True, eq=False)
class UndefinedElements:
    """The elements of one value, at ``places``, that nothing defines."""

    value: str
    array: Array
    places: Array

    def filled(self, choice: int) -> Patch:
        """Put other integers there: the lowest, the largest, 0, 1, different ones, or those of the defined elements.

        Functions of two numbers may not tell the first four apart: a largest unsigned number squared wraps to 1.
        """
        limits, rest, count = np.iinfo(self.array.dtype), self.array[~self.places], int(self.places.sum())
        fills = [limits.min, limits.max, 0, 1, np.arange(2, 2 + count)]
        fills += [np.resize(rest, count)] if rest.size else []
        out: Array = self.array.copy()
        out[self.places] = fills[choice % len(fills)]
        return Patch(out, self.places)


#: The number of ways to fill undefined elements.
_FILLS = 6


def unspecified_casts(steps: Sequence[TraceStep]) -> list[UndefinedElements]:
    """The integers made of floats that no integer of their dtype holds."""
    found = []
    for step in steps:
        source, target = step.operands[:1], step.results[:1]
        if step.op not in _CASTS | _QUANTIZATIONS or not source or not target:
            continue
        x, made = source[0], target[0]
        if x is None or made is None or x.dtype.kind != "f" or made.dtype.kind not in "iu" or x.shape != made.shape:
            continue
        if step.op in _QUANTIZATIONS:
            places = ~np.isfinite(x)
            places = np.full_like(places, places.any()) if step.op.startswith("dynamic") else places
        else:
            limits, number = np.iinfo(made.dtype), x.astype(np.float64)
            with np.errstate(all="ignore"):
                places = ~((number > float(limits.min) - 1) & (number < limits.max + 1.0))
        found += _undefined(step, made, places)
    return found


def divisions_by_zero(steps: Sequence[TraceStep]) -> list[UndefinedElements]:
    """The quotients of integers divided by zero."""
    found = []
    for step in steps:
        numbers, made = step.integers(), step.results[0] if step.results else None
        if step.op in _INTEGER_QUOTIENTS and len(numbers) == 2 and made is not None and made.dtype.kind in "iu":
            try:
                found += _undefined(step, made, np.broadcast_to(numbers[1] == 0, made.shape))
            except ValueError:  # operands of a block whose shapes do not broadcast
                continue
    return found


def _undefined(step: TraceStep, made: Array, places: Array) -> list[UndefinedElements]:
    return [UndefinedElements(step.writes[0] if step.writes else "", made, places)] if places.any() else []


def dependent(found: Sequence[UndefinedElements], side: Side, feeds: Feeds, output: str) -> Array | bool:
    """The places of an output that depend on undefined elements.

    The side runs again with other integers for them. True where it does not run with them, as they are an index or a
    shape then, and where it cannot be fed values on its way.
    """
    results: list[Array] = []
    for choice in range(_FILLS):
        # different fills for different values: equal ones may cancel
        filled = {one.value: one.filled(choice + number) for number, one in enumerate(found)}
        result = side.run_patched(feeds, output, filled)
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiub":
            return True
        results.append(result)
    first = results[0]
    if any(other.shape != first.shape for other in results):
        return True
    return np.asarray(np.logical_or.reduce([~_same(other, first) for other in results[1:]]))


def _same(a: Array, b: Array) -> Array:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else a == b)
