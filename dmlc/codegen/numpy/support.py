"""Functions that generated files carry a copy of where they need them.

They are source text: ``inspect.getsource`` copies a function, with those it calls, into the file. So each stands
alone with ``np``, keeps to 100 columns and says what it does to a reader of the generated file. Where a scalar may
come in, results are cast at the end: NumPy 1 widens a scalar beside a Python number.
"""

# mypy: disable-error-code="no-any-return"
# Arrays have no element type here: the same function serves all dtypes.

from __future__ import annotations

import numpy as np


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


def _check_range(name: str, array: np.ndarray, low: float, high: float) -> None:
    """Raise ValueError if an element does not lie within the promised bounds, or is NaN."""
    if not np.all((array >= low) & (array <= high)):
        raise ValueError(f"{name} must lie in {low}..{high}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _rows(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The elements of each group along one last axis, row-major over the axes."""
    kept = [i for i in range(x.ndim) if i not in axes]
    length = int(np.prod([x.shape[i] for i in axes]))
    return x.transpose(*kept, *axes).reshape([x.shape[i] for i in kept] + [length])


def _arg(x: np.ndarray, axes: tuple[int, ...], largest: bool, last: bool) -> np.ndarray:
    """The row-major index over the axes of the largest or smallest element.

    Of equal elements it is the first or the last; the axes are dropped.
    """
    rows = _rows(x, axes)
    rows = rows[..., ::-1] if last else rows
    index = np.argmax(rows, axis=-1) if largest else np.argmin(rows, axis=-1)
    return rows.shape[-1] - 1 - index if last else index


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


def _hardmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """1 at the first maximum over the axes together, 0 elsewhere."""
    rows = _rows(x, axes)
    hot = np.zeros_like(rows)
    np.put_along_axis(hot, np.argmax(rows, axis=-1)[..., np.newaxis], 1, axis=-1)
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    return hot.reshape([x.shape[i] for i in order]).transpose(np.argsort(order))


def _integer_mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean of 64-bit integers, exact and truncated toward zero; the axes are dropped.

    Quotients and remainders by the count are summed apart, so that no sum overflows.
    """
    count = np.prod([x.shape[i] for i in axes], dtype=x.dtype)
    quotients, rests = np.divmod(x, count)
    rest = np.sum(rests, axis=axes)
    floor = np.sum(quotients, axis=axes) + rest // count
    return floor + ((floor < 0) & (rest % count != 0))


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient of integers, truncated toward zero."""
    floor = a // b
    return floor + ((floor * b != a) & ((a < 0) != (b < 0)))


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer powers; with a negative exponent all but 1 and -1 truncate to 0."""
    whole = np.power(a, b * (b > 0))
    return np.where(b < 0, np.power(a, b & 1) * (np.abs(a) == 1), whole).astype(a.dtype)


def _erf(x: np.ndarray) -> np.ndarray:
    """The error function in float64, from a Chebyshev series of erf(z) / z in z * z up to 6."""
    # fmt: off
    series = [
        0.367449818042992, -0.31346560667104406, 0.18068036754729297, -0.10948259780540116,
        0.06650028321506818, -0.0397628416152263, 0.023194768790993588, -0.013132045071459708,
        0.007193664033012412, -0.003805440047020257, 0.0019417349790361435,
        -0.0009550486382425634, 0.00045268145600345204, -0.00020677121401621907,
        9.103378630424625e-05, -3.864376344861996e-05, 1.5824027438876403e-05,
        -6.253838171562172e-06, 2.386845548862012e-06, -8.802851959574693e-07,
        3.1392692693417673e-07, -1.0832563596400346e-07, 3.619311734690902e-08,
        -1.1716764549277863e-08, 3.6776422490784716e-09, -1.119956011908256e-09,
        3.3112128776045585e-10, -9.510584528579965e-11, 2.655426660738333e-11,
        -7.2116504210327656e-12, 1.9061956015534205e-12, -4.906644970425955e-13,
        1.2306392983660209e-13, -3.009145261936385e-14, 7.177145113765522e-15,
        -1.6706262049115716e-15, 3.797008593690607e-16, -8.430385922536826e-17,
        1.8293595456022488e-17,
    ]
    # fmt: on
    z = np.clip(x.astype(np.float64), -6, 6)
    return np.clip(z * np.polynomial.chebyshev.chebval(z * z / 18 - 1, series), -1, 1)


def _gelu(x: np.ndarray) -> np.ndarray:
    """x * (1 + erf(x / sqrt(2))) / 2 in float64."""
    return x * (1 + _erf(x * np.sqrt(0.5))) / 2


def _tanh_gelu(x: np.ndarray) -> np.ndarray:
    """GELU by its tanh approximation in float64: (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 * u))."""
    x = x.astype(np.float64)
    u = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return x / (1 + np.exp(-2 * u))


def _softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """exp(x) over its sum, over the axes together; the maximum is taken out first."""
    powers = np.exp(x - np.max(x, axis=axes, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axes, keepdims=True)


def _log_softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """The logarithm of softmax over the axes together; the maximum is taken out first."""
    shifted = x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axes, keepdims=True))


def _log_sum_exp(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """The logarithm of the sum of exponentials, axes kept; the maximum is taken out first."""
    peak = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0)
    return np.log(np.sum(np.exp(x - shift), axis=axes, keepdims=True)) + shift


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean over the axes, kept as size 1; NaN where there is nothing."""
    count = int(np.prod([x.shape[i] for i in axes]))
    return np.sum(x, axis=axes, keepdims=True) / count


def _root_mean_square(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """The root of the mean of squares plus epsilon, axes kept as size 1."""
    return np.sqrt(_mean(np.square(x), axes) + epsilon)


def _standardize(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """x less its mean, over the root of its variance plus epsilon."""
    centred = x - _mean(x, axes)
    return centred / np.sqrt(_mean(np.square(centred), axes) + epsilon)


def _length(x: np.ndarray, order: int, axis: int) -> np.ndarray:
    """The norm along an axis, which stays as size 1; 1 where it is 0, so that zeros stay zeros."""
    length = np.linalg.norm(x, ord=order, axis=axis, keepdims=True)
    return np.where(length == 0, 1, length)


def _scan(add: np.ufunc, x: np.ndarray, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    """Running sums or products; without the element itself if exclusive, from the end if reverse."""
    x = np.moveaxis(x, axis, -1)
    if reverse:
        x = x[..., ::-1]
    if exclusive:
        first = np.full_like(x[..., :1], add.identity)
        x = np.concatenate([first, x[..., :-1]], axis=-1)
    out = add.accumulate(x, axis=-1, dtype=x.dtype)
    if reverse:
        out = out[..., ::-1]
    return np.moveaxis(out, -1, axis)


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


def _gather_batch(x: np.ndarray, indices: np.ndarray, axis: int, batch_axes: int) -> np.ndarray:
    """The slices of x at the indices along the axis, where the first axes of both run together."""
    inner = indices.shape[batch_axes:]
    shape = x.shape[:axis] + inner + x.shape[axis + 1 :]
    if x.shape[axis] == 0:
        return np.zeros(shape, x.dtype)
    rows = [1] * (axis - batch_axes) + [int(np.prod(inner))] + [1] * (x.ndim - axis - 1)
    places = _within(indices, x.shape[axis]).reshape([*indices.shape[:batch_axes], *rows])
    return np.take_along_axis(x, places, axis).reshape(shape)


def _beside(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """The part of x that indices of this shape reach along the axis."""
    return x[tuple([slice(None if i == axis else n) for i, n in enumerate(indices.shape)])]


def _gather_along(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """For each index the element of x at its own place, but along the axis where the index says."""
    if x.shape[axis] == 0:
        return np.zeros(indices.shape, x.dtype)
    places = _within(indices, x.shape[axis])
    return np.take_along_axis(_beside(x, indices, axis), places, axis)


def _scatter(x: np.ndarray, indices: np.ndarray, new: np.ndarray, axis: int) -> np.ndarray:
    """x with new elements at their own places, but along the axis where the indices say."""
    out = x.copy()
    if x.shape[axis]:
        places = _within(indices, x.shape[axis])
        np.put_along_axis(_beside(out, indices, axis), places, new, axis)
    return out
