"""Python's garbage collector, out of the way while a graph is built.

A graph is many small objects that stay. The collector would walk all of them again and again as they grow in number,
for half of the time that a large model takes to compile.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: A full collection is due when so many objects more are old than after the last one, and a quarter more.
_MORE = 200_000


class _Old:
    """How many objects there were after the last full collection, and at the end of the last pause."""

    then = now = 0


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection inside. Afterwards what was made counts as old, of which Python itself takes no notice: the next
    pause begins with a full collection where much has become old since the last one.

    May be nested, and used by several threads: who found the collector on turns it on again.
    """
    if not gc.isenabled():
        yield
        return
    if _Old.now > max(_Old.then + _MORE, _Old.then * 5 // 4):
        gc.collect()
        _Old.then = _made_old()
    gc.disable()
    try:
        yield
    finally:
        _Old.now = _made_old()
        gc.enable()


def _made_old() -> int:
    """The number of objects, which are old from now on; 0 where the program has frozen some itself, which are to stay
    so: then nothing changes."""
    if gc.get_freeze_count():
        return 0
    gc.freeze()
    count = gc.get_freeze_count()
    gc.unfreeze()
    return count
