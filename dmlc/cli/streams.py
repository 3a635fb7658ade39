"""stdout and stderr as the caller left them: closed, full, or a terminal without Unicode.

Loaded before the verb is known, so nothing else is loaded here.
"""

from __future__ import annotations

import io
import os
import sys

_STDOUT, _STDERR = 1, 2


def open_streams() -> None:
    """Make both streams fit to be written to.

    Results that cannot be written are an error, so a closed stdout says so when it is written to. Messages that cannot
    be written are lost: whoever closed stderr does not want them, and the work goes on.
    """
    if sys.stdout is None:
        sys.stdout = _in_place_of(_STDOUT, os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _in_place_of(_STDERR, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a terminal without Unicode shows escapes instead of failing
            reconfigure(errors="backslashreplace")
    sys.stderr = _Messages(sys.stderr)  # type: ignore[arg-type]


def drop_stdout() -> None:
    """Discard the output still buffered: Python would report an error for it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_place_of(number: int, flags: int) -> io.TextIOWrapper:
    """A stream for one that the caller closed, as ``>&-`` does. It has its number too: the next file that is opened
    would get that, and whatever prints there would print into the file."""
    null = os.open(os.devnull, flags)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    return open(number, "w", encoding="utf-8", closefd=False)


class _Messages:
    """stderr, where what cannot be written is lost; a pipe that nobody reads ends the command, as it does anywhere."""

    def __init__(self, stream: io.TextIOBase) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError:
            pass
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError:
            pass

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
