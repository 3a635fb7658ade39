"""The support function of the fast style that computes part by part; see ``support`` for how files get a copy."""

# mypy: disable-error-code="no-any-return, no-untyped-def, no-untyped-call, type-arg"
# Generated files import only NumPy: there is no name for the type of a function.

from __future__ import annotations

import numpy as np

THREADS = 1


def _keep_freed_memory() -> None:
    """Have glibc keep what is freed at hand: it does so for blocks up to the largest freed one."""
    np.empty(1 << 24, np.uint8)


def _each(function, items: list) -> list:
    """function of each item, shared among THREADS threads; NumPy computes in several at a time."""
    if THREADS < 2 or len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    def quietly(item):
        with np.errstate(all="ignore"):  # which each thread has for itself
            return function(item)

    with ThreadPoolExecutor(min(THREADS, len(items))) as pool:
        return list(pool.map(quietly, items))


def _by_parts(
    function,
    arrays: tuple[np.ndarray, ...],
    axes: tuple[int, ...],
    into: tuple[int, ...] = (),
):
    """function(*arrays), which treats the axes place by place, computed for parts of them.

    What is computed on the way then stays in the cache. ``into`` are the numbers of the results
    that the function writes at once to the arrays that follow the others.
    """
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    first, *others = _parts(shape, axes)
    pieces = function(*[_piece(x, first, shape) for x in arrays])
    if not others:
        return pieces
    _keep_freed_memory()
    results = []
    for piece in pieces if isinstance(pieces, tuple) else (pieces,):
        sizes = [shape[i] if i in axes else n for i, n in enumerate(piece.shape)]
        results.append(np.empty(sizes, piece.dtype))
        results[-1][first] = piece

    def compute(part):
        places = [results[i][part] for i in into]
        pieces = function(*[_piece(x, part, shape) for x in arrays], *places)
        pieces = pieces if isinstance(pieces, tuple) else (pieces,)
        for i, piece in enumerate(pieces):
            if i not in into:
                results[i][part] = piece

    _each(compute, others)
    return tuple(results) if len(results) > 1 else results[0]


def _parts(
    shape: tuple[int, ...], axes: tuple[int, ...], most: int = 1 << 18, least_wide: int = 512
) -> list[tuple[slice, ...]]:
    """The parts of an array along the axes, of at most so many elements where that can be."""
    size = int(np.prod(shape))
    parts: list[tuple[slice, ...]] = [()]
    for axis in range(max(axes) + 1):
        n = step = shape[axis]
        if axis in axes and size > most:
            # What lies side by side is read together.
            step = max(least_wide if axis == len(shape) - 1 else 1, most * n // size)
        cuts = [slice(i, i + step) for i in range(0, n, step)] if step < n else [slice(None)]
        size = size * min(step, n) // max(n, 1)
        parts = [(*part, cut) for part in parts for cut in cuts]
    return parts


def _piece(x: np.ndarray, part: tuple[slice, ...], shape: tuple[int, ...]) -> np.ndarray:
    """A part of an array that is stretched to a shape."""
    skip = len(shape) - x.ndim
    index = [s if x.shape[i] != 1 else slice(None) for i, s in enumerate(part[skip:])]
    return x[tuple(index)]
