"""JAX, compiled for the CPU; its arrays lie ready, its results are waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import FunctionRun, Runner
from benchmarks.operations import Operation, back, kept, last, sizes


def runners(operation: Operation, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Runner]:
    function = jax.jit(_function(operation, arrays[0].shape))

    def run(*operands: Any) -> Any:
        return jax.block_until_ready(function(*operands))

    return {"jax": FunctionRun(run, *[jax.device_put(a) for a in arrays])}


def _function(operation: Operation, shape: Sequence[int]) -> Callable[..., Any]:
    name, axes = operation.name, operation.axes
    order = last(len(shape), axes)
    outer, inner = sizes(shape, kept(len(shape), axes)), sizes(shape, axes)

    def flat(x: Any) -> Any:
        return jnp.transpose(x, order).reshape((*outer, -1))

    def hardmax(x: Any) -> Any:
        y = flat(x)
        hot = jax.nn.one_hot(jnp.argmax(y, axis=-1), y.shape[-1], dtype=x.dtype)
        return jnp.transpose(hot.reshape((*outer, *inner)), back(order))

    def layernorm(x: Any) -> Any:
        centred = x - x.mean(axes, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5)

    table: dict[str, Callable[..., Any]] = {
        "argmax": lambda x: jnp.argmax(x, axis=axes[0]) if len(axes) == 1 else jnp.argmax(flat(x), axis=-1),
        "hardmax": hardmax,
        "sum": lambda x: x.sum(axes),
        "mean": lambda x: x.mean(axes),
        "max": lambda x: x.max(axes),
        "softmax": lambda x: jax.nn.softmax(x, axis=axes),
        "logsumexp": lambda x: jax.nn.logsumexp(x, axis=axes),
        "variance": lambda x: x.var(axes),
        "layernorm": layernorm,
        "l2": lambda x: jnp.sqrt((x * x).sum(axes)),
        "several": lambda x: (x.sum(axes), x.max(axes), x.mean(axes), jnp.sqrt((x * x).sum(axes))),
        "dot": lambda x, b: (x * b).sum(axes),
    }
    return table[name]
