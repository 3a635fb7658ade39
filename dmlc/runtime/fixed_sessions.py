"""Sessions of one model for a few shapes: with its open sizes fixed the DirectML provider fuses what it otherwise
compiles anew for every shape, and no provider leaves arithmetic of sizes to the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.codegen.artifact import Artifact
from dmlc.ir import Array
from dmlc.onnx_schema.metadata import model_facts, named_axes
from dmlc.runtime.session import Session
from dmlc.targets.session_advice import FACT, free_dimensions

#: Sizes that change more often than this are no longer fixed: making a session costs more than it gains.
_MOST = 4


class FixedSessions:
    """Sessions of an emitted model in which the dims of its session advice are fixed to the sizes of what is fed.

    Each of the first few sets of sizes gets a session, with free dimension overrides; the others share one that leaves
    the sizes open. A model without named open sizes has one session.
    """

    def __init__(self, artifact: Artifact, backend: str, threads: int | None = None) -> None:
        self._artifact = artifact
        self._backend = backend
        self._threads = threads
        self._names = {name for facts in model_facts(artifact.payload) for name in free_dimensions(facts.get(FACT))}
        self._axes = {input.name: named_axes(input) for input in artifact.payload.graph.input}
        self._sessions: dict[tuple[tuple[str, int], ...], Session] = {}
        self._open: Session | None = None

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> dict[str, Array]:
        """The outputs by name: ``names``, or all. Raises what ``Session`` and ``Session.run`` raise."""
        sizes = self._sizes(feeds)
        session = self._sessions.get(sizes)
        if session is None and len(self._sessions) < _MOST:
            session = self._sessions[sizes] = Session(
                self._artifact, self._backend, dims=dict(sizes), threads=self._threads
            )
        if session is None:
            if self._open is None:
                self._open = Session(self._artifact, self._backend, threads=self._threads)
            session = self._open
        return session.run(feeds, names)

    def _sizes(self, feeds: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
        found: dict[str, int] = {}
        for name, axes in self._axes.items():
            shape = np.shape(feeds[name]) if name in feeds else ()
            if len(shape) != len(axes):
                continue  # the session's own check says so, and where two sizes of one name differ
            for size, given in zip(axes, shape, strict=True):
                if size in self._names:
                    found.setdefault(size, given)
        return tuple(sorted(found.items()))
