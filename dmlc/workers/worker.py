"""One child process that answers requests: pickles over its stdin and stdout, with a limit on the time of each."""

from __future__ import annotations

import contextlib
import importlib.util
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

#: Seconds between two looks at the time of a request, and those that a process takes to end.
_WATCH, _ENDING = 0.5, 0.5


class WorkerEnded(Exception):
    """The process ended before it answered, with ``code``; ``late`` if it was killed because it took too long."""

    def __init__(self, code: int | None = None, *, late: bool) -> None:
        super().__init__("took too long" if late else f"the process ended with {_ending(code)}")
        self.late = late


def _ending(code: int | None) -> str:
    """Name an exit code: Windows reports a crash by a large number, other systems by a negative one."""
    if code is None or code >= 0:
        return f"code {code:#x}" if code is not None and code > 255 else f"code {code}"
    names = {int(each): each.name for each in signal.Signals}
    return f"signal {names.get(-code, str(-code))}"


#: Finds modules where the parent does, and nowhere else: the working folder may hold models beside modules with the
#: names of those needed. The file runs without the package around it, which takes as long to load. Ctrl-C is for the
#: parent, which ends this process.
_START = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {path!r}
scope = {{"__name__": "worker", "__file__": {file!r}}}
with open({file!r}, "rb") as stream:
    exec(compile(stream.read(), {file!r}, "exec"), scope)
scope["main"](*sys.argv[1:])
"""


class Worker:
    """A process that runs ``main`` of the file of a module on ``arguments``; ``spawn`` starts it, ``stop`` ends it."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module, self._arguments = module, arguments
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        #: Exit code of the last process.
        self.exit_code: int | None = None
        #: Grows with each process that is started.
        self.generation: int = 0
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
        spec = importlib.util.find_spec(self._module)
        assert spec is not None
        path = [str(entry) or str(Path.cwd()) for entry in sys.path]
        code = _START.format(path=path, file=spec.origin)
        self.generation += 1
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
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
            self.wait()
            raise WorkerEnded(self.exit_code, late=is_late) from None
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

    def wait(self) -> None:
        """Let a process that ended by itself, or is about to, end with its own exit code; then as ``stop``."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING)
        self.stop()

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
