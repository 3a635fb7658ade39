"""A line on the terminal that says what a long command is doing."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack
from types import TracebackType
from typing import TextIO

from dmlc.diagnostics.steps import showing_steps

#: Seconds of silence before the first line, and between two lines.
_PATIENCE, _PERIOD = 1.0, 0.5
_CLEAR = "\r\x1b[K"


def is_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that interprets control sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """Call it with the name of each step as it begins. Within ``with`` it shows the step, the part of it that is done
    and the seconds so far, once the work has taken a while, and takes its line away at the end. Without ``shown`` it
    stays silent."""

    def __init__(self, label: str, *, shown: bool) -> None:
        self.label = label
        self.shown = shown
        self.step: str = ""
        self.part: str = ""
        self._passes = 0
        self._parts = ExitStack()
        self._start = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __call__(self, step: str) -> None:
        self.step, self.part = step, ""

    def next_pass(self, name: str) -> None:
        """Begin a pass of a compilation: the step is its number and name."""
        self._passes += 1
        self(f"pass {self._passes}, {name}")

    def line(self) -> str:
        """Return the progress line as it is now."""
        done = f"{self.label}: {time.monotonic() - self._start:.0f} s"
        return ", ".join(filter(None, (done, self.step, self.part)))

    def _done_part(self, part: str) -> None:
        self.part = part

    def __enter__(self) -> Progress:
        if self.shown:
            self._parts.enter_context(showing_steps(self._done_part))
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._parts.close()
        if self.shown:
            self._thread.join()

    def _watch(self) -> None:
        written = False
        wait = _PATIENCE
        while not self._done.wait(wait):
            sys.stderr.write(_CLEAR + self.line())
            sys.stderr.flush()
            written, wait = True, _PERIOD
        if written:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
