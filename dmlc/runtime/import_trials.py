"""Trial imports of libraries, each in a process of its own, so that a broken one ends that process only."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from dmlc.diagnostics.libraries import LIBRARIES, one_line
from dmlc.records import dataclass

#: Seconds for one import.
_LIMIT = 120
#: The last line of stdout is the answer: a library may print others before.
_CODE = """
import importlib, json, sys
name, names, sys.path[:] = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
answer = {"version": None, "error": None, "missing": False, "providers": []}
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
print()
print(json.dumps(answer), flush=True)
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
    done = {name: _answer(process) for name, process in started.items()}
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


def _start(name: str) -> subprocess.Popen[bytes] | str:
    """Start the import; the reason if no process can be started."""
    arguments = [name, json.dumps(LIBRARIES[name].names), json.dumps([str(each) for each in sys.path])]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    try:
        return subprocess.Popen([sys.executable, "-c", _CODE, *arguments], stdin=none, stdout=pipe, stderr=pipe)
    except (OSError, ValueError) as error:
        return one_line(error)


def _answer(process: subprocess.Popen[bytes] | str) -> Trial:
    if isinstance(process, str):
        return Trial(None, f"no process can be started to import it: {process}")
    try:
        out, err = process.communicate(timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Trial(None, f"its import took longer than {_LIMIT} s")
    try:
        answer = json.loads(out.decode("utf-8", "replace").strip().splitlines()[-1])
        return Trial(
            answer["version"], one_line(answer["error"] or ""), bool(answer["missing"]), tuple(answer["providers"])
        )
    except (ValueError, LookupError, TypeError):  # the process ended before it could answer
        return Trial(None, one_line(f"its import ended the process with {_ending(process.returncode)} {_last(err)}"))


def _ending(code: int) -> str:
    if code >= 0:
        return f"code {code:#x}" if code > 255 else f"code {code}"
    names = {int(each): each.name for each in signal.Signals}
    return f"signal {names.get(-code, str(-code))}"


def _last(err: bytes) -> str:
    """Return the last lines that the process wrote to stderr, in parentheses."""
    lines: Sequence[str] = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    return f"({' '.join(lines[-2:])})" if lines else ""
