"""Load a model into the installed ONNX Runtime, in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

from onnx import ModelProto

from dmlc.verify.process import ProcessSession
from dmlc.verify.trace import NoEvidence, RunFailed


def why_not_loaded(model: ModelProto, folder: Path | None) -> str:
    """Return the reason why ONNX Runtime's CPU provider refuses the model; empty if it loads the model.

    It is empty too where nothing can be found out: without ONNX Runtime, and for a model too large to be handed over.
    """
    try:
        ProcessSession(model, None if folder is None else str(folder.absolute()), "cpu")
    except RunFailed as error:
        return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split()))
    except (NoEvidence, ValueError):
        pass
    return ""
