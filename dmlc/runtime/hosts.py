"""Processes that hold sessions of ONNX Runtime: this one, and one worker, which is started when it is first needed."""

from __future__ import annotations

import itertools
import threading
from functools import cached_property
from typing import Any

import numpy as np

from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.catalogue.runs import NO_RUNTIME
from dmlc.diagnostics.libraries import no_provider, require
from dmlc.runtime.runnable import NoEvidence, RunFailed
from dmlc.workers import SESSIONS, WorkerEnded
from dmlc.workers.sessions import COPIES, MEMORY, ProviderMissing, Requests

#: A run may take this many seconds; a trip count that was made up can make a loop endless.
TIME_LIMIT = 120.0
#: The failure of a run that takes more memory than it may.
_NO_MEMORY = f"ONNX Runtime ran out of memory: a run may take {MEMORY >> 30} GiB and {COPIES} times the model's weights"
#: Importing ONNX Runtime and running a model of one node may take this many.
START_LIMIT = 120.0
#: Numbers that name sessions.
KEYS = itertools.count(1)


class ThisProcess:
    """Sessions in this process: a kernel that ends its process ends this one."""

    generation = 1

    @cached_property
    def _requests(self) -> Requests:
        return Requests(require("onnxruntime"))

    def start(self) -> None:
        """Import ONNX Runtime. Raises ``DmlcError`` E0560 if it is missing or broken."""
        _ = self._requests

    def ask(self, what: str, *arguments: Any, memory: int | None = None) -> Any:
        """The answer. Raises ``RunFailed`` if it is an error, ``DmlcError`` E0553 if the provider is missing."""
        self.start()
        try:
            return getattr(self._requests, what)(*arguments)
        except ProviderMissing as missing:
            raise no_provider(str(missing)) from None
        except MemoryError:
            raise
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise RunFailed(str(error) or type(error).__name__) from None

    def forget(self, key: int) -> None:
        """Drop a session."""
        if "_requests" in self.__dict__:
            self._requests.sessions.pop(key, None)


class WorkerProcess:
    """The worker; a new one takes over if it ends. It is used only after ONNX Runtime has computed a sum in it: from
    then on, and not before, an end of the process is held against the model that it ran."""

    def __init__(self) -> None:
        self._worker = SESSIONS
        #: The seconds that a request may take.
        self.limit = TIME_LIMIT
        self._lock = threading.RLock()
        #: Sessions that nobody uses any more. They are sent with the next request: a finalizer may run at any moment.
        self._gone: list[int] = []
        #: The processes that have reported how importing ONNX Runtime went, and that have computed a sum.
        self._heard = self._proved = 0

    @property
    def generation(self) -> int:
        """Grows with each process, so that sessions know when theirs is gone."""
        return self._worker.generation

    def ask(self, what: str, *arguments: Any, memory: int | None = None) -> Any:
        """The answer. ``memory`` is the size in bytes of the model that is loaded: it raises the limit on memory.

        Raises ``RunFailed`` if it is an error, or if the process ended or took too long, ``NoEvidence`` as ``start``
        does, and ``DmlcError`` E0553 if the provider is missing.
        """
        with self._lock:
            self.start()
            gone, self._gone[:] = list(self._gone), []
            status, answer = self._exchange(self.limit, (gone, memory, what, *arguments))
        if status == "no provider":
            raise no_provider(answer)
        if status != "fine":
            raise RunFailed(_NO_MEMORY if what == "run" and "bad_alloc" in answer else answer)
        return answer

    def ask_unproved(self, limit: float, what: str, *arguments: Any) -> Any:
        """The answer of a process that need not have computed a sum, because its end is held against no model.

        Raises ``RunFailed`` for an error of the model, ``NoEvidence`` for all else, an end of the process among it."""
        try:
            with self._lock:
                self._hear()
                status, answer = self._worker.exchange(limit, ([], None, what, *arguments))
        except WorkerEnded as ended:
            why = f"took longer than {limit:g} s" if ended.late else f"ended its process: {ended}"
            raise NoEvidence(f"ONNX Runtime {why}") from None
        if status == "failed":
            raise RunFailed(answer)
        if status != "fine":
            raise NoEvidence(f"this ONNX Runtime has {status}")
        return answer

    def forget(self, key: int) -> None:
        """Drop a session with the next request."""
        self._gone.append(key)

    def start(self) -> None:
        """Make sure that the process runs. Raises ``NoEvidence`` if ONNX Runtime is missing or does not work."""
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
        """Start a process if none runs, and wait for its report. Raises as ``start`` does."""
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
        key, settings = next(KEYS), {"backend": "cpu", "level": "none", "threads": 1}
        try:
            status, answer = self._exchange(START_LIMIT, ([], 0, "load", key, _sum_model(), settings))
            if status == "fine":
                terms = np.array([1, 2], np.float32)
                self.forget(key)
                status, answer = self._exchange(START_LIMIT, ([], None, "run", key, ["y"], {"x": terms}))
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
        """Send a request and return the answer: a status, and a value or a text.

        Raises ``RunFailed`` if the process ends before that or takes longer than ``limit`` seconds.
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
    """The error if ONNX Runtime itself does not work, so that no model can be blamed."""
    repair = repair or "uninstall every onnxruntime distribution, then: pip install onnxruntime"
    help = f"{repair} (on Windows with a DirectX 12 GPU: onnxruntime-directml)"
    return NoEvidence(message, Diagnostic(NO_RUNTIME, message, help=help))


def _sum_model() -> bytes:
    """x + x, in the oldest form that every ONNX Runtime of the last years reads."""
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=4)
    return bytes(made.SerializeToString())


HERE, WORKER = ThisProcess(), WorkerProcess()
