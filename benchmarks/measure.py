"""Rounds in which all variants run in turn, there and back; the least time of each counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from benchmarks.records import OURS, Case, Settings
from dmlc.workers.sessions import race


class Runner(Protocol):
    """Something that can be run again and again, and tells what it computed."""

    def __call__(self) -> object: ...

    def results(self) -> list[np.ndarray]: ...


class FunctionRun:
    """A function of arrays that gives an array, or several."""

    def __init__(self, function: Callable[..., Any], *arrays: Any) -> None:
        self._function, self._arrays = function, arrays

    def __call__(self) -> object:
        return self._function(*self._arrays)

    def results(self) -> list[np.ndarray]:
        out = self._function(*self._arrays)
        return [np.asarray(each) for each in (out if isinstance(out, (tuple, list)) else (out,))]


class Deferred:
    """A runner that is made when its turn comes, so that a failure is one of its case."""

    def __init__(self, make: Callable[..., Runner], *arguments: Any) -> None:
        self._make, self._arguments = make, arguments

    def made(self) -> Runner:
        return self._make(*self._arguments)


def contest(
    case: Case,
    settings: Settings,
    runners: Mapping[str, Runner | Deferred],
    expected: Sequence[np.ndarray] | None,
    *,
    tolerance: float | None = None,
    bound: tuple[str, Callable[[], object]] | None = None,
) -> Case:
    """Fill in a case: results are compared with what is expected (exactly where there is no tolerance), and those that
    are right are timed. A model that is the same as ours takes our time: two sessions of one model differ by luck."""
    right: dict[str, Callable[[], object]] = {}
    notes, wrong = list(case.notes), []
    for name, run in runners.items():
        try:
            run = run.made() if isinstance(run, Deferred) else run
            found = run.results()
        except Exception as error:  # a peer may fail in any way; that is a result
            notes.append(f"{name} failed: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:120]}")
            continue
        if expected is None or same(found, expected, tolerance):
            right[name] = run
        else:
            wrong.append(name)
    if bound is not None:
        right[bound[0]], case.bound = bound[1], bound[0]
    form = getattr(right.get(OURS), "form", None)
    twins = [name for name, run in right.items() if form is not None and getattr(run, "form", None) == form]
    timed = {name: run for name, run in right.items() if name == OURS or name not in twins}
    case.seconds, case.figures["noise"] = race(timed, settings.rounds, threads=settings.threads)
    case.seconds.update(dict.fromkeys(twins, case.seconds[OURS]))
    case.wrong, case.notes = tuple(wrong), tuple(notes)
    return case


def same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float | None) -> bool:
    """True if arrays hold the same numbers in the same order; axes of size 1 do not count."""
    if len(found) != len(expected):
        return False
    for a, b in zip(found, expected, strict=True):
        if [n for n in a.shape if n != 1] != [n for n in b.shape if n != 1]:
            return False
        a, b = a.reshape(b.shape), b
        if tolerance is None:
            if not np.array_equal(a, b):
                return False
        else:
            left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
            scale = max(1.0, float(np.max(np.abs(right[np.isfinite(right)]), initial=0)))
            if not np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
                return False
    return True


def reading(*arrays: np.ndarray) -> tuple[str, Callable[[], object]]:
    """The read bound: the largest number of the same bytes."""
    flat = [a.reshape(-1) for a in arrays]
    return "read", lambda: [np.max(a) for a in flat]


def copying(array: np.ndarray) -> tuple[str, Callable[[], object]]:
    """The copy bound."""
    out = np.empty_like(array)
    return "copy", lambda: np.copyto(out, array)
