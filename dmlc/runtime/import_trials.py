"""Trial imports of libraries, each in a process of its own, so that a broken one ends that process only."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from dmlc.diagnostics.libraries import LIBRARIES, one_line
from dmlc.runtime.child_process import ChildFailed, ChildProcess

#: Seconds for one import.
_LIMIT = 120
_CODE = """
import importlib
name, names = arguments
answer = {"version": None, "error": "", "missing": False, "providers": []}
try:
    module = importlib.import_module(name)
    lacking = [each for each in names if not hasattr(module, each)]
    if lacking:
        where = getattr(module, "__file__", None) or list(getattr(module, "__path__", ["?"]))[0]
        answer["error"] = f"{where} has no {lacking[0]}"
    else:
        answer["version"] = str(getattr(module, "__version__", "of unknown version"))
        if "get_available_providers" in names:
            answer["providers"] = [str(each) for each in module.get_available_providers()]
except BaseException as error:
    answer["missing"] = isinstance(error, ModuleNotFoundError) and error.name == name
    answer["version"], answer["error"] = None, f"{type(error).__name__}: {error}"
"""


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


def _start(name: str) -> ChildProcess:
    return ChildProcess(_CODE, (name, LIBRARIES[name].names), seconds=_LIMIT)


def _result(child: ChildProcess) -> Trial:
    try:
        answer: dict[str, Any] = child.answer()
    except ChildFailed as error:
        return Trial(None, f"when it is imported, {error}")
    return Trial(answer["version"], one_line(answer["error"]), answer["missing"], tuple(answer["providers"]))
