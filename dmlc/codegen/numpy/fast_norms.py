"""Support functions of the fast style for normalisation and sums of products; see ``support`` for how files get a copy.

They write over what they no longer need, and leave sums of products to the dot products of the BLAS.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np


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


def _log_softmax(
    x: np.ndarray,
    axes: tuple[int, ...],
    out: np.ndarray | None = None,
) -> np.ndarray:
    """The logarithm of softmax over the axes together; the maximum is taken out first."""
    shifted = x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    total = _sum(np.exp(shifted), axes)
    return np.subtract(shifted, np.log(total), out=shifted if out is None else out)


def _log_sum_exp(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The logarithm of the sum of exponentials, axes kept; the maximum is taken out if need be."""
    total = _sum(np.exp(x), axes)
    if total.size and np.min(total) > 1e-20 and np.max(total) < np.inf:
        return np.log(total)
    peak = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0)
    powers = x - shift
    np.exp(powers, out=powers)
    return np.log(_sum(powers, axes)) + shift


def _root_mean_square(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """The root of the mean of squares plus epsilon, axes kept as size 1."""
    count = int(np.prod([x.shape[i] for i in axes]))
    return np.sqrt(_dot(x, x, axes) / count + epsilon)


def _standardize(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """x less its mean, over the root of its variance plus epsilon."""
    count = int(np.prod([x.shape[i] for i in axes]))
    out = x - _sum(x, axes) / count
    out /= _root_mean_square(out, axes, epsilon)
    return out
