"""Arithmetic while compiling: of numbers that were written, and of dims.

It follows the language: ``/`` of integers is the real quotient, an integer where it divides; ``//`` floors, ``%`` has
the divisor's sign. A number too
large for any dtype is an error at once, so that ``9 ** 9 ** 9`` ends.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.fix import is_one_operand
from dmlc.ir import DimExpr, OpError, floordiv
from dmlc.ir.size_number import SIGNS, Arithmetic, SizeNumber
from dmlc.ops.attributes import show
from dmlc.ops.literals import Quotient

Known: TypeAlias = bool | int | float | DimExpr | SizeNumber

#: Integers of more bits than this are not an intermediate result of anything.
_MAX_BITS = 128

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_BITS: dict[str, Callable[[Any, Any], Any]] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}

_FLOATS: dict[str, Callable[[float, float], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.mod,
    "//": lambda a, b: np.floor(np.divide(a, b)),
}  # fmt: skip


@lru_cache(maxsize=4096)
def number(text: str) -> int | float:
    """The number that a token says. Raises ``OpError`` E0311 where no dtype has it."""
    if len(text) > 400:
        raise _too_large(text[:20] + "...")
    plain = text.replace("_", "")
    if plain[:2] in ("0x", "0X"):
        return _bounded(int(plain, 16), text)
    if plain.isdigit():
        return _bounded(int(plain), text)
    value = float(plain)
    if math.isinf(value):
        raise _too_large(text)
    return value


def prefix(sign: str, x: Known) -> Known:
    """``-x`` or ``!x``. Raises ``OpError``."""
    if sign == "-":
        if isinstance(x, bool):
            raise _wrong(codes.OPERAND_DTYPE, f"- does not take {show(x)}", 0)
        if isinstance(x, Quotient):
            return Quotient(-x.numerator, x.denominator)
        if isinstance(x, SizeNumber):
            return SizeNumber("-", (x,))
        return 0 - x if isinstance(x, DimExpr) else -x
    if isinstance(x, bool):
        return not x
    if isinstance(x, int):
        return ~x
    if isinstance(x, Arithmetic):
        raise _wrong(codes.WRONG_SIZE, "dims have no !", 0, "numbers with dims have + - * / // % **")
    raise _wrong(codes.OPERAND_DTYPE, f"! takes integers and truth values, not {show(x)}", 0)


def infix(sign: str, a: Known, b: Known) -> Known:
    """``a sign b``. Raises ``OpError`` whose place is 0 or 1 for an operand."""
    if isinstance(a, Arithmetic) or isinstance(b, Arithmetic):
        return _dims(sign, a, b)
    if sign in _BITS:
        return _bits(sign, a, b)
    if isinstance(a, bool) or isinstance(b, bool):
        if sign in ("==", "!=") and isinstance(a, bool) and isinstance(b, bool):
            return _COMPARE[sign](a, b)
        raise _wrong(codes.OPERAND_DTYPE, f"{sign} does not take true or false", 0 if isinstance(a, bool) else 1)
    if sign in _COMPARE:
        return _COMPARE[sign](a, b)
    if isinstance(a, int) and isinstance(b, int):
        value = _integers(sign, a, b)
        return value if isinstance(value, float) else _bounded(value, f"{show(a)} {sign} {show(b)}")
    return _floats(sign, float(a), float(b))


def _integers(sign: str, a: int, b: int) -> int | float:
    if sign in ("/", "//", "%") and b == 0:
        raise _wrong(codes.DIVISION_BY_ZERO, "division by zero", 1)
    if sign == "/":
        return a // b if a % b == 0 else Quotient(a, b)
    if sign == "**":
        if b < 0:
            help = f"write a float: {a}.0 ** {b}, or 1 / {a} ** {-b}"
            raise _wrong(codes.NEGATIVE_POWER, "an integer to a negative power is not an integer", 1, help)
        if a.bit_length() > 1 and b * (a.bit_length() - 1) > _MAX_BITS:
            raise _too_large(f"{a} ** {b}")
        return int(a**b) if a.bit_length() > 1 else a ** (b % 2 + 2 * (b > 1))
    plain: dict[str, Callable[[int, int], int]] = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    }  # fmt: skip
    return plain[sign](a, b)


def _floats(sign: str, a: float, b: float) -> float:
    try:
        value = _ieee(sign, a, b)
    except OverflowError:
        value = math.inf
    if math.isinf(value) and math.isfinite(a) and math.isfinite(b) and not (sign in ("/", "//", "**") and 0 in (a, b)):
        raise _too_large(f"{show(a)} {sign} {show(b)}")
    return value


def _ieee(sign: str, a: float, b: float) -> float:
    """Floats as tensors compute them: division by zero is an infinity or NaN."""
    if sign != "**":
        with np.errstate(all="ignore"):
            return float(_FLOATS[sign](a, b))
    power: Any = math.inf if a == 0 and b < 0 else a**b
    return math.nan if isinstance(power, complex) else float(power)


def _bits(sign: str, a: Any, b: Any) -> Known:
    for place, x in enumerate((a, b)):
        if not isinstance(x, int):
            raise _wrong(codes.OPERAND_DTYPE, f"{sign} takes integers and truth values, not {show(x)}", place)
    if isinstance(a, bool) is not isinstance(b, bool):
        raise _wrong(codes.MIXED_DTYPES, f"{sign} does not mix truth values and integers", 1)
    value: Known = _BITS[sign](a, b)
    return value


def _dims(sign: str, a: Known, b: Known) -> Known:
    """Numbers with dims: ``+ - * //`` of integers and dims are sizes, the others a ``SizeNumber``."""
    for place, x in enumerate((a, b)):
        if isinstance(x, bool):
            raise _wrong(codes.OPERAND_DTYPE, f"{sign} does not combine {show(x)} with a dim", place)
    if sign in _COMPARE:
        size = next(str(x) for x in (a, b) if not isinstance(x, (int, float)))
        size = size if is_one_operand(size) else f"({size})"
        help = f"compare tensors: cast the size to one, as in ({size} as f32)"
        raise _wrong(codes.WRONG_SIZE, "comparisons of dims are not numbers", None, help)
    if sign not in SIGNS:
        raise _wrong(codes.WRONG_SIZE, f"dims have no {sign}", None, "numbers with dims have + - * / // % **")
    if sign in ("/", "//", "%") and isinstance(b, int) and b == 0:
        raise _wrong(codes.DIVISION_BY_ZERO, "division by zero", 1)
    if sign == "/" and isinstance(a, int) and a == 0:
        return 0.0  # the quotient is unspecified where a dim is 0
    if sign not in ("+", "-", "*", "//") or not (isinstance(a, (int, DimExpr)) and isinstance(b, (int, DimExpr))):
        return SizeNumber(sign, (a, b))
    value = floordiv(a, b) if sign == "//" else a + b if sign == "+" else a - b if sign == "-" else a * b
    if isinstance(value, int):
        return _bounded(value, str(value))
    if value.is_long:
        raise _wrong(codes.WRONG_SIZE, "this size is too long an expression", None, "name a part of it as a dim")
    return value


def _bounded(value: int, text: str) -> int:
    if value.bit_length() > _MAX_BITS:
        raise _too_large(text)
    return value


def _too_large(text: str) -> OpError:
    return OpError(codes.LITERAL_DOES_NOT_FIT, f"{text} does not fit any dtype", under="too large")


def _wrong(code: Any, message: str, at: int | None, help: str = "") -> OpError:
    return OpError(code, message, at=at, help=help)
