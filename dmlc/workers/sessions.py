"""The process that ONNX Runtime runs in, so that a kernel that ends its process does not end ours.

It loads nothing else of this package: half of the time that a process takes to start.

Requests and answers are pickles on stdin and stdout: ``(keys of sessions to forget, what, ...)``, and
``("fine", answer)``, ``("failed", text)`` or ``("no provider", name)``. Before the first request the process reports
how importing ONNX Runtime went: ``("fine", version)``, ``("missing", text)`` or ``("failed", text)``.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

#: Key of the folder with the external data of a model given as bytes (onnxruntime_session_options_config_keys.h).
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
_DML = "DmlExecutionProvider"


class ProviderMissing(Exception):
    """An execution provider that this ONNX Runtime lacks; it would take the CPU's without a word."""


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the other side closes, or until it is reported that ONNX Runtime cannot be imported."""

    def send(status: str, answer: Any) -> None:
        answers.write(pickle.dumps((status, answer), protocol=5))  # all of it, or an exception and nothing
        answers.flush()

    try:
        import onnxruntime
    except (Exception, SystemExit) as error:  # a broken package raises anything
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == "onnxruntime"
        send("missing" if is_missing else "failed", f"{type(error).__name__}: {error}")
        return
    send("fine", str(getattr(onnxruntime, "__version__", "")))
    sessions: dict[int, Any] = {}

    def load(key: int, model: bytes, folder: str | None, backend: str = "") -> dict[str, str]:
        """Make a session; the ONNX Runtime types of its outputs.

        By default it is the CPU provider without optimizations; the backends ``cpu`` and ``dml`` have them.
        """
        options = onnxruntime.SessionOptions()
        if not backend:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        if backend == "dml":
            if _DML not in onnxruntime.get_available_providers():
                raise ProviderMissing(_DML)
            options.enable_mem_pattern = False
        options.log_severity_level = 4
        if folder is not None:
            options.add_session_config_entry(_WEIGHTS_FOLDER, folder)
        providers = [*([_DML] if backend == "dml" else []), "CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(model, options, providers=providers)
        sessions[key] = session
        return {value.name: value.type for value in session.get_outputs()}

    def run(key: int, names: list[str], feeds: dict[str, Any]) -> list[Any]:
        return list(sessions[key].run(names, feeds))

    verbs: dict[str, Callable[..., Any]] = {"load": load, "run": run}
    while True:
        try:
            gone, what, *arguments = pickle.load(requests)
        except EOFError:
            return
        for key in gone:
            sessions.pop(key, None)
        try:
            send("fine", verbs[what](*arguments))
        except ProviderMissing as error:
            send("no provider", str(error))
        except Exception as error:  # onnxruntime's exceptions have no common base class
            send("failed", str(error) or type(error).__name__)


def main() -> None:
    """Serve on stdin and stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of kernels must not come between the answers
    serve(sys.stdin.buffer, answers)
