"""Sessions of ONNX Runtime in a process of their own, which is started when it is first needed and kept."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.catalogue.runs import NO_RUNTIME
from dmlc.diagnostics.libraries import no_directml
from dmlc.verify.trace import NoEvidence, RunFailed
from dmlc.workers import SESSIONS, WorkerEnded

#: A run may take this many seconds; a trip count that was made up can make a loop endless.
TIME_LIMIT = 120.0
#: Importing ONNX Runtime and running a model of one node may take this many.
START_LIMIT = 120.0


class Process:
    """One process; a new one takes over where it ends. A process is used only after ONNX Runtime has computed a sum in
    it: from then on, and not before, an end of the process is held against the model that it ran."""

    def __init__(self) -> None:
        self._worker = SESSIONS
        self._lock = threading.RLock()
        #: Sessions that nobody uses any more. They are sent with the next request: a finalizer may run at any moment.
        self.gone: list[int] = []
        #: The processes that have reported how importing ONNX Runtime went, and that have computed a sum.
        self._heard = self._proved = 0

    @property
    def generation(self) -> int:
        """Grows with each process, so that sessions know when theirs is gone."""
        return self._worker.generation

    def ask(self, *request: Any) -> Any:
        """The answer. Raises ``RunFailed`` where it is an error, or where the process ended or took too long,
        ``NoEvidence`` as ``start`` does, and ``DmlcError`` E0553 where the provider is missing."""
        with self._lock:
            self.start()
            gone, self.gone[:] = list(self.gone), []
            status, answer = self._exchange(TIME_LIMIT, (gone, *request))
        if status == "no provider":
            raise no_directml()
        if status != "fine":
            raise RunFailed(answer)
        return answer

    def ask_unproved(self, limit: float, *request: Any) -> Any:
        """The answer of a process that need not have computed a sum, because its end is held against no model.

        Raises ``RunFailed`` for an error of the model, ``NoEvidence`` for all else, an end of the process among it."""
        try:
            with self._lock:
                self._hear()
                status, answer = self._exchange(limit, ([], *request))
        except RunFailed as error:
            raise NoEvidence(str(error)) from None
        if status == "failed":
            raise RunFailed(answer)
        if status != "fine":
            raise NoEvidence(f"this ONNX Runtime has {status}")
        return answer

    def start(self) -> None:
        """Make sure that the process runs. Raises ``NoEvidence`` where ONNX Runtime is missing or does not work."""
        with self._lock:
            self._hear()
            if self._proved != self.generation:
                try:
                    self._prove()
                except NoEvidence:
                    self.stop()
                    raise
                self._proved = self.generation

    def _hear(self) -> None:
        """Start a process where none runs, and wait for its report. Raises as ``start`` does."""
        if not self._worker.is_running:
            self.stop()
            try:
                self._worker.spawn()
            except OSError as error:
                raise NoEvidence(f"no process for ONNX Runtime can be started: {error}") from None
        if self._heard == self.generation:
            return
        try:
            status, answer = self._exchange(START_LIMIT)
        except RunFailed as error:
            raise self._ended_early(error) from None
        if status != "fine":
            self.stop()
            if status == "missing":
                raise _no_runtime("ONNX Runtime is not installed", "pip install onnxruntime")
            raise _no_runtime(f"ONNX Runtime cannot be imported: {answer}")
        self._heard = self.generation

    def _prove(self) -> None:
        """Raise ``NoEvidence`` unless ONNX Runtime computes a sum in the process."""
        key = next(_KEYS)
        try:
            status, answer = self._exchange(START_LIMIT, ([], "load", key, _sum_model(), None))
            if status == "fine":
                terms = np.array([1, 2], np.float32)
                self.gone.append(key)
                status, answer = self._exchange(START_LIMIT, ([], "run", key, ["y"], {"x": terms}))
        except RunFailed as error:
            raise self._ended_early(error) from None
        if status != "fine":
            raise _no_runtime(f"ONNX Runtime fails on a model of one addition: {answer}")
        if not np.array_equal(answer, [np.array([2, 4], np.float32)]):
            raise _no_runtime(f"ONNX Runtime gives {answer} for a model of one addition")

    def _ended_early(self, error: RunFailed) -> NoEvidence:
        code = self._worker.exit_code
        ended = "" if code is None or error.late else f" with code {code}"
        return _no_runtime(f"{error}{ended} before it had run any model")

    def _exchange(self, limit: float, request: tuple[Any, ...] | None = None) -> tuple[str, Any]:
        """Send a request and return what the process answers: a status, and a value or a text.

        Raises ``RunFailed`` where the process ends before that or takes longer than ``limit`` seconds.
        """
        try:
            status, answer = self._worker.exchange(limit, request)
        except WorkerEnded as ended:
            what = f"took longer than {limit:g} s" if ended.late else "ended its process"
            raise RunFailed(f"ONNX Runtime {what}", ended=True, late=ended.late) from None
        return str(status), answer

    def stop(self) -> None:
        """End the process, if one runs."""
        self._worker.stop()


def _no_runtime(message: str, repair: str = "") -> NoEvidence:
    """Raised where ONNX Runtime itself does not work, so that no model can be blamed."""
    repair = repair or "uninstall every onnxruntime distribution, then: pip install onnxruntime"
    help = f"{repair} (on Windows with a DirectX 12 GPU: onnxruntime-directml)"
    return NoEvidence(message, Diagnostic(NO_RUNTIME, message, help=help))


def _sum_model() -> bytes:
    """x + x, in the oldest form that every ONNX Runtime of the last years reads."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=4)
    return bytes(made.SerializeToString())


_PROCESS = Process()
_KEYS = itertools.count(1)


ask_unproved = _PROCESS.ask_unproved


class ProcessSession:
    """A model, loaded again where the process ended. Raises ``RunFailed`` where ONNX Runtime refuses it, and here and
    in ``run`` ``NoEvidence`` where ONNX Runtime does not work at all."""

    def __init__(self, model: ModelProto, folder: str | None, backend: str = "") -> None:
        self._model, self._folder, self._backend = model, folder, backend
        self._key = next(_KEYS)
        self._generation = 0
        self.types: dict[str, str] = self._load()
        weakref.finalize(self, _PROCESS.gone.append, self._key).atexit = False

    def run(self, names: list[str], feeds: dict[str, Any]) -> list[Any]:
        """The values by these names. Raises ``RunFailed``."""
        _PROCESS.start()
        if self._generation != _PROCESS.generation:
            self._load()
        found: list[Any] = _PROCESS.ask("run", self._key, names, feeds)
        return found

    def _load(self) -> dict[str, str]:
        _PROCESS.start()
        self._generation = _PROCESS.generation
        types: dict[str, str] = _PROCESS.ask(
            "load", self._key, self._model.SerializeToString(), self._folder, self._backend
        )
        return types
