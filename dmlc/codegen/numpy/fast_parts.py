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
    parts = _parts(shape, axes)
    buffer = _buffer(np.broadcast_to(False, shape)[parts[0]].shape, axes)

    def apply(part, places=()):
        before = np.setbufsize(buffer)
        try:
            pieces = function(*[_piece(x, part, shape) for x in arrays], *places)
        finally:
            np.setbufsize(before)
        return pieces if isinstance(pieces, tuple) else (pieces,)

    if len(parts) == 1:
        pieces = apply(parts[0])
        return pieces if len(pieces) > 1 else pieces[0]
    _keep_freed_memory()
    results = []
    # What a narrow part gives tells the dtypes, and the sizes of axes that are not split.
    narrow = tuple([slice(1) if i in axes else slice(None) for i in range(len(shape))])
    for piece in apply(narrow):
        sizes = [shape[i] if i in axes else n for i, n in enumerate(piece.shape)]
        results.append(np.empty(sizes, piece.dtype))

    def compute(part):
        pieces = apply(part, [results[i][part] for i in into])
        for i, piece in enumerate(pieces):
            if i not in into:
                results[i][part] = piece

    _each(compute, parts)
    return tuple(results) if len(results) > 1 else results[0]


def _buffer(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """The size for np.setbufsize: small where rows are long.

    NumPy copies what is stretched along rows to a buffer, so as to join rows. Long ones need that
    not: with a buffer that does not hold them they are worked on one by one, in half the time.
    """
    mixed = max([i for i in range(len(shape)) if i not in axes], default=-1)
    together = shape[mixed + 1 :] if 0 <= mixed < len(shape) - 1 else shape[-1:]
    return 512 if int(np.prod(together)) >= 1024 else np.getbufsize()


def _parts(
    shape: tuple[int, ...], axes: tuple[int, ...], most: int = 1 << 19, least_wide: int = 512
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
