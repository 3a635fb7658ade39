"""The libraries that dmlc loads, and the error of one that cannot be loaded."""

from __future__ import annotations

import importlib
import platform
import sys
from typing import Any

from dmlc.diagnostics.catalogue.runs import NO_BACKEND, NO_LIBRARY, NO_RUNTIME
from dmlc.diagnostics.diagnostic import DmlcError, fail

_RUNTIME = "onnxruntime"
_LONGEST_REASON = 300
#: The libraries, each with a name that every working build has: the folder that an uninstall leaves has none.
LIBRARIES = {
    "msgspec": "Struct",
    "numpy": "ndarray",
    "lark": "Lark",
    "onnx": "ModelProto",
    _RUNTIME: "get_available_providers",
}
#: Message and help for an execution provider that is missing.
_MISSING_PROVIDERS = {
    "DmlExecutionProvider": (
        "this ONNX Runtime has no DirectML execution provider",
        "on Windows, `dmlc doctor` shows how to install it; elsewhere use the CPU",
    ),
    "WebGpuExecutionProvider": (
        "this ONNX Runtime has no WebGPU execution provider",
        'pip install "dmlc[webgpu]"; it needs ONNX Runtime 1.24.4 or newer',
    ),
    "WebGPU device": (
        "the WebGPU execution provider finds no GPU",
        "install a Vulkan driver; for a driver that computes on the CPU set ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER=1",
    ),
}


def require(name: str) -> Any:
    """Import a library of ``LIBRARIES``. Raises ``DmlcError`` if it is missing or broken: E0560 for ONNX Runtime,
    E0561 for the others."""
    try:
        module = importlib.import_module(name)
        getattr(module, LIBRARIES[name])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a library's code may raise anything, Rust's panics and SystemExit included
        code, instead = (NO_RUNTIME, ", or run on --backend numpy") if name == _RUNTIME else (NO_LIBRARY, "")
        help = f"pip install --force-reinstall {package_to_install(name)}{instead}; dmlc doctor shows what is installed"
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == name
        why = "is not installed, or Python does not find it" if is_missing else f"cannot be loaded: {one_line(error)}"
        raise fail(code, f"{name} {why}", help=help) from error
    return module


def unusable_library() -> DmlcError | None:
    """Return the error of the first library that cannot be loaded, for an exception that none was expected to raise.

    ONNX Runtime is not among them: dmlc loads it by ``require`` alone.
    """
    for name in [name for name in LIBRARIES if name != _RUNTIME]:
        try:
            require(name)
        except DmlcError as error:
            return error
    return None


def package_to_install(name: str) -> str:
    """Return the name under which pip installs a library."""
    if name == _RUNTIME and sys.platform == "win32" and platform.machine().upper() == "AMD64":
        return "onnxruntime-directml"
    return name


def one_line(error: BaseException | str) -> str:
    """Return an error's text without line breaks, cut to a few hundred characters."""
    text = " ".join(str(error).split())
    if not isinstance(error, str) and not isinstance(error, ImportError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


def no_provider(name: str) -> DmlcError:
    """Return the error E0553 of an ONNX Runtime without an execution provider, or without a device for it."""
    message, help = _MISSING_PROVIDERS[name]
    return fail(NO_BACKEND, message, help=help)
