"""Support functions of the fast style for normalisation and sums of products; see ``support`` for how files get a copy.

They write over what they no longer need, and leave sums of products to the dot products of the BLAS.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np


def _softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """exp(x) over its sum, over the axes together; the maximum is taken out first."""
    out = x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    np.exp(out, out=out)
    out /= np.sum(out, axis=axes, keepdims=True)
    return out


def _log_softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """The logarithm of softmax over the axes together; the maximum is taken out first."""
    out = x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    out -= np.log(np.sum(np.exp(out), axis=axes, keepdims=True))
    return out


def _log_sum_exp(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """The logarithm of the sum of exponentials, axes kept; the maximum is taken out first."""
    peak = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0)
    powers = x - shift
    np.exp(powers, out=powers)
    return np.log(np.sum(powers, axis=axes, keepdims=True)) + shift


def _dot(x: np.ndarray, y: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The sum of x * y over the axes, kept as size 1; there are no products in memory.

    Along last axes it is made of dot products of up to 1024 elements, which are no less exact than
    NumPy's sums; down first axes the rows are added up as NumPy does.
    """
    kept = x.shape[: min(axes)]
    if x.shape != y.shape or max(axes) - min(axes) + 1 != len(axes) or x.size == 0:
        return np.sum(x * y, axis=axes, keepdims=True)
    below = x.shape[max(axes) + 1 :]
    if below:
        shape = int(np.prod(kept)), -1, int(np.prod(below))
        total = np.einsum("ijk,ijk->ik", x.reshape(shape), y.reshape(shape))
        return total.reshape(*kept, *[1] * len(axes), *below)
    count = int(np.prod(kept, dtype=np.int64))
    x, y = x.reshape(count, -1), y.reshape(count, -1)
    whole = x.shape[1] // 1024 * 1024
    total = np.matmul(x[:, np.newaxis, whole:], y[:, whole:, np.newaxis]).reshape(count)
    if whole:
        left = x[:, :whole].reshape(count, -1, 1, 1024)
        right = y[:, :whole].reshape(count, -1, 1024, 1)
        total += np.sum(np.matmul(left, right), axis=(1, 2, 3))
    return total.reshape(*kept, *[1] * len(axes))


def _root_mean_square(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """The root of the mean of squares plus epsilon, axes kept as size 1."""
    count = int(np.prod([x.shape[i] for i in axes]))
    return np.sqrt(_dot(x, x, axes) / count + epsilon)


def _standardize(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """x less its mean, over the root of its variance plus epsilon."""
    count = int(np.prod([x.shape[i] for i in axes]))
    out = x - np.sum(x, axis=axes, keepdims=True) / count
    out /= _root_mean_square(out, axes, epsilon)
    return out
