"""The libraries that dmlc loads: their import, and errors that name what to install.

An error belongs to a library if it was raised while that library was imported, or if the library lacks a name that
dmlc uses. ``library_error`` decides that from the traceback, so that modules keep their plain import statements.
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

from dmlc.diagnostics.catalogue.runs import NO_BACKEND, NO_LIBRARY, NO_RUNTIME
from dmlc.diagnostics.code import Code
from dmlc.diagnostics.diagnostic import DmlcError, fail

_RUNTIME = "onnxruntime"
#: Names of distributions on PyPI that differ from the module's.
_DISTRIBUTIONS = {"google": "protobuf"}
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Library:
    """A library that dmlc needs: its purpose, and names that every working build has."""

    purpose: str
    names: tuple[str, ...]


LIBRARIES = {
    "msgspec": Library("holds the compiler's records", ("Struct",)),
    "numpy": Library("holds all arrays", ("ndarray",)),
    "lark": Library("parses programs", ("Lark",)),
    "onnx": Library("reads and writes ONNX models", ("ModelProto",)),
    "networkx": Library("cuts models in two", ("DiGraph",)),
    _RUNTIME: Library("runs models", ("InferenceSession", "SessionOptions", "get_available_providers")),
}


def load(name: str) -> Any:
    """Import a library of ``LIBRARIES``. Raises ``DmlcError`` if it is missing or broken: E0560 for ONNX Runtime,
    E0561 for the others."""
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a library's code may raise anything, Rust's panics and SystemExit included
        raise _import_error(error, name) from error
    lacking = [each for each in LIBRARIES[name].names if not hasattr(module, each)]
    if lacking:
        raise _broken(name, f"{_description(module)} has no {lacking[0]}")
    return module


def library_error(error: BaseException) -> DmlcError | None:
    """Return the error that names the library to install, or None if no library caused ``error``."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        name = _root(error.obj.__name__)
        return _broken(name, str(error)) if name in LIBRARIES else None
    if not _raised_by_an_import(error):
        return None
    missing = _import_name(error)
    if missing and _root(missing) == "dmlc":
        return None
    imported = _library_being_imported(error)
    return _import_error(error, imported) if missing or imported else _first_unusable()


def package_to_install(name: str) -> str:
    """Return the name under which pip installs a module."""
    if name == _RUNTIME and sys.platform == "win32" and platform.machine().upper() == "AMD64":
        return "onnxruntime-directml"
    return _DISTRIBUTIONS.get(name, name)


def one_line(error: BaseException | str) -> str:
    """Return an error's text without line breaks, cut to a few hundred characters."""
    text = " ".join(str(error).split())
    if not isinstance(error, str) and not isinstance(error, ImportError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


def _import_error(error: BaseException, imported: str | None) -> DmlcError:
    """Build the error for an import that raised ``error``; ``imported`` is the library that was imported, if known."""
    name = _import_name(error) or imported or ""
    if isinstance(error, ModuleNotFoundError) and name in (_root(name), "google.protobuf"):
        return _missing(_root(name), imported or _root(name))
    return _broken(imported or _root(name), one_line(error))


def _import_name(error: BaseException) -> str:
    """Return the module that an ``ImportError`` is about, or "" if it does not say or is another exception."""
    return error.name or "" if isinstance(error, ImportError) else ""


def _missing(name: str, needed_by: str) -> DmlcError:
    """Build the error for a module that is not installed; ``needed_by`` is ``name`` or a library that imports it."""
    reason = f"{needed_by} needs it" if needed_by != name else ""
    if not reason and name in LIBRARIES:
        reason = f"it {LIBRARIES[name].purpose}"
    help = f"pip install {package_to_install(name)}"
    if name in sys.stdlib_module_names:
        reason, help = "it belongs to Python's standard library", "install a complete Python"
    message = f"{name} is not installed" + (f": {reason}" if reason else "")
    return fail(_code(needed_by), message, help=help + _alternative(needed_by))


def _broken(name: str, reason: str) -> DmlcError:
    packages = _installed_packages(name) or [package_to_install(name)]
    again = f"pip install --force-reinstall {packages[0]}"
    if len(packages) > 1:  # builds of ONNX Runtime that overwrote each other
        again = f"keep one of {', '.join(packages)}: pip uninstall -y {' '.join(packages)} && pip install {packages[0]}"
    help = f"{again}{_alternative(name)}; dmlc doctor shows what is installed"
    return fail(_code(name), f"{name} is installed, but cannot be used: {reason}", help=help)


def _installed_packages(name: str) -> list[str]:
    """Return the distributions that have files of a module."""
    from importlib.metadata import packages_distributions

    try:
        return sorted(set(packages_distributions().get(name, ())))
    except Exception:  # one damaged distribution of any library is enough
        return []


def _code(name: str) -> Code:
    return NO_RUNTIME if name == _RUNTIME else NO_LIBRARY


def _alternative(name: str) -> str:
    return ", or run on --backend numpy" if name == _RUNTIME else ""


def _description(module: ModuleType) -> str:
    """Name a module with its location; a folder without ``__init__.py`` is what an uninstalled package leaves."""
    path = getattr(module, "__file__", None)
    if path is not None:
        return f"the module {path}"
    folders = list(getattr(module, "__path__", []))
    return f"the folder {folders[0]}" if folders else "the module"


def _first_unusable() -> DmlcError | None:
    """Return the error of the first library that cannot be loaded."""
    for name in LIBRARIES:
        try:
            load(name)
        except DmlcError as error:
            return error
    return None


# --- tracebacks


def _root(name: str) -> str:
    return name.partition(".")[0]


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _raised_by_an_import(error: BaseException) -> bool:
    """Return True for an ``ImportError``, or if the last frame of dmlc's own code was importing something."""
    if isinstance(error, ImportError):
        return True
    after: list[FrameType] = []
    for frame in _frames(error):
        after = [] if _root(_module_of(frame)) == "dmlc" else [*after, frame]
    importing = after and _root(_module_of(after[0])) in ("importlib", "_frozen_importlib")
    return bool(importing) or any(frame.f_code.co_name == "<module>" for frame in after[:1])


def _library_being_imported(error: BaseException) -> str | None:
    """Return the first library whose module body is in the traceback."""
    for frame in _frames(error):
        if frame.f_code.co_name == "<module>" and _root(_module_of(frame)) in LIBRARIES:
            return _root(_module_of(frame))
    return None


def no_directml() -> DmlcError:
    """Return the error E0553 of an ONNX Runtime without the DirectML execution provider."""
    help = "on Windows, `dmlc doctor` shows how to install it; elsewhere use the CPU"
    return fail(NO_BACKEND, "this ONNX Runtime has no DirectML execution provider", help=help)
