"""The operators of the machine that look up elements by an index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray


class Invalid(AssertionError):
    """The file says something that DxDispatch or DirectML refuses, or that their pages leave open."""


def need(holds: bool, what: str) -> None:
    if not holds:
        raise Invalid(what)


def kept(sizes: tuple[int, ...], axes: list[int]) -> list[int]:
    return [1 if i in axes else n for i, n in enumerate(sizes)]


def indices_of(i: Array, size: int) -> Array:
    wide_index = i.astype(object)
    index = np.where(wide_index < 0, wide_index + size, wide_index).astype(np.int64)
    need(bool(np.all((index >= 0) & (index < size))), "an index is out of range")
    return index


def gather(a: dict[str, Any], outputs: list[Any]) -> Array:
    x, axis = a["InputTensor"], a["Axis"]
    i = a["IndicesTensor"]
    used = i.shape[i.ndim - a["IndexDimensions"] :]
    need(i.size == math.prod(used), "leading sizes are 1")
    index = indices_of(i.reshape(used), x.shape[axis])
    return np.take(x, index, axis).reshape(outputs[0]["Sizes"])


def gather_nd1(a: dict[str, Any], outputs: list[Any]) -> Array:
    """Coordinates along the last axis of the indices; the first axes of both tensors run together."""
    x, i, batch = a["InputTensor"], a["IndicesTensor"], a["BatchDimensionCount"]
    need(a["InputDimensionCount"] == x.ndim and a["IndicesDimensionCount"] == i.ndim == x.ndim, "dimension counts")
    need(0 <= batch < x.ndim and x.shape[:batch] == i.shape[:batch] and i.shape[-1] + batch <= x.ndim, "the batch")
    out = np.zeros((*i.shape[:-1], *x.shape[batch + i.shape[-1] :]), x.dtype)
    for at in np.ndindex(i.shape[:-1]):
        places = [indices_of(i[(*at, k)], x.shape[batch + k]) for k in range(i.shape[-1])]
        out[at] = x[(*at[:batch], *places)]
    return out.reshape(outputs[0]["Sizes"])


def gather_elements(a: dict[str, Any], _: Any) -> Array:
    x, i, axis = a["InputTensor"], a["IndicesTensor"], a["Axis"]
    need(
        all(m == n or d == axis for d, (m, n) in enumerate(zip(i.shape, x.shape, strict=True))), "sizes of the indices"
    )
    return np.take_along_axis(x, indices_of(i, x.shape[axis]), axis)


def scatter(a: dict[str, Any], _: Any) -> Array:
    x, i, axis = a["InputTensor"].copy(), a["IndicesTensor"], a["Axis"]
    need(i.shape == a["UpdatesTensor"].shape, "sizes of the updates")
    need(
        all(m == n or d == axis for d, (m, n) in enumerate(zip(i.shape, x.shape, strict=True))), "sizes of the indices"
    )
    np.put_along_axis(x, indices_of(i, x.shape[axis]), a["UpdatesTensor"], axis)
    return x


def one_hot(a: dict[str, Any], outputs: list[Any]) -> Array:
    i, axis, sizes = a["IndicesTensor"], a["Axis"], outputs[0]["Sizes"]
    off, on = a["ValuesTensor"].reshape(-1)[:2]
    need(i.shape[axis] == 1 and kept(tuple(sizes), [axis]) == list(i.shape), "sizes of the indices")
    number = i.astype(object)
    number = np.where(number < 0, number + sizes[axis], number)
    line = np.arange(sizes[axis]).reshape([-1 if d == axis else 1 for d in range(i.ndim)])
    return np.where(number == line, on, off)
