"""Tests that run all rows of a table and report each row that fails.

``pytest.mark.parametrize`` makes each row a test with an id, which costs more than most rows compute. ``each_row``
takes the same arguments and makes one test of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import Any

import pytest

TESTS = Path(__file__).parent

#: The ids of a table's rows: one for each row, or a function of one value.
Ids = Sequence[object] | Callable[[Any], object] | None


class RowsFailed(AssertionError):
    """Rows that fail: the message has a paragraph for each, with its id, its location and its error."""

    def __init__(self, failures: list[tuple[str, BaseException]], count: int) -> None:
        self.failures, self.count = failures, count
        paragraphs = [f"[{name}] {_described(error)}" for name, error in failures]
        super().__init__(f"{len(failures)} of {count} rows fail\n" + "\n".join(paragraphs))


def each_row(names: str | Sequence[str], table: Iterable[Any], ids: Ids = None) -> Callable[[Any], Any]:
    """Run a test once for each row of ``table``; raise ``RowsFailed`` at the end if any row failed.

    The arguments are those of ``pytest.mark.parametrize``, and both may stand above one test. Several ``each_row`` run
    the test for each combination. Fixtures are made once for all rows. A row cannot be skipped.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    single = isinstance(names, str) and len(columns) == 1
    entries = list(table)
    listed = [entry.values if _is_param(entry) else (entry,) if single else tuple(entry) for entry in entries]
    assert listed, "a table without rows tests nothing"
    assert not any(_is_param(entry) and entry.marks for entry in entries), "a row of a test has no marks of its own"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        each = getattr(test, "row_count", 1)

        @functools.wraps(test)
        def all_rows(**fixtures: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            for number, values in enumerate(listed):
                try:
                    test(**fixtures, **dict(zip(columns, values, strict=True)))
                except RowsFailed as inner:
                    name = _named(entries[number], values, columns, number, ids)
                    failures += [(f"{name}-{other}", error) for other, error in inner.failures]
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    failures.append((_named(entries[number], values, columns, number, ids), error))
            if failures:
                raise RowsFailed(failures, len(listed) * each) from failures[0][1]

        signature = inspect.signature(test)
        kept = [p for p in signature.parameters.values() if p.name not in columns]
        all_rows.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        all_rows.row_count = len(listed) * each  # type: ignore[attr-defined]
        return all_rows

    return decorate


def _is_param(entry: Any) -> bool:
    """Tell a row made by ``pytest.param``."""
    return hasattr(entry, "marks")


def _named(entry: Any, values: Sequence[Any], columns: list[str], number: int, ids: Ids) -> str:
    """The id of a row: its own, else the one in ``ids``, else one made of its values."""
    if _is_param(entry) and entry.id:
        return str(entry.id)
    if isinstance(ids, Sequence):
        return str(ids[number])
    return "-".join(_part(value, f"{column}{number}", ids) for column, value in zip(columns, values, strict=True))


def _part(value: Any, otherwise: str, ids: Callable[[Any], object] | None) -> str:
    """Part of an id: as ``ids`` has it, else the name of the value or its text if that is short, else its number."""
    chosen = ids(value) if ids else None
    if chosen is not None:
        return str(chosen)
    text = getattr(value, "name", None) or getattr(value, "__name__", None)
    if not isinstance(text, str):
        text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 40 and "<" not in text else otherwise


def _described(error: BaseException) -> str:
    """Location of the last line in the tests that the error passed, its type and its text."""
    frames = extract_tb(error.__traceback__)
    places = [f for f in frames if TESTS in Path(f.filename).parents and f.filename != __file__] or list(frames)
    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    place = f"{Path(places[-1].filename).name}:{places[-1].lineno}"
    return f"{place}: {type(error).__name__}: {error}{notes}"
