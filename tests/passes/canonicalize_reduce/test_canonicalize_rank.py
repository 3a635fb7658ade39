"""lower-rank: which reductions and selections of many axes come down to what a target takes."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from pass_helpers import (
    Building,
    check_numbers,
    context,
    ledger,
    names,
    remarks,
    run,
)

from dmlc.ir import Operation
from dmlc.ir.dtype import i32
from dmlc.ops.normalize import MEAN_VARIANCE_NORM, SOFTMAX
from dmlc.ops.reduce import (
    REDUCE_MAX,
    REDUCE_SUM,
)
from dmlc.ops.scan import CUMSUM
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from dmlc.targets import load_target
from tests.rows import each_row

PASS = CanonicalizeReduce()


@each_row("op", [REDUCE_SUM, REDUCE_MAX, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, MEAN_VARIANCE_NORM])
@each_row("axes", [(0,), (8,), (3, 4), (0, 1, 8), (0, 2, 3, 6, 7), tuple(range(9))])
def test_rank_9_is_brought_down(op: Operation, axes: tuple[int, ...]) -> None:
    b = Building()
    x = b.input("x", (2, 3, 2, 2, 2, 2, 2, 2, 2))
    graph = b.done(b(op, x, axes=axes))
    ctx = check_numbers(PASS, graph, exact=op.name not in ("reduce_sum", "softmax", "mean_variance_norm"))
    node = next(n for n in graph if n.op is op)
    assert node.operand(0).type.rank <= 8
    assert ("lower-rank", "exact") in ledger(ctx)


def test_ties_last_and_the_index_over_several_axes_survive_lower_rank() -> None:
    b = Building()
    x = b.input("x", (2,) * 10, i32)
    graph = b.done(b(ARGMAX, x, axes=[1, 2, 5], ties="last", keepdims=False))
    feeds = {"x": np.random.default_rng(0).integers(0, 2, (2,) * 10).astype(np.int32)}
    check_numbers(PASS, graph, feeds=feeds)
    node = next(n for n in graph if n.op is ARGMAX)
    assert node.attributes_as(ArgAttributes).ties == "last"


def test_selection_and_scans_of_high_rank_are_brought_down() -> None:
    b = Building()
    x = b.input("x", (2,) * 8 + (5,))
    values, indices = b.node(TOP_K, x, k=3, axis=8)
    graph = b.done(values, indices, b(CUMSUM, x, axis=4, reverse=True))
    check_numbers(PASS, graph)
    ranks = {n.op.name: n.operand(0).type.rank for n in graph if n.op in (TOP_K, CUMSUM)}
    assert ranks == {"top_k": 2, "cumsum": 3}


def test_alternating_axes_of_size_1_join_their_neighbours() -> None:
    b = Building()
    x = b.input("x", (2, 1, 2, 1, 2, 1, 2, 1, 2))
    graph = b.done(b(ARGMAX, x, axes=[1, 3, 4, 5, 7]))
    check_numbers(PASS, graph)
    assert next(n for n in graph if n.op is ARGMAX).operand(0).type.rank == 3


@pytest.mark.parametrize("op", [ARGMAX, HARDMAX, SOFTMAX])
def test_a_high_rank_is_brought_down_where_only_axes_of_size_1_are_treated(op: Operation) -> None:
    b = Building()
    x = b.input("x", (2, 1, 2, 2, 2, 2, 2, 2, 2))
    graph = b.done(b(op, x, axes=[1]))
    check_numbers(PASS, graph)
    assert next(n for n in graph if n.op is op).operand(0).type.rank == 3


def test_ranks_that_do_not_come_down_are_a_remark() -> None:
    b = Building()
    x = b.input("x", (2,) * 9)
    graph = b.done(b(REDUCE_SUM, x, axes=[0, 2, 4, 6, 8]))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum"]
    assert remarks(ctx) == ["treated and other axes alternate: merging neighbours leaves 9 axes, the limit is 8"]


def test_symbolic_sizes_are_merged_into_products() -> None:
    b = Building()
    x = b.input("x", ("n", "m", 2, 2, 2, 2, 2, 2, 3))
    graph = b.done(b(REDUCE_MAX, x, axes=[0, 1, 8]))
    check_numbers(PASS, graph, binding={"n": 3, "m": 2})
    assert str(next(n for n in graph if n.op is REDUCE_MAX).operand(0).type) == "f32[m * n, 64, 3]"


@pytest.mark.parametrize("limit", [None, 9])
def test_the_limit_is_an_option(limit: int | None) -> None:
    b = Building()
    x = b.input("x", (2,) * 9)
    graph = b.done(b(REDUCE_SUM, x, axes=[0, 1]))
    ctx = run(PASS, graph, context(replace(load_target("directml"), max_rank=limit)))
    assert ledger(ctx) == []
