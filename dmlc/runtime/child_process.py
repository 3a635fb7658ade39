"""Python code in a process of its own: a library that crashes there ends that process only."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

from dmlc.diagnostics.libraries import one_line

#: The answer is the last line of stdout: a library may print others before.
_FRAME = """
import json, sys
arguments, sys.path[:] = json.loads(sys.argv[1])
{code}
print()
print(json.dumps(answer), flush=True)
"""


class ChildFailed(Exception):
    """The process gave no answer; the text is the reason."""


class ChildProcess:
    """Code that runs in another process with this one's ``sys.path``; it reads ``arguments`` and sets ``answer``."""

    def __init__(self, code: str, arguments: Any, *, seconds: float) -> None:
        self._seconds = seconds
        given = json.dumps([arguments, [str(each) for each in sys.path]])
        command, pipe = [sys.executable, "-c", _FRAME.format(code=code), given], subprocess.PIPE
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        except (OSError, ValueError) as error:
            self._refused = one_line(error)

    def answer(self) -> Any:
        """Wait for the answer. Raises ``ChildFailed`` if there is none: no process, too late, an exception, a crash."""
        if self._process is None:
            raise ChildFailed(f"no process can be started: {self._refused}")
        try:
            out, err = self._process.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise ChildFailed(f"it took longer than {self._seconds:g} s") from None
        try:
            return json.loads(out.decode("utf-8", "replace").strip().splitlines()[-1])
        except (ValueError, LookupError):
            ending = _ending(self._process.returncode)
            raise ChildFailed(one_line(f"the process ended with {ending} {_last_lines(err)}")) from None


def _ending(code: int) -> str:
    """Name an exit code: Windows reports a crash by a large number, other systems by a negative one."""
    if code >= 0:
        return f"code {code:#x}" if code > 255 else f"code {code}"
    names = {int(each): each.name for each in signal.Signals}
    return f"signal {names.get(-code, str(-code))}"


def _last_lines(err: bytes) -> str:
    """Return the last two lines that the process wrote to stderr, in parentheses."""
    lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    return f"({' '.join(lines[-2:])})" if lines else ""
