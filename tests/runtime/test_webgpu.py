"""The WebGPU provider where its plugin or its device is missing: what is said, and that nothing runs on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dmlc.diagnostics import DmlcError
from dmlc.runtime import session
from dmlc.workers import sessions
from tests.command_line import Run

PROGRAM = "model m(x: f32[3]) -> (y) { y = x + x\n return y }\n"


class Library:
    """An ONNX Runtime whose plugin, once registered, has these devices."""

    def __init__(self, *kinds: str) -> None:
        self.registered: list[str] = []
        self._kinds = kinds

    def get_ep_devices(self) -> list[Any]:
        return [
            SimpleNamespace(ep_name="WebGpuExecutionProvider", device=SimpleNamespace(type=SimpleNamespace(name=kind)))
            for kind in (self._kinds if self.registered else ())
        ]

    def register_execution_provider_library(self, name: str, path: str) -> None:
        self.registered.append(path)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin is installed, and this process has not registered it."""
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_webgpu", SimpleNamespace(get_library_path=lambda: "plugin.so"))
    monkeypatch.setattr(sessions, "_registered", set())


@pytest.mark.usefixtures("plugin")
def test_the_plugin_is_registered_once_and_a_gpu_goes_first() -> None:
    library = Library("CPU", "GPU")
    for _ in range(2):
        assert sessions.webgpu_device(library).device.type.name == "GPU"
    assert library.registered == ["plugin.so"]
    assert [sessions.is_software(device) for device in library.get_ep_devices()] == [True, False]


@pytest.mark.usefixtures("plugin")
def test_a_plugin_without_a_device_is_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(session, "onnxruntime", lambda: library)
    with pytest.raises(DmlcError, match="finds no GPU"):
        session.session_options("webgpu")
    for _ in range(2):
        with pytest.raises(sessions.ProviderMissing, match="WebGPU device"):
            sessions.webgpu_device(library)
    assert library.registered == ["plugin.so"]


def test_a_missing_plugin_is_named(monkeypatch: pytest.MonkeyPatch, command_line: Run, tmp_path: Path) -> None:
    """ONNX Runtime lists the provider without the plugin, and would run the model on the CPU."""
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_webgpu", None)
    monkeypatch.setattr(sessions, "_registered", set())
    monkeypatch.setattr("onnxruntime.get_ep_devices", list)  # another test may have registered it
    path = tmp_path / "m.dml"
    path.write_text(PROGRAM)
    code, out, err = command_line("run", path, "--random", "0", "--backend", "webgpu")
    assert (code, out) == (1, "")
    assert "error[E0553]: this ONNX Runtime has no WebGPU execution provider" in err
    assert 'help: pip install "dmlc[webgpu]"' in err
