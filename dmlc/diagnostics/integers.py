"""Integers that a user gives: of Python, of NumPy, or of another library."""

from __future__ import annotations

import operator
from typing import Any


def integer_of(value: Any) -> int | None:
    """Return the value as a Python integer; None for a bool and for anything that is not an integer.

    A float is not an integer, even if it is whole. An array of integers without axes is one.
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array has __index__ too, whatever it holds
        return None


__all__ = ["integer_of"]
