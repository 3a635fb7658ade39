"""Tables of which a run asks for few rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Row = TypeVar("_Row")


class Rows(Mapping[_Key, _Row]):
    """The rows of a data file; each is checked and read when it is first asked for, with ``read``."""

    def __init__(self, raw: Mapping[_Key, dict[str, Any]], read: Callable[[_Key, dict[str, Any]], _Row]) -> None:
        self._raw = raw
        self._make = read
        self._read: dict[_Key, _Row] = {}

    def __getitem__(self, key: _Key) -> _Row:
        row = self._read.get(key)
        if row is None:
            row = self._read[key] = self._make(key, self._raw[key])
        return row

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)
