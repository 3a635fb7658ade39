"""Say what is installed: versions, execution providers, and what is missing and how to get it."""

from __future__ import annotations

import argparse
import importlib
import platform
import sys

from dmlc import __version__
from dmlc.cli.console import Console, table
from dmlc.cli.options import add_report_options

_LIBRARIES = {
    "numpy": "the base of everything",
    "lark": "reads .dml programs",
    "onnx": "writes ONNX models",
    "networkx": "draws graphs",
    "onnxruntime": "runs models",
}
_DML = "DmlExecutionProvider"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    versions: dict[str, str | None] = {name: _version(name) for name in _LIBRARIES}
    providers = _providers() if versions["onnxruntime"] else []
    missing = [name for name, version in versions.items() if version is None]
    advice = [f"{name} is missing ({_LIBRARIES[name]}): pip install {_package(name)}" for name in missing]
    if versions["onnxruntime"] and _DML not in providers:
        advice.append(_directml_advice())
    rows = [["python", platform.python_version()], ["dmlc", __version__], ["system", platform.platform()]]
    rows += [[name, version or "missing"] for name, version in versions.items()]
    rows.append(["providers", ", ".join(providers) or "none"])
    rows.append(["dmlc run", f"on {'dml' if _DML in providers else 'cpu' if providers else 'numpy'} by default"])
    console.result(table(rows) + "".join(f"\n{sentence}\n" for sentence in advice))
    console.document(
        {
            "python": platform.python_version(),
            "dmlc": __version__,
            "system": platform.platform(),
            "libraries": versions,
            "providers": providers,
            "missing": missing,
            "advice": advice,
        },
        ok=not missing,
    )
    return 1 if missing else 0


def _version(name: str) -> str | None:
    try:
        return str(importlib.import_module(name).__version__)
    except ImportError:
        return None


def _package(name: str) -> str:
    return "onnxruntime-directml" if name == "onnxruntime" and sys.platform == "win32" else name


def _providers() -> list[str]:
    import onnxruntime

    return list(onnxruntime.get_available_providers())


def _directml_advice() -> str:
    if sys.platform == "win32":
        return (
            "DirectML is missing: this is the plain onnxruntime.\n"
            "  pip uninstall onnxruntime && pip install onnxruntime-directml"
        )
    return "DirectML is missing: it exists on Windows only. Models for it are checked here on ONNX Runtime's CPU."
