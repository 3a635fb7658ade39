"""Moving and indexing: for each coordinate of the result, where its element comes from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tools.oracles.core import broadcast_at, broadcast_shape, build, coordinates, element


def reshape(x: np.ndarray, shape: Sequence[int], dtype: str) -> np.ndarray:
    elements = [element(x, at) for at in coordinates(x.shape)]
    return build(shape, dtype, dict(zip(coordinates(shape), elements, strict=True)).__getitem__)


def transpose(x: np.ndarray, perm: Sequence[int], dtype: str) -> np.ndarray:
    def rule(at: tuple[int, ...]) -> Any:
        source = [0] * x.ndim
        for position, axis in enumerate(perm):
            source[axis] = at[position]
        return element(x, tuple(source))

    return build([x.shape[a] for a in perm], dtype, rule)


def expand(x: np.ndarray, shape: Sequence[int], dtype: str) -> np.ndarray:
    return build(broadcast_shape(x.shape, shape), dtype, lambda at: element(x, broadcast_at(x.shape, at)))


def concat(arrays: Sequence[np.ndarray], axis: int, dtype: str) -> np.ndarray:
    shape = list(arrays[0].shape)
    shape[axis] = sum(a.shape[axis] for a in arrays)

    def rule(at: tuple[int, ...]) -> Any:
        place = at[axis]
        for array in arrays:
            if place < array.shape[axis]:
                return element(array, (*at[:axis], place, *at[axis + 1 :]))
            place -= array.shape[axis]
        raise AssertionError

    return build(shape, dtype, rule)


def split(x: np.ndarray, axis: int, sizes: Sequence[int], dtype: str) -> list[np.ndarray]:
    out, before = [], 0
    for size in sizes:
        shape = [size if i == axis else n for i, n in enumerate(x.shape)]
        part = np.take(x, range(before, before + size), axis)
        out.append(build(shape, dtype, partial(element, part)))
        before += size
    return out


def slice_places(size: int, start: int, end: int, step: int) -> list[int]:
    """The places taken along one axis, by ONNX's words: negatives have the size added, then both are clamped."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        start, end = min(max(start, 0), size), min(max(end, 0), size)
    else:
        start, end = min(start, size - 1), min(max(end, -1), size - 1)
    out = []
    place = start
    while (place < end) if step > 0 else (place > end):
        out.append(place)
        place += step
    return out


def slice_(x: np.ndarray, rows: Sequence[tuple[int, int, int, int]], dtype: str) -> np.ndarray:
    """``rows`` are (axis, start, end, step)."""
    places = [list(range(n)) for n in x.shape]
    for axis, start, end, step in rows:
        places[axis] = slice_places(x.shape[axis], start, end, step)
    return build(
        [len(p) for p in places], dtype, lambda at: element(x, tuple(p[i] for p, i in zip(places, at, strict=True)))
    )


def pad(x: np.ndarray, pads: Sequence[int], value: Any, dtype: str) -> np.ndarray:
    before, after = pads[: x.ndim], pads[x.ndim :]

    def rule(at: tuple[int, ...]) -> Any:
        source = tuple(i - b for i, b in zip(at, before, strict=True))
        inside = all(0 <= i < n for i, n in zip(source, x.shape, strict=True))
        return element(x, source) if inside else value

    return build([b + n + a for b, n, a in zip(before, x.shape, after, strict=True)], dtype, rule)


def gather(x: np.ndarray, i: np.ndarray, axis: int, dtype: str) -> np.ndarray:
    def rule(at: tuple[int, ...]) -> Any:
        place = element(i, at[axis : axis + i.ndim])
        place += x.shape[axis] if place < 0 else 0
        return element(x, (*at[:axis], place, *at[axis + i.ndim :]))

    return build([*x.shape[:axis], *i.shape, *x.shape[axis + 1 :]], dtype, rule)


def _target(x: np.ndarray, i: np.ndarray, axis: int, at: tuple[int, ...]) -> tuple[int, ...]:
    place = element(i, at)
    return (*at[:axis], place + x.shape[axis] if place < 0 else place, *at[axis + 1 :])


def gather_elements(x: np.ndarray, i: np.ndarray, axis: int, dtype: str) -> np.ndarray:
    return build(i.shape, dtype, lambda at: element(x, _target(x, i, axis, at)))


def scatter_elements(x: np.ndarray, i: np.ndarray, updates: np.ndarray, axis: int, dtype: str) -> np.ndarray:
    found = {at: element(x, at) for at in coordinates(x.shape)}
    for at in coordinates(i.shape):
        found[_target(x, i, axis, at)] = element(updates, at)
    return build(x.shape, dtype, found.__getitem__)


def one_hot(i: np.ndarray, depth: int, axis: int, on: Any, off: Any, dtype: str) -> np.ndarray:
    def rule(at: tuple[int, ...]) -> Any:
        wanted = element(i, (*at[:axis], *at[axis + 1 :]))
        wanted += depth if -depth <= wanted < 0 else 0
        return on if at[axis] == wanted else off

    return build([*i.shape[:axis], depth, *i.shape[axis:]], dtype, rule)
