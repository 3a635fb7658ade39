"""Runs on ONNX Runtime's WebGPU provider as its log and its profile tell them: where each node ran, the copies between
CPU and GPU, and the programs that were dispatched."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from msgspec import Struct
from onnx import ModelProto

from dmlc.workers.sessions import session_settings

_COPY = re.compile(r"Add Memcpy(ToHost|FromHost) (?:before|after) (.*) for WebGpuExecutionProvider")
_PROGRAM = re.compile(r'Starting program "([^"]*)"')
_LINES, _ERRORS = 1, 3  # severities of ONNX Runtime's log: what the provider does, errors alone
_NODE_TIME = "_kernel_time"


class Log:
    """The text that the process writes to stderr meanwhile: ONNX Runtime's log goes there past ``sys.stderr``."""

    text = ""

    def __enter__(self) -> Log:
        self._file, self._old = tempfile.TemporaryFile(), os.dup(2)
        sys.stderr.flush()
        os.dup2(self._file.fileno(), 2)
        return self

    def __exit__(self, *_: object) -> None:
        os.dup2(self._old, 2)
        os.close(self._old)
        self._file.seek(0)
        self.text = self._file.read().decode(errors="replace")
        self._file.close()


class Node(Struct, frozen=True):
    """A node as it ran; ``on_gpu`` is false where the CPU's provider ran it."""

    name: str
    op: str
    on_gpu: bool


class DeviceRun(Struct, frozen=True):
    """A run. ``copies`` are (value, the side that it is copied to: gpu or cpu), ``programs`` the names of what was
    dispatched in the second run, which took ``seconds``: the first one also prepares weights."""

    nodes: list[Node]
    copies: list[tuple[str, str]]
    programs: list[str]
    outputs: dict[str, np.ndarray]
    seconds: float

    @property
    def on_cpu(self) -> list[Node]:
        return [node for node in self.nodes if not node.on_gpu]


def settings_of(options: Mapping[str, str], **given: Any) -> tuple[Any, list[tuple[str, dict[str, str]]]]:
    """The settings of a session that logs what the provider does, and its providers with their options."""
    onnxruntime.set_default_logger_severity(_LINES)
    settings, providers = session_settings(onnxruntime, {"backend": "webgpu", **given})
    settings.log_severity_level = _LINES
    return settings, [(name, dict(options) if name.startswith("WebGpu") else {}) for name in providers]


def run_on_device(
    model: ModelProto,
    feeds: Mapping[str, np.ndarray],
    folder: Path | None = None,
    *,
    options: Mapping[str, str] | None = None,
    level: str = "all",
    dims: Mapping[str, int] | None = None,
) -> DeviceRun:
    """Run a model twice. Raises what ONNX Runtime raises."""
    text = None if folder is None else str(folder.absolute())
    with tempfile.TemporaryDirectory(prefix="dmlc-") as place:
        with Log() as made:
            settings, providers = settings_of(options or {}, level=level, folder=text, dims=dims)
            settings.enable_profiling, settings.profile_file_prefix = True, f"{place}/p"
            session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=providers)
        names = [output.name for output in session.get_outputs()]
        taken = {i.name for i in [*session.get_inputs(), *session.get_overridable_initializers()]}
        fed = {name: array for name, array in feeds.items() if name in taken}
        with Log():
            outputs = session.run(names, fed)
        start = time.perf_counter()
        with Log() as log:
            session.run(names, fed)
        seconds = time.perf_counter() - start
        with Log():
            onnxruntime.set_default_logger_severity(_ERRORS)
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    copies = [(name, "cpu" if side == "ToHost" else "gpu") for side, name in _COPY.findall(made.text)]
    return DeviceRun(
        _nodes(events), copies, _PROGRAM.findall(log.text), dict(zip(names, outputs, strict=True)), seconds
    )


def _nodes(events: list[dict[str, Any]]) -> list[Node]:
    """The nodes of the second run, copies left out."""
    found = [e for e in events if e.get("cat") == "Node" and e["name"].endswith(_NODE_TIME)]
    return [
        Node(e["name"].removesuffix(_NODE_TIME), e["args"]["op_name"], e["args"]["provider"].startswith("WebGpu"))
        for e in found[len(found) // 2 :]
        if not e["args"]["op_name"].startswith("Memcpy")
    ]
