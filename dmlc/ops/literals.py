"""Numbers that a user wrote, as elements of a dtype."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import Array, DType, OpError, Place
from dmlc.ops.attributes import show

Literal: TypeAlias = int | float | bool


def literal_array(literal: Literal, dtype: DType, at: Place) -> Array:
    """A literal as a 0-d array. Raises ``OpError`` E0311 where it does not fit."""
    problem = _misfit(literal, dtype)
    if problem:
        raise OpError(
            codes.LITERAL_DOES_NOT_FIT, f"{show(literal)} does not fit {dtype.name}: {problem}", at=at, under=problem
        )
    with np.errstate(over="ignore"):
        if dtype.is_integer:
            return np.array(int(literal), dtype=dtype.numpy)
        return np.array(literal, dtype=dtype.numpy)


def attribute_array(number: Literal, dtype: DType, at: Place) -> Array:
    """A number attribute (``value``, ``on``, ``min``) as a 0-d array; 0 and 1 are also bool's false and true.

    Raises ``OpError`` E0311 where it does not fit.
    """
    if dtype.kind == "bool" and number in (0, 1):
        number = bool(number)
    return literal_array(number, dtype, at)


def _misfit(literal: Literal, dtype: DType) -> str:
    if isinstance(literal, bool) or dtype.kind == "bool":
        return "" if isinstance(literal, bool) and dtype.kind == "bool" else "a truth value is not a number"
    if dtype.is_integer:
        if isinstance(literal, float) and not (math.isfinite(literal) and literal == int(literal)):
            return "it is not an integer"
        return (
            "" if dtype.lowest <= int(literal) <= dtype.highest else f"its range is {dtype.lowest} to {dtype.highest}"
        )
    if isinstance(literal, float) and not math.isfinite(literal):
        return ""
    try:
        with np.errstate(over="ignore"):
            fits = bool(np.isfinite(np.array(float(literal), dtype=dtype.numpy)))
    except OverflowError:
        fits = False
    return "" if fits else f"it overflows; the largest is {float(np.finfo(dtype.numpy).max):g}"
