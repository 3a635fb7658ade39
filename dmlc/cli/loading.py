"""The start of ONNX Runtime's process, before a command needs it."""

from __future__ import annotations

from dmlc.targets import load_target, target_names
from dmlc.workers import SESSIONS


def begin_loading(kind: str, target: str) -> None:
    """Start ONNX Runtime's process, which takes as long as parsing, where a command will have it load a model."""
    if kind == "onnx" and target in target_names() and load_target(target).code != "numpy":
        SESSIONS.begin()
