"""Checks that this machine can run on DirectML."""

from __future__ import annotations

import sys


def missing_provider() -> str:
    """The reason why a machine cannot run on DirectML; empty where it can."""
    try:
        import onnxruntime
    except ImportError:
        return "onnxruntime is missing: pip install onnxruntime-directml"
    if "DmlExecutionProvider" in onnxruntime.get_available_providers():
        return ""
    if sys.platform != "win32":
        return "needs the DirectML execution provider, which exists on Windows only"
    return "needs the DirectML execution provider: pip uninstall onnxruntime && pip install onnxruntime-directml"
