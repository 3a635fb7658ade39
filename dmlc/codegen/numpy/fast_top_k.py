"""Support functions of the fast style for top_k; see ``support`` for how files get a copy.

Few elements of a long row can be among the k best: those that reach the k-th best of some maxima. Only they are sorted.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np

from dmlc.codegen.numpy.fast_selection import _each, _half_keys


def _top_k(
    x: np.ndarray, k: int, axis: int, largest: bool = True, dtype: type = np.int64
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest or smallest elements in order, and their indices; ties by ascending index."""
    keys = _half_keys(x, 0x7FFF) if x.dtype == np.float16 else np.ascontiguousarray(x)
    n, count = x.shape[axis], int(np.prod(x.shape[:axis], dtype=np.int64))
    columns = keys.reshape(count, n, x.size // max(1, count * n))
    found = np.empty((count, k, columns.shape[2]), np.int64)
    find = _best_places if n < 512 or n < 16 * k else _top_of_long
    step = max(1, (1 << 17) // max(1, n * columns.shape[2]))  # parts that stay in the cache

    def search(i: int) -> None:
        found[i : i + step] = find(columns[i : i + step], k, largest)

    _each(search, list(range(0, count if x.size else 0, step)))
    indices = found.reshape(*x.shape[:axis], k, *x.shape[axis + 1 :])
    return np.take_along_axis(x, indices, axis=axis), indices.astype(dtype)


def _best_places(x: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """The indices of the k best along the middle of three axes, in order.

    A number of up to 32 bits and its index make one integer, and NumPy sorts integers far faster
    than it finds out in which order they are.
    """
    if x.dtype.itemsize > 4:
        return _sorted_places(x, largest)[:, :k]
    n = x.shape[1]
    places = np.arange(n)
    pairs = _sortable(x.swapaxes(1, 2)).astype(np.int64, order="C")
    pairs <<= 32
    pairs |= places[::-1] if largest else places
    pairs.sort(axis=2)
    best = (pairs[:, :, ::-1] if largest else pairs)[:, :, :k] & 0xFFFFFFFF
    return (n - 1 - best if largest else best).swapaxes(1, 2)


def _sortable(x: np.ndarray) -> np.ndarray:
    """Signed integers in the order of numbers; zeros of both signs are equal, NaN is the largest."""
    if x.dtype == np.uint32:
        return (x ^ np.uint32(1 << 31)).view(np.int32)
    if x.dtype.kind != "f":
        return x
    keys = (x + np.float32(0)).view(np.int32)
    keys ^= (keys >> 31) & 0x7FFFFFFF
    is_nan = np.isnan(x)
    if is_nan.any():
        keys[is_nan] = 0x7FFFFFFF
    return keys


def _sorted_places(x: np.ndarray, largest: bool) -> np.ndarray:
    """The order along axis 1 from the best; equal elements by ascending index."""
    if not largest:
        return np.argsort(x, axis=1, kind="stable")
    # A stable ascending sort of the reversed axis, read backwards.
    return x.shape[1] - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]


def _top_of_long(x: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """The indices of the k best along the middle of three axes, in order."""
    count, n, width = x.shape
    bound = _bound(x, k, largest)[:, np.newaxis]
    mask = ~(x < bound) if largest else ~(x > bound)  # NaN is the largest of all
    if np.count_nonzero(mask) > (2 * k + 64) * count * width:
        if np.isnan(bound).any():
            return _best_places(x, k, largest)
        # Many are equal to the bound: the first of them are enough.
        mask = mask if largest else x <= bound
        end = 4 * k
        while end < n and np.count_nonzero(mask[:, :end], axis=1).min() < k:
            end *= 2
        mask[:, end:] = ~(x <= bound)[:, end:] if largest else (x < bound)[:, end:]
    flat = np.flatnonzero(mask)
    column, place = flat // (n * width) * width + flat % width, flat // width % n
    if width > 1:
        order = np.argsort(column, kind="stable")
        flat, column, place = flat[order], column[order], place[order]
    values = x.reshape(-1)[flat]
    counts = np.bincount(column, minlength=count * width)
    # The candidates of each column in a row, filled up with what is no better than any.
    slot = np.arange(len(column)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.zeros((count * width, counts.max()), np.int64)
    places[column, slot] = place
    if x.dtype.kind == "f":
        fill = -np.inf if largest else np.nan
    else:
        fill = np.iinfo(x.dtype).min if largest else np.iinfo(x.dtype).max
    rows = np.full(places.shape, fill, x.dtype)
    rows[column, slot] = values
    best = np.take_along_axis(places, _sorted_places(rows, largest)[:, :k], axis=1)
    return best.reshape(count, width, k).swapaxes(1, 2)


def _bound(x: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """A bound that at least k elements along axis 1 reach: the k-th best of the maxima of some."""
    count, n, width = x.shape
    high = max(2, n // max(8 * k, min(4096, n // 16)))
    many = n // high
    blocks = x[:, : high * many].reshape(count, high, many * width)
    best = (np.max if largest else np.min)(blocks, axis=1).reshape(count, many, width)
    place = many - k if largest else k - 1
    return np.partition(best, place, axis=1)[:, place]
