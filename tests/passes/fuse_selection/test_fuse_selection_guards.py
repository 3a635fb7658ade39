"""Near misses of ``fuse-selection``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pass_helpers import ALL, Building, check_numbers, context, ledger, random_feeds, remarks

from dmlc.ir import DType, Value, symbol
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i32, i64, u32
from dmlc.ops.binary import ADD, DIV
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG
from dmlc.ops.index import ONE_HOT
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE
from dmlc.ops.reduce import REDUCE_SUM_SQUARE
from dmlc.ops.select import ARGMAX, TOP_K
from dmlc.passes.fuse_selection import FuseSelection

Made = Callable[[Building, Value], "Value | tuple[Value, ...]"]


def done(
    made: Made, shape: Any = (3, 8), dtype: DType = f32, target: str = "directml", *, x: Any = None, **dims: Any
) -> tuple[list[str], list[str]]:
    """The rules that fired, and the reasons against others; the numbers stay."""
    b = Building(**dims)
    out = made(b, b.input("x", shape, dtype))
    graph = b.done(*(out if isinstance(out, tuple) else (out,)))
    binding = dict.fromkeys(dims, 2)
    feeds = {**random_feeds(graph, binding), **({} if x is None else {"x": np.asarray(x, dtype.numpy)})}
    ctx = check_numbers(FuseSelection(), graph, context(target, ALL), binding=binding, feeds=feeds)
    return [rule for rule, _ in ledger(ctx)], remarks(ctx)


def search(b: Building, x: Value, *axes: int, keepdims: bool = False, **more: Any) -> Value:
    return b(ARGMAX, x, axes=list(axes), keepdims=keepdims, **more)


# --- of what was flattened


def flat(shape: list[Any], *axes: int) -> Made:
    return lambda b, x: search(b, b(RESHAPE, x, shape=shape), *axes)


def test_searches_of_what_is_and_is_not_flattened() -> None:
    assert done(flat([2, 12], 1), (2, 3, 4))[0] == ["arg-of-flattened"]
    assert not done(flat([6, 4], 0, 1), (2, 3, 4))[0]
    assert not done(flat([2] * 7 + [4], 7), (2,) * 9)[0]  # more axes than the target takes
    squares: Made = lambda b, x: search(b, b(REDUCE_SUM_SQUARE, x, axes=[2], keepdims=False), 1)  # noqa: E731
    assert not done(squares, (3, 4, 1))[0]


@pytest.mark.parametrize(("low", "fires"), [(1, True), (0, False)])
def test_sizes_that_a_reshape_cannot_leave_open(low: int, fires: bool) -> None:
    n, m, k = (symbol(s) for s in "nmk")
    made = flat([n, m, k * 3], 2)
    rules, why = done(made, ("n", "m", "k", 3), n=(low, 9), m=(low, 9), k=(1, 9))
    assert bool(rules) is fires
    assert fires or "would have to be computed" in why[0]


# --- one_hot of argmax


def hot(b: Building, index: Value, depth: int = 8, axis: int = 1, dtype: DType = f32) -> Value:
    return b(ONE_HOT, index, depth=depth, axis=axis, dtype=dtype)


def test_indices_that_lose_something_on_the_way() -> None:
    wide: Made = lambda b, x: hot(b, b(CAST, search(b, x, 1), to=i64))  # noqa: E731
    assert done(wide)[0] == ["hot-argmax"]
    narrow: Made = lambda b, x: hot(b, b(CAST, b(CAST, search(b, x, 1), to=i8), to=i32), 200)  # noqa: E731
    x = np.zeros((2, 200))
    x[:, 150] = 1
    assert not done(narrow, (2, 200), x=x)[0]


def test_casts_of_other_things_made_of_an_index() -> None:
    assert not done(lambda b, x: b(CAST, b(NEG, search(b, x, 1, dtype=i64)), to=f32))[0]


def test_one_reason_for_one_pattern() -> None:
    deep: Made = lambda b, x: b(CAST, hot(b, search(b, x, 1), 9, dtype=i32), to=f32)  # noqa: E731
    rules, why = done(deep)
    assert not rules and len(why) == 1 and "the depth is 9" in why[0]

    def twice(b: Building, x: Value) -> tuple[Value, ...]:
        found = hot(b, search(b, x, 1), dtype=i32)
        return b(CAST, found, to=f32), b(ADD, found, b.constant(1, i32))

    rules, why = done(twice)
    assert not rules and any("hardmax of f32 gives f32, not i32" in text for text in why)
    other: Made = lambda b, x: b(CAST, hot(b, search(b, x, 1), dtype=i32), to=f64)  # noqa: E731
    rules, why = done(other)
    assert not rules and any("hardmax of f32 gives f32, not i32" in text for text in why)


def test_searches_over_two_axes_that_keep_them() -> None:
    made: Made = lambda b, x: hot(b, search(b, x, 1, 2, keepdims=True), 12, 3)  # noqa: E731
    assert not done(made, (3, 3, 4))[0]
    assert not done(lambda b, x: b(RESHAPE, made(b, x), shape=[3, 12]), (3, 3, 4))[0]


def test_moves_that_the_missing_move_does_not_go_into() -> None:
    def widened(b: Building, x: Value) -> Value:
        return b(TRANSPOSE, hot(b, search(b, x, 1, keepdims=True), axis=0), perm=[1, 2, 0])

    def narrowed(b: Building, x: Value) -> Value:
        return b(SQUEEZE, hot(b, search(b, x, 2, keepdims=True), 8, 3), axes=[1, 2])

    assert not done(widened)[0]
    assert not done(narrowed, (3, 1, 8))[0]


# --- casts and negations before a search


@pytest.mark.parametrize(
    ("narrow", "wide", "x"),
    [
        (bool_, f32, [[False, True]]),
        (f16, i32, [[0.2, 0.7]]),
        (u32, i32, [[1, 2**31 + 5]]),
        (i32, u32, [[1, -5]]),
    ],
)
def test_casts_that_do_not_keep_every_number(narrow: DType, wide: DType, x: Any) -> None:
    made: Made = lambda b, v: search(b, b(CAST, v, to=wide), 1)  # noqa: E731
    for target in ("numpy", "directml"):
        assert "search-of-wider" not in done(made, (1, 2), narrow, target, x=x)[0]


def test_quotients_that_are_no_negation() -> None:
    assert "arg-of-negation" in done(lambda b, x: search(b, b(DIV, x, b.constant(-1)), 1))[0]
    assert "arg-of-negation" not in done(lambda b, x: search(b, b(DIV, x, b.constant(2)), 1))[0]


def test_the_lowest_integer_among_the_negated() -> None:
    made: Made = lambda b, x: b.node(TOP_K, b(NEG, x), k=2, axis=1)[1]  # noqa: E731
    rules, why = done(made, (1, 3), i32, x=[[-(2**31), 5, -7]])
    assert not rules and any("negates to itself" in text for text in why)


# --- top_k of one


def test_a_top_one_that_nobody_reads() -> None:
    def made(b: Building, x: Value) -> Value:
        b.node(TOP_K, x, k=1, axis=1)
        return x

    assert done(made) == ([], [])


def test_why_a_top_one_stays() -> None:
    both: Made = lambda b, x: b.node(TOP_K, x, k=1, axis=1)  # noqa: E731
    rules, why = done(both, dtype=i64, target="cpu")
    assert not rules and "both used" in why[0]
    values: Made = lambda b, x: b.node(TOP_K, x, k=1, axis=1)[0]  # noqa: E731
    rules, why = done(values, dtype=i64, target="cpu")
    assert not rules and "need detours" in why[0]
