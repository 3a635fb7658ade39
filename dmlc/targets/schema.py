"""What is checked of a data file while it is read."""

from __future__ import annotations

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


def types_of(text: object, file: str, where: str) -> frozenset[str]:
    """The element types of a row. Raises ``DmlcError`` E0590."""
    need(isinstance(text, str), file, f"{where}: types are one text")
    names = frozenset(str(text).split())
    unknown = sorted(name for name in names - _TYPES if not name.startswith("float8"))
    need(not unknown, file, f"{where}: there is no type {', '.join(unknown)}")
    return names
