"""Checks of a data file while it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue.targets import BAD_DATA

_TYPES = frozenset(
    (
        *("f16", "f32", "f64", "bf16", "bool", "string"),
        *("i4", "i8", "i16", "i32", "i64"),
        *("u4", "u8", "u16", "u32", "u64"),
    )
)


def bad_data(file: str, problem: str) -> DmlcError:
    """E0590 for a file of target data."""
    return fail(BAD_DATA, f"target data {file}: {problem}")


def need(holds: bool, file: str, problem: str) -> None:
    """Raises ``DmlcError`` E0590 where something does not hold."""
    if not holds:
        raise bad_data(file, problem)


# --- the kinds of values; each takes anything and says whether it is of the kind

Check = Callable[[Any], bool]
#: No opset, rank, count or axis of a table is larger.
MOST = 10_000
#: Halves of a pair, which no encoding writes.
_LONE = re.compile("[\ud800-\udfff]")
_LEVEL = re.compile(r"\d{1,4}(\.\d{1,8})*", re.ASCII)


def is_text(value: Any) -> bool:
    """A text that every encoding of Unicode can write."""
    return isinstance(value, str) and (value.isascii() or _LONE.search(value) is None)


def is_name(value: Any) -> bool:
    return is_text(value) and bool(value.strip())


def is_level(value: Any) -> bool:
    """Numbers and points: a release, a feature level."""
    return is_text(value) and _LEVEL.fullmatch(value) is not None


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def is_number(value: Any) -> bool:
    """0 or more, and finite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18


def is_plain(value: Any) -> bool:
    """Return whether a value can be a node's attribute: a text, a number, or a list of them."""
    if isinstance(value, list):
        return all(not isinstance(each, list) and is_plain(each) for each in value)
    return is_text(value) or (isinstance(value, (int, float)) and abs(value) < 2**63)


def maybe(check: Check) -> Check:
    """Return a check that also accepts null."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def map_of(check: Check) -> Check:
    """An object with any names."""
    return lambda value: isinstance(value, dict) and all(is_text(key) and check(each) for key, each in value.items())


def is_range(value: Any) -> bool:
    """The first and the last of some opsets."""
    return isinstance(value, list) and len(value) == 2 and all(map(is_count, value)) and value[0] <= value[1]


def need_fields(row: Any, checks: Mapping[str, Check], file: str, where: str) -> None:
    """Raise ``DmlcError`` E0590 for a row that is not an object, or has a wrong field. Fields may be missing."""
    need(isinstance(row, dict), file, f"{where} is not an object")
    wrong = [name for name, check in checks.items() if name in row and not check(row[name])]
    need(not wrong, file, f"{where}: {', '.join(wrong)} cannot be that")


def types_of(text: object, file: str, where: str) -> frozenset[str]:
    """The element types of a row. Raises ``DmlcError`` E0590."""
    need(is_text(text), file, f"{where}: types are one text")
    names, unknown = _names(str(text))
    need(not unknown, file, f"{where}: there is no type {', '.join(unknown)}")
    return names


@cache
def _names(text: str) -> tuple[frozenset[str], list[str]]:
    """The types that a text names, and those of them that there are not. Tables repeat few texts very often."""
    names = frozenset(text.split())
    return names, sorted(name for name in names - _TYPES if not name.startswith("float8"))
