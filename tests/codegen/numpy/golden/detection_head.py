"""Model `detection_head` as NumPy code, written by dmlc; it needs NumPy 1.26 or newer."""

import numpy as np

THREADS = 1  # that share the work on large arrays; who imports this may set it


def detection_head(logits: np.ndarray, image: np.ndarray) -> tuple[np.ndarray, ...]:
    """Model `detection_head`.

    Parameters
    ----------
    logits : float32, shape (batch, anchors, 80)
    image : float16, shape (batch, 3, H, W)

    Returns
    -------
    cls : uint32, shape (batch, anchors, 1)
    peak : uint32, shape (batch, 1, 1, 1)
    top_p : float32, shape (batch, 5, 80)
    top_i : uint32, shape (batch, 5, 80)
    focus : float16, shape (batch, 3, H, W)
    spread : float32, shape (batch, 1, 1)

    Notes
    -----
    1 <= batch <= 64
    8 <= anchors <= 8400
    H >= 1
    W >= 1
    """
    _check("logits", logits, np.float32, ("batch", "anchors", 80))
    batch, anchors, _ = logits.shape
    _check("image", image, np.float16, (batch, 3, "H", "W"))
    _, _, H, W = image.shape
    _require(1 <= batch <= 64, f"batch (axis 0 of logits) must be 1 to 64, not {batch}")
    _require(8 <= anchors <= 8400, f"anchors (axis 1 of logits) must be 8 to 8400, not {anchors}")
    _require(H >= 1, f"H (axis 2 of image) must be 1 or more, not {H}")
    _require(W >= 1, f"W (axis 3 of image) must be 1 or more, not {W}")
    with np.errstate(all="ignore"):
        peak = np.expand_dims(_arg(image, axes=(1, 2, 3), largest=True, last=True), (1, 2, 3))
        peak = peak.astype(np.uint32)
        focus = _hardmax(image, axes=(2, 3))

        def part(logits, out=None, out_2=None):
            p = _softmax((logits + _PRIOR) * 0.125, axes=(2,), out=out)
            pow_ = (p - _sum(p, axes=(1, 2)) / np.float32(80 * anchors)) ** 2
            spread = np.sqrt(_sum(pow_, axes=(1, 2)) / np.float32(80 * anchors) + 1e-06, out=out_2)
            return p, spread

        p, spread = _by_parts(part, (logits,), axes=(0,), into=(0, 1))
        cls = np.argmax(p, axis=2, keepdims=True).astype(np.uint32)
        top_p, top_i = _top_k(p, k=5, axis=1, largest=True, dtype=np.uint32)
    return cls, peak, top_p, top_i, focus, spread


def _check(name: str, array: np.ndarray, dtype: type, shape: tuple[int | str, ...]) -> None:
    """Refuse another dtype or shape; a word in the shape stands for any size."""
    if not isinstance(array, (np.ndarray, np.generic)):
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{name} must have dtype {np.dtype(dtype)}, not {array.dtype}")
    sizes = zip(shape, array.shape, strict=False)
    if len(shape) != array.ndim or any(not isinstance(a, str) and a != b for a, b in sizes):
        wanted = ", ".join([str(size) for size in shape])
        raise ValueError(f"{name} must have shape [{wanted}], not {list(array.shape)}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


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


def _keep_freed_memory() -> None:
    """Have glibc keep what is freed at hand: it does so for blocks up to the largest freed one."""
    np.empty(1 << 24, np.uint8)


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
    _keep_freed_memory()
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
    # Of each candidate: the column among the axes that are kept, the place among the others.
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
    index[column] = place  # of several the last one stays
    return index


def _by_groups(x: np.ndarray, searched: list[int], largest: bool, last: bool) -> np.ndarray:
    """``_arg`` one axis at a time: first all along one, then among the elements that are left."""
    sizes = list(x.shape)
    # What is read in its order is read fastest: the last axis alone, or else first axes, if long.
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
    _keep_freed_memory()
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
    number = np.zeros(best.shape, np.uint8)  # of the rows that the best are from
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
        places *= kind(tall)
        places += np.arange(tall, dtype=kind)[:, np.newaxis]
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


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sum of x * y along the last axis, of dot products of up to 1024 elements.

    Their errors are those of NumPy's sums; there are no products in memory.
    """
    n = x.shape[-1]
    if n <= 1024:
        return np.matmul(x[..., np.newaxis, :], y[..., np.newaxis])[..., 0, 0]
    whole = n // 1024 * 1024
    left = x[..., :whole].reshape(*x.shape[:-1], -1, 1024)
    right = y[..., :whole].reshape(*y.shape[:-1], -1, 1024)
    total = np.sum(_dots(left, right), axis=-1)
    return total if whole == n else total + _dots(x[..., whole:], y[..., whole:])


def _sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The sum over the axes, kept as size 1.

    For short rows einsum has less to do than np.sum; longer ones of float32 are dot products with
    ones, of up to 1024 elements. Their errors are as small, give or take a quarter.
    """
    kept = x.shape[: x.ndim - len(axes)]
    n = x.size // max(1, int(np.prod(kept)))
    is_short = n * x.itemsize <= 1024
    are_last = axes == tuple(range(len(kept), x.ndim))
    if not (are_last and x.size and (is_short or x.dtype == np.float32)):
        return np.sum(x, axis=axes, keepdims=True)
    rows, ones = x.reshape(*kept, n), np.ones(min(n, 1024), x.dtype)
    if is_short:
        total = np.einsum("...i->...", rows)
    elif n <= 1024:
        total = _dots(rows, ones)
    else:
        whole = n // 1024 * 1024
        total = np.add.reduce(_dots(rows[..., :whole].reshape(*kept, -1, 1024), ones), axis=-1)
        if whole < n:
            total = total + _dots(rows[..., whole:], ones[: n - whole])
    return total.reshape(*kept, *[1] * len(axes))


def _are_exact(powers: np.ndarray, total: np.ndarray) -> bool:
    """Whether exponentials and their sums are as exact as if the maximum had been taken out.

    None is too large, and none too small or else not beside one that is 1 or more.
    """
    if total.size == 0 or not np.max(total) < np.inf:
        return False
    is_one_large = np.min(total) >= powers.size // total.size
    return bool(is_one_large or np.min(powers) >= np.finfo(powers.dtype).tiny)


def _softmax(
    x: np.ndarray,
    axes: tuple[int, ...],
    out: np.ndarray | None = None,
) -> np.ndarray:
    """exp(x) over its sum, over the axes together; the maximum is taken out if need be."""
    powers = np.exp(x)
    total = _sum(powers, axes)
    if not _are_exact(powers, total):
        powers = x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)
        np.exp(powers, out=powers)
        total = _sum(powers, axes)
    return np.divide(powers, total, out=powers if out is None else out)


# fmt: off
_PRIOR = np.array([
    0.0, 0.01242252, 0.024692612, 0.036813974, 0.048790164, 0.06062462, 0.07232066, 0.08388148,
    0.09531018, 0.10660973, 0.11778303, 0.12883288, 0.13976194, 0.15057285, 0.16126814, 0.17185026,
    0.18232156, 0.19268434, 0.20294084, 0.21309322, 0.22314355, 0.23309389, 0.24294618, 0.25270236,
    0.26236427, 0.2719337, 0.28141245, 0.2908022, 0.3001046, 0.30932125, 0.31845373, 0.32750356,
    0.33647224, 0.34536117, 0.3541718, 0.3629055, 0.37156355, 0.3801473, 0.388658, 0.39709687,
    0.4054651, 0.4137639, 0.42199442, 0.43015772, 0.43825492, 0.4462871, 0.45425528, 0.46216044,
    0.47000363, 0.47778577, 0.48550782, 0.49317068, 0.5007753, 0.5083225, 0.5158132, 0.52324814,
    0.53062826, 0.5379543, 0.54522705, 0.5524473, 0.5596158, 0.56673324, 0.57380044, 0.580818,
    0.5877867, 0.59470713, 0.60157996, 0.60840595, 0.6151856, 0.6219197, 0.62860864, 0.6352532,
    0.64185387, 0.6484113, 0.65492594, 0.6613985, 0.6678294, 0.6742192, 0.6805684, 0.68687755,
], dtype=np.float32)
# fmt: on
