"""Kernels of ONNX Runtime's CPU provider that exist and are not to be trusted, by release."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dmlc.records import dataclass
from dmlc.targets.schema import is_level, is_name, list_of, maybe, need, need_fields, types_of
from dmlc.targets.target import load_data

_FILE = "ort_cpu_wrong"


@dataclass(frozen=True, slots=True)
class WrongKernels:
    """``since`` is the first release that computes ``types`` wrongly (None: all that were tried), ``until`` the last
    (None: the newest that was tried does)."""

    operators: tuple[str, ...]
    types: frozenset[str]
    what: str
    instead: str
    since: str | None
    until: str | None
    seen: tuple[str, ...]
    source: str

    def holds_for(self, version: str) -> bool:
        """Return whether the entry applies to a release of onnxruntime."""
        found = _key(version)
        return (self.since is None or found >= _key(self.since)) and (self.until is None or found <= _key(self.until))


def _key(version: str) -> list[int]:
    """Return the major and minor number of ``1.31.1``, or of a development build, ``1.32.0.dev20261101``."""
    return [int(part) for part in version.split(".")[:2]]


_KINDS = {
    **dict.fromkeys(("operators", "seen"), list_of(is_name)),
    **dict.fromkeys(("types", "what", "instead", "source"), is_name),
    **dict.fromkeys(("since", "until"), maybe(is_level)),
}


def parse_wrong(data: dict[str, Any], file: str = f"{_FILE}.json") -> Sequence[WrongKernels]:
    """Parse the entries of a data file. Raises ``DmlcError`` E0590."""
    need(isinstance(data.get("wrong"), list), file, "wrong is a list")
    out = []
    for row in data["wrong"]:
        need_fields(row, _KINDS, file, "a row")
        missing, unknown = sorted(_KINDS.keys() - row.keys()), sorted(row.keys() - _KINDS.keys())
        need(not missing, file, f"{', '.join(missing)} must be said")
        need(not unknown, file, f"{', '.join(unknown)} mean nothing")
        types = types_of(row["types"], file, row["what"])
        row = {**row, "operators": tuple(row["operators"]), "types": types, "seen": tuple(row["seen"])}
        out.append(WrongKernels(**row))
    return out


@lru_cache(maxsize=1)
def wrong_kernels() -> Sequence[WrongKernels]:
    """All that is known. Raises ``DmlcError`` E0590."""
    return parse_wrong(load_data(_FILE))


def wrong_in(version: str) -> frozenset[tuple[str, str]]:
    """Return the operators and types that a release of onnxruntime computes wrongly; none for an unknown version."""
    if not re.match(r"\d+\.\d+", version):
        return frozenset()
    rows = [row for row in wrong_kernels() if row.holds_for(version)]
    return frozenset([(op, name) for row in rows for op in row.operators for name in row.types])
