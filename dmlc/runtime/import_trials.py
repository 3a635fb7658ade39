"""Trial imports of libraries, each in a process of its own, so that a broken one ends that process only."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec

from dmlc.diagnostics.libraries import LIBRARIES, one_line
from dmlc.workers import Worker, WorkerEnded

#: Seconds for one import.
_LIMIT = 120


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of an import: ``version`` if it worked, else ``error``; ``missing`` if the library is not installed.

    ``providers`` are ONNX Runtime's execution providers.
    """

    version: str | None
    error: str = ""
    missing: bool = False
    providers: tuple[str, ...] = ()


def try_imports() -> dict[str, Trial]:
    """Import every library of dmlc, each in a process of its own with this process's ``sys.path``; raise nothing."""
    out = {name: _refused_here(name) for name in LIBRARIES}
    started = {name: _start(name) for name, trial in out.items() if trial is None}
    done = {name: _result(child) for name, child in started.items()}
    return {name: trial or done[name] for name, trial in out.items()}


def _refused_here(name: str) -> Trial | None:
    """Return the result if this process knows without an import that the library is missing or replaced."""
    try:
        if name in sys.modules and sys.modules[name] is None:
            return Trial(None, missing=True)
        return None if find_spec(name) is not None else Trial(None, missing=True)
    except ModuleNotFoundError as error:
        return Trial(None, one_line(error), missing=True)
    except Exception as error:  # a finder that refuses; a stand-in in sys.modules has no __spec__
        return Trial(None, one_line(error))


def _start(name: str) -> Worker | None:
    worker = Worker("dmlc.workers.trial", name, *LIBRARIES[name].names)
    try:
        worker.spawn()
    except OSError:
        return None
    return worker


def _result(worker: Worker | None) -> Trial:
    if worker is None:
        return Trial(None, "no process can be started to import it")
    try:
        version, error, missing, providers = worker.exchange(_LIMIT)
    except WorkerEnded as ended:
        return Trial(None, f"when it is imported, {ended}")
    finally:
        worker.stop()
    return Trial(version, one_line(error), missing, tuple(providers))
