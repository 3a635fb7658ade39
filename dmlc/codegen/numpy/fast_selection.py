"""Support functions of the fast style for argmax, argmin and hardmax; see ``support`` for how files get a copy.

Along rows NumPy's own argmax reads the data once. Down columns it would first copy them transposed, so there the
best so far is kept while going down.
"""

# mypy: disable-error-code="no-any-return, no-untyped-def, no-untyped-call, type-arg"
# Generated files import only NumPy: there is no name for the type of a function.

from __future__ import annotations

import numpy as np

THREADS = 1


def _each(function, items: list) -> list:
    """function of each item, shared among THREADS threads; NumPy computes in several at a time."""
    if THREADS < 2 or len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    def quietly(item):
        with np.errstate(all="ignore"):  # each thread has a state of its own
            return function(item)

    with ThreadPoolExecutor(min(THREADS, len(items))) as pool:
        return list(pool.map(quietly, items))


def _half_keys(x: np.ndarray, nan: int) -> np.ndarray:
    """16-bit integers in the order of half-precision numbers, which NumPy compares far slower.

    Zeros of both signs are 0 and every NaN is ``nan``.
    """
    keys = np.empty(x.size, np.int16)
    bits = np.ascontiguousarray(x).reshape(-1).view(np.int16)
    for start in range(0, x.size, 1 << 16):  # parts that stay in the cache
        part, key = bits[start : start + (1 << 16)], keys[start : start + (1 << 16)]
        sign = part >> 15
        np.bitwise_and(part, 0x7FFF, out=key)
        is_nan = key > 0x7C00
        key ^= sign
        key -= sign
        if is_nan.any():
            key[is_nan] = nan
    return keys.reshape(x.shape)


def _arg(x: np.ndarray, axes: tuple[int, ...], largest: bool, last: bool) -> np.ndarray:
    """The row-major index over the axes of the largest or smallest element.

    Of equal elements it is the first or the last; the axes are dropped.
    """
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    if x.dtype == np.float16:
        x = _half_keys(x, 0x7FFF if largest else -0x8000)
    groups: list[list[int]] = []  # neighbouring axes that are all searched, or all kept, are one
    for i, n in enumerate(x.shape):
        if n == 1:
            continue
        if groups and (groups[-1][1] in axes) == (i in axes):
            groups[-1][0] *= n
        else:
            groups.append([n, i])
    searched = [i for i, (_, axis) in enumerate(groups) if axis in axes]
    if not searched or x.size == 0:
        return np.zeros(kept, np.int64)
    x = x.reshape([n for n, _ in groups])
    step = len(x) if searched[0] == 0 else -(-len(x) // THREADS)

    def search(start: int) -> np.ndarray:
        part = x[start : start + step]
        index = _by_maxima(part, searched, largest, last)
        return _by_groups(part, searched, largest, last) if index is None else index

    found = _each(search, list(range(0, len(x), step)))
    return (found[0] if len(found) == 1 else np.concatenate(found, axis=None)).reshape(kept)


def _by_maxima(x: np.ndarray, axes: list[int], largest: bool, last: bool) -> np.ndarray | None:
    """``_arg`` from maxima over a few layers of the first axis that is searched.

    They are found in one quick reading; only the layers behind the best of them are looked into.
    None where that would not be few.
    """
    axis, choose = axes[0], np.max if largest else np.min
    total = int(np.prod([x.shape[i] for i in axes]))
    below = int(np.prod(x.shape[axis + 1 :]))
    if total < 512 or below < 64 or x.dtype.itemsize == 1:
        return None
    layers = [n for n in range(3, 33) if x.shape[axis] % n == 0]
    if not layers:
        return None
    high = min(layers, key=lambda n: abs(n - total**0.5 / 4))
    if high < x.shape[axis]:
        x = x.reshape(*x.shape[:axis], high, -1, *x.shape[axis + 1 :])
        axes = [axis, *[i + 1 for i in axes]]
        below = int(np.prod(x.shape[axis + 1 :]))
    best = choose(x, axis=axis, keepdims=True)
    top = choose(best, axis=tuple(axes), keepdims=True)
    equal = best == top
    if x.dtype.kind == "f" and np.isnan(top).any():
        equal |= np.isnan(best)  # as good as a best that is NaN
    if np.count_nonzero(equal) > 4 * top.size:
        return None
    at = np.flatnonzero(equal)
    first = at + at // below * ((high - 1) * below)
    values = x.reshape(-1).take(first[:, np.newaxis] + np.arange(high) * below)
    number = _arg_down(values[:, :, np.newaxis], largest, last)[:, 0]
    # For each candidate: the column among the axes that are kept, the place among the others.
    place, column = np.zeros(at.shape, np.int64), np.zeros(at.shape, np.int64)
    high_place = wide = 1
    for i in range(x.ndim)[::-1]:
        if i == axis:
            coordinate = number
        else:
            at, coordinate = np.divmod(at, x.shape[i])
        if i in axes:
            place += coordinate * high_place
            high_place *= x.shape[i]
        else:
            column += coordinate * wide
            wide *= x.shape[i]
    index = np.empty(top.size, np.int64)
    if place.size > top.size:
        order = np.lexsort((place if last else -place, column))
        place, column = place[order], column[order]
    index[column] = place  # the last one of several stays
    return index


def _by_groups(x: np.ndarray, searched: list[int], largest: bool, last: bool) -> np.ndarray:
    """``_arg`` one axis at a time: first all along one, then among the elements that are left."""
    sizes = list(x.shape)
    # Elements are read fastest in their order: the last axis alone, or else first axes, if long.
    first = searched[0] if sizes[searched[0]] >= 32 else max(searched, key=sizes.__getitem__)
    if searched[-1] == x.ndim - 1:
        first = searched[-1]
    x = x.reshape(int(np.prod(sizes[:first], dtype=np.int64)), sizes[first], -1)
    found = _arg_down(x, largest, last)
    if len(searched) == 1:
        return found
    values = _at(x, found)
    steps, step = {}, 1
    for i in searched[::-1]:
        steps[i] = step
        step *= sizes[i]
    places, sizes[first] = found * steps.pop(first), 1
    places = places.reshape(sizes)
    for i, step in steps.items():
        along = np.arange(sizes[i]) * step
        places += along.reshape([-1 if j == i else 1 for j in range(len(sizes))])
    values = values.reshape(sizes)
    return _best_place(values, places, tuple(steps), largest=largest, last=last)


def _best_place(
    values: np.ndarray, places: np.ndarray, axes: tuple[int, ...], *, largest: bool, last: bool
) -> np.ndarray:
    """The first or last of the places where the values are best over the axes, which are dropped."""
    best = (np.max if largest else np.min)(values, axis=axes, keepdims=True)
    worse = values != best
    if values.dtype.kind == "f" and np.isnan(best).any():
        worse &= ~np.isnan(values)  # a NaN is as good as a best that is NaN
    if last:
        return np.max(places * ~worse, axis=axes)
    beyond = places.dtype.type(np.iinfo(places.dtype).max)
    return np.min(np.maximum(places, worse * beyond), axis=axes)


def _at(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The elements x[k, rows[k, n], n]."""
    count, height, width = x.shape
    places = rows * width
    places += np.arange(width)
    places += (np.arange(count) * (height * width))[:, np.newaxis]
    return x.reshape(-1).take(places)


def _arg_down(x: np.ndarray, largest: bool, last: bool) -> np.ndarray:
    """The index along the middle of three axes of the largest or smallest element."""
    count, height, width = x.shape
    find = np.argmax if largest else np.argmin
    if width == 1 and not last:
        return find(x, axis=1)
    found = np.empty((count, width), np.int64)
    if width < 32 or x.size < 1 << 13:
        step = max(1, (1 << 17) // (height * width))
        for k in range(0, count, step):  # NumPy copies each part transposed
            part = x[k : k + step]
            index = find(part[:, ::-1] if last else part, axis=1)
            found[k : k + step] = height - 1 - index if last else index
        return found
    # Some neighbouring rows side by side make few long rows.
    tall = max(-(-height // 64), min(height // 16, 1024 // width), 1)
    step, wide = max(1, (1 << 16) // (tall * width)), width if tall > 1 else 1 << 16
    for k in range(0, count, step):
        for n in range(0, width, wide):
            part = x[k : k + step, :, n : n + wide]
            found[k : k + step, n : n + wide] = _arg_running(part, tall, largest, last)
    return found


def _arg_running(x: np.ndarray, tall: int, largest: bool, last: bool) -> np.ndarray:
    """As ``_arg_down``, for up to 256 times ``tall`` rows: the best so far is kept while going down."""
    comparisons = [np.greater, np.greater_equal] if largest else [np.less, np.less_equal]
    compare: np.ufunc = comparisons[last]
    choose: np.ufunc = np.maximum if largest else np.minimum
    count, height, width = x.shape
    best = x[:, :tall].reshape(count, -1).copy()
    number = np.zeros(best.shape, np.uint8)  # numbers of the rows that the best are from
    better = np.empty(best.shape, np.bool_)
    for i in range(tall, height, tall):
        rows = x[:, i : i + tall].reshape(count, -1)
        end = rows.shape[1]
        compare(rows, best[:, :end], out=better[:, :end])
        choose(rows, best[:, :end], out=best[:, :end])
        gain = better[:, :end].view(np.uint8)
        np.multiply(gain, np.uint8(i // tall), out=gain)
        np.maximum(number[:, :end], gain, out=number[:, :end])
    index = number
    if tall > 1:
        kind = np.int16 if height < 1 << 15 else np.int64
        places = number.reshape(count, tall, width).astype(kind)
        np.multiply(places, kind(tall), out=places)
        np.add(places, np.arange(tall, dtype=kind)[:, np.newaxis], out=places)
        index = _best_place(best.reshape(places.shape), places, (1,), largest=largest, last=last)
        best = choose.reduce(best.reshape(places.shape), axis=1)
    if x.dtype.kind == "f" and np.isnan(choose.reduce(best, axis=None)):
        lost = np.isnan(best)  # a NaN wins, which no comparison says
        among = np.isnan(x.swapaxes(1, 2)[lost])
        index[lost] = height - 1 - among[:, ::-1].argmax(axis=1) if last else among.argmax(axis=1)
    return index


def _hardmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """1 at the first maximum over the axes together, 0 elsewhere."""
    index = _arg(x, axes, largest=True, last=False)
    kept = [i for i in range(x.ndim) if i not in axes]
    steps = [int(np.prod(x.shape[i + 1 :])) for i in range(x.ndim)]
    places = np.zeros(index.shape, np.int64)
    for i, axis in enumerate(kept):
        along = np.arange(x.shape[axis]) * steps[axis]
        places += along.reshape([-1 if j == i else 1 for j in range(len(kept))])
    for axis in sorted(axes, reverse=True):
        index, place = np.divmod(index, x.shape[axis]) if axis != min(axes) else (index, index)
        places += place * steps[axis]
    hot = np.zeros(x.shape, x.dtype)
    hot.reshape(-1)[places] = 1
    return hot
