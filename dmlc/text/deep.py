"""Deep recursion: an expression nests as deep as the brackets, operators and defs of a program do.

The limits of a program bound it. Calls between Python functions do not use the stack of C, so that only Python's
own limit has to rise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_LOCK = Lock()
_LIMIT = 1_000_000
#: The limits of recursion that threads inside found, the first one first.
_FOUND: list[int] = []


@contextmanager
def deep() -> Iterator[None]:
    """Raise the recursion limit while a thread is inside."""
    with _LOCK:
        _FOUND.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_LIMIT, _FOUND[0]))
    try:
        yield
    finally:
        with _LOCK:
            last = _FOUND.pop()
            if not _FOUND:
                sys.setrecursionlimit(last)
