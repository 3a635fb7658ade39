"""Types of keyword arguments: a value of another type is refused where it is given, not where it is first used."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from msgspec import Struct

from dmlc.diagnostics import did_you_mean, fail
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE
from dmlc.ir.history import CLASSES


class ArgumentKind(Struct, frozen=True):
    """The values that an argument takes, and how a message describes them."""

    takes: Callable[[Any], bool]
    description: str


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _is_by_name(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_distance(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return value is None or (is_number and not math.isnan(value) and value >= 0)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_allowed(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    if isinstance(value, (bytes, type)) or not isinstance(value, Iterable):
        return False
    return all(isinstance(name, str) and name in CLASSES for name in names)


_TEXT = ArgumentKind(_is_text, "a text")
_BOOL = ArgumentKind(_is_bool, "True or False")
_DISTANCE = ArgumentKind(_is_distance, "a number of 0 or more")
_FUNCTION = ArgumentKind(lambda value: value is None or callable(value), "a function")
_BY_NAME = ArgumentKind(lambda value: value is None or _is_by_name(value), "a dict of arrays by name")

#: The kind of each argument, by its name, which means the same in every function.
KINDS: Mapping[str, ArgumentKind] = {
    "inputs": ArgumentKind(
        lambda value: (_is_count(value) and value >= 1) or _is_by_name(value),
        "a number of 1 or more, or a dict of arrays by name",
    ),
    "expected": _BY_NAME,
    "backend": _TEXT,
    "seed": ArgumentKind(lambda value: _is_count(value) and value >= 0, "an integer of 0 or more"),
    "allowed": ArgumentKind(_is_allowed, f"one or more of {', '.join(CLASSES)}"),
    "rtol": _DISTANCE,
    "atol": _DISTANCE,
    "search": _BOOL,
    "from_end": _BOOL,
    "unsafe": _BOOL,
    "check": ArgumentKind(
        lambda value: value is None or isinstance(value, str) or callable(value), "a command or a function"
    ),
    "state": ArgumentKind(lambda value: value is None or _is_path(value), "the path of a file"),
    "value": _TEXT,
    "model": _TEXT,
    "progress": _FUNCTION,
    "include": ArgumentKind(
        lambda value: isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(map(_is_path, value)),
        "a list of folders",
    ),
}


def check_arguments(**given: Any) -> None:
    """Raises ``DmlcError`` E0556 (exit code 2) for an argument that is not of its kind."""
    for name, value in given.items():
        kind = KINDS[name]
        if not kind.takes(value):
            shown = repr(value)
            shown = shown if len(shown) <= 40 else f"a {type(value).__name__}"
            help = did_you_mean(value, CLASSES) if name == "allowed" and isinstance(value, str) else ""
            raise fail(UNKNOWN_CHOICE, f"{name} is {kind.description}, not {shown}", help=help, exit_code=2)


__all__ = ["KINDS", "check_arguments"]
