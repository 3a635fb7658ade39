"""Signals that end a command as Ctrl-C does: what it has begun to write is removed first."""

from __future__ import annotations

import contextlib
import signal
import sys
from types import FrameType
from typing import NoReturn

#: Ctrl-C, a closed terminal and a service that stops send these; not every system has each.
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


class Ended(KeyboardInterrupt):
    """A signal came; ``number`` is its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def end_on_signals() -> None:
    """Raise ``Ended`` in the main thread where a signal comes that would end the process; ignored ones stay ignored.

    The setup of an extension module is finished first: an exception in the C++ code of onnx's aborts the process.
    """
    for number in [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            with contextlib.suppress(ValueError):  # only the main thread may
                signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    def end(*_: object) -> NoReturn:
        raise Ended(number)

    loader = _extension_loader(frame)
    if loader is None:
        end()
    loader.f_trace = end  # called when the module is set up
    sys.settrace(lambda *_: None)


def _extension_loader(frame: FrameType | None) -> FrameType | None:
    """Return the outermost frame that sets up an extension module, among the callers of a frame."""
    found = None
    while frame is not None:
        found = frame if "ExtensionFileLoader." in frame.f_code.co_qualname else found
        frame = frame.f_back
    return found
