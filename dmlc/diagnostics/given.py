"""Integers and names that a user gives."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE
from dmlc.diagnostics.diagnostic import fail


def integer_of(value: Any) -> int | None:
    """Return an integer of Python, NumPy or another library as Python's; None for a bool and for other types.

    A float is not an integer, even if it is whole. An array of integers without axes is one.
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array has __index__ too, whatever it holds
        return None


def listed(option: str, names: Iterable[str]) -> list[str]:
    """The names given to an option; a text is one name. Raises ``DmlcError`` E0556 (exit code 2) for other types."""
    try:
        found: list[Any] = [names] if isinstance(names, (str, bytes)) else list(names)
    except TypeError:
        message = f"{option} is a list of names, not {type(names).__name__}"
        raise fail(UNKNOWN_CHOICE, message, exit_code=2) from None
    for name in found:
        if not isinstance(name, str):
            message = f"{option} is a list of names, and {name!r} is not a name"
            raise fail(UNKNOWN_CHOICE, message, exit_code=2)
    return found
