"""canonicalize-reduce, rule by rule: that it fires, that its near misses do not and say why, that numbers stay."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_helpers import (
    ALL,
    Building,
    assert_equal,
    axes_of,
    check_numbers,
    context,
    evaluate,
    ledger,
    names,
    random_feeds,
    remarks,
    run,
)

from dmlc.ir import Operation
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i32, i64, u8, u32
from dmlc.ops.binary import ADD
from dmlc.ops.choose import CAST, CLIP
from dmlc.ops.elementwise import EXP
from dmlc.ops.index import IOTA, ONE_HOT
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    REDUCTIONS,
    ReduceAttributes,
)
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from tests.rows import each_row

PASS = CanonicalizeReduce()
EXACT_ONLY = ("exact",)


# --- drop-unit-axes


@each_row("op", [*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX])
def test_axes_of_size_1_are_dropped(op: Operation) -> None:
    b = Building()
    x = b.input("x", (2, 1, 3, 1))
    graph = b.done(b(op, x, axes=[1, 2, 3]))
    ctx = check_numbers(PASS, graph)
    assert axes_of(graph) == (2,)
    adds_up = op in REDUCTIONS and op not in (REDUCE_MAX, REDUCE_MIN)
    assert ledger(ctx) == [("drop-unit-axes", "reassociates" if adds_up else "exact")]


@pytest.mark.parametrize("dtype", [f32, i32])
def test_a_sum_of_floats_keeps_axes_of_size_1_where_only_exact_is_allowed(dtype: Any) -> None:
    """ONNX Runtime's kernel adds up in another order over fewer axes."""
    b = Building()
    graph = b.done(b(REDUCE_SUM, b.input("x", (2, 4, 3, 1), dtype), axes=[1, 3]))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert axes_of(graph) == ((1, 3) if dtype is f32 else (1,))
    assert ledger(ctx) == ([] if dtype is f32 else [("drop-unit-axes", "exact")])


@pytest.mark.parametrize("op", [ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX])
def test_a_selection_keeps_its_axes_where_all_have_size_1(op: Operation) -> None:
    b = Building()
    graph = b.done(b(op, b.input("x", (1, 3, 1)), axes=[0, 2]))
    ctx = check_numbers(PASS, graph)
    assert axes_of(graph) == (0, 2)
    assert ledger(ctx) == []


def test_a_dim_that_is_proved_1_counts_as_1() -> None:
    b = Building(one=(1, 1), n=(1, 4))
    x = b.input("x", ("one", 3, "n"))
    graph = b.done(b(REDUCE_SUM, x, axes=[0, 1, 2]))
    check_numbers(PASS, graph, binding={"one": 1, "n": 3})
    assert axes_of(graph) == (1, 2)


def test_without_keepdims_an_axis_of_size_1_stays_because_dropping_it_costs_a_squeeze() -> None:
    b = Building()
    x = b.input("x", (1, 3))
    graph = b.done(b(REDUCE_SUM, x, axes=[0, 1], keepdims=False))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum"]
    assert axes_of(graph) == (0, 1)
    assert ledger(ctx) == []


# --- drop-empty-reduction

ELEMENTWISE = {
    REDUCE_SUM: [], REDUCE_MEAN: [], REDUCE_MAX: [], REDUCE_MIN: [], REDUCE_PROD: [], REDUCE_LOG_SUM_EXP: [],
    REDUCE_L1: ["abs"], REDUCE_L2: ["abs"], REDUCE_SUM_SQUARE: ["mul"], REDUCE_LOG_SUM: ["log"],
}  # fmt: skip
NOT_EXACT = {REDUCE_L2, REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP}


@each_row(
    ("op", "dtype"),
    [(op, dtype) for op in REDUCTIONS for dtype in (f32, f16, i32, u8) if dtype in op.operands[0].dtypes],
)
@each_row("keepdims", [True, False])
def test_a_reduction_over_one_element_is_its_elementwise_part(op: Operation, dtype: Any, keepdims: bool) -> None:
    b = Building()
    x = b.input("x", (3, 1), dtype)
    graph = b.done(b(REDUCE_SUM, b(op, x, axes=[1], keepdims=keepdims), axes=[0]))
    ctx = check_numbers(PASS, graph, exact=dtype is not f16 or op is not REDUCE_LOG_SUM_EXP)
    expected = [] if dtype is u8 and op is REDUCE_L1 else ELEMENTWISE[op]
    assert names(graph) == [*expected, "reduce_sum"]  # takes the axis of size 1 out too
    assert ledger(ctx)[0] == ("drop-empty-reduction", "reassociates" if op in NOT_EXACT else "exact")


@each_row("op", REDUCTIONS)
def test_no_axes_mean_the_elementwise_part_and_never_all(op: Operation) -> None:
    b = Building()
    x = b.input("x", (2, 3))
    value = b.graph.add(op, [x], ReduceAttributes(axes=(), keepdims=False)).result
    graph = b.done(value)
    run(PASS, graph)
    assert names(graph) == ELEMENTWISE[op]
    assert graph.outputs[0][1].shape == (2, 3)
    feeds = {"x": np.array([[1.0, 4.0, 2.0], [0.5, 3.0, 9.0]], np.float32)}
    plain = {"abs": np.abs, "log": np.log, "mul": np.square}
    function: Any = plain[ELEMENTWISE[op][0]] if ELEMENTWISE[op] else lambda x: x
    np.testing.assert_allclose(evaluate(graph, feeds)[0], function(feeds["x"]), rtol=1e-6)


@pytest.mark.parametrize("op", sorted(NOT_EXACT, key=lambda op: op.name))
def test_elementwise_parts_that_round_otherwise_stay_where_only_exact_is_allowed(op: Operation) -> None:
    b = Building()
    x = b.input("x", (3, 1))
    graph = b.done(b(op, x, axes=[1]))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == [op.name]
    assert remarks(ctx) == ["it reassociates: rounding may differ, and only exact rewrites are allowed here"]


def test_l2_of_one_huge_element_shows_why_it_is_not_exact() -> None:
    b = Building()
    x = b.input("x", (1,))
    graph = b.done(b(REDUCE_L2, x, axes=[0]))
    feeds = {"x": np.array([-3e30], np.float32)}
    assert np.isinf(evaluate(graph, feeds)[0]).all()
    run(PASS, graph)
    assert evaluate(graph, feeds)[0] == np.float32(3e30)


def test_a_reduction_of_one_element_that_is_an_output_goes_too() -> None:
    b = Building()
    x = b.input("x", (3, 1))
    graph = b.done(b(REDUCE_MAX, x, axes=[1]), x)
    check_numbers(PASS, graph)
    assert len(graph) == 0
    assert [v for _, v in graph.outputs] == [x, x]


@each_row("op", REDUCTIONS)
def test_a_symbolic_size_that_may_be_1_is_reduced(op: Operation) -> None:
    b = Building(n=(1, 9))
    x = b.input("x", ("n", 2))
    graph = b.done(b(op, x, axes=[0]))
    ctx = run(PASS, graph)
    assert names(graph) == [op.name]
    assert ledger(ctx) == []


# --- merge-nested-reductions

MERGED = [
    (REDUCE_SUM, REDUCE_SUM, REDUCE_SUM),
    (REDUCE_SUM, REDUCE_L1, REDUCE_L1),
    (REDUCE_SUM, REDUCE_SUM_SQUARE, REDUCE_SUM_SQUARE),
    (REDUCE_LOG_SUM, REDUCE_SUM, REDUCE_LOG_SUM),
    (REDUCE_MEAN, REDUCE_MEAN, REDUCE_MEAN),
    (REDUCE_MAX, REDUCE_MAX, REDUCE_MAX),
    (REDUCE_MIN, REDUCE_MIN, REDUCE_MIN),
    (REDUCE_PROD, REDUCE_PROD, REDUCE_PROD),
    (REDUCE_L1, REDUCE_L1, REDUCE_L1),
    (REDUCE_L1, REDUCE_SUM_SQUARE, REDUCE_SUM_SQUARE),
    (REDUCE_SUM_SQUARE, REDUCE_L2, REDUCE_SUM_SQUARE),
    (REDUCE_L2, REDUCE_L2, REDUCE_L2),
    (REDUCE_LOG_SUM_EXP, REDUCE_LOG_SUM_EXP, REDUCE_LOG_SUM_EXP),
]
MERGING = {(outer, inner) for outer, inner, _ in MERGED}


@each_row(("outer", "inner", "merged"), MERGED)
@each_row("dtype", [f32, f16, f64])
def test_nested_float_reductions_merge(outer: Operation, inner: Operation, merged: Operation, dtype: Any) -> None:
    b = Building()
    x = b.input("x", (2, 3, 4), dtype)
    graph = b.done(b(outer, b(inner, x, axes=[2]), axes=[0]))
    feeds = {"x": np.abs(random_feeds(graph)["x"]) if outer is REDUCE_LOG_SUM else random_feeds(graph)["x"]}
    is_exact = outer in (REDUCE_MAX, REDUCE_MIN)
    ctx = check_numbers(PASS, graph, exact=is_exact, feeds=feeds)
    assert names(graph) == [merged.name]
    assert axes_of(graph) == (0, 2)
    assert ledger(ctx) == [("merge-nested-reductions", "exact" if is_exact else "reassociates")]
    assert ctx.ledger[0].text == f"{outer.name} of {inner.name}"
    (node,) = graph
    assert node.history.rules == ("merge-nested-reductions",)
    assert [span.line for span in node.spans] == [2, 1]  # both places, the outer one first


@each_row(("outer", "inner"), sorted(
    set(itertools.product(REDUCTIONS, REDUCTIONS)) - MERGING, key=lambda pair: (pair[0].name, pair[1].name)
))  # fmt: skip
def test_other_kinds_do_not_merge(outer: Operation, inner: Operation) -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    graph = b.done(b(outer, b(inner, x, axes=[2]), axes=[0]))
    ctx = run(PASS, graph, context(allowed=ALL))
    assert names(graph) == [inner.name, outer.name]
    (text,) = remarks(ctx)
    special = {
        REDUCE_SUM_SQUARE: "the squares of sums of squares do not add up to a sum of squares",
        REDUCE_LOG_SUM: "the logarithm of a sum of logarithms is not the logarithm of the whole sum",
    }
    usual = f"{outer.name} of {inner.name} is not a single reduction"
    assert text == (special.get(outer, usual) if outer is inner else usual)


def test_a_chain_of_three_merges_into_one() -> None:
    b = Building(n=(1, 5))
    x = b.input("x", ("n", 3, 4, 5))
    graph = b.done(b(REDUCE_SUM, b(REDUCE_SUM, b(REDUCE_SUM, x, axes=[3]), axes=[1]), axes=[0]))
    check_numbers(PASS, graph, exact=False, binding={"n": 2})
    assert names(graph) == ["reduce_sum"]
    assert axes_of(graph) == (0, 1, 3)


@each_row("inner_keeps", [True, False])
@each_row("outer_keeps", [True, False])
@each_row("inner_axes", [(0,), (1,), (3,), (0, 2), (1, 2, 3)])
def test_every_mix_of_keepdims_and_axes(inner_keeps: bool, outer_keeps: bool, inner_axes: tuple[int, ...]) -> None:
    left = 4 if inner_keeps else 4 - len(inner_axes)
    for count in range(1, left + 1):
        for outer_axes in itertools.combinations(range(left), count):
            b = Building()
            x = b.input("x", (2, 3, 4, 5))
            inner = b(REDUCE_MAX, x, axes=inner_axes, keepdims=inner_keeps)
            graph = b.done(b(REDUCE_MAX, inner, axes=outer_axes, keepdims=outer_keeps))
            check_numbers(PASS, graph)
            assert names(graph).count("reduce_max") == 1
            assert len(names(graph)) <= 2  # at most one move of 1s beside it


@pytest.mark.parametrize("moves", ["squeeze", "unsqueeze", "reshape", "both"])
def test_moves_of_axes_of_size_1_between_are_looked_through(moves: str) -> None:
    b = Building(n=(1, 5))
    x = b.input("x", ("n", 3, 1, 5))
    inner = b(REDUCE_MAX, x, axes=[1])
    if moves == "squeeze":
        value = b(REDUCE_MAX, b(SQUEEZE, inner, axes=[2]), axes=[2])
    elif moves == "unsqueeze":
        value = b(REDUCE_MAX, b(UNSQUEEZE, inner, axes=[0]), axes=[4])
    elif moves == "reshape":
        value = b(REDUCE_MAX, b(RESHAPE, inner, shape=[1, "n", 5, 1]), axes=[2])
    else:
        value = b(REDUCE_MAX, b(UNSQUEEZE, b(SQUEEZE, inner, axes=[1]), axes=[0]), axes=[3])
    graph = b.done(value)
    check_numbers(PASS, graph, binding={"n": 4})
    assert names(graph)[0] == "reduce_max"
    assert names(graph).count("reduce_max") == 1
    assert axes_of(graph, 0) == (1, 3)


def test_a_size_that_is_1_only_by_condition_stops_the_merge() -> None:
    b = Building(n=(1, 5))
    x = b.input("x", ("n", 3, 4))
    graph = b.done(b(REDUCE_SUM, b(SQUEEZE, b(REDUCE_SUM, x, axes=[2]), axes=[0]), axes=[0]))
    assert len(graph.conditions) == 1
    run(PASS, graph)
    assert names(graph).count("reduce_sum") == 2


def test_an_inner_reduction_that_is_used_twice_stays() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    inner = b(REDUCE_SUM, x, axes=[2])
    inner.name = "s"
    graph = b.done(b(REDUCE_SUM, inner, axes=[1]), b(EXP, inner))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum", "reduce_sum", "exp"]
    assert remarks(ctx) == ["s is used 2 times (being an output counts)"]
    assert [span.line for span in ctx.remarks[0].spans] == [2, 1]  # the rule's root, then the guilty value


def test_an_inner_reduction_that_is_an_output_stays() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    inner = b(REDUCE_MAX, x, axes=[2])
    graph = b.done(b(REDUCE_MAX, inner, axes=[1]), inner)
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["reduce_max", "reduce_max"]
    assert remarks(ctx) == ["the result of reduce_max is used 2 times (being an output counts)"]


def test_the_last_user_merges_once_the_other_has_gone() -> None:
    # The second user is a reduction over nothing that goes away, so that the first may merge after all.
    b = Building()
    x = b.input("x", (2, 3, 4))
    inner = b(REDUCE_MAX, x, axes=[2])
    first = b(REDUCE_MAX, inner, axes=[1])
    b(REDUCE_MAX, b(REDUCE_MAX, inner, axes=[2]), axes=[2])  # dead once the two are dropped
    graph = b.done(first)
    check_numbers(PASS, graph)
    assert axes_of(graph, 0) == (1, 2)


@pytest.mark.parametrize("dtype", [i8, i32, i64, u8, u32])
def test_integer_means_never_merge(dtype: Any) -> None:
    b = Building()
    x = b.input("x", (2, 3), dtype)
    graph = b.done(b(REDUCE_MEAN, b(REDUCE_MEAN, x, axes=[1]), axes=[0]))
    ctx = check_numbers(PASS, graph, context(allowed=ALL))
    assert names(graph) == ["reduce_mean", "reduce_mean"]
    assert remarks(ctx) == ["integer means truncate, so the mean of means may differ from the mean"]


def test_integer_means_of_means_do_differ() -> None:
    b = Building()
    x = b.input("x", (2, 2), i32)
    graph = b.done(b(REDUCE_MEAN, b(REDUCE_MEAN, x, axes=[1]), axes=[0]), b(REDUCE_MEAN, x, axes=[0, 1]))
    one, other = evaluate(graph, {"x": np.array([[0, 1], [0, 3]], np.int32)})
    assert (one.item(), other.item()) == (0, 1)


@pytest.mark.parametrize("op", [REDUCE_SUM, REDUCE_PROD])
@pytest.mark.parametrize("target", ["directml", "numpy"])
def test_integer_sums_that_wrap_merge_exactly(op: Operation, target: str) -> None:
    b = Building()
    x = b.input("x", (2, 3, 4), i32)
    graph = b.done(b(op, b(op, x, axes=[2]), axes=[1]))
    feeds = {"x": np.random.default_rng(1).integers(-(2**31), 2**31, (2, 3, 4)).astype(np.int32)}
    ctx = check_numbers(PASS, graph, context(target, EXACT_ONLY), feeds=feeds)
    assert names(graph) == [op.name]
    assert ledger(ctx) == [("merge-nested-reductions", "exact")]


@pytest.mark.parametrize("op", [REDUCE_SUM, REDUCE_PROD])
@pytest.mark.parametrize("target", ["cpu", "onnx"])
def test_integer_sums_that_may_saturate_are_range(op: Operation, target: str) -> None:
    b = Building()
    x = b.input("x", (2, 3, 4), i32)
    graph = b.done(b(op, b(op, x, axes=[2]), axes=[1]))
    twin = graph.clone()
    ctx = check_numbers(PASS, graph, context(target))
    assert names(graph) == [op.name] * 2
    assert remarks(ctx) == ["it is equal only where no partial result leaves its range (--allow range)"]
    ctx = check_numbers(PASS, twin, context(target, ALL))
    assert names(twin) == [op.name]
    assert ledger(ctx) == [("merge-nested-reductions", "range")]


def bounded(b: Building, how: str, n: int) -> Any:
    """An i32 (or other) value of shape (n, 4, 5) whose size is known from where it comes."""
    if how == "cast":
        return b(CAST, b.input("x", (n, 4, 5), i8), to=i32)
    if how == "bool":
        return b(CAST, b.input("x", (n, 4, 5), bool_), to=i32)
    if how == "clip":
        return b(CLIP, b.input("x", (n, 4, 5), i32), min=-7, max=100)
    if how == "constant":
        return b.constant(np.full((n, 4, 5), -3), i32)
    if how == "one_hot":
        return b(ONE_HOT, b.input("x", (n, 4), i32), depth=5, on=3, off=-1, dtype=i32)
    if how == "iota":
        return b(RESHAPE, b(IOTA, length=n * 20, dtype=i32), shape=[n, 4, 5])
    return b(TRANSPOSE, b(CAST, b.input("x", (5, 4, n), i8), to=i32), perm=[2, 1, 0])


@pytest.mark.parametrize("how", ["cast", "bool", "clip", "constant", "one_hot", "iota", "moved"])
def test_bounds_prove_that_an_integer_sum_stays_in_range(how: str) -> None:
    b = Building()
    value = bounded(b, how, 6)
    graph = b.done(b(REDUCE_SUM, b(REDUCE_SUM, value, axes=[2]), axes=[1, 0]))
    ctx = check_numbers(PASS, graph, context("cpu", EXACT_ONLY))
    assert names(graph).count("reduce_sum") == 1
    assert ("merge-nested-reductions", "exact") in ledger(ctx)
    assert {rewrite_class for _, rewrite_class in ledger(ctx)} == {"exact"}


@pytest.mark.parametrize(("size", "fires"), [(21, True), (22, False)])
def test_the_bound_is_sharp(size: int, fires: bool) -> None:
    # 3 * 42 = 126 fits i8, 3 * 44 = 132 does not.
    b = Building()
    x = b(CLIP, b.input("x", (2, size), i8), min=-3, max=3)
    graph = b.done(b(REDUCE_SUM, b(REDUCE_SUM, x, axes=[1]), axes=[0]))
    run(PASS, graph, context("cpu", EXACT_ONLY))
    assert names(graph).count("reduce_sum") == (1 if fires else 2)


@pytest.mark.parametrize(("op", "most", "fires"), [
    (REDUCE_SUM_SQUARE, 5, True), (REDUCE_SUM_SQUARE, 6, False), (REDUCE_L1, 31, True), (REDUCE_L1, 32, False),
])  # fmt: skip
def test_the_bound_counts_squares_and_magnitudes(op: Operation, most: int, fires: bool) -> None:
    # Four elements in i8: 4 * 5 * 5 = 100 and 4 * 31 = 124 fit, 4 * 6 * 6 = 144 and 4 * 32 = 128 do not.
    b = Building()
    x = b(CLIP, b.input("x", (2, 2), i8), min=-most, max=0)
    graph = b.done(b(REDUCE_SUM, b(op, x, axes=[1]), axes=[0]))
    run(PASS, graph, context("cpu", EXACT_ONLY))
    assert (names(graph) == ["clip", op.name]) is fires


@pytest.mark.parametrize(("most", "fires"), [(3, True), (4, False)])
def test_the_bound_of_a_product_is_a_power(most: int, fires: bool) -> None:
    # 3 ** 4 = 81 fits i8, 4 ** 4 = 256 does not.
    b = Building()
    x = b(CLIP, b.input("x", (2, 2), i8), min=-most, max=0)
    graph = b.done(b(REDUCE_PROD, b(REDUCE_PROD, x, axes=[1]), axes=[0]))
    run(PASS, graph, context("cpu", EXACT_ONLY))
    assert names(graph).count("reduce_prod") == (1 if fires else 2)


def test_a_negative_number_cast_to_unsigned_is_large() -> None:
    b = Building()
    x = b(CAST, b(CLIP, b.input("x", (2, 2), i8), min=-1, max=0), to=u8)
    graph = b.done(b(REDUCE_SUM, b(REDUCE_SUM, x, axes=[1]), axes=[0]))
    run(PASS, graph, context("cpu"))
    assert names(graph).count("reduce_sum") == 2


def test_a_cast_that_wraps_is_bounded_by_its_dtype() -> None:
    for shape, count in (((2, 1), 1), ((2, 2), 2)):  # 1 * 127 fits i8, 2 * 128 does not
        b = Building()
        x = b(CAST, b.input("x", shape, i32), to=bool_) if count == 1 else b.input("x", shape, i32)
        x = b(CAST, x, to=i8)
        graph = b.done(b(REDUCE_SUM, b(REDUCE_SUM, b(RESHAPE, x, shape=[shape[1], 2, 1]), axes=[1]), axes=[0, 2]))
        run(PASS, graph, context("cpu"))
        assert names(graph).count("reduce_sum") == count


def test_a_dim_without_an_upper_bound_proves_nothing() -> None:
    b = Building()
    x = b(CAST, b.input("x", ("n", 4), i8), to=i32)
    graph = b.done(b(REDUCE_SUM, b(REDUCE_SUM, x, axes=[1]), axes=[0]))
    run(PASS, graph, context("cpu"))
    assert names(graph).count("reduce_sum") == 2


def test_l1_of_l1_of_signed_integers_is_range_even_where_sums_wrap() -> None:
    b = Building()
    x = b.input("x", (2, 4), i8)
    graph = b.done(b(REDUCE_L1, b(REDUCE_L1, x, axes=[1]), axes=[0]), b(REDUCE_L1, x, axes=[0, 1]))
    one, other = evaluate(graph, {"x": np.array([[100, 100, 0, 0], [0, 0, 0, 0]], np.int8)})
    assert one.item() != other.item()
    ctx = run(PASS, graph)
    assert names(graph).count("reduce_l1") == 3
    assert remarks(ctx) == ["it is equal only where no partial result leaves its range (--allow range)"]


def test_l1_of_l1_of_unsigned_integers_wraps_exactly() -> None:
    b = Building()
    x = b.input("x", (2, 4), u8)
    graph = b.done(b(REDUCE_L1, b(REDUCE_L1, x, axes=[1]), axes=[0]))
    feeds = {"x": np.full((2, 4), 200, np.uint8)}
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY), feeds=feeds)
    assert ledger(ctx) == [("merge-nested-reductions", "exact")]


@pytest.mark.parametrize("op", [REDUCE_SUM, REDUCE_MEAN, REDUCE_PROD, REDUCE_L2, REDUCE_LOG_SUM_EXP])
def test_float_merges_need_more_than_exact(op: Operation) -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    graph = b.done(b(op, b(op, x, axes=[2]), axes=[1]))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == [op.name] * 2
    assert remarks(ctx) == ["it reassociates: rounding may differ, and only exact rewrites are allowed here"]


@each_row("op", [REDUCE_MAX, REDUCE_MIN])
@each_row("dtype", [f32, i8, u32, bool_])
def test_max_and_min_merge_exactly(op: Operation, dtype: Any) -> None:
    b = Building()
    x = b.input("x", (2, 3, 4), dtype)
    graph = b.done(b(op, b(op, x, axes=[2]), axes=[1]))
    check_numbers(PASS, graph, context("cpu", EXACT_ONLY))
    assert names(graph) == [op.name]


@each_row("op", [REDUCE_SUM, REDUCE_MEAN, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_L2])
@each_row("empty", [(0, 3), (3, 0), (0, 0)])
def test_empty_axes_merge_to_the_same_value(op: Operation, empty: tuple[int, int]) -> None:
    b = Building(n=(0, 5), m=(0, 5))
    x = b.input("x", ("n", 2, "m"))
    graph = b.done(b(op, b(op, x, axes=[2]), axes=[0]))
    binding = dict(zip(("n", "m"), empty, strict=True))
    check_numbers(PASS, graph, binding=binding)
    assert names(graph) == [op.name]


def test_argmax_of_argmax_stays() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    graph = b.done(b(ARGMAX, b(ARGMAX, x, axes=[2]), axes=[1]))
    ctx = check_numbers(PASS, graph, context(allowed=ALL))
    assert names(graph) == ["argmax", "argmax"]
    assert ledger(ctx) == []


# --- all together

OPS = st.sampled_from([REDUCE_SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_L1, REDUCE_SUM_SQUARE, REDUCE_MEAN, REDUCE_PROD])


MOVES = ("transpose", "expand", "merge", "split")


@st.composite
def chains(draw: Any) -> Any:
    """A chain of reductions and moves of 1s over small shapes; some values are outputs too."""
    b = Building()
    shape = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=4))
    value = b.input("x", shape, draw(st.sampled_from([f32, i32, i8, u8])))
    outputs = []
    for _ in range(draw(st.integers(1, 5))):
        rank = value.type.rank
        units = [i for i, d in enumerate(value.shape) if d == 1]
        kind = draw(st.sampled_from(["reduce", "reduce", "squeeze", "unsqueeze", "reshape", "add", *MOVES]))
        if kind == "reduce" and rank:
            axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, unique=True))
            value = b(draw(OPS), value, axes=axes, keepdims=draw(st.booleans()))
        elif kind == "squeeze" and units:
            value = b(SQUEEZE, value, axes=draw(st.lists(st.sampled_from(units), min_size=1, unique=True)))
        elif kind == "unsqueeze" and rank < 5:
            value = b(UNSQUEEZE, value, axes=[draw(st.integers(0, rank))])
        elif kind == "reshape":
            value = b(RESHAPE, value, shape=[d for d in value.shape if d != 1])
        elif kind == "add":
            value = b(ADD, value, value)
        elif kind == "transpose" and rank:
            value = b(TRANSPOSE, value, perm=draw(st.permutations(range(rank))))
        elif kind == "expand":
            value = b(EXPAND, value, shape=[2] * draw(st.integers(0, 1)) + [3 if d == 1 else d for d in value.shape])
        elif kind == "merge" and rank > 1:
            value = b(RESHAPE, value, shape=[value.shape[0] * value.shape[1], *value.shape[2:]])
        elif kind == "split" and rank and value.shape[0] == 6:
            value = b(RESHAPE, value, shape=[2, 3, *value.shape[1:]])
        if draw(st.integers(0, 4)) == 0:
            outputs.append(value)
    return b.done(*outputs, value)


def working(graph: Any) -> int:
    """The nodes that compute; moves of axes of size 1 cost nothing."""
    return sum(name not in ("squeeze", "unsqueeze", "reshape") for name in names(graph))


@given(chains(), st.integers(0, 3))
@settings(max_examples=80)
def test_any_chain_keeps_its_numbers_and_comes_to_an_end(graph: Any, seed: int) -> None:
    feeds = random_feeds(graph, seed=seed)
    before, count = evaluate(graph, feeds), working(graph)
    run(PASS, graph)
    assert_equal(before, evaluate(graph, feeds), exact=False)
    assert working(graph) <= count
    ctx = run(PASS, graph)
    assert ledger(ctx) == []  # the form is a form: a second run finds nothing
