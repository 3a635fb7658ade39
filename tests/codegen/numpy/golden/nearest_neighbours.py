"""Model `nearest neighbours` as NumPy code, written by dmlc; it needs NumPy 1.26 or newer."""

import numpy as np

THREADS = 1  # that share the work on large arrays; who imports this may set it


def nearest_neighbours(
    test_images: np.ndarray, class_: np.ndarray, labels: np.ndarray, votes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Model `nearest neighbours`.

    Parameters
    ----------
    test_images : uint8, shape (queries, 64) (input `test images`)
    class_ : float32, shape (samples, 64) (input `class`)
    labels : uint32, shape (samples,)
    votes : int32, shape (k,)

    Returns
    -------
    guess : uint32, shape (queries,)
    share : int32, shape (10 * queries,)
    lambda_ : int32, shape (queries, 1)

    Notes
    -----
    1 <= queries <= 4096
    samples >= 1
    1 <= k <= 99
    k <= samples
    """
    _check("test_images", test_images, np.uint8, ("queries", 64))
    queries = test_images.shape[0]
    _check("class_", class_, np.float32, ("samples", 64))
    samples = class_.shape[0]
    _check("labels", labels, np.uint32, (samples,))
    _check("votes", votes, np.int32, ("k",))
    k = votes.shape[0]
    _require(
        1 <= queries <= 4096, f"queries (axis 0 of test_images) must be 1 to 4096, not {queries}"
    )
    _require(samples >= 1, f"samples (axis 0 of class_) must be 1 or more, not {samples}")
    _require(1 <= k <= 99, f"k (axis 0 of votes) must be 1 to 99, not {k}")
    _require(
        k <= samples,
        f"k <= samples does not hold for k = {k} (axis 0 of votes), samples = "
        f"{samples} (axis 0 of class_): k is k, axis 1 has samples elements",
    )
    with np.errstate(all="ignore"):
        x = test_images.astype(np.float32)
        squares = np.squeeze(_dot(class_, class_, axes=(1,)), axis=1)
        distances = squares - x @ class_.T * 2.0
        _, indices = _top_k(distances, k=k, axis=1, largest=False, dtype=np.uint32)
        found = _gather(labels, indices, axis=0)
        one_hot = _one_hot(found, depth=10, axis=2).astype(np.int32)
        reshape = votes.reshape(k, 1)

        def part(one_hot):
            counts = np.sum(one_hot * reshape, axis=1, dtype=np.int32)
            return counts

        counts = _by_parts(part, (one_hot,), axes=(0,))
        div = _divide(counts * 100, np.sum(votes, axis=0, keepdims=True, dtype=np.int32))
        guess = np.argmax(counts, axis=1).astype(np.uint32)
        share = div.reshape(10 * queries)
        lambda_ = _divide(np.sum(counts, axis=1, keepdims=True, dtype=np.int64), np.int64(10))
        lambda_ = lambda_.astype(np.int32)
    return guess, share, lambda_


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


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient of integers, truncated toward zero."""
    floor = a // b
    return floor + ((floor * b != a) & ((a < 0) != (b < 0)))


def _one_hot(indices: np.ndarray, depth: int, axis: int) -> np.ndarray:
    """A new axis that is true at the index; false everywhere where that is out of range."""
    index = np.expand_dims(indices.astype(np.int64), axis)
    if indices.dtype.kind == "i":
        index = np.where(index < 0, index + depth, index)
    places = np.arange(depth).reshape([depth] + [1] * (indices.ndim - axis))
    return index == places


def _within(indices: np.ndarray, size: int) -> np.ndarray:
    """Indices that count from 0: negative ones wrap, others beyond an end go to that end."""
    indices = indices.astype(np.int64)
    return np.clip(np.where(indices < 0, indices + size, indices), 0, size - 1)


def _gather(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """The slices of x at the indices along the axis."""
    if x.shape[axis] == 0:
        return np.zeros(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)
    return np.take(x, _within(indices, x.shape[axis]), axis=axis)


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


def _dot(x: np.ndarray, y: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The sum of x * y over the axes, kept as size 1; down first axes rows are added as in np.sum."""
    kept, below = x.shape[: min(axes)], x.shape[max(axes) + 1 :]
    if x.shape != y.shape or max(axes) - min(axes) + 1 != len(axes) or x.size == 0:
        return np.sum(x * y, axis=axes, keepdims=True)
    if below:
        shape = int(np.prod(kept)), -1, int(np.prod(below))
        total = np.einsum("ijk,ijk->ik", x.reshape(shape), y.reshape(shape))
        return total.reshape(*kept, *[1] * len(axes), *below)
    return _dots(x.reshape(*kept, -1), y.reshape(*kept, -1)).reshape(*kept, *[1] * len(axes))
