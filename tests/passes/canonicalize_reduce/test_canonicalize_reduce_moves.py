"""canonicalize-reduce: reshapes, transposes, expands and casts around reductions go into them, or stay and say why."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, axes_of, check_numbers, context, ledger, names, remarks

from dmlc.ir import Operation, symbol
from dmlc.ir.dtype import f16, f32, f64, i32, u8
from dmlc.ops.choose import CAST
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
)
from dmlc.ops.select import ARGMAX
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from tests.rows import each_row

PASS = CanonicalizeReduce()
EXACT_ONLY = ("exact",)


def test_a_reshape_that_mixes_axes_stops_the_merge() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    graph = b.done(b(REDUCE_MAX, b(RESHAPE, b(REDUCE_MAX, x, axes=[2]), shape=[3, 2]), axes=[0]))
    check_numbers(PASS, graph)
    assert names(graph).count("reduce_max") == 2


def test_a_transpose_between_goes_into_the_axes() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    graph = b.done(b(REDUCE_MAX, b(TRANSPOSE, b(REDUCE_MAX, x, axes=[2]), perm=[1, 0, 2]), axes=[0]))
    check_numbers(PASS, graph)
    assert names(graph).count("reduce_max") == 1
    assert "transpose" not in names(graph)


@each_row("keepdims", [True, False])
@each_row("perm", list(itertools.permutations(range(3))))
@each_row("axes", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]])
def test_transposes_before_reductions(perm: tuple[int, ...], axes: list[int], keepdims: bool) -> None:
    for op in (REDUCE_SUM, REDUCE_MAX, ARGMAX):
        b = Building()
        x = b.input("x", (2, 3, 4))
        graph = b.done(b(op, b(TRANSPOSE, x, perm=perm), axes=axes, keepdims=keepdims))
        ctx = check_numbers(PASS, graph, exact=op is not REDUCE_SUM)
        kept = [p for i, p in enumerate(perm) if i not in axes]
        gone = [perm[a] for a in axes]
        fires = kept == sorted(kept) and (op is not ARGMAX or gone == sorted(gone))
        assert ("transpose" not in names(graph)) is (fires or perm == (0, 1, 2))
        if not fires:
            assert any("permuted" in r or "counts" in r for r in remarks(ctx))


@each_row("op", [REDUCE_SUM, REDUCE_MAX, REDUCE_MEAN])
@each_row("keepdims", [True, False])
@each_row("perm", list(itertools.permutations(range(4))))
def test_a_transpose_between_that_must_stay_goes_after_both(op: Operation, keepdims: bool, perm: Any) -> None:
    b = Building()
    x = b.input("x", (2, 3, 4, 5))
    inner = b(TRANSPOSE, b(op, x, axes=[3]), perm=perm)
    graph = b.done(b(op, inner, axes=[perm.index(1)], keepdims=keepdims))
    check_numbers(PASS, graph, exact=op is REDUCE_MAX)
    assert names(graph).count(op.name) == 1
    assert axes_of(graph, 0) == (1, 3)


def test_a_transpose_between_others_stays() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4, 5))
    graph = b.done(b(REDUCE_MAX, b(TRANSPOSE, b(REDUCE_SUM, x, axes=[3]), perm=[2, 1, 0, 3]), axes=[1]))
    check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum", "transpose", "reduce_max"]
    c = Building()
    y = c.input("x", (2, 3, 4, 5), i32)
    graph = c.done(c(REDUCE_MEAN, c(TRANSPOSE, c(REDUCE_MEAN, y, axes=[3]), perm=[2, 1, 0, 3]), axes=[1]))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["reduce_mean", "transpose", "reduce_mean"]
    assert any("integer means truncate" in r for r in remarks(ctx))


def test_a_transpose_between_that_is_used_twice_stays() -> None:
    b = Building()
    turned = b(TRANSPOSE, b(REDUCE_SUM, b.input("x", (2, 3, 4, 5)), axes=[3]), perm=[2, 1, 0, 3])
    graph = b.done(b(REDUCE_SUM, turned, axes=[1]), turned)
    check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum", "transpose", "reduce_sum"]


@each_row(
    ("shape", "target", "axes", "merged"),
    [
        ((2, 3, 4, 5), (2, 3, 20), [2], [2, 3]),
        ((2, 3, 4, 5), (2, 60), [1], [1, 2, 3]),
        ((2, 3, 4, 5), (6, 4, 5), [0], [0, 1]),
        ((2, 3, 4, 5), (120,), [0], [0, 1, 2, 3]),
        ((2, 3, 4, 5), (2, 12, 5), [1, 2], [1, 2, 3]),
        ((2, 3, 4, 5), (6, 20), [1], None),  # the kept axis was merged too
        ((2, 3, 4, 5), (2, 15, 4), [1], None),  # elements are regrouped
        ((2, 3, 4, 5), (2, 3, 2, 10), [3], None),
        ((2, 12), (2, 3, 4), [1, 2], [1]),  # an axis that was split
        ((2, 12), (2, 3, 4), [1], None),
        ((2, 3, 4), (4, 6), [0, 1], [0, 1, 2]),  # regrouped, and all of it reduced
        ((5, 2, 3), (5, 3, 2), [1, 2], [1, 2]),
        ((5, 2, 3), (5, 3, 2), [0], None),
        ((2, 1, 12), (2, 4, 1, 3), [1, 3], [2]),
        (("n", 3, "m"), ("n", 3 * symbol("m")), [1], [1, 2]),
        (("n", 3, "m"), (3 * symbol("n"), "m"), [0], [0, 1]),
        (("n", 3, "m"), (3 * symbol("n"), "m"), [1], None),
    ],
)
def test_flattened_axes(shape: Any, target: Any, axes: list[int], merged: list[int] | None) -> None:
    for keepdims in (True, False):
        b = Building(n=(0, 9))
        graph = b.done(b(REDUCE_MAX, b(RESHAPE, b.input("x", shape), shape=target), axes=axes, keepdims=keepdims))
        check_numbers(PASS, graph, binding={"n": 2, "m": 4})
        (node,) = [n for n in graph if n.op is REDUCE_MAX]
        assert list(node.attributes.axes) == (axes if merged is None else merged)  # type: ignore[attr-defined]
        assert (node.operand(0).producer is None) is (merged is not None)


@pytest.mark.parametrize("op", [REDUCE_SUM, REDUCE_L2, REDUCE_LOG_SUM_EXP])
def test_moves_of_ones_before_a_reduction_go_into_it(op: Operation) -> None:
    for move, before in ((SQUEEZE, (2, 1, 4)), (UNSQUEEZE, (2, 4))):
        for axes, keepdims in itertools.product(([0], [-1], [0, -1]), (True, False)):
            b = Building()
            moved = b(move, b.input("x", before), axes=[1])
            graph = b.done(b(op, moved, axes=axes, keepdims=keepdims))
            ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
            assert names(graph)[0] == op.name
            assert len(names(graph)) <= 2
            if move is SQUEEZE and not keepdims:
                assert names(graph) == [op.name]
            assert ("drop-flatten-before-reduction", "exact") in ledger(ctx)


def test_a_reshape_of_nothing_stays() -> None:
    b = Building()
    graph = b.done(b(REDUCE_SUM, b(RESHAPE, b.input("x", (0, 6)), shape=[3, 0]), axes=[1]))
    check_numbers(PASS, graph)
    assert names(graph) == ["reshape", "reduce_sum"]


# --- reduction-of-expand


@each_row("op", [REDUCE_SUM, REDUCE_L1, REDUCE_SUM_SQUARE, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN])
@each_row("keepdims", [True, False])
@each_row(
    ("shape", "wide", "axes"),
    [
        ((2, 1, 4), (2, 7, 4), [1]),
        ((2, 1, 4), (2, 7, 4), [1, 2]),
        ((4,), (3, 5, 4), [0, 1]),
        ((4,), (3, 5, 4), [0, 1, 2]),
        ((2, 1, 1), (2, 3, 5), [0, 1, 2]),
    ],
)
def test_reductions_of_equal_elements(op: Operation, keepdims: bool, shape: Any, wide: Any, axes: list[int]) -> None:
    for dtype in (f32, i32):
        if op is REDUCE_MEAN and dtype is i32:
            continue
        b = Building()
        graph = b.done(b(op, b(EXPAND, b.input("x", shape, dtype), shape=wide), axes=axes, keepdims=keepdims))
        ctx = check_numbers(PASS, graph, exact=False)
        assert "expand" not in names(graph)
        picks = op in (REDUCE_MAX, REDUCE_MIN) or dtype is i32
        assert ("reduction-of-expand", "exact" if picks else "reassociates") in ledger(ctx)


def test_the_sum_of_equal_elements_is_one_product() -> None:
    b = Building()
    graph = b.done(b(REDUCE_SUM, b(EXPAND, b.input("x", (2, 1, 4)), shape=[2, 7, 4]), axes=[1]))
    check_numbers(PASS, graph, exact=False)
    assert names(graph) == ["mul"]


@each_row(
    ("op", "dtype", "wide", "axes", "words"),
    [
        (REDUCE_SUM, f32, (2, 7, 4), [2], None),  # a broadcast axis stays
        (REDUCE_MAX, f32, (3, 2, 7, 4), [0], "axis 2 is broadcast too"),
        (REDUCE_SUM, f32, (2, "n", 4), [1], "not known while compiling: n"),
        (REDUCE_MAX, f32, (2, "z", 4), [1], "may have no element"),
        (REDUCE_SUM, f16, (2, 2049, 4), [1], "f16 does not hold every number up to 2049"),
        (REDUCE_SUM, u8, (2, 256, 4), [1], "u8 does not hold every number up to 256"),
        (REDUCE_MEAN, i32, (2, 7, 4), [1], "may overflow on the way"),
        (REDUCE_PROD, f32, (2, 7, 4), [1], None),
        (REDUCE_L2, f32, (2, 7, 4), [1], None),
        (REDUCE_LOG_SUM_EXP, f32, (2, 7, 4), [1], None),
    ],
)
def test_other_reductions_of_expand_stay(op: Operation, dtype: Any, wide: Any, axes: list[int], words: Any) -> None:
    b = Building(n=(1, 9), z=(0, 9))
    b.input("n", ("n",))
    b.input("z", ("z",))
    graph = b.done(b(op, b(EXPAND, b.input("x", (2, 1, 4), dtype), shape=wide), axes=axes))
    ctx = check_numbers(PASS, graph, binding={"n": 3, "z": 0})
    assert names(graph) == ["expand", op.name]
    assert words is None or any(words in r for r in remarks(ctx))


def test_a_maximum_of_an_unknown_number_of_equal_elements() -> None:
    b = Building(n=(1, 9))
    b.input("n", ("n",))
    graph = b.done(b(REDUCE_MAX, b(EXPAND, b.input("x", (2, 1, 4)), shape=[2, "n", 4]), axes=[1], keepdims=False))
    check_numbers(PASS, graph, context(allowed=EXACT_ONLY), binding={"n": 3})
    assert names(graph) == ["squeeze"]


def test_integer_sums_of_equal_elements_may_saturate() -> None:
    b = Building()
    graph = b.done(b(REDUCE_SUM, b(EXPAND, b.input("x", (2, 1), i32), shape=[2, 7]), axes=[1]))
    check_numbers(PASS, graph, context("cpu"))
    assert names(graph) == ["expand", "reduce_sum"]


def test_infinities_and_nan_among_equal_elements() -> None:
    for op in (REDUCE_SUM, REDUCE_MEAN, REDUCE_L1, REDUCE_SUM_SQUARE):
        b = Building()
        graph = b.done(b(op, b(EXPAND, b.input("x", (5, 1)), shape=[5, 7]), axes=[1]))
        feeds = {"x": np.array([[np.inf], [-np.inf], [np.nan], [0.0], [-2.5]], np.float32)}
        check_numbers(PASS, graph, feeds=feeds, exact=False)
        assert "expand" not in names(graph)


# --- casts-around-maximum


@pytest.mark.parametrize("op", [REDUCE_MAX, REDUCE_MIN])
@pytest.mark.parametrize(("narrow", "wide"), [(f16, f32), (f16, f64), (f32, f64)])
def test_casts_around_a_maximum_go(op: Operation, narrow: Any, wide: Any) -> None:
    b = Building()
    x = b.input("x", (3, 4), narrow)
    graph = b.done(b(CAST, b(op, b(CAST, x, to=wide), axes=[1]), to=narrow))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == [op.name]
    assert ledger(ctx) == [("casts-around-maximum", "exact")]


@pytest.mark.parametrize(
    ("op", "source", "middle", "to"),
    [
        (REDUCE_SUM, f16, f32, f16),  # added in f32
        (REDUCE_MAX, f32, f16, f32),  # rounds
        (REDUCE_MAX, f16, f32, f64),
        (REDUCE_MAX, i32, f32, i32),
        (REDUCE_MAX, f32, i32, f32),
    ],
)
def test_other_casts_stay(op: Operation, source: Any, middle: Any, to: Any) -> None:
    b = Building()
    x = b.input("x", (3, 4), source)
    graph = b.done(b(CAST, b(op, b(CAST, x, to=middle), axes=[1]), to=to))
    check_numbers(PASS, graph)
    assert names(graph) == ["cast", op.name, "cast"]


def test_a_cast_maximum_that_is_used_twice_stays() -> None:
    b = Building()
    peak = b(REDUCE_MAX, b(CAST, b.input("x", (3, 4), f16), to=f32), axes=[1])
    graph = b.done(b(CAST, peak, to=f16), peak)
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["cast", "reduce_max", "cast"]
    assert any("used 2 times" in r for r in remarks(ctx))


# --- shapes of merged reductions


def test_an_axis_of_size_1_is_reduced_too_where_that_saves_a_move() -> None:
    b = Building()
    x = b.input("x", (2, 1, 4, 5))
    inner = b(SQUEEZE, b(REDUCE_SUM, x, axes=[3], keepdims=False), axes=[1])
    graph = b.done(b(REDUCE_SUM, inner, axes=[1], keepdims=False))
    check_numbers(PASS, graph, exact=False)
    assert names(graph) == ["reduce_sum"]
    assert axes_of(graph) == (1, 2, 3)
