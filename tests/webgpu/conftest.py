"""Selects the machine for the tests of this folder: those marked ``webgpu`` need the provider's plugin and a device,
or are skipped; with ``DMLC_WEBGPU=required`` they fail.

A driver that computes on the CPU is a device here: ``.ci/system`` installs one. What is placed, dispatched and computed
is the provider's own on any device.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlc.diagnostics import DmlcError
from dmlc.runtime.hosts import WORKER

os.environ.setdefault("ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER", "1")
_TESTS = Path(__file__).parents[1]
sys.path[:0] = [
    str(_TESTS / "codegen" / "onnx"),
    str(_TESTS / "directml"),
]  # the calls of every operation, the examples


def missing_device() -> str:
    """The reason why nothing runs on WebGPU here; empty where it computes a sum.

    Raises ``RuntimeError`` if the device is there and fails: then nothing that is skipped would be a matter of course.
    """
    from dmlc.runtime.distributions import plugin_version
    from dmlc.runtime.webgpu import webgpu_device_facts

    if not plugin_version():
        return 'the plugin is missing: pip install "dmlc[webgpu]"'
    try:
        facts = webgpu_device_facts()
    except DmlcError as error:
        return error.diagnostics[0].message
    if not facts.runs:
        raise RuntimeError("the WebGPU provider has a device, and fails on x + x")
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("webgpu")]
    reason = missing_device() if marked else ""
    if reason and os.environ.get("DMLC_WEBGPU") == "required":
        raise RuntimeError(f"WebGPU: {reason}")
    for item in marked if reason else ():
        item.add_marker(pytest.mark.skip(reason=f"WebGPU: {reason}"))


@pytest.fixture(autouse=True, scope="module")
def own_worker() -> Iterator[None]:
    """The driver counts for the limit on memory of the process that has loaded it, so that no other test uses that."""
    yield
    WORKER.stop()
