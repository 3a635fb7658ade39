"""The four operators over ranks 1 to 8, size-1 axes, negative axes and every dtype of the pages, on all back ends.

The oracle walks the elements one at a time and shares nothing with the package.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np

import dmlc
from tests.rows import each_row

DTYPES = ["float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]
INDICES = ["uint32", "int32", "int64", "uint64"]
BACKENDS = ["reference", "numpy", "cpu"]


def groups(shape: tuple[int, ...], axes: list[int]) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """Result coordinate -> the coordinates of its group, in row-major order."""
    out: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for c in itertools.product(*map(range, shape)):
        out.setdefault(tuple(0 if a in axes else c[a] for a in range(len(shape))), []).append(c)
    return out


def oracle_arg(x: np.ndarray, axes: list[int], largest: bool, last: bool) -> np.ndarray:
    axes = [a % x.ndim for a in axes]
    result = np.zeros([1 if a in axes else n for a, n in enumerate(x.shape)], np.int64)
    for where, members in groups(x.shape, axes).items():
        best = 0
        for i, c in enumerate(members):
            a, b = x[c].item(), x[members[best]].item()
            if (a > b if largest else a < b) or (last and a == b):
                best = i
        result[where] = best
    return result


def oracle_hardmax(x: np.ndarray, axes: list[int]) -> np.ndarray:
    axes = [a % x.ndim for a in axes]
    index = oracle_arg(x, axes, True, False)
    out = np.zeros_like(x)
    for where, members in groups(x.shape, axes).items():
        out[members[index[where]]] = 1
    return out


def oracle_top_k(x: np.ndarray, k: int, axis: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    axis %= x.ndim
    shape = [k if a == axis else n for a, n in enumerate(x.shape)]
    values, indices = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    for where, members in groups(x.shape, [axis]).items():
        order = sorted(range(len(members)), key=lambda i: x[members[i]].item(), reverse=False)
        if largest:
            order = sorted(range(len(members)), key=lambda i: -x[members[i]].item())
        for j, i in enumerate(order[:k]):
            c = (*where[:axis], j, *where[axis + 1 :])
            values[c], indices[c] = x[members[i]], i
    return values, indices


def sample(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Few distinct values, so ties are common; the extremes of the dtype are among them."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        pool = np.array([-np.inf, -2.5, -0.0, 0.0, 1.5, np.inf], kind)
    else:
        info = np.iinfo(kind)
        near = [info.max, info.max - 1, info.min, info.min + 1, 5, info.max // 2, info.max // 2 + 1]
        pool = np.array(near, kind)
    return rng.choice(pool, shape)


def run(op: str, x: np.ndarray, **attributes: Any) -> dict[str, list[np.ndarray]]:
    graph = dmlc.Graph("m")
    value = graph.input("x", dtype=x.dtype, shape=x.shape)
    made = getattr(dmlc, op)(value, **attributes)
    results = list(made) if op == "top_k" else [made]
    for i, r in enumerate(results):
        graph.output(f"y{i}", r)
    program = dmlc.compile(graph)
    return {b: list(program.run({"x": x}, backend=b).values()) for b in BACKENDS}


def shape_of_rank(rank: int, seed: int) -> tuple[int, ...]:
    return tuple(random.Random(seed).choices([1, 2, 3], k=rank))


@each_row("rank", range(1, 9))
@each_row("op", ["argmax", "argmin"])
@each_row("ties", ["first", "last"])
def test_arg_over_ranks(rank: int, op: str, ties: str) -> None:
    shape = shape_of_rank(rank, rank)
    x = sample("float32", shape, rank)
    picks = random.Random(rank * 7).sample(range(rank), k=max(1, rank // 2))
    axes = [a - rank if i % 2 else a for i, a in enumerate(picks)]
    expected = oracle_arg(x, axes, op == "argmax", ties == "last")
    for backend, (got,) in run(op, x, axes=axes, ties=ties).items():
        assert got.dtype == np.uint32
        np.testing.assert_array_equal(got, expected, err_msg=backend)


@each_row("dtype", DTYPES)
@each_row("op", ["argmax", "argmin"])
@each_row("ties", ["first", "last"])
def test_arg_over_dtypes(dtype: str, op: str, ties: str) -> None:
    """The axes and the types of the index take turns."""
    x = sample(dtype, (3, 4, 5), 11)
    turn = DTYPES.index(dtype) + (op == "argmax") + 2 * (ties == "last")
    axes, index = ([0, 2], [1, 2], [1])[turn % 3], INDICES[turn % 4]
    expected = oracle_arg(x, axes, op == "argmax", ties == "last")
    for backend, (got,) in run(op, x, axes=axes, ties=ties, dtype=index).items():
        assert got.dtype == np.dtype(index)
        np.testing.assert_array_equal(got, expected, err_msg=backend)


@each_row("dtype", DTYPES)
@each_row("order", ["largest", "smallest"])
def test_top_k_over_dtypes(dtype: str, order: str) -> None:
    x = sample(dtype, (3, 6, 2), 5)
    values, indices = oracle_top_k(x, 4, 1, order == "largest")
    for backend, got in run("top_k", x, k=4, axis=-2, order=order).items():
        np.testing.assert_array_equal(got[0], values, err_msg=backend)
        np.testing.assert_array_equal(got[1], indices, err_msg=backend)
        assert got[0].dtype == x.dtype and got[1].dtype == np.uint32


@each_row("rank", range(1, 9))
def test_top_k_over_ranks(rank: int) -> None:
    shape = (*shape_of_rank(rank - 1, rank), 3)
    x = sample("float32", shape, rank)
    values, indices = oracle_top_k(x, 2, -1, True)
    for backend, got in run("top_k", x, k=2).items():
        np.testing.assert_array_equal(got[0], values, err_msg=backend)
        np.testing.assert_array_equal(got[1], indices, err_msg=backend)


@each_row("rank", range(1, 9))
@each_row("dtype", ["float32", "float16", "float64"])
def test_hardmax_over_ranks(rank: int, dtype: str) -> None:
    shape = shape_of_rank(rank, rank + 3)
    x = sample(dtype, shape, rank)
    for count in {max(1, rank // 2), rank} if dtype == "float32" else {1}:
        axes = random.Random(rank + count).sample(range(-rank, 0), k=count)
        expected = oracle_hardmax(x, axes)
        for backend, (got,) in run("hardmax", x, axes=axes).items():
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got, expected, err_msg=backend)
