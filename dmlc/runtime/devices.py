"""The device behind a provider, in words."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.libraries import require
from dmlc.runtime.directml_device import directml_device
from dmlc.runtime.distributions import plugin_version
from dmlc.runtime.session import session_options


def device_name(backend: str) -> str:
    """The device and its driver. Raises ``DmlcError`` E0553, E0560."""
    session_options(backend)
    if backend == "webgpu":
        from dmlc.runtime.webgpu import webgpu_device_facts

        found = webgpu_device_facts()
        return f"{found.vendor or 'WebGPU'}{' (software)' * found.software}, plugin {plugin_version()}"
    if backend == "dml":
        device = directml_device(bundled=None)
        return ", ".join(filter(None, (device.adapter or "DirectML", device.version)))
    return f"{processor_name()}, {counted(os.cpu_count() or 1, 'thread')}"


def runtime_version() -> str:
    """The version of ONNX Runtime. Raises ``DmlcError`` E0560."""
    return str(require("onnxruntime").__version__)


def processor_name() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
