"""The machine of a run."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from dmlc.runtime.devices import processor_name

_LIBRARIES = ("dmlc", "onnxruntime", "onnx", "numpy", "lark", "onnxsim", "onnxslim", "jax", "torch", "numba")


def machine() -> dict[str, str]:
    """The processor, the system and the versions of what took part, with the load when the run began."""
    out = {
        "date": datetime.now(UTC).date().isoformat(),
        "system": platform.platform(),
        "processor": processor_name(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "python": platform.python_version(),
        "loop": f"{_loop() * 1e3:.0f} ms",
    }
    for name in _LIBRARIES:
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    return out


def _loop() -> float:
    """The least seconds of a fixed loop in Python: how fast the machine was, for the bars that are in seconds."""
    best = float("inf")
    for _ in range(5):
        table: dict[int, tuple[int, str]] = {}
        start = time.perf_counter()
        for n in range(200_000):
            table[n % 1000] = (n, str(n))
        best = min(best, time.perf_counter() - start)
    return best
