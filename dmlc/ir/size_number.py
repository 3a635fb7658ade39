"""Numbers made of dims that are not sizes: quotients, remainders, powers, and sums with fractions.

``N / 2`` and ``N ** -0.5`` have a value for each N, but no tensor has such a size. They stay expressions until a tensor
beside them has the dtype that they are computed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np

#: Operators that can be written between two numbers of which one has a dim.
SIGNS = frozenset(("+", "-", "*", "/", "//", "%", "**"))
#: A longer expression is shown as its count of operations.
_MOST_SHOWN = 12


#: An operator of two numbers, of which the first or the second is made of dims.
_Infix: TypeAlias = "Callable[[Arithmetic, Any], Any]"


def _operator(sign: str) -> _Infix:
    return lambda self, other: _number(sign, self, other)


def _reflected(sign: str) -> _Infix:
    return lambda self, other: _number(sign, other, self)


class Arithmetic:
    """The operators that dims and numbers made of dims share."""

    __slots__ = ()
    #: Lets a NumPy number beside a dim come here instead of to NumPy's loop over the elements.
    __array_ufunc__ = None

    __add__: ClassVar[_Infix] = _operator("+")
    __radd__: ClassVar[_Infix] = _reflected("+")
    __sub__: ClassVar[_Infix] = _operator("-")
    __rsub__: ClassVar[_Infix] = _reflected("-")
    __mul__: ClassVar[_Infix] = _operator("*")
    __rmul__: ClassVar[_Infix] = _reflected("*")
    __truediv__: ClassVar[_Infix] = _operator("/")
    __rtruediv__: ClassVar[_Infix] = _reflected("/")
    __floordiv__: ClassVar[_Infix] = _operator("//")
    __rfloordiv__: ClassVar[_Infix] = _reflected("//")
    __mod__: ClassVar[_Infix] = _operator("%")
    __rmod__: ClassVar[_Infix] = _reflected("%")
    __pow__: ClassVar[_Infix] = _operator("**")
    __rpow__: ClassVar[_Infix] = _reflected("**")

    def __neg__(self) -> Any:
        return SizeNumber("-", (self,))


class SizeNumber(Arithmetic):
    """An operation on dims and numbers. Immutable; ``count`` is how many operations it holds.

    ``operands`` are integers, floats, dims and other such numbers.
    """

    __slots__ = ("count", "operands", "sign")

    def __init__(self, sign: str, operands: tuple[Any, ...]) -> None:
        self.sign: str = sign
        self.operands: tuple[Any, ...] = operands
        self.count: int = 1 + sum([x.count for x in operands if isinstance(x, SizeNumber)])

    def __reduce__(self) -> tuple[Any, ...]:
        return SizeNumber, (self.sign, self.operands)

    def __str__(self) -> str:
        if self.count > _MOST_SHOWN:
            return f"an expression of {self.count} operations"
        parts = [str(x) if _is_simple(x) else f"({x})" for x in self.operands]
        return f"-{parts[0]}" if len(parts) == 1 else f" {self.sign} ".join(parts)

    def __repr__(self) -> str:
        return f"SizeNumber({self})"


def _number(sign: str, left: Any, right: Any) -> Any:
    """Return the operation as a number. Raises ``ZeroDivisionError`` for a division by a written 0."""
    left, right = [x.item() if isinstance(x, (np.integer, np.floating)) else x for x in (left, right)]
    for operand in (left, right):
        if isinstance(operand, bool) or not isinstance(operand, (int, float, Arithmetic)):
            return NotImplemented
    if sign in ("/", "//", "%") and isinstance(right, int) and right == 0:
        raise ZeroDivisionError
    return SizeNumber(sign, (left, right))


def _is_simple(operand: Any) -> bool:
    """Return whether the text of an operand needs no parentheses."""
    return str(operand).replace("_", "").replace(".", "").isalnum()
