"""Python's garbage collector, out of the way while a graph is built.

A graph is many small objects that stay. The collector would walk all of them again and again as they grow in number,
for half of the time that a large model takes to compile.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection inside. Afterwards what was made counts as old: the next full collection looks at it, none before.

    May be nested, and used by several threads: who found the collector on turns it on again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else the program has frozen objects itself, which are to stay so
            gc.freeze()
            gc.unfreeze()
        gc.enable()
