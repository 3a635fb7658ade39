"""Types of keyword arguments: a value of another type is refused where it is given, not where it is first used."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, get_args, get_origin

import numpy as np
from msgspec import Struct

from dmlc.diagnostics import did_you_mean, fail
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE
from dmlc.ir.history import CLASSES
from dmlc.passes.options import OPTIONS, Option

#: More inputs than anybody waits for.
_MOST_INPUTS = 2**31 - 1


class ArgumentKind(Struct, frozen=True):
    """The values that an argument takes, and how a message describes them; the ``words`` if it takes only some.

    ``convert`` makes of a value that it takes the one that is used.
    """

    takes: Callable[[Any], bool]
    description: str
    words: tuple[str, ...] = ()
    convert: Callable[[Any], Any] = lambda value: value


def _is_integer(value: Any, least: int, most: float = math.inf) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)


def _is_by_name(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_distance(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return value is None or (is_number and not math.isnan(value) and value >= 0)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_folders(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(map(_is_path, value))


def _some_of(words: Sequence[str]) -> ArgumentKind:
    def takes(value: Any) -> bool:
        try:
            return all(isinstance(name, str) and name in words for name in _names(value))
        except TypeError:
            return False

    return ArgumentKind(takes, f"one or more of {', '.join(words)}", tuple(words), _names)


def _names(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, (str, bytes)) else tuple(value)


def _one_of(words: Sequence[str], *, optional: bool = False) -> ArgumentKind:
    def takes(value: Any) -> bool:
        return (value is None and optional) or (isinstance(value, str) and value in words)

    return ArgumentKind(takes, f"one of {', '.join(words)}", tuple(words))


_TEXT = ArgumentKind(_is_text, "a text")
_BOOL = ArgumentKind(_is_bool, "True or False", convert=bool)
_DISTANCE = ArgumentKind(_is_distance, "a number of 0 or more")
_FUNCTION = ArgumentKind(lambda value: value is None or callable(value), "a function")
_BY_NAME = ArgumentKind(lambda value: value is None or _is_by_name(value), "a dict of arrays by name")
#: Number of made-up inputs.
COUNT = ArgumentKind(lambda value: _is_integer(value, 1, _MOST_INPUTS), "a number from 1 to 2^31 - 1")


def _kind_of(option: Option) -> ArgumentKind | None:
    """The kind of a declared option, by its type; None where the type does not say which values it takes."""
    kinds = (option.type, *get_args(option.type))
    if option.words:
        return _some_of(option.words) if option.repeats else _one_of(option.words, optional=True)
    if bool in kinds:
        return _BOOL
    if any(get_origin(kind) is Callable for kind in kinds):
        return _FUNCTION
    if get_origin(option.type) is Sequence and option.accepts is None:
        return ArgumentKind(_is_folders, "a list of folders")
    return _TEXT if str in kinds and not option.repeats else None


#: The kind of each argument, by its name, which means the same in every function.
KINDS: Mapping[str, ArgumentKind] = {
    **{name: kind for name, option in OPTIONS.items() if (kind := _kind_of(option)) is not None},
    "inputs": ArgumentKind(
        lambda value: COUNT.takes(value) or _is_by_name(value), f"{COUNT.description}, or a dict of arrays by name"
    ),
    "expected": _BY_NAME,
    "backend": _TEXT,
    "seed": ArgumentKind(lambda value: _is_integer(value, 0), "an integer of 0 or more"),
    "opset": ArgumentKind(lambda value: value is None or _is_integer(value, 1), "an integer of 1 or more"),
    "allowed": _some_of(CLASSES),
    "rtol": _DISTANCE,
    "atol": _DISTANCE,
    "from_end": _BOOL,
    "unsafe": _BOOL,
    "check_ranges": _BOOL,
    "specials": _BOOL,
    "check": ArgumentKind(
        lambda value: value is None or isinstance(value, str) or callable(value), "a command or a function"
    ),
    "tune_seconds": COUNT,
    "tuning": ArgumentKind(
        lambda value: value is None or _is_path(value),
        "the path of a file",
        convert=lambda value: value and os.fspath(value),
    ),
    "state": ArgumentKind(lambda value: value is None or _is_path(value), "the path of a file"),
    "output_path": ArgumentKind(lambda value: value is None or _is_path(value), "the path of a folder"),
    "written": ArgumentKind(lambda value: value is None or _is_path(value), "the path of a file"),
    "path": ArgumentKind(_is_path, "the path of a file"),
    "value": _TEXT,
    "name": _TEXT,
    "data": _TEXT,
    "kind": _TEXT,
    "style": _one_of(("plain", "fast")),
    "weights": _one_of(("inline", "copy", "reference"), optional=True),
}


def check_arguments(**given: Any) -> None:
    """Raises ``DmlcError`` E0556 (exit code 2) for an argument that is not of its kind."""
    for name, value in given.items():
        check_argument(name, value, KINDS[name])


def checked_argument(name: str, value: Any) -> Any:
    """Return the value as it is used. Raises ``DmlcError`` E0556 (exit code 2) for a value that is not of its kind."""
    check_argument(name, value, KINDS[name])
    return KINDS[name].convert(value)


def check_argument(name: str, value: Any, kind: ArgumentKind) -> None:
    """Raises ``DmlcError`` E0556 (exit code 2) for a value that is not of the kind."""
    if not kind.takes(value):
        shown = repr(value)
        shown = shown if len(shown) <= 40 else f"a {type(value).__name__}"
        wrong = value if isinstance(value, (list, tuple)) else (value,)
        help = next((did_you_mean(word, kind.words) for word in wrong if isinstance(word, str)), "")
        raise fail(UNKNOWN_CHOICE, f"{name} is {kind.description}, not {shown}", help=help, exit_code=2)
