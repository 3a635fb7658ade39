"""Sessions of one model for a few shapes: with its open sizes fixed the DirectML provider fuses what it otherwise
compiles anew for every shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.codegen.artifact import Artifact
from dmlc.ir import Array, DimExpr
from dmlc.runtime.session import Session

#: Sizes that change more often than this are no longer fixed: making a session costs more than it gains.
_MOST = 4


class FixedSessions:
    """Runs a model in a session whose dims ``names`` are fixed to the sizes of what is fed, as free dimension
    overrides; a session for each of the first few sets of sizes, then one that leaves them open."""

    def __init__(self, artifact: Artifact, backend: str, names: Sequence[str]) -> None:
        self._artifact = artifact
        self._backend = backend
        self._names = frozenset(names)
        self._sessions: dict[tuple[tuple[str, int], ...], Session] = {}
        self._open: Session | None = None

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs by name. Raises what ``Session`` and ``Session.run`` raise."""
        sizes = self._sizes(feeds)
        session = self._sessions.get(sizes)
        if session is None and len(self._sessions) < _MOST:
            session = self._sessions[sizes] = Session(self._artifact, self._backend, dims=dict(sizes))
        if session is None:
            if self._open is None:
                self._open = Session(self._artifact, self._backend)
            session = self._open
        return session.run(feeds)

    def _sizes(self, feeds: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
        found: dict[str, int] = {}
        for name, type in self._artifact.signature.inputs:
            shape = np.shape(feeds[name]) if name in feeds else ()
            if len(shape) != len(type.shape):
                continue  # the session's own check says so
            for size, given in zip(type.shape, shape, strict=True):
                if isinstance(size, DimExpr) and size.name in self._names:
                    found.setdefault(size.name, given)
        return tuple(sorted(found.items()))
