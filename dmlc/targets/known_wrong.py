"""Kernels of ONNX Runtime's CPU provider that exist and are not to be trusted, by release."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from dmlc.targets.target import load_data

_FILE = "ort_cpu_wrong"


class WrongKernels(Struct, frozen=True):
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


def parse_wrong(data: Mapping[str, Any]) -> Sequence[WrongKernels]:
    """Parse the entries of a data file."""
    out = []
    for row in data["wrong"]:
        types = frozenset(row["types"].split())
        row = {**row, "operators": tuple(row["operators"]), "types": types, "seen": tuple(row["seen"])}
        out.append(WrongKernels(**row))
    return out


@lru_cache(maxsize=1)
def wrong_kernels() -> Sequence[WrongKernels]:
    """All that is known."""
    return parse_wrong(load_data(_FILE))


def wrong_in(version: str) -> frozenset[tuple[str, str]]:
    """Return the operators and types that a release of onnxruntime computes wrongly; none for an unknown version."""
    if not re.match(r"\d+\.\d+", version):
        return frozenset()
    rows = [row for row in wrong_kernels() if row.holds_for(version)]
    return frozenset([(op, name) for row in rows for op in row.operators for name in row.types])


def channels_are_mixed(weights: Sequence[object] | None, group: object) -> bool:
    """Return whether a Conv with weights of that shape meets the fault of the WebGPU provider in the layout NHWC
    (onnxruntime issue 29651; the sizes were found with onnxruntime-ep-webgpu 0.4.0)."""
    if weights is None or len(weights) < 3 or group not in (None, 1):
        return False
    out, channels, *kernel = weights
    if not (isinstance(out, int) and isinstance(channels, int)):
        return False
    return channels > 3 and channels % 3 == 0 and channels % 4 != 0 and out % 4 == 0 and any(k != 1 for k in kernel)
