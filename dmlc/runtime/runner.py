"""Runner: a compiled program without its compiler, small and picklable."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import replace

from dmlc.codegen.artifact import Artifact, Signature
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.given import integer_of, listed
from dmlc.ir import Array

Run: TypeAlias = Callable[[Mapping[str, Any], "Sequence[str] | None"], dict[str, Array]]
#: Sizes of the dims of a profile, and its runner.
Profiles: TypeAlias = "dict[tuple[tuple[str, int], ...], Runner]"

#: The sessions of this process by artifact, backend and threads; the oldest go.
_SESSIONS: OrderedDict[tuple[int, str, str, int | None], Run] = OrderedDict()
_MOST_SESSIONS = 16


class Runner:
    """Runs an artifact. It holds the emitted code and the signature, and makes its session when it first runs.

    Runners of one artifact share one session in a process, however often they are pickled. After a fork the new
    process makes its own.
    """

    def __init__(
        self,
        artifact: Artifact,
        backend: str,
        threads: int | None,
        *,
        defaults: Mapping[str, Array] | None = None,
        profiles: Profiles | None = None,
        places: Mapping[str, tuple[str, int]] | None = None,
    ) -> None:
        """Raises ``DmlcError`` E0556 (exit code 2) for another number of threads."""
        count = integer_of(threads)
        if threads is not None and (count is None or count < 1):
            message = f"threads is 1 or more, or None for one for each core, not {threads!r}"
            raise fail(codes.UNKNOWN_CHOICE, message, exit_code=2)
        payload = artifact.payload
        self._code: str | bytes = payload if isinstance(payload, str) else payload.SerializeToString(deterministic=True)
        self._artifact = replace(artifact, payload=None, locations={}, report=(), arrays={}, types={})
        self._defaults = dict(defaults or {})
        self._profiles = profiles or {}
        self._places = dict(places or {})
        self.backend = backend
        self.threads = count
        self.signature: Signature = artifact.signature
        code = self._code if isinstance(self._code, bytes) else self._code.encode()
        self._digest = hashlib.sha256(code + str(artifact.folder).encode("utf-8", "surrogatepass")).hexdigest()

    def run(self, feeds: Mapping[str, Any], *, outputs: Sequence[str] | str | None = None) -> dict[str, Array]:
        """The outputs by name, or those that are asked for. Raises what ``Program.run`` raises.

        Inner values are not known here: E0446.
        """
        profile: Runner | None = profile_of(self._profiles, self._places, feeds)
        if profile is not None:
            return profile.run(feeds, outputs=outputs)
        names = None if outputs is None else listed("outputs", outputs)
        if names is not None:
            from dmlc.runtime.chosen_outputs import unknown_value

            results = [name for name, _ in self.signature.outputs]
            for name in names:
                if name not in results:
                    raise unknown_value(name, results, ())
        found = self._session()(feeds, names)
        return found if names is None else {name: found[name] for name in names}

    def __call__(self, /, **feeds: Any) -> dict[str, Array]:
        """``run`` with the inputs as keywords."""
        return self.run(feeds)

    def __repr__(self) -> str:
        return f"<Runner {self.signature.name} on {self.backend}>"

    def _session(self) -> Run:
        key = (os.getpid(), self._digest, self.backend, self.threads)
        if key not in _SESSIONS:
            _SESSIONS[key] = self._opened()
            while len(_SESSIONS) > _MOST_SESSIONS:
                _SESSIONS.popitem(last=False)
        _SESSIONS.move_to_end(key)
        return _SESSIONS[key]

    def _opened(self) -> Run:
        if isinstance(self._code, str):
            from dmlc.runtime.numpy_code import NumpyCode

            return NumpyCode(replace(self._artifact, payload=self._code), self._defaults).run
        import onnx

        artifact = replace(self._artifact, payload=onnx.ModelProto.FromString(self._code))
        return session_of(artifact, self.backend, self.threads)


def session_of(artifact: Artifact, backend: str, threads: int | None = None) -> Run:
    """Open a session for an ONNX artifact: on a GPU with open sizes fixed. Raises what ``Session`` raises."""
    if backend != "cpu":
        from dmlc.runtime.fixed_sessions import FixedSessions

        return FixedSessions(artifact, backend, threads).run
    from dmlc.runtime.session import Session

    return Session(artifact, backend, threads=threads).run


def profile_of(
    profiles: Mapping[tuple[tuple[str, int], ...], Any], places: Mapping[str, tuple[str, int]], feeds: Any
) -> Any:
    """The item of ``profiles`` for the sizes of what is fed; None where there is none."""
    if not profiles or not isinstance(feeds, Mapping):
        return None
    sizes = []
    for dim, (name, axis) in places.items():
        try:
            sizes.append((dim, np.shape(feeds[name])[axis]))
        except (LookupError, ValueError):  # the check of what is fed says what is wrong
            return None
    return profiles.get(tuple(sizes))
