"""Runs of a search, kept in a file so that it goes on after an interrupt or on another machine."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct, field

from dmlc.debugging.checks import PartResult
from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue.searches import OTHER_STATE
from dmlc.runtime import files
from dmlc.verifying.inputs import Feeds

_STORED_KINDS = "fiubUS"


class _StateFile(Struct):
    """The runs by key; ``inputs`` as ``.npz`` are what they are made on, None where they are not plain arrays."""

    search: str
    inputs: bytes | None = None
    runs: dict[str, PartResult] = field(default_factory=dict)
    schema: Literal[1] = 1


class SearchState:
    """The runs so far by key, and the inputs they are made on; ``identity`` distinguishes searches.

    Without a path nothing is kept. Raises ``DmlcError`` E0567 for the file of another search, E0420 and E0421 for one
    that cannot be read or written.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Any]) -> None:
        self._path = path
        self._file = _StateFile(sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest())
        self.feeds: Feeds | None = None
        if path is not None and path.exists():
            self._read(path)

    def known(self, key: str) -> PartResult | None:
        return self._file.runs.get(key)

    def record(self, key: str, found: PartResult) -> None:
        """Keep a run; the file is written whole."""
        self._file.runs[key] = found
        if self._path is not None:
            self._file.inputs = _stored(self.feeds)
            files.write_bytes(self._path, msgspec.json.format(msgspec.json.encode(self._file), indent=1) + b"\n")

    def _read(self, path: Path) -> None:
        help = "remove it to start anew"
        try:
            found = msgspec.json.decode(files.read_bytes(path), type=_StateFile)
            with np.load(io.BytesIO(found.inputs or files.npz_bytes({})), allow_pickle=False) as arrays:
                feeds = {name: arrays[name] for name in arrays.files}
        except DmlcError:
            raise
        except Exception:  # any other content
            raise fail(OTHER_STATE, f"{path} is not the state of a bisect run", help=help) from None
        if found.search != self._file.search:
            raise fail(OTHER_STATE, f"{path} is the state of another run", help=help)
        self._file, self.feeds = found, None if found.inputs is None else feeds


def _stored(feeds: Feeds | None) -> bytes | None:
    """Arrays as ``.npz``; None where they are not plain arrays, so that they are made up again."""
    kinds = [getattr(getattr(array, "dtype", None), "kind", "O") for array in (feeds or {}).values()]
    return None if feeds is None or not set(kinds) <= {*_STORED_KINDS} else files.npz_bytes(feeds)
