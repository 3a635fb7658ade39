"""Runs of a search, kept in a file so that it goes on after an interrupt or on another machine."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dmlc.debugging.checks import BAD, GOOD, SKIP, PartResult
from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue.searches import OTHER_STATE
from dmlc.runtime import files
from dmlc.verifying.inputs import Feeds

_SCHEMA = 1
_STORED_KINDS = "fiubUS"


class SearchState:
    """The runs so far by key, and the inputs they are made on; ``identity`` distinguishes searches.

    Without a path nothing is kept. Raises ``DmlcError`` E0567 for the file of another search, E0420 and E0421 for one
    that cannot be read or written.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Any]) -> None:
        self._path = path
        self._identity = sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()
        self._runs: dict[str, PartResult] = {}
        self.feeds: Feeds | None = None
        if path is not None and path.exists():
            self._read(path)

    def known(self, key: str) -> PartResult | None:
        return self._runs.get(key)

    def record(self, key: str, found: PartResult) -> None:
        """Keep a run; the file is written whole."""
        self._runs[key] = found
        if self._path is not None:
            files.write_bytes(self._path, (json.dumps(self._document(), indent=1) + "\n").encode())

    def _document(self) -> dict[str, Any]:
        runs = [
            {"key": key, "status": run.status, "details": list(run.details), "fails": run.fails}
            for key, run in self._runs.items()
        ]
        return {"schema": _SCHEMA, "search": self._identity, "inputs": _stored(self.feeds), "runs": runs}

    def _read(self, path: Path) -> None:
        try:
            document = json.loads(files.read_bytes(path))
            identity = document["search"]
            self.feeds = _loaded(document["inputs"])
            for run in document["runs"]:
                if run["status"] not in (GOOD, BAD, SKIP):
                    raise ValueError
                self._runs[str(run["key"])] = PartResult(
                    run["status"], tuple(map(str, run["details"])), bool(run["fails"])
                )
        except DmlcError:
            raise
        except Exception:  # any other content
            raise fail(
                OTHER_STATE, f"{path} is not the state of a bisect run", help="remove it to start anew"
            ) from None
        if identity != self._identity:
            raise fail(OTHER_STATE, f"{path} is the state of another run", help="remove it to start anew")


def _stored(feeds: Feeds | None) -> str | None:
    """Arrays as text; None where they are not plain arrays, so that they are made up again."""
    if feeds is None or any(
        getattr(getattr(x, "dtype", None), "kind", "O") not in _STORED_KINDS for x in feeds.values()
    ):
        return None
    return base64.b64encode(files.npz_bytes(feeds)).decode()


def _loaded(text: str | None) -> Feeds | None:
    if text is None:
        return None
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
