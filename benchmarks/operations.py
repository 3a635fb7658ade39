"""The operations that all libraries are asked for: as naive NumPy, as a program of dmlc, and by name in a peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import dmlc


@dataclass(frozen=True)
class Operation:
    """``argmax``, ``hardmax``, ``sum``, ``mean``, ``max``, ``softmax``, ``logsumexp``, ``variance``, ``l2``,
    ``layernorm``, ``several`` (sum, max, mean and l2 of one input) or ``dot`` (of two), over axes."""

    name: str
    axes: tuple[int, ...]

    @property
    def exact(self) -> bool:
        return self.name in ("argmax", "hardmax", "max")


def kept(rank: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The axes that are not reduced."""
    return tuple(a for a in range(rank) if a not in axes)


def last(rank: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The order that brings the reduced axes to the end."""
    return (*kept(rank, axes), *axes)


def sizes(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[a] for a in axes)


def back(order: Sequence[int]) -> tuple[int, ...]:
    """The order that undoes an order."""
    return tuple(int(n) for n in np.argsort(order))


def naive(operation: Operation, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The expression that comes to mind in NumPy; reduced axes are gone."""
    x, axes = arrays[0], operation.axes
    name = operation.name
    if name == "argmax":
        return [_argmax(x, axes)]
    if name == "hardmax":
        return [_hardmax(x, axes)]
    if name in ("sum", "mean", "max"):
        return [getattr(np, name)(x, axis=axes)]
    if name == "softmax":
        e = np.exp(x - x.max(axis=axes, keepdims=True))
        return [e / e.sum(axis=axes, keepdims=True)]
    if name == "logsumexp":
        top = x.max(axis=axes, keepdims=True)
        return [(np.log(np.exp(x - top).sum(axis=axes, keepdims=True)) + top).squeeze(axes)]
    if name == "variance":
        return [np.mean((x - x.mean(axis=axes, keepdims=True)) ** 2, axis=axes)]
    if name == "layernorm":
        centred = x - x.mean(axis=axes, keepdims=True)
        return [centred / np.sqrt(np.mean(centred**2, axis=axes, keepdims=True) + np.float32(1e-5))]
    if name == "l2":
        return [np.sqrt(np.sum(x * x, axis=axes))]
    if name == "several":
        return [x.sum(axes), x.max(axes), x.mean(axes), np.sqrt(np.sum(x * x, axis=axes))]
    if name == "dot":
        return [np.sum(x * arrays[1], axis=axes)]
    raise ValueError(name)


def _argmax(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    if len(axes) == 1:
        return np.asarray(np.argmax(x, axis=axes[0]))
    keep = kept(x.ndim, axes)
    merged = np.transpose(x, last(x.ndim, axes)).reshape((*sizes(x.shape, keep), -1))
    return np.asarray(np.argmax(merged, axis=-1))


def _hardmax(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    order = last(x.ndim, axes)
    moved = np.transpose(x, order)
    flat = moved.reshape((*sizes(x.shape, kept(x.ndim, axes)), -1))
    out = np.zeros_like(flat)
    np.put_along_axis(out, np.argmax(flat, axis=-1)[..., None], 1, axis=-1)
    return np.transpose(out.reshape(moved.shape), back(order))


def written(operation: Operation, shapes: Sequence[Sequence[int]]) -> dmlc.Graph:
    """The operation in dmlc's builder."""
    graph = dmlc.Graph("model")
    x = graph.input("x", dtype="f32", shape=tuple(shapes[0]))
    axes, name = operation.axes, operation.name
    if name == "argmax":
        y = dmlc.argmax(x, axes=axes, dtype="i64", keepdims=False)
    elif name in ("hardmax", "softmax"):
        y = getattr(dmlc, name)(x, axes=axes)
    elif name in ("sum", "mean", "max", "l2"):
        y = getattr(dmlc, f"reduce_{name}")(x, axes=axes, keepdims=False)
    elif name == "logsumexp":
        y = dmlc.reduce_log_sum_exp(x, axes=axes, keepdims=False)
    elif name == "variance":
        centred = x - dmlc.reduce_mean(x, axes=axes)
        y = dmlc.reduce_mean(centred * centred, axes=axes, keepdims=False)
    elif name == "layernorm":
        centred = x - dmlc.reduce_mean(x, axes=axes)
        y = centred / dmlc.sqrt(dmlc.reduce_mean(centred * centred, axes=axes) + 1e-5)
    elif name == "dot":
        other = graph.input("b", dtype="f32", shape=tuple(shapes[1]))
        y = dmlc.reduce_sum(x * other, axes=axes, keepdims=False)
    else:
        for each in ("sum", "max", "mean", "l2"):
            graph.output(each, getattr(dmlc, f"reduce_{each}")(x, axes=axes, keepdims=False))
        return graph
    graph.output("y", y)
    return graph


def feeds(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the names of the inputs."""
    return dict(zip(("x", "b"), arrays, strict=False))


def random(shape: Sequence[int], seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype, copy=False)
