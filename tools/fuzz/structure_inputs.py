"""Draw inputs for a model from its declarations: small numbers with ties, other values for what has a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, ValueInfoProto, helper, numpy_helper

Feeds = dict[str, np.ndarray]
#: No fed size or axis is larger, so that no result is large.
_MOST = 8


def draw(model: ModelProto, rng: np.random.Generator, turn: int, found: ort.InferenceSession) -> Feeds:
    """Inputs of the session. Every other turn also feeds initializers that are inputs, integers included."""
    sizes: dict[str, int] = {}
    needed = {i.name for i in found.get_inputs()}
    feeds: Feeds = {}
    for info in model.graph.input:
        if info.name in needed:
            feeds[info.name] = _input(info, rng, sizes, turn)
    overridable = {i.name for i in found.get_overridable_initializers()}
    if turn % 2 and overridable:
        held = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in overridable}
        some = sorted(held)
        few = rng.permutation(some)[: max(1, int(rng.integers(0, len(some) + 1)))]
        feeds.update({str(name): other_value(held[str(name)], rng) for name in few})
    return feeds


def _input(info: ValueInfoProto, rng: np.random.Generator, sizes: dict[str, int], turn: int) -> np.ndarray:
    tensor = info.type.tensor_type
    shape = []
    for d in tensor.shape.dim:
        if d.dim_param:
            shape.append(sizes.setdefault(d.dim_param, int(rng.choice((1, 2, 2, 3, 3, 4, 5)))))
        elif d.HasField("dim_value"):
            shape.append(d.dim_value)
        else:
            shape.append(int(rng.choice((1, 2, 3, 4))))
    return numbers(np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape, rng, turn)


def numbers(dtype: np.dtype[Any], shape: list[int], rng: np.random.Generator, turn: int) -> np.ndarray:
    """Numbers that are finite and small; some turns have many ties, others have none."""
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        low, high = (0, 4) if dtype.kind == "u" or turn % 3 == 0 else (-3, 5)
        return np.asarray(rng.integers(low, high, shape)).astype(dtype)
    if turn % 3 == 0:
        return np.asarray(rng.integers(-2, 4, shape) / 2).astype(dtype)
    if turn % 3 == 1:
        return np.asarray(rng.normal(0, 1.5, shape)).astype(dtype)
    return np.asarray(rng.uniform(0.1, 3, shape)).astype(dtype)


def other_value(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Another value of the same dtype, and most often of the same shape, that the same place may take."""
    if array.dtype == np.bool_:
        return np.asarray(~array)
    if array.dtype.kind == "f":
        turn = rng.integers(3)
        if turn == 0:
            return np.asarray(array[::-1] if array.ndim else array + array.dtype.type(1))
        factor = rng.choice((0.5, 2, -1, 1.5), array.shape)
        return (
            np.asarray(array * factor).astype(array.dtype)
            if turn == 1
            else numbers(array.dtype, list(array.shape), rng, int(rng.integers(3)))
        )
    if array.dtype.kind in "iu":
        return _other_integers(array, rng)
    return array


def _other_integers(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turn = rng.integers(4)
    flat = array.reshape(-1).copy()
    if turn == 0 and flat.size > 1:
        flat = rng.permutation(flat)
    elif turn == 1 and flat.size:
        place = int(rng.integers(flat.size))
        if abs(int(flat[place])) <= _MOST:
            flat[place] += rng.choice((-1, 1)) if array.dtype.kind == "i" else 1
    elif turn == 2 and flat.size > 1:  # the same product
        a, b = rng.permutation(flat.size)[:2]
        if flat[a] > 1 and flat[a] % 2 == 0 and abs(int(flat[b])) <= _MOST:
            flat[a], flat[b] = flat[a] // 2, flat[b] * 2
        else:
            flat[a], flat[b] = flat[b], flat[a]
    elif flat.size and abs(int(flat.max(initial=0))) <= _MOST:
        flat = rng.integers(0, 3, flat.shape).astype(array.dtype)
    return np.reshape(flat, array.shape)


def told(feeds: Mapping[str, np.ndarray]) -> str:
    """The shapes that were fed."""
    return ", ".join(f"{name}{list(array.shape)}" for name, array in feeds.items())
