"""Options as the user writes them: as flags on the command line, as keywords in Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ON_COMMAND_LINE = ContextVar("_ON_COMMAND_LINE", default=False)


@contextmanager
def on_command_line() -> Iterator[None]:
    """Within it messages spell options as flags."""
    token = _ON_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _ON_COMMAND_LINE.reset(token)


def option(flag: str, keyword: str) -> str:
    """The option as the user of this call writes it: ``--opset 14`` or ``opset=14``."""
    return flag if _ON_COMMAND_LINE.get() else keyword
