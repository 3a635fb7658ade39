"""Say what is installed: versions, execution providers, and what is missing and how to get it."""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from dmlc import __version__
from dmlc.cli.console import Console, table
from dmlc.cli.options import add_report_options
from dmlc.runtime.directml_device import DirectMLDevice, directml_device

_LIBRARIES = {
    "numpy": "the base of everything",
    "lark": "makes the tables of the parser",
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
    kernels, problem = _cpu_kernels()
    if problem:
        advice.append(f"Target cpu is made for the kernels in the data file: {problem}.")
    rows.append(["target cpu", kernels])
    rows.append(["providers", ", ".join(providers) or "none"])
    device = _device() if sys.platform == "win32" else None
    if device is not None:
        rows += _device_rows(device)
        advice += device.problems
    rows.append(["dmlc run", f"on {'dml' if _DML in providers else 'cpu' if providers else 'numpy'} by default"])
    console.result(table(rows) + "".join(f"\n{sentence}\n" for sentence in advice))
    console.document(
        {
            "python": platform.python_version(),
            "dmlc": __version__,
            "system": platform.platform(),
            "libraries": versions,
            "cpu_kernels": kernels,
            "providers": providers,
            "directml": None if device is None else asdict(device),
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


def _cpu_kernels() -> tuple[str, str]:
    """Where target ``cpu`` reads its kernels from, and why it is not the installed library."""
    from dmlc.runtime.installed_kernels import installed
    from dmlc.targets import kernel_table, load_target

    try:
        found = installed()
    except ImportError as error:  # numpy, without which there are no tables at all
        return "none", str(error)
    table = found.table or kernel_table(load_target("cpu"))
    return ("none" if table is None else table.source), found.problem


def _device() -> DirectMLDevice:
    """What there is of DirectML, of the library beside ONNX Runtime if it came with one."""
    from importlib.util import find_spec

    spec = find_spec("onnxruntime")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return directml_device(bundled=Path(folders[0]) / "capi" / "DirectML.dll" if folders else None)


def _device_rows(device: DirectMLDevice) -> list[list[str]]:
    origin = {True: "bundled with onnxruntime", False: "of the system", None: "missing"}[device.bundled]
    library = ", ".join(filter(None, [device.version, origin, device.path]))
    level = device.feature_level or "not found out"
    return [["DirectML", library], ["adapter", device.adapter or "not found out"], ["feature level", level]]


def _directml_advice() -> str:
    if sys.platform == "win32":
        return (
            "DirectML is missing: this is the plain onnxruntime.\n"
            "  pip uninstall onnxruntime && pip install onnxruntime-directml"
        )
    return "DirectML is missing: it exists on Windows only. Models for it are checked here on ONNX Runtime's CPU."
