"""The elements of an output that depend on elements that nothing defines.

A model may compute the logarithm of 0 in each run and select another value behind it. What arrives is found by
running the model with other elements in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Array
from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.subject import Patch, Subject, TraceStep
from dmlc.verifying.tolerance import TOLERANCES
from dmlc.verifying.undefined import INFINITE, UNDERFLOWS, UndefinedElements

#: The least number of ways to fill undefined elements, the ways to mix these, and the most runs that fill what only
#: these make undefined.
_FILLS, _MIXED, _MORE_RUNS = 9, 64, 200
#: The most undefined values that are filled without those behind them.
_ALONE = 3
#: The nodes of a model of which that many runs cost little; others have an eighth.
_SMALL_NODES = 64
#: The undefined elements among steps.
Find: TypeAlias = "Callable[[Sequence[TraceStep]], list[UndefinedElements]]"


def dependent(
    found: Sequence[UndefinedElements],
    subject: Subject,
    feeds: Feeds,
    output: str,
    places: Array | None = None,
    find: Find | None = None,
) -> Array | bool:
    """The places of an output that depend on undefined elements.

    The subject runs again with other elements for them, until all ``places`` that are asked about move; if some do,
    with mixed ones. ``find`` gives what becomes undefined by these other elements, which is filled too. True if the
    subject does not run with half of them, as they are an index or a shape then, and if it cannot be fed values on
    its way.
    """
    moves = _Moves(places)
    for patches in _ways(found):
        moves.add(subject.run_patched(feeds, output, patches))
        if moves.done:
            return moves.reached
    if 2 * moves.failed >= moves.ran or moves.first is None:
        return True
    part = 1 if subject.size <= _SMALL_NODES else 8
    for choice in range(_MIXED // part) if moves.some else ():
        moves.add(subject.run_patched(feeds, output, _patches(found, choice, mixed=True)))
        if moves.done:
            return moves.reached
    if find is not None and places is not None:
        for patches in islice(_further_ways(found, find, subject, feeds, output), _MORE_RUNS // part):
            moves.add(subject.run_patched(feeds, output, patches))
            if moves.done:
                break
    return moves.reached


class _Moves:
    """The places of an output at which runs differ from the first one."""

    def __init__(self, wanted: Array | None) -> None:
        self._wanted = wanted
        self.first: Array | None = None
        self.reached: Array | bool = False
        self.ran = self.failed = 0

    @property
    def done(self) -> bool:
        """True if a shape moves, or each place that is asked about."""
        if self.reached is True:
            return True
        return self._wanted is not None and self._wanted.shape == np.shape(self.reached) and not self._rest().any()

    @property
    def some(self) -> bool:
        """True if some of the places that are asked about move."""
        wanted = self._wanted
        return wanted is not None and wanted.shape == np.shape(self.reached) and bool(np.any(wanted & self.reached))

    def _rest(self) -> Array:
        return np.asarray(self._wanted & ~np.asarray(self.reached))

    def add(self, result: Any) -> None:
        self.ran += 1
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiub":
            self.failed += 1
        elif self.first is None:
            self.first, self.reached = result, np.zeros(result.shape, bool)
        elif result.shape != self.first.shape:
            self.reached = True
        else:
            self.reached = self.reached | ~_same(self.first, result)


def _ways(found: Sequence[UndefinedElements]) -> Iterator[dict[str, Patch]]:
    for choice in range(max(_FILLS, *[len(one.fills) for one in found])):
        yield _patches(found, choice)
    for count in range(1, min(len(found), _ALONE + 1)):  # elements of later ones hide the first
        if found[count - 1].reason in (UNDERFLOWS, INFINITE):  # they follow from what is fed
            break
        for choice in range(max(len(one.fills) or _FILLS for one in found[:count])):
            yield _patches(found[:count], choice)


def _further_ways(
    found: Sequence[UndefinedElements], find: Find, subject: Subject, feeds: Feeds, output: str
) -> Iterator[dict[str, Patch]]:
    """Return other elements for the undefined ones than ``found`` has."""
    for patches in _ways(found):
        try:
            steps = subject.trace(feeds, output, patches) or ()
        except (RunFailed, NotRunnable):
            continue
        more = [one for one in find(steps) if one.value not in patches]
        for further in _ways(more) if more else ():
            yield {**patches, **further}


def _patches(found: Sequence[UndefinedElements], choice: int, *, mixed: bool = False) -> dict[str, Patch]:
    """Other elements for each value. Different values take different ones: equal ones may cancel."""
    out: dict[str, Patch] = {}
    for number, one in enumerate(found):
        before = out.get(one.value)
        array = one.array.copy() if before is None else before.array
        one.fill(array, choice + number, mixed=mixed)
        out[one.value] = Patch(array, one.places if before is None else one.places | before.places)
    return out


def _same(a: Array, b: Array) -> Array:
    """The elements that are equal, or within the tolerance of floats. A large number of a patch widens none."""
    if a.dtype.kind != "f":
        return np.asarray(a == b)
    wide = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(wide[0] - wide[1]) <= np.minimum(*map(TOLERANCES[a.dtype.name].bound, wide))
        near |= np.maximum(np.abs(a), np.abs(b)) < np.finfo(a.dtype).tiny
        return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b) & near))
