"""share-reductions: one reduction for several, a mean from the sum beside it, and what must stay two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, context, evaluate, ledger, names, run

from dmlc.ir import Operation
from dmlc.ir.dtype import f16, f32, f64, i32
from dmlc.ops.binary import MUL
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_SUM, REDUCTIONS
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.share_reductions import ShareReductions
from tests.rows import each_row

PASS = ShareReductions()


@each_row("op", [*REDUCTIONS, ARGMAX, ARGMIN])
@each_row("keeps", [True, False])
def test_two_that_differ_in_keepdims_are_one_and_a_move(op: Operation, keeps: bool) -> None:
    b = Building()
    x = b.input("x", (3, 4, 5))
    graph = b.done(b(op, x, axes=[0, 2], keepdims=keeps), b(op, x, axes=[0, 2], keepdims=not keeps))
    ctx = check_numbers(PASS, graph, context(allowed=("exact",)))
    assert names(graph) == [op.name, "squeeze" if keeps else "unsqueeze"]
    assert ledger(ctx) == [("share-reductions", "exact")]


def test_two_that_are_the_same_are_one() -> None:
    b = Building(n=(0, 5))
    x = b.input("x", ("n", 4))
    graph = b.done(b(MUL, b(REDUCE_SUM, x, axes=[1]), b(REDUCE_SUM, x, axes=[1])))
    check_numbers(PASS, graph, context(allowed=("exact",)), binding={"n": 3})
    assert names(graph) == ["reduce_sum", "mul"]


def test_others_stay() -> None:
    b = Building()
    x, y = b.input("x", (3, 4, 5)), b.input("y", (3, 4, 5))
    values = [
        b(REDUCE_MAX, x, axes=[0]),
        b(REDUCE_MIN, x, axes=[0], keepdims=False),
        b(REDUCE_MAX, x, axes=[1], keepdims=False),
        b(REDUCE_MAX, y, axes=[0], keepdims=False),
        b(ARGMAX, x, axes=[0]),
        b(ARGMAX, x, axes=[0], ties="last", keepdims=False),
        b(ARGMAX, x, axes=[0], dtype="i64", keepdims=False),
        b(REDUCE_MEAN, x, axes=[0]),
    ]
    graph = b.done(*values)
    ctx = check_numbers(PASS, graph)
    assert len(graph) == len(values)
    assert ledger(ctx) == []


@each_row("order", [(REDUCE_SUM, REDUCE_MEAN), (REDUCE_MEAN, REDUCE_SUM)])
@each_row("keeps", [(True, True), (True, False), (False, True), (False, False)])
@each_row("dtype", [f32, f64])
def test_a_mean_beside_a_sum_is_a_quotient(order: Any, keeps: Any, dtype: Any) -> None:
    b = Building()
    x = b.input("x", (3, 4, 5), dtype)
    graph = b.done(*[b(op, x, axes=[1, 2], keepdims=k) for op, k in zip(order, keeps, strict=True)])
    ctx = check_numbers(PASS, graph, exact=False)
    found = names(graph)
    assert found.count("reduce_sum") == 1 and "div" in found and "reduce_mean" not in found
    assert len(found) == 2 + (keeps[0] != keeps[1])
    assert ("share-reductions", "reassociates") in ledger(ctx)


@pytest.mark.parametrize(
    ("shape", "dtype", "allowed"),
    [
        ((3, 4), f16, ("exact", "reassociates")),  # the sum overflows long before the mean
        ((3, 4), i32, ("exact", "reassociates")),  # which truncates
        ((3, "n"), f32, ("exact", "reassociates")),  # by a number that is not known
        ((3, 4), f32, ("exact",)),
    ],
)
def test_other_means_stay(shape: Any, dtype: Any, allowed: Any) -> None:
    b = Building()
    x = b.input("x", shape, dtype)
    graph = b.done(b(REDUCE_SUM, x, axes=[1]), b(REDUCE_MEAN, x, axes=[1]))
    check_numbers(PASS, graph, context(allowed=allowed), binding={"n": 4})
    assert names(graph) == ["reduce_sum", "reduce_mean"]


def test_a_mean_of_nothing_stays() -> None:
    b = Building()
    x = b.input("x", (3, 0))
    graph = b.done(b(REDUCE_SUM, x, axes=[1]), b(REDUCE_MEAN, x, axes=[1]))
    run(PASS, graph)
    assert names(graph) == ["reduce_sum", "reduce_mean"]


def test_nan_and_infinities_stay_where_they_are() -> None:
    b = Building()
    x = b.input("x", (4, 3))
    graph = b.done(b(REDUCE_SUM, x, axes=[1]), b(REDUCE_MEAN, x, axes=[1]))
    rows = [[np.nan, 1, 2], [np.inf, 1, 2], [np.inf, -np.inf, 2], [-0.0, -0.0, -0.0]]
    feeds = {"x": np.array(rows, np.float32)}
    before = evaluate(graph, feeds)
    run(PASS, graph)
    for old, new in zip(before, evaluate(graph, feeds), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_user_may_leave_it_out() -> None:
    b = Building()
    x = b.input("x", (3, 4))
    graph = b.done(b(REDUCE_SUM, x, axes=[1]), b(REDUCE_SUM, x, axes=[1], keepdims=False))
    ctx = context(skip_rules=("share-reductions",))
    run(PASS, graph, ctx)
    assert names(graph) == ["reduce_sum", "reduce_sum"]
