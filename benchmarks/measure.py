"""Rounds in which all variants run in turn, there and back; the least time of each counts."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from benchmarks.records import Case, Settings

#: A sample is at least so long, so that the clock does not count.
_SAMPLE = 2e-4
#: Rounds go on until each variant has met its least time so often, give or take that part of it, and so many rounds in
#: a row have found no lesser one: else it is luck which of them ran while the rest of the machine was still. But no
#: longer than this.
_MET, _CLOSE, _STILL, _MOST_SECONDS = 3, 0.02, 10, 5.0
#: A shorter run is made once untimed before each sample, so that it finds in the caches what it leaves there itself,
#: not what the variant before it left.
_SHORT = 0.02


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


def race(runs: Mapping[str, Callable[[], object]], rounds: int) -> tuple[dict[str, float], float]:
    """The least seconds of a call, over interleaved rounds of which every other one goes backwards.

    There are more rounds than asked for while least times are not certain; one round is one. How certain they are in
    the end is the second result, the noise: of the variant that met its least time least well, how many times that the
    next ones took.
    """
    once = {name: min(_timed(run, 1) for _ in range(3)) for name, run in runs.items()}
    repeats = {name: max(1, int(_SAMPLE / max(seconds, 1e-7))) for name, seconds in once.items()}
    least: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    enabled = gc.isenabled()
    gc.disable()
    try:
        end, done, still = time.perf_counter() + _MOST_SECONDS, 0, 0
        while done < rounds or (rounds > 1 and not _certain(least, still) and time.perf_counter() < end):
            falls = False
            for name in order:
                if once[name] < _SHORT:
                    runs[name]()
                seconds, before = _timed(runs[name], repeats[name]), least[name]
                falls |= not before or seconds < before[0] * (1 - _CLOSE)
                least[name] = sorted((*before, seconds))[:_MET]
            done, still = done + 1, 0 if falls else still + 1
            order.reverse()
    finally:
        if enabled:
            gc.enable()
    noise = max((times[-1] / times[0] for times in least.values()), default=1.0)
    return {name: times[0] for name, times in least.items()}, noise


def _certain(least: Mapping[str, Sequence[float]], still: int) -> bool:
    """True if more rounds would hardly find less; ``still`` of them have found none."""
    return still >= _STILL and all(times[-1] <= times[0] * (1 + _CLOSE) for times in least.values())


def _timed(run: Callable[[], object], times: int) -> float:
    """The seconds of a call, over so many."""
    count = range(times)
    start = time.perf_counter()
    for _ in count:
        run()
    return (time.perf_counter() - start) / times


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
    are right are timed."""
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
    case.seconds, case.figures["noise"] = race(right, settings.rounds)
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
