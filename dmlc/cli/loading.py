"""Load a model into the installed ONNX Runtime, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dmlc.targets import load_target, target_names
from dmlc.workers import SESSIONS

if TYPE_CHECKING:
    from onnx import ModelProto


def begin_loading(kind: str, target: str) -> None:
    """Start ONNX Runtime's process, which takes as long as parsing, where a command will have it load a model."""
    if kind == "onnx" and target in target_names() and load_target(target).code != "numpy":
        SESSIONS.begin()


def why_not_loaded(model: ModelProto, folder: Path | None) -> str:
    """Return the reason why ONNX Runtime's CPU provider refuses the model; empty if it loads the model.

    It is empty too where nothing can be found out: without ONNX Runtime, and for a model too large to be handed over.
    """
    from dmlc.runtime.ort_model import OrtModel, plain_message
    from dmlc.runtime.runnable import NoEvidence, RunFailed

    try:
        OrtModel(model, folder, threads=1, isolated=True)
    except RunFailed as error:
        return plain_message(error)
    except (NoEvidence, ValueError):
        pass
    return ""


def kernel_help(why: str) -> str:
    """The way out for a model without a kernel; another one where that is not the reason."""
    if "implementation for" in why or "find kernel" in why:
        return "cast the operands of that node to a dtype that has a kernel, or write the node in other operators"
    return "dmlc verify SRC reports whether the model fails as it is"
