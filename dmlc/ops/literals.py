"""Numbers that a user wrote, as elements of a dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dmlc.diagnostics import Help, writing
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import Array, DType, OpError, Place
from dmlc.ir.dtype import f32, f64, i32, i64, u64
from dmlc.ops.attributes import integer_help, show

Literal: TypeAlias = int | float | bool


class Quotient(float):
    """A quotient of two integers that is not an integer; messages show how it was written."""

    __slots__ = ("denominator", "numerator")
    numerator: int
    denominator: int

    def __new__(cls, numerator: int, denominator: int) -> Quotient:
        """Return the quotient, rounded to f64."""
        self = super().__new__(cls, numerator / denominator)
        self.numerator = numerator
        self.denominator = denominator
        return self

    def __reduce__(self) -> tuple[type, tuple[int, int]]:
        return Quotient, (self.numerator, self.denominator)

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


def beside_help(
    literal: Literal, sign: str | None, other: str, dtype: DType, allowed: Sequence[DType], *, is_left: bool
) -> str:
    """The help for a number that does not fit ``dtype``, which the tensor ``other`` beside it has; empty if no allowed
    one holds both.

    Where ``other`` is empty, the user's expression is not known.
    """
    to = None if _as_truth(literal, dtype) else _wider(literal, dtype, allowed)
    if to is None:
        return ""
    if not other:
        return f"cast the other operand to {to.name}"
    if isinstance(literal, Quotient) and sign == "*":
        top = other if literal.numerator == 1 else f"{other} * {literal.numerator}"
        return f"write {top} // {literal.denominator}, which rounds down; or cast: ({other} as f32)"
    number = f"({literal})" if isinstance(literal, Quotient) else str(literal)
    cast = f"({other} as {to.name})"
    written = "" if sign is None else f" {sign} {number}" if not is_left else f"{number} {sign} "
    whole = f"{written}{cast}" if is_left else f"{cast}{written}"
    help = f"cast the tensor: {whole}"
    if isinstance(literal, Quotient):
        help += f"; the integer below {literal} is {literal.numerator} // {literal.denominator}"
    return help


def literal_array(literal: Literal, dtype: DType, at: Place) -> Array:
    """A literal as a 0-d array. Raises ``OpError`` E0311 where it does not fit."""
    problem = _misfit(literal, dtype)
    if problem:
        raise OpError(
            codes.LITERAL_DOES_NOT_FIT,
            f"{show(literal)} does not fit {dtype.name}: {problem}",
            at=at,
            under=problem,
            help=_misfit_help(literal, dtype),
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


def _misfit_help(literal: Literal, dtype: DType) -> Help:
    truth = _as_truth(literal, dtype)
    if truth:
        return writing(truth)
    to = _wider(literal, dtype)
    return (integer_help(literal) if dtype.is_integer else "") or ("" if to is None else f"{to.name} holds it")


def _as_truth(literal: Literal, dtype: DType) -> str:
    """The number of a truth value where a number is needed, and the other way round; empty for all else."""
    if isinstance(literal, bool):
        return str(int(literal))
    return show(bool(literal)) if dtype.kind == "bool" and literal in (0, 1) else ""


def _wider(literal: Literal, dtype: DType, allowed: Sequence[DType] = (i32, i64, u64, f32, f64)) -> DType | None:
    """The dtype that holds the number, and most of what ``dtype`` holds; None where no allowed one does."""
    wider = [d for d in (i32, i64, u64) if d.bits > dtype.bits or d.bits == 64]
    wider = [f32, f64] if dtype.is_float or isinstance(literal, float) else [*wider, f32, f64]
    return next((d for d in wider if d in allowed and not _misfit(literal, d)), None)


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


# --- Helpers of the references: accumulation wider than f16, rounding once, no warnings for NaN and overflow


def wide(x: Array) -> Array:
    """f16 is computed in f32, as DirectML and ONNX Runtime do; other types in themselves."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function(attributes, *arrays)`` as a reference: its arrays widened, its result of the first one's dtype.

    NumPy's warnings about overflow, NaN and division by zero are off: the values are what counts.
    """

    def reference(attributes: Any, first: Array, *rest: Array | None) -> Array:
        with np.errstate(all="ignore"):
            out = function(attributes, wide(first), *[None if x is None else wide(x) for x in rest])
            return np.asarray(out).astype(first.dtype, copy=False)

    return reference
