"""Sessions of ONNX Runtime in a process of their own, which is started when it is first needed and kept."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

from onnx import ModelProto

from dmlc.verify.trace import NotVerifiable, RunFailed

#: A run may take this many seconds; a trip count that was made up can make a loop endless.
TIME_LIMIT = 120.0
#: How often that is looked at.
_WATCH = 0.5


class Process:
    """One process; a new one takes over where it ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()
        #: Sessions that nobody uses any more. They are told with the next request: a finalizer may run at any moment.
        self.gone: list[int] = []
        #: When the request was made that is not answered yet.
        self._since: float | None = None
        #: Grows with each process, so that sessions know when theirs is gone.
        self.generation = 0

    def ask(self, *request: Any) -> Any:
        """The answer. Raises ``RunFailed`` where it is an error, or where the process ended or took too long."""
        with self._lock:
            process = self.start()
            assert process.stdin is not None and process.stdout is not None
            gone, self.gone[:] = list(self.gone), []
            self._since = time.monotonic()
            try:
                pickle.dump((gone, *request), process.stdin, protocol=5)
                process.stdin.flush()
                status, answer = pickle.load(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                late = time.monotonic() - self._since >= TIME_LIMIT
                self.stop()
                what = f"took longer than {TIME_LIMIT:g} s" if late else "ended its process"
                raise RunFailed(f"ONNX Runtime {what}", ended=True) from None
            except BaseException:  # interrupted: what comes next would be the answer to this
                self.stop()
                raise
            finally:
                self._since = None
        if status == "failed":
            raise RunFailed(answer)
        return answer

    def start(self) -> subprocess.Popen[bytes]:
        """The process, running. Raises ``NotVerifiable`` where none can be started."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.stop()
                path = os.pathsep.join(filter(None, sys.path))
                try:
                    self._process = subprocess.Popen(
                        [sys.executable, "-m", "dmlc.verify.worker"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        env={**os.environ, "PYTHONPATH": path},
                    )
                except OSError as error:
                    raise NotVerifiable(f"no process for ONNX Runtime can be started: {error}") from None
                self.generation += 1
                threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()
            return self._process

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the process when it works on one request for too long."""
        while process is self._process and process.poll() is None:
            since = self._since
            if since is not None and time.monotonic() - since >= TIME_LIMIT:
                process.kill()
                return
            time.sleep(_WATCH)

    def stop(self) -> None:
        """End the process, if one runs."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        _close(stream)


def _close(stream: Any) -> None:
    with contextlib.suppress(OSError):  # what was buffered has no reader any more
        stream.close()


_PROCESS = Process()
_KEYS = itertools.count()
atexit.register(_PROCESS.stop)


class Session:
    """A model, loaded again where the process ended. Raises ``RunFailed`` where ONNX Runtime refuses it."""

    def __init__(self, model: ModelProto, folder: str | None) -> None:
        self._model, self._folder = model, folder
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
        types: dict[str, str] = _PROCESS.ask("load", self._key, self._model.SerializeToString(), self._folder)
        return types
