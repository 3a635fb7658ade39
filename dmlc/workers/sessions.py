"""The process that ONNX Runtime runs in, so that a kernel that ends its process does not end ours.

It loads nothing else of this package: half of the time that a process takes to start.

Requests and answers are pickles on stdin and stdout: ``(keys of sessions to forget, what, ...)``, and
``("fine", answer)``, ``("failed", text)``, ``("no provider", name)`` or ``("no load phase", text)``. Before the first
request the process reports how importing ONNX Runtime went: ``("fine", version)``, ``("missing", text)`` or
``("failed", text)``.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, BinaryIO

#: Key of the folder with the external data of a model given as bytes (onnxruntime_session_options_config_keys.h).
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
_DML = "DmlExecutionProvider"


class ProviderMissing(Exception):
    """An execution provider that this ONNX Runtime lacks; it would take the CPU's without a word."""


class LoadPhaseMissing(Exception):
    """The class behind ``onnxruntime.InferenceSession``, which does not initialize what it loads, is not there."""


class Requests:
    """The answers to requests; ``sessions`` are kept by the keys that the other side gave them."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.sessions: dict[int, Any] = {}

    def load(self, key: int, model: bytes, folder: str | None, backend: str = "") -> dict[str, str]:
        """Make a session; the ONNX Runtime types of its outputs.

        By default it is the CPU provider without optimizations; the backends ``cpu`` and ``dml`` have them.
        """
        options = self._library.SessionOptions()
        if not backend:
            options.graph_optimization_level = self._library.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        if backend == "dml":
            if _DML not in self._library.get_available_providers():
                raise ProviderMissing(_DML)
            options.enable_mem_pattern = False
        options.log_severity_level = 4
        if folder is not None:
            options.add_session_config_entry(_WEIGHTS_FOLDER, folder)
        providers = [*([_DML] if backend == "dml" else []), "CPUExecutionProvider"]
        session = self.sessions[key] = self._library.InferenceSession(model, options, providers=providers)
        return {value.name: value.type for value in session.get_outputs()}

    def run(self, key: int, names: list[str], feeds: dict[str, Any]) -> list[Any]:
        return list(self.sessions[key].run(names, feeds))

    def parse(self, model: bytes) -> None:
        """Run the load phase alone: nodes are checked and types inferred; no weights are read, no kernels made."""
        try:
            from onnxruntime.capi._pybind_state import InferenceSession
        except ImportError as error:
            raise LoadPhaseMissing(str(error)) from None
        options = self._library.SessionOptions()
        options.log_severity_level = 4
        InferenceSession(options, model, False, False)

    def construct(self, models: list[bytes]) -> list[str]:
        """Make the kernels of each model: the reason why one is refused, or nothing."""
        texts = []
        for model in models:
            try:
                self.load(0, model, None)
                texts.append("")
            except Exception as error:  # onnxruntime's exceptions have no common base class
                texts.append(str(error) or type(error).__name__)
        self.sessions.pop(0, None)
        return texts


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
    answering = Requests(onnxruntime)
    while True:
        try:
            gone, what, *arguments = pickle.load(requests)
        except EOFError:
            return
        for key in gone:
            answering.sessions.pop(key, None)
        try:
            send("fine", getattr(answering, what)(*arguments))
        except ProviderMissing as error:
            send("no provider", str(error))
        except LoadPhaseMissing as error:
            send("no load phase", str(error))
        except Exception as error:  # onnxruntime's exceptions have no common base class
            send("failed", str(error) or type(error).__name__)


def main() -> None:
    """Serve on stdin and stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of kernels must not come between the answers
    serve(sys.stdin.buffer, answers)
