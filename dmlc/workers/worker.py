"""One child process that answers requests: pickles over its stdin and stdout, with a limit on the time of each."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

#: Seconds between two looks at the time of a request.
_WATCH = 0.5


class WorkerEnded(Exception):
    """The process ended before it answered; ``late`` if it was killed because it took too long."""

    def __init__(self, *, late: bool) -> None:
        super().__init__("took too long" if late else "ended its process")
        self.late = late


class Worker:
    """A process that runs ``main`` of a module of this package; it is started by ``spawn`` and ended by ``stop``."""

    def __init__(self, module: str) -> None:
        # the working folder goes from the path: it may hold models beside modules with the names of those needed
        self._code = f"import sys; sys.path[:1] == [''] and sys.path.pop(0); from {module} import main; main()"
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        #: Exit code of the last process.
        self.exit_code: int | None = None
        #: Grows with each process that is started.
        self.generation = 0
        #: Time from which the request that is not answered yet is late.
        self._late: float | None = None

    @property
    def is_running(self) -> bool:
        """False in a fork of the process that started it too, where ``poll`` finds no child of that number."""
        return self._process is not None and self._process.poll() is None

    def begin(self) -> None:
        """Start a process ahead of its first request, if none runs. Who asks first finds out that none can be."""
        with self._lock, contextlib.suppress(OSError):
            if not self.is_running:
                self.stop()
                self.spawn()

    def spawn(self) -> None:
        """Start a new process that finds modules where this one does. Raises ``OSError`` where none can be started."""
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        self.generation += 1
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def exchange(self, limit: float, request: Any = None) -> Any:
        """Send a request, if there is one, and return what the process answers.

        Raises ``WorkerEnded`` where the process ends before that or takes longer than ``limit`` seconds.
        """
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        late = self._late = time.monotonic() + limit
        try:
            if request is not None:
                pickle.dump(request, process.stdin, protocol=5)
                process.stdin.flush()
            return pickle.load(process.stdout)
        except Exception:  # a cut answer raises nearly anything
            is_late = time.monotonic() >= late
            self.stop()
            raise WorkerEnded(late=is_late) from None
        except BaseException:  # interrupted: what comes next would be the answer to this
            self.stop()
            raise
        finally:
            self._late = None

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the process when it works on one request for too long."""
        while process is self._process and process.poll() is None:
            late = self._late
            if late is not None and time.monotonic() >= late:
                process.kill()
                return
            time.sleep(_WATCH)

    def stop(self) -> None:
        """End the process, if one runs."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                self.exit_code = process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        with contextlib.suppress(OSError):  # the buffered data has no reader any more
                            stream.close()
