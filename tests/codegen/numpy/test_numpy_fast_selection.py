"""The fast style selects exactly what the reference selects, whatever the values, shapes and axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy_models import Model, expected, function

from dmlc.codegen.numpy import emit
from dmlc.ir import Graph, as_dtype
from tests.rows import each_row

FLOATS = ["float16", "float32", "float64"]
NUMBERS = [*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def values(dtype: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """``ties``: few numbers, the ends of the dtype among them; ``nan``: with NaN, too; ``any``: nearly no ties."""
    rng = np.random.default_rng(len(shape) + shape[0])
    made = as_dtype(dtype)
    if kind == "any":
        if made.is_float:
            return rng.normal(size=shape).astype(dtype)
        return rng.integers(int(made.lowest), int(made.highest), shape, dtype=dtype, endpoint=True)
    if not made.is_float:
        return rng.choice(np.array([made.lowest, made.highest, 0, 1], dtype), shape)
    pool = [-np.inf, -1, -0.0, 0.0, 1, np.inf, *([np.nan, -np.nan] if kind == "nan" else [])]
    return rng.choice(np.array(pool, dtype), shape)


@lru_cache(maxsize=1)
def styles(graph: Graph) -> dict[str, Callable[..., Any]]:
    """The generated functions: a graph is fed several times."""
    return {style: function(emit(graph, style).payload) for style in ("fast", "plain")}


def same(graph: Graph, *feeds: np.ndarray) -> None:
    """The fast and the plain style agree with the reference, bit for bit but for the sign of zero."""
    want = expected(graph, feeds)
    for style, generated in styles(graph).items():
        got = generated(*feeds)
        for a, b in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=style)


def all_selections(dtype: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> Graph:
    model = Model()
    x = model.input("x", dtype, *shape)
    made = {}
    for turn, (op, ties) in enumerate(itertools.product(("argmax", "argmin"), ("first", "last"))):
        keep = (turn + sum(axes)) % 2 == 0  # takes turns
        made[f"{op}_{ties}_{keep}"] = model.call(op, x, axes=list(axes), ties=ties, keepdims=keep)
    if as_dtype(dtype).is_float:
        made["hot"] = model.call("hardmax", x, axes=list(axes))
    return model.returns(**made)


def subsets(rank: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, rank + 1):
        yield from itertools.combinations(range(rank), count)


#: Short and long in each place, on both sides of where the code changes its way.
SHAPES = [(9000,), (3, 5000), (5000, 3), (1, 70, 1, 80), (2, 17, 33, 9), (40, 3, 70), (4, 130, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_subset_of_axes(shape: tuple[int, ...]) -> None:
    for axes in subsets(len(shape)):
        same(all_selections("f32", shape, axes), values("float32", shape, ("ties", "nan")[len(axes) % 2]))


@each_row("dtype", NUMBERS)
def test_every_dtype(dtype: str) -> None:
    """Every other subset of the axes: the next dtype takes the others."""
    shape = (5, 20, 70)
    for axes in [*subsets(3)][NUMBERS.index(dtype) % 2 :: 2]:
        graph = all_selections(dtype, shape, axes)
        for kind in ("any", "ties", "nan") if dtype in FLOATS else ("any", "ties"):
            same(graph, values(dtype, shape, kind))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_every_order_of_few_values_down_a_column(dtype: str) -> None:
    """All columns of five among five values, side by side; rows that never win make the array large."""
    pool = np.array([-np.inf, -0.0, 0.0, 1, np.nan], dtype)
    columns = np.array(list(itertools.product(pool, repeat=5)), dtype).T
    for ends in ((0, 60), (60, 0), (30, 30)):
        x = np.pad(columns, (ends, (0, 0)), constant_values=-np.inf)
        graph = all_selections(dtype, x.shape, (0,))
        same(graph, np.ascontiguousarray(x))


def test_long_columns_and_one_best_anywhere() -> None:
    model = Model()
    x = model.input("x", "f32", 700, 40)
    graph = model.returns(a=model.call("argmax", x, axes=[0], dtype="i64"))
    made = function(emit(graph, "fast").payload)
    for place in range(0, 700, 13):
        feed = np.zeros((700, 40), np.float32)
        feed[place] = 1
        assert (made(feed) == place).all()


def test_sizes_that_are_not_known() -> None:
    model = Model(n=(0, 100))
    x = model.input("x", "f16", "n", "m", 30)
    index = model.call("argmin", x, axes=[1], ties="last")
    graph = model.returns(i=index, h=model.call("hardmax", x, axes=[1, 2]))
    for shape in [(0, 4, 30), (1, 1, 30), (3, 7, 30), (20, 70, 30)]:
        same(graph, np.random.default_rng(0).normal(size=shape).astype(np.float16))


def test_views_of_other_arrays() -> None:
    """Arguments need not be contiguous."""
    x = np.random.default_rng(0).integers(0, 9, (60, 50, 8)).astype(np.float32)
    for view in (x.transpose(2, 0, 1), x[:, ::-1], x[::2], np.broadcast_to(x[:1], x.shape)):
        for axes in subsets(3):
            same(all_selections("f32", view.shape, axes), view)


# --- top_k


def top_k(dtype: str, shape: tuple[int, ...], k: int, axis: int) -> Graph:
    model = Model()
    x = model.input("x", dtype, *shape)
    results = {}
    for order in ("largest", "smallest"):
        best = model.node("top_k", x, k=k, axis=axis, order=order).results
        results |= {f"{order}_{i}": value for i, value in enumerate(best)}
    return model.returns(**results)


@each_row("dtype", NUMBERS)
def test_top_k_of_every_dtype(dtype: str) -> None:
    for shape, k, axis in [((3, 2100), 7, 1), ((700, 9), 1, 0), ((2, 600, 5), 37, 1), ((5000,), 300, 0)]:
        graph = top_k(dtype, shape, k, axis)
        for kind in ("any", "ties", "nan") if dtype in FLOATS else ("any", "ties"):
            same(graph, values(dtype, shape, kind))


@pytest.mark.parametrize("missing", [0, 1, 5, 6, 40, 2100])
def test_top_k_with_few_numbers_among_nan(missing: int) -> None:
    x = np.random.default_rng(missing).permutation(2100).astype(np.float32)[np.newaxis]
    x[0, :: max(1, 2100 // missing) if missing else 2100][:missing] = np.nan
    same(top_k("f32", x.shape, 6, 1), x)
    same(top_k("f32", x.shape, 6, 1), np.where(np.isnan(x), x, np.float32(np.nan)))


def test_top_k_of_equal_rows_and_of_one_that_differs() -> None:
    x = np.zeros((4, 3000), np.int32)
    x[1, 2990:] = 1
    x[2, ::7] = -1
    same(top_k("i32", x.shape, 20, 1), x)


@each_row("dtype", NUMBERS)
@each_row("k", [1, 5, 63, 64])
def test_top_k_of_short_rows(dtype: str, k: int) -> None:
    """The shapes take turns, so that each meets each dtype and each k."""
    shapes = [((90, 64), 1), ((64, 90), 0), ((2, 64, 40), 1)]
    shape, axis = shapes[(NUMBERS.index(dtype) + k) % 3]
    graph = top_k(dtype, shape, k, axis)
    for kind in ("any", "ties", "nan") if dtype in FLOATS else ("any", "ties"):
        same(graph, values(dtype, shape, kind))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_top_k_of_every_row_of_few_values(dtype: str) -> None:
    pool = np.array([-np.inf, -0.0, 0.0, 1, np.nan, -np.nan], dtype)
    x = np.array(list(itertools.product(pool, repeat=5)), dtype)
    for k in (1, 2, 5):
        same(top_k(dtype, x.shape, k, 1), x)


def test_top_k_tells_neighbouring_numbers_apart() -> None:
    """The last bit of 32 counts, and so do numbers below the normal ones."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 40, (80, 64), dtype=np.uint32)
    for base in (0, 0x3F800000, 0x7F7FFF00, 0x80000000, 0xFF7FFF00):
        x = (bits + np.uint32(base)).view(np.float32)
        same(top_k("f32", x.shape, 7, 1), x)
        same(top_k("u32", x.shape, 7, 1), x.view(np.uint32))
        same(top_k("i32", x.shape, 7, 1), x.view(np.int32))


# --- the text


def text(style: str, *shape: int | str, dtype: str = "f32") -> str:
    model = Model()
    x = model.input("x", dtype, *shape)
    made = emit(model.returns(i=model.call("argmax", x, axes=[0])), style).payload
    assert isinstance(made, str)
    return made


def test_the_plain_style_is_what_one_would_write() -> None:
    made = text("plain", 4000, 300)
    assert "i = np.argmax(x, axis=0, keepdims=True).astype(np.uint32)" in made
    assert "def _arg" not in made


def test_helpers_are_there_only_where_they_pay() -> None:
    assert "def _arg_down" in text("fast", 4000, 300)
    assert "def _arg_down" in text("fast", "n", "m")
    assert "def _half_keys" in text("fast", 4000, 300)  # _arg takes any dtype
    assert "def _arg" not in text("fast", 4, 300), "too small to matter"
    assert "def _arg" not in text("fast", "n"), "NumPy reads along rows as fast as can be"
    assert "def _arg" in text("fast", "n", dtype="f16")
    assert "def _hardmax" not in text("fast", "n", "m")
