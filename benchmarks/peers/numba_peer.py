"""Loops that Numba compiles, over the input in the order of memory: kept, reduced, kept, reduced and kept axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numba
import numpy as np

from benchmarks.measure import FunctionRun, Runner
from benchmarks.operations import Operation, kept, sizes

#: The kept and reduced axes take turns; there are five.
_TURNS = 5


def runners(operation: Operation, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Runner]:
    x, function = arrays[0], _LOOPS.get(operation.name)
    shape = _alternating(x.shape, operation.axes)
    if function is None or shape is None:
        return {}
    out = sizes(x.shape, kept(x.ndim, operation.axes))
    viewed = [a.reshape(shape) for a in arrays]

    def run(*operands: Any) -> np.ndarray:
        found: np.ndarray = function(*operands)
        return found.reshape(out)

    return {"numba": FunctionRun(run, *viewed)}


def _alternating(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...] | None:
    """The shape with runs of axes merged, so that the first is kept and the second reduced; None where it is longer."""
    runs: list[list[int]] = [[]]
    for axis, size in enumerate(shape):
        if (axis in axes) != (len(runs) % 2 == 0):
            runs.append([])
        runs[-1].append(size)
    return None if len(runs) > _TURNS else tuple(prod(run) for run in runs) + (1,) * (_TURNS - len(runs))


def _argmax(x: Any) -> Any:
    a, b, c, d, e = x.shape
    best = np.full((a, c, e), -np.inf, x.dtype)
    index = np.zeros((a, c, e), np.int64)
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    for n in range(e):
                        if x[i, j, k, m, n] > best[i, k, n]:
                            best[i, k, n] = x[i, j, k, m, n]
                            index[i, k, n] = j * d + m
    return index


def _max(x: Any) -> Any:
    a, b, c, d, e = x.shape
    best = np.full((a, c, e), -np.inf, x.dtype)
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    for n in range(e):
                        best[i, k, n] = max(best[i, k, n], x[i, j, k, m, n])
    return best


def _sum(x: Any) -> Any:
    a, b, c, d, e = x.shape
    total = np.zeros((a, c, e), x.dtype)
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    for n in range(e):
                        total[i, k, n] += x[i, j, k, m, n]
    return total


def _dot(x: Any, y: Any) -> Any:
    a, b, c, d, e = x.shape
    total = np.zeros((a, c, e), x.dtype)
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    for n in range(e):
                        total[i, k, n] += x[i, j, k, m, n] * y[i, j, k, m, n]
    return total


def _l2(x: Any) -> Any:
    a, b, c, d, e = x.shape
    total = np.zeros((a, c, e), x.dtype)
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    for n in range(e):
                        total[i, k, n] += x[i, j, k, m, n] * x[i, j, k, m, n]
    return np.sqrt(total)


_LOOPS: dict[str, Callable[..., Any]] = {
    name: numba.njit(fastmath={"reassoc", "contract", "nsz"})(loop)
    for name, loop in {"argmax": _argmax, "max": _max, "sum": _sum, "dot": _dot, "l2": _l2}.items()
}
