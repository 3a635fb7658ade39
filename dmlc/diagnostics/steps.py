"""The step that long work has come to, for whoever shows it: a line on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_SHOW: ContextVar[Callable[[str], None] | None] = ContextVar("show_step", default=None)


@contextmanager
def showing_steps(show: Callable[[str], None]) -> Iterator[None]:
    """Have ``show`` called with each step of the work inside."""
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


def step(text: str) -> None:
    """Say what work has come to: the part that is done, and how much there is."""
    show = _SHOW.get()
    if show is not None:
        show(text)
