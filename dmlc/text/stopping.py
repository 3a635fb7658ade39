"""The end of work on a program whose result nobody waits for any more: an editor's text has changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_IS_STOPPED: ContextVar[Callable[[], bool] | None] = ContextVar("is_stopped", default=None)


class StoppedError(Exception):
    """Error raised at a ``checkpoint`` of work that was stopped."""


@contextmanager
def stoppable(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Let reading inside end in ``StoppedError`` at the next statement after ``is_stopped`` is true."""
    token = _IS_STOPPED.set(is_stopped)
    try:
        yield
    finally:
        _IS_STOPPED.reset(token)


def checkpoint() -> None:
    """Raises ``StoppedError`` where the work was stopped."""
    is_stopped = _IS_STOPPED.get()
    if is_stopped is not None and is_stopped():
        raise StoppedError
