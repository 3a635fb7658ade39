"""Element-by-element oracles: coordinates in plain Python loops, numbers as Python's own. Nothing here is dmlc's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from operator import add
from typing import Any

import numpy as np

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "f32", "f64")
NUMERIC = (*FLOATS, *INTEGERS)
ALL = (*NUMERIC, "bool")
INDEX = ("i32", "i64", "u32", "u64")

NUMPY = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_,
}  # fmt: skip

#: Relative tolerance of a result: some units in the last place of the dtype. The oracles compute in f64, so
#: f16 differs by its one rounding, f32 by the few operations of a formula.
TOLERANCE = {"f16": 2**-10, "f32": 2e-6, "f64": 1e-13}


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def bits(dtype: str) -> int:
    return int(dtype[1:])


def wrap(value: int, dtype: str) -> int:
    """Modulo 2^n into the range of the integer type."""
    value %= 2 ** bits(dtype)
    if dtype[0] == "i" and value >= 2 ** (bits(dtype) - 1):
        value -= 2 ** bits(dtype)
    return value


def coordinates(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All coordinates, row-major."""
    return product(*[range(n) for n in shape])


def build(shape: Sequence[int], dtype: str, rule: Callable[[tuple[int, ...]], Any]) -> np.ndarray:
    """The array whose element at each coordinate is what the rule says; integers wrap."""
    out: np.ndarray = np.empty(tuple(shape), dtype=NUMPY[dtype])
    with np.errstate(over="ignore"):
        for at in coordinates(shape):
            value = rule(at)
            out[at] = wrap(int(value), dtype) if dtype in INTEGERS else value
    return out


def element(x: np.ndarray, at: tuple[int, ...]) -> Any:
    """One element as a Python number."""
    return x.item(at)


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    rank = max(len(s) for s in shapes)
    out: list[int] = []
    for axis in range(1, rank + 1):
        sizes = {s[-axis] for s in shapes if len(s) >= axis} - {1}
        assert len(sizes) <= 1
        out.insert(0, sizes.pop() if sizes else 1)
    return tuple(out)


def broadcast_at(shape: Sequence[int], at: tuple[int, ...]) -> tuple[int, ...]:
    """The coordinate in an operand of that shape for a coordinate of the result."""
    tail = at[len(at) - len(shape) :]
    return tuple(0 if size == 1 else i for size, i in zip(shape, tail, strict=True))


def groups(shape: Sequence[int], axes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Each coordinate of the kept axes (reduced ones 0) with the coordinates of its group, row-major over the axes."""
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    inner = list(coordinates([n if i in axes else 1 for i, n in enumerate(shape)]))
    for outer in coordinates(kept):
        yield outer, [tuple(map(add, outer, part)) for part in inner]


def sample(dtype: str, shape: Sequence[int], seed: int = 0, *, full: bool = False) -> np.ndarray:
    """Small numbers with ties and both signs; ``full`` spreads integers over the whole range."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, tuple(shape)), np.bool_)
    if is_float(dtype):
        return np.asarray(rng.integers(-12, 13, tuple(shape)) / 4, NUMPY[dtype])
    info = np.iinfo(NUMPY[dtype])
    if full:
        return np.asarray(rng.integers(info.min, info.max, tuple(shape), dtype=NUMPY[dtype], endpoint=True))
    return np.asarray(rng.integers(max(info.min, -6), 7, tuple(shape)), NUMPY[dtype])


def same(actual: np.ndarray, expected: np.ndarray, *, times: float = 1.0) -> None:
    """Equal dtype and shape; integers and bools exactly, floats within the tolerance of their dtype.

    ``times`` widens it for sums of many terms; the absolute part allows for cancellation among terms near 1.
    """
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    name = next((n for n in FLOATS if NUMPY[n] == actual.dtype), None)
    if name is None:
        np.testing.assert_array_equal(actual, expected)
    else:
        limit = TOLERANCE[name] * times
        np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=limit, atol=limit)
