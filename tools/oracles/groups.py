"""Selections, reductions, normalisations and scans: each group of elements as a Python list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tools.oracles.core import INTEGERS, NUMPY, bits, build, element, groups, wrap


def _members(x: np.ndarray, places: Sequence[tuple[int, ...]]) -> list[Any]:
    return [element(x, at) for at in places]


def _by_group(x: np.ndarray, axes: Sequence[int], dtype: str, rule: Callable[[list[Any]], Any]) -> np.ndarray:
    """One result a group, with the axes kept as size 1."""
    found = {outer: rule(_members(x, places)) for outer, places in groups(x.shape, axes)}
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    return build(shape, dtype, lambda at: found[at])


def _within_group(x: np.ndarray, axes: Sequence[int], dtype: str, rule: Callable[[list[Any]], list[Any]]) -> np.ndarray:
    """One result an element."""
    found: dict[tuple[int, ...], Any] = {}
    for _, places in groups(x.shape, axes):
        found.update(zip(places, rule(_members(x, places)), strict=True))
    return build(x.shape, dtype, lambda at: found[at])


# --- selection, from the DirectML pages (no NaN among the elements)


def _best(values: list[Any], better: Callable[[Any, Any], bool], last: bool) -> int:
    best = 0
    for i in range(1, len(values)):
        if better(values[i], values[best]) or (last and values[i] == values[best]):
            best = i
    return best


def arg(x: np.ndarray, axes: Sequence[int], *, largest: bool, last: bool, dtype: str) -> np.ndarray:
    def better(a: Any, b: Any) -> bool:
        return bool(a > b if largest else a < b)

    return _by_group(x, axes, dtype, lambda values: _best(values, better, last))


def top_k(x: np.ndarray, k: int, axis: int, *, largest: bool, name: str, index: str) -> tuple[np.ndarray, np.ndarray]:
    """Chosen one by one: the best that is left, the first of equals."""
    picks: dict[tuple[int, ...], tuple[Any, int]] = {}
    for _, places in groups(x.shape, [axis]):
        values = _members(x, places)
        left = list(range(len(values)))
        for i in range(k):
            best = left[0]
            for j in left:
                if (values[j] > values[best]) if largest else (values[j] < values[best]):
                    best = j
            left.remove(best)
            at = list(places[0])
            at[axis] = i
            picks[tuple(at)] = (values[best], best)
    shape = [k if i == axis else n for i, n in enumerate(x.shape)]
    return build(shape, name, lambda at: picks[at][0]), build(shape, index, lambda at: picks[at][1])


def hardmax(x: np.ndarray, axes: Sequence[int], dtype: str) -> np.ndarray:
    def rule(values: list[Any]) -> list[int]:
        best = _best(values, lambda a, b: a > b, False)
        return [int(i == best) for i in range(len(values))]

    return _within_group(x, axes, dtype, rule)


# --- reductions


def _lowest(dtype: str) -> Any:
    if dtype in INTEGERS:
        return 0 if dtype[0] == "u" else -(2 ** (bits(dtype) - 1))
    return False if dtype == "bool" else -math.inf


def _highest(dtype: str) -> Any:
    if dtype in INTEGERS:
        return 2 ** bits(dtype) - 1 if dtype[0] == "u" else 2 ** (bits(dtype) - 1) - 1
    return True if dtype == "bool" else math.inf


def _mean(values: list[Any], dtype: str) -> Any:
    if not values:
        return math.nan
    total = sum(values) if dtype in INTEGERS else math.fsum(values)
    if dtype in INTEGERS:
        return -(-total // len(values)) if total < 0 else total // len(values)
    return total / len(values)


def _prod(values: list[Any]) -> Any:
    out = 1
    for v in values:
        out *= v
    return out


def _l1(values: list[Any], dtype: str) -> Any:
    if dtype in INTEGERS:
        return sum(wrap(abs(v), dtype) for v in values)
    return math.fsum(map(abs, values))


def _extreme(values: list[Any], start: Any, larger: bool) -> Any:
    best = start
    for v in values:
        if (v > best) if larger else (v < best):
            best = v
    return best


def _log(x: float) -> float:
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


REDUCE: dict[str, Callable[[list[Any], str], Any]] = {
    "reduce_sum": lambda v, t: sum(v) if t in INTEGERS else math.fsum(v),
    "reduce_mean": _mean,
    "reduce_max": lambda v, t: _extreme(v, _lowest(t), True),
    "reduce_min": lambda v, t: _extreme(v, _highest(t), False),
    "reduce_prod": lambda v, t: _prod(v),
    "reduce_l1": _l1,
    "reduce_l2": lambda v, t: math.sqrt(math.fsum(x * x for x in v)),
    "reduce_sum_square": lambda v, t: sum(x * x for x in v),
    "reduce_log_sum": lambda v, t: _log(math.fsum(v)),
    "reduce_log_sum_exp": lambda v, t: _log(math.fsum(math.exp(x) for x in v)),
}


def reduce(name: str, x: np.ndarray, axes: Sequence[int], dtype: str) -> np.ndarray:
    return _by_group(x, axes, dtype, lambda values: REDUCE[name](values, dtype))


# --- normalisation


def softmax(x: np.ndarray, axes: Sequence[int], dtype: str, *, logarithm: bool = False) -> np.ndarray:
    def rule(values: list[float]) -> list[float]:
        peak = max(values)
        total = math.fsum(math.exp(v - peak) for v in values)
        return [v - peak - math.log(total) if logarithm else math.exp(v - peak) / total for v in values]

    return _within_group(x, axes, dtype, rule)


def mean_variance(
    x: np.ndarray, axes: Sequence[int], dtype: str, epsilon: float, *, variance: bool = True
) -> np.ndarray:
    def rule(values: list[float]) -> list[float]:
        mean = math.fsum(values) / len(values)
        spread = math.fsum((v - mean) ** 2 for v in values) / len(values)
        return [(v - mean) / (math.sqrt(spread + epsilon) if variance else 1) for v in values]

    return _within_group(x, axes, dtype, rule)


def rms(x: np.ndarray, axes: Sequence[int], dtype: str, epsilon: float) -> np.ndarray:
    def rule(values: list[float]) -> list[float]:
        square = math.fsum(v * v for v in values) / len(values)
        return [v / math.sqrt(square + epsilon) for v in values]

    return _within_group(x, axes, dtype, rule)


def lp(x: np.ndarray, axis: int, dtype: str, p: int) -> np.ndarray:
    def rule(values: list[float]) -> list[float]:
        norm = math.fsum(map(abs, values)) if p == 1 else math.sqrt(math.fsum(v * v for v in values))
        return [v / norm if norm else 0.0 for v in values]

    return _within_group(x, [axis], dtype, rule)


# --- scans


def scan(x: np.ndarray, axis: int, dtype: str, *, multiply: bool, exclusive: bool, reverse: bool) -> np.ndarray:
    def rule(values: list[Any]) -> list[Any]:
        total: Any = 1 if multiply else 0
        out: list[Any] = []
        for v in reversed(values) if reverse else values:
            after = total * v if multiply else total + v
            out.append(total if exclusive else after)
            total = after
        return out[::-1] if reverse else out

    return _within_group(x, [axis], dtype, rule)


def _of_rank(x: np.ndarray, rank: int) -> np.ndarray:
    return x.reshape([1] * (rank - x.ndim) + list(x.shape))


def matmul(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """Sums of products over the shared axis; vectors are a row on the left and a column on the right."""
    left: np.ndarray = a.reshape(1, *a.shape) if a.ndim == 1 else a
    right: np.ndarray = b.reshape(*b.shape, 1) if b.ndim == 1 else b
    rank = max(left.ndim, right.ndim)
    left, right = _of_rank(left, rank), _of_rank(right, rank)
    batch = [max(m, n) if m and n else 0 for m, n in zip(left.shape[:-2], right.shape[:-2], strict=True)]

    def rule(at: tuple[int, ...]) -> Any:
        *outer, row, column = at
        lead_a = tuple(0 if n == 1 else i for n, i in zip(left.shape, outer, strict=False))
        lead_b = tuple(0 if n == 1 else i for n, i in zip(right.shape, outer, strict=False))
        terms = [element(left, (*lead_a, row, k)) * element(right, (*lead_b, k, column)) for k in range(left.shape[-1])]
        return sum(terms)

    out = build([*batch, left.shape[-2], right.shape[-1]], dtype, rule)
    shape = list(out.shape)
    if b.ndim == 1:
        del shape[-1]
    if a.ndim == 1:
        del shape[-1 if b.ndim == 1 else -2]
    assert out.dtype == NUMPY[dtype]
    return out.reshape(shape)
