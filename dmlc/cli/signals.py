"""Signals that end a command as Ctrl-C does: what it has begun to write is removed first."""

from __future__ import annotations

import contextlib
import signal
from typing import NoReturn

#: A closed terminal and a service that stops send these; not every system has each.
_ENDING = ("SIGTERM", "SIGHUP", "SIGBREAK")


class Ended(KeyboardInterrupt):
    """A signal came; ``number`` is its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def end_on_signals() -> None:
    """Raise ``Ended`` in the main thread where a signal comes that would end the process; ignored ones stay ignored."""
    for number in [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]:
        if signal.getsignal(number) is signal.SIG_DFL:
            with contextlib.suppress(ValueError):  # only the main thread may
                signal.signal(number, _end)


def _end(number: int, _frame: object) -> NoReturn:
    raise Ended(number)
