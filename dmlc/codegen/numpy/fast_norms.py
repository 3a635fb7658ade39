"""Support functions of the fast style for normalisation and sums of products; see ``support`` for how files get a copy.

They write over what they no longer need, and leave sums of products to the dot products of the BLAS.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np


def _sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The sum over the axes, kept as size 1.

    For short rows einsum has far less to do than np.sum, and is no less exact; longer ones are
    left to np.sum, which adds in pairs.
    """
    if len(axes) == 1 and axes[0] == x.ndim - 1 and x.shape[-1] * x.itemsize <= 1024:
        return np.einsum("...i->...", x)[..., np.newaxis]
    return np.sum(x, axis=axes, keepdims=True)


def _is_tame(x: np.ndarray) -> bool:
    """Whether exp(x) and sums of it are far from the ends of the range."""
    return x.size > 0 and np.min(x) >= -60 and np.max(x) <= 60


def _softmax(
    x: np.ndarray,
    axes: tuple[int, ...],
    out: np.ndarray | None = None,
) -> np.ndarray:
    """exp(x) over its sum, over the axes together; the maximum is taken out first if need be."""
    if _is_tame(x):
        out = np.exp(x, out=out)
    else:
        out = np.subtract(x, np.max(x, axis=axes, keepdims=True, initial=-np.inf), out=out)
        np.exp(out, out=out)
    out /= _sum(out, axes)
    return out


def _log_softmax(
    x: np.ndarray,
    axes: tuple[int, ...],
    out: np.ndarray | None = None,
) -> np.ndarray:
    """The logarithm of softmax over the axes together; the maximum is taken out first."""
    out = np.subtract(x, np.max(x, axis=axes, keepdims=True, initial=-np.inf), out=out)
    out -= np.log(_sum(np.exp(out), axes))
    return out


def _log_sum_exp(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The logarithm of the sum of exponentials, axes kept; as in softmax the maximum is taken out."""
    if _is_tame(x):
        return np.log(_sum(np.exp(x), axes))
    peak = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0)
    powers = x - shift
    np.exp(powers, out=powers)
    return np.log(_sum(powers, axes)) + shift


def _dot(x: np.ndarray, y: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The sum of x * y over the axes, kept as size 1; there are no products in memory.

    Along last axes it is made of dot products of up to 1024 elements, which are no less exact than
    NumPy's sums; down first axes the rows are added up as NumPy does.
    """
    kept, below = x.shape[: min(axes)], x.shape[max(axes) + 1 :]
    if x.shape != y.shape or max(axes) - min(axes) + 1 != len(axes) or x.size == 0:
        return np.sum(x * y, axis=axes, keepdims=True)
    if below:
        shape = int(np.prod(kept)), -1, int(np.prod(below))
        total = np.einsum("ijk,ijk->ik", x.reshape(shape), y.reshape(shape))
        return total.reshape(*kept, *[1] * len(axes), *below)
    x, y = x.reshape(*kept, -1), y.reshape(*kept, -1)
    whole = x.shape[-1] // 1024 * 1024
    total = np.zeros(kept, x.dtype)
    if whole:
        left = x[..., :whole].reshape(*kept, -1, 1, 1024)
        right = y[..., :whole].reshape(*kept, -1, 1024, 1)
        total += np.sum(np.matmul(left, right), axis=(-3, -2, -1))
    if whole < x.shape[-1]:
        rest = np.matmul(x[..., np.newaxis, whole:], y[..., whole:, np.newaxis])
        total += rest[..., 0, 0]
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
