"""hoist: reductions of what was broadcast, and prefixes that reductions share."""

from __future__ import annotations

from typing import Any

import pytest
from pass_helpers import ALL, Building, check_numbers, context, ledger, names, remarks

from dmlc.ir import DType, Operation
from dmlc.ir.dtype import f16, f32, i32
from dmlc.ops.move import CONCAT, EXPAND
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
)
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from dmlc.passes.hoist import Hoist
from dmlc.passes.share_prefixes import SharePrefixes
from tests.rows import each_row

PASS = Hoist()
EXACT = ("exact",)


# --- expands


@each_row("keeps", [True, False])
@each_row(
    ("reduction", "shape", "wide", "axes", "want"),
    [
        (REDUCE_SUM, (1, 3, 1, 1), (2, 3, 4, 5), [2, 3], ["mul", "expand"]),
        (REDUCE_MAX, (3, 1, 1), (2, 3, 4, 5), [2], ["expand"]),
        (REDUCE_L2, (3, 5), ("n", 3, 5), [2], ["reduce_l2", "expand"]),
        (REDUCE_MEAN, (1, 3, 5), (4, 3, 5), [1, 2], ["reduce_mean", "expand"]),
    ],
)
def test_what_stays_broadcast_is_so_afterwards(
    reduction: Operation, shape: Any, wide: Any, axes: list[int], want: list[str], keeps: bool
) -> None:
    b = Building(n=(0, 9))
    b.input("n", ("n",))
    graph = b.done(b(reduction, b(EXPAND, b.input("x", shape), shape=wide), axes=axes, keepdims=keeps))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT), binding={"n": 2})
    assert ledger(ctx) == [("reduction-before-expand", "exact")]
    check_numbers(CanonicalizeReduce(), graph, binding={"n": 2}, exact=False)
    moves = ("squeeze", "unsqueeze", "reshape")
    assert [name for name in names(graph) if name not in moves] == want


def test_no_node_more_for_an_expand() -> None:
    b = Building()
    graph = b.done(b(REDUCE_SUM, b(EXPAND, b.input("x", (1, 3, 1)), shape=(2, 3, 4)), axes=[1, 2]))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["expand", "reduce_sum"]
    assert remarks(ctx) == ["axes [1] are reduced and others broadcast: that would be one node more"]
    wide = b(EXPAND, b.input("z", (1, 3)), shape=(2, 3))
    graph = b.done(b(REDUCE_SUM, wide, axes=[1]), wide)
    assert "used 2 times" in remarks(check_numbers(PASS, graph))[-1]


# --- prefixes


@each_row("wide_first", [True, False])
@each_row("keeps", [True, False])
@each_row(
    ("reduction", "goes_on", "how"),
    [
        (REDUCE_MAX, "reduce_max", "exact"),
        (REDUCE_MIN, "reduce_min", "exact"),
        (REDUCE_SUM, "reduce_sum", "reassociates"),
        (REDUCE_MEAN, "reduce_mean", "reassociates"),
        (REDUCE_L1, "reduce_sum", "reassociates"),
        (REDUCE_SUM_SQUARE, "reduce_sum", "reassociates"),
    ],
)
def test_the_wider_goes_on(reduction: Operation, goes_on: str, how: str, keeps: bool, wide_first: bool) -> None:
    b = Building()
    x = b.input("x", (3, 4, 5, 6))
    values = [b(reduction, x, axes=axes, keepdims=keeps) for axes in ([1], [1, 2], [0, 1, 2])]
    values.append(b(reduction, x, axes=[3], keepdims=keeps))
    graph = b.done(*(values[::-1] if wide_first else values))
    ctx = check_numbers(SharePrefixes(), graph, exact=how == "exact")
    assert sorted(names(graph)) == sorted([reduction.name] * 2 + [goes_on] * 2)
    assert ledger(ctx) == [("share-prefixes", how)] * 2
    assert sum(len(n.operand(0).uses) for n in graph if n.operand(0) is x) == 4
    assert len(x.uses) == 2
    assert [n for n, _ in graph.outputs] == ["y0", "y1", "y2", "y3"]


def test_users_stay_behind_their_operands() -> None:
    b = Building()
    x = b.input("x", (3, 4, 5))
    wide = b(REDUCE_MAX, x, axes=[1, 2])
    joined = b(CONCAT, wide, wide, axis=0)
    graph = b.done(joined, b(REDUCE_MAX, x, axes=[2]))
    check_numbers(SharePrefixes(), graph, context(allowed=EXACT))
    assert names(graph) == ["reduce_max", "reduce_max", "concat"]
    assert len(x.uses) == 1


@pytest.mark.parametrize(
    ("reduction", "dtype", "first", "second", "allowed"),
    [
        (REDUCE_SUM, f16, [1], [1, 2], ALL),
        (REDUCE_MEAN, i32, [1], [1, 2], ALL),
        (REDUCE_L2, f32, [1], [1, 2], ALL),
        (REDUCE_MAX, f32, [0, 1], [1, 2], ALL),
        (REDUCE_SUM, f32, [1], [1, 2], EXACT),
    ],
)
def test_what_shares_no_prefix(
    reduction: Operation, dtype: DType, first: list[int], second: list[int], allowed: Any
) -> None:
    b = Building()
    x = b.input("x", (3, 4, 5), dtype)
    graph = b.done(b(reduction, x, axes=first), b(reduction, x, axes=second))
    ctx = check_numbers(SharePrefixes(), graph, context("numpy", allowed))
    assert len(x.uses) == 2
    assert ledger(ctx) == []


@pytest.mark.parametrize("keeps", [True, False])
def test_no_prefix_at_the_cost_of_a_move(keeps: bool) -> None:
    b = Building()
    x = b.input("x", (3, 4, 5))
    graph = b.done(b(REDUCE_MAX, x, axes=[2], keepdims=keeps), b(REDUCE_MAX, x, axes=[1, 2], keepdims=not keeps))
    check_numbers(SharePrefixes(), graph)
    assert len(x.uses) == (1 if keeps else 2)
    assert names(graph) == ["reduce_max", "reduce_max"]
