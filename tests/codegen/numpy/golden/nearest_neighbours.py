"""Model `nearest neighbours` as NumPy code, written by dmlc; it needs NumPy 1.26 or newer."""

import numpy as np


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
        squares = np.sum(np.square(class_), axis=1)
        distances = squares - x @ class_.T * 2.0
        _, indices = _top_k(distances, k=k, axis=1, largest=False, dtype=np.uint32)
        found = _gather(labels, indices, axis=0)
        mul = _one_hot(found, depth=10, axis=2).astype(np.int32) * votes.reshape(k, 1)
        counts = np.sum(mul, axis=1, dtype=np.int32)
        div = _divide(counts * 100, np.sum(votes, axis=0, keepdims=True, dtype=np.int32))
        guess = np.argmax(counts, axis=1).astype(np.uint32)
        share = div.reshape(10 * queries)
        lambda_ = _divide(np.sum(counts, axis=1, keepdims=True, dtype=np.int64), np.int64(10))
        lambda_ = lambda_.astype(np.int32)
    return guess, share, lambda_


def _check(name: str, array: np.ndarray, dtype: type, shape: tuple[int | str, ...]) -> None:
    """Refuse another dtype or shape, and masks; a word in the shape stands for any size."""
    if not isinstance(array, (np.ndarray, np.generic)) or isinstance(array, np.ma.MaskedArray):
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


def _top_k(
    x: np.ndarray, k: int, axis: int, largest: bool = True, dtype: type = np.int64
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest or smallest elements in order, and their indices; ties by ascending index."""
    if largest:
        # A stable ascending sort of the reversed axis, read backwards.
        backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(backwards, axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    indices = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(x, indices, axis=axis), indices.astype(dtype)


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
