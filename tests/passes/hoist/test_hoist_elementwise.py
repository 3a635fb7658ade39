"""hoist: what is done after a reduction instead of before it, of which class, and what must stay where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import ALL, Building, check_numbers, context, evaluate, ledger, names, random_feeds, remarks, run

import dmlc
from dmlc.ir import DType, Operation
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i32, i64, u8, u32
from dmlc.ir.history import CLASSES
from dmlc.ops.binary import ADD, DIV, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CAST, CLIP
from dmlc.ops.elementwise import CEIL, ERF, EXP, FLOOR, LOG, NEG, RELU, ROUND, SIGMOID, SIGN, SQRT, TANH
from dmlc.ops.matmul import MATMUL
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
)
from dmlc.passes.hoist import Hoist
from tests.rows import each_row

PASS = Hoist()
EXACT = ("exact",)
EXTREMES = [REDUCE_MAX, REDUCE_MIN]


def reduced_at(graph: Any) -> list[tuple[int, ...]]:
    """The shapes that elementwise nodes write."""
    return [node.result.shape for node in graph if node.op.name not in ("constant",) and "reduce" not in node.op.name]


# --- maxima and minima


@each_row("reduction", EXTREMES)
@each_row("op", [RELU, FLOOR, CEIL, ROUND, SIGN])
@each_row("keeps", [True, False])
def test_what_never_falls_goes_after(reduction: Operation, op: Operation, keeps: bool) -> None:
    b = Building(n=(1, 9))
    x = b.input("x", ("n", 4, 5))
    graph = b.done(b(reduction, b(op, x), axes=[0, 2], keepdims=keeps))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT), binding={"n": 3})
    assert names(graph) == [reduction.name, op.name]
    assert ledger(ctx) == [("rising-after-extreme", "exact")]


@each_row("reduction", EXTREMES)
@each_row("op", [EXP, SIGMOID, TANH, ERF])
def test_what_is_approximated_reassociates(reduction: Operation, op: Operation) -> None:
    b = Building()
    graph = b.done(b(reduction, b(op, b.input("x", (3, 4))), axes=[1]))
    strict = run(PASS, graph, context(allowed=EXACT))
    assert names(graph) == [op.name, reduction.name]
    assert any("only exact rewrites" in text for text in remarks(strict))
    ctx = check_numbers(PASS, graph, exact=False)
    assert names(graph) == [reduction.name, op.name]
    assert ledger(ctx) == [("rising-after-extreme", "reassociates")]


@pytest.mark.parametrize("op", [LOG, SQRT])
def test_of_what_may_be_negative_a_nan_would_go_away(op: Operation) -> None:
    b = Building()
    graph = b.done(b(REDUCE_MIN, b(op, b.input("x", (3, 4))), axes=[1]))
    run(PASS, graph, context())
    assert names(graph) == [op.name, "reduce_min"]
    feeds = {"x": np.abs(random_feeds(graph)["x"]) + np.float32(0.1)}
    ctx = check_numbers(PASS, graph, context(allowed=CLASSES), exact=False, feeds=feeds)
    assert names(graph) == ["reduce_min", op.name]
    assert ledger(ctx) == [("rising-after-extreme", "range")]


@pytest.mark.parametrize("op", [LOG, SQRT])
def test_of_what_is_never_negative(op: Operation) -> None:
    b = Building()
    x = b.input("x", (3, 4))
    graph = b.done(b(REDUCE_MIN, b(op, b(MUL, x, x)), axes=[1]))
    ctx = check_numbers(PASS, graph, exact=False)
    assert names(graph) == ["mul", "reduce_min", op.name]
    assert ledger(ctx) == [("rising-after-extreme", "reassociates")]


@pytest.mark.parametrize("reduction", EXTREMES)
@pytest.mark.parametrize("dtype", [f16, f32, f64])
def test_a_negation_turns_the_extreme(reduction: Operation, dtype: DType) -> None:
    b = Building()
    graph = b.done(b(reduction, b(NEG, b.input("x", (3, 4), dtype)), axes=[1]))
    check_numbers(PASS, graph, context(allowed=EXACT))
    assert names(graph) == ["reduce_min" if reduction is REDUCE_MAX else "reduce_max", "neg"]


def test_the_lowest_integer_does_not_turn() -> None:
    b = Building()
    x = b.input("x", (3, 4), i32)
    graph = b.done(
        b(REDUCE_MAX, b(NEG, x), axes=[1]), b(REDUCE_MAX, b(NEG, b(CAST, b(CLIP, x, min=-3, max=3), to=i32)), axes=[0])
    )
    ctx = check_numbers(PASS, graph, context(allowed=ALL))
    assert names(graph)[:2] == ["neg", "reduce_max"]
    assert names(graph).count("reduce_min") == 1
    assert any("negates to itself" in text for text in remarks(ctx))


@each_row("reduction", EXTREMES)
@each_row(
    ("op", "number", "turns"),
    [(MUL, 2.5, False), (MUL, -0.1, True), (DIV, 3.0, False), (DIV, -7.0, True), (ADD, -4.0, False), (SUB, 0.3, False)],
)
@each_row("dtype", [f16, f32])
def test_numbers_of_one_sign(reduction: Operation, op: Operation, number: float, turns: bool, dtype: DType) -> None:
    b = Building()
    x = b.input("x", (3, 50), dtype)
    graph = b.done(b(reduction, b(op, x, b.constant(number, dtype)), axes=[1], keepdims=False))
    feeds = random_feeds(graph)
    feeds["x"][0, :3] = np.inf, -np.inf, np.finfo(dtype.numpy).max
    with np.errstate(over="ignore"):
        check_numbers(PASS, graph, context(allowed=EXACT), feeds=feeds)
    other = {REDUCE_MAX: REDUCE_MIN, REDUCE_MIN: REDUCE_MAX}
    assert names(graph) == [(other[reduction] if turns else reduction).name, op.name]


def test_what_is_subtracted_turns() -> None:
    b = Building()
    x, c = b.input("x", (3, 4, 5)), b.input("c", (3, 1, 1))
    graph = b.done(b(REDUCE_MAX, b(SUB, c, x), axes=[1, 2]))
    check_numbers(PASS, graph, context(allowed=EXACT))
    assert names(graph) == ["reduce_min", "sub"]
    assert reduced_at(graph) == [(3, 1, 1)]


@pytest.mark.parametrize("op", [MIN, MAX])
@pytest.mark.parametrize("dtype", [f32, i32, u8])
def test_a_bound_goes_after(op: Operation, dtype: DType) -> None:
    b = Building()
    x, c = b.input("x", (3, 4), dtype), b.input("c", (4,), dtype)
    graph = b.done(b(REDUCE_MAX, b(op, c, x), axes=[0], keepdims=False))
    check_numbers(PASS, graph, context(target="numpy", allowed=EXACT))
    assert names(graph) == ["reduce_max", op.name]
    b = Building()
    x, c = b.input("x", (3, 4), dtype), b.constant(2, dtype)
    graph = b.done(
        b(REDUCE_MAX, b(op, c, x), axes=[0], keepdims=False), b(REDUCE_MIN, b(CLIP, x, min=1, max=2), axes=[1])
    )
    check_numbers(PASS, graph, context(target="numpy", allowed=EXACT))
    assert names(graph) == ["reduce_max", op.name, "reduce_min", "clip"]


def test_constants_lose_the_axes_that_go() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4, 5))
    bias = b.constant(np.arange(3).reshape(1, 3, 1, 1))
    graph = b.done(
        b(REDUCE_MAX, b(ADD, x, bias), axes=[2, 3], keepdims=False), b(REDUCE_MAX, b(ADD, x, bias), axes=[0])
    )
    check_numbers(PASS, graph, context(allowed=EXACT))
    assert names(graph) == ["reduce_max", "add", "reduce_max", "add"]
    assert reduced_at(graph) == [(2, 3), (1, 3, 4, 5)]


def test_what_is_broadcast_stays_small() -> None:
    b = Building()
    x, c = b.input("x", (1, 4, 5)), b.input("c", (3, 1, 1))
    graph = b.done(b(REDUCE_MAX, b(ADD, x, c), axes=[2]), b(REDUCE_SUM, b(MUL, c, b.input("z", (4, 5))), axes=[1]))
    check_numbers(PASS, graph, exact=False)
    assert names(graph) == ["reduce_max", "add", "reduce_sum", "mul"]
    assert [n.result.shape for n in graph if n.op is REDUCE_SUM] == [(1, 5)]


@pytest.mark.parametrize(
    ("source", "to", "target"),
    [
        (f16, f32, "directml"),
        (f32, f16, "directml"),
        (i8, i32, "numpy"),
        (i32, f32, "directml"),
        (f32, i32, "directml"),
    ],
)
def test_casts_that_keep_the_order(source: DType, to: DType, target: str) -> None:
    b = Building()
    graph = b.done(b(REDUCE_MIN, b(CAST, b.input("x", (3, 4), source), to=to), axes=[1]))
    check_numbers(PASS, graph, context(target, allowed=EXACT))
    assert names(graph) == ["reduce_min", "cast"]


@pytest.mark.parametrize(
    ("source", "to", "target", "why"),
    [
        (i32, u8, "directml", "does not keep the order"),
        (i32, u32, "directml", "does not keep the order"),
        (f32, bool_, "directml", "does not keep the order"),
        (i64, f32, "directml", "compare large ones wrongly"),
        (f16, f32, "cpu", "cpu has no ReduceMax of f16"),
        (f16, f32, "numpy", "NumPy compares f16 one by one"),
    ],
)
def test_casts_that_stay(source: DType, to: DType, target: str, why: str) -> None:
    b = Building()
    graph = b.done(b(REDUCE_MAX, b(CAST, b.input("x", (3, 4), source), to=to), axes=[1]))
    ctx = check_numbers(PASS, graph, context(target, ALL))
    assert names(graph) == ["cast", "reduce_max"]
    assert any(why in text for text in remarks(ctx)), remarks(ctx)


def test_a_chain_goes_after_step_by_step() -> None:
    b = Building()
    x = b.input("x", (3, 4, 50))
    value = b(MUL, b(RELU, b(ADD, b(NEG, x), b.constant(0.5))), b.constant(-3))
    graph = b.done(b(REDUCE_MIN, value, axes=[0, 2]))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT))
    assert names(graph) == ["reduce_min", "neg", "add", "relu", "mul"]
    assert reduced_at(graph) == [(1, 4, 1)] * 4
    assert len(ledger(ctx)) == 4


# --- sums


@pytest.mark.parametrize("reduction", [REDUCE_SUM, REDUCE_MEAN])
def test_a_negation_of_a_sum_is_exact(reduction: Operation) -> None:
    b = Building()
    graph = b.done(b(reduction, b(NEG, b.input("x", (3, 400))), axes=[1]))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT))
    assert names(graph) == [reduction.name, "neg"]
    assert ledger(ctx) == [("scale-after-sum", "exact")]


@each_row("reduction", [REDUCE_SUM, REDUCE_MEAN, REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE])
@each_row("op", [MUL, DIV])
@each_row("keeps", [True, False])
def test_factors_go_after(reduction: Operation, op: Operation, keeps: bool) -> None:
    b = Building(n=(0, 9))
    x = b.input("x", (2, 3, "n"))
    factor = b.constant(np.array([[1.5], [-2], [0.25]]))
    graph = b.done(b(reduction, b(op, x, factor), axes=[2], keepdims=keeps))
    ctx = check_numbers(PASS, graph, exact=False, binding={"n": 7})
    assert names(graph) == [reduction.name, op.name]
    assert ledger(ctx) == [("scale-after-sum", "reassociates")]


def test_a_factor_that_is_computed() -> None:
    b = Building()
    x, c = b.input("x", (2, 3, 4)), b.input("c", (2, 3, 1))
    graph = b.done(b(REDUCE_MEAN, b(MUL, c, x), axes=[2]), b(REDUCE_SUM, b(DIV, x, c), axes=[2]))
    check_numbers(PASS, graph, exact=False)
    assert names(graph) == ["reduce_mean", "mul", "reduce_sum", "div"]


@each_row("reduction", [REDUCE_SUM, REDUCE_MEAN, REDUCE_LOG_SUM_EXP])
@each_row("op", [ADD, SUB])
@each_row("keeps", [True, False])
def test_shifts_go_after(reduction: Operation, op: Operation, keeps: bool) -> None:
    b = Building()
    bias = b.constant(np.array([0.5, -2, 3]).reshape(1, 3, 1))
    graph = b.done(b(reduction, b(op, b.input("x", (2, 3, 4)), bias), axes=[0, 2], keepdims=keeps))
    ctx = check_numbers(PASS, graph, exact=False)
    assert names(graph) == [reduction.name, op.name]
    assert ledger(ctx) == [("shift-after-mean", "reassociates")]


def test_a_number_less_a_tensor() -> None:
    b = Building()
    x, c = b.input("x", (3, 4)), b.constant(2)
    graph = b.done(b(REDUCE_SUM, b(SUB, c, x), axes=[1]), b(REDUCE_LOG_SUM_EXP, b(SUB, c, x), axes=[1]))
    ctx = check_numbers(PASS, graph, exact=False)
    assert names(graph) == ["reduce_sum", "sub", "sub", "reduce_log_sum_exp"]
    assert remarks(ctx) == ["the exponentials of what is subtracted do not add up"]


@pytest.mark.parametrize(
    ("reduction", "op", "number", "moves"),
    [
        (REDUCE_SUM, MUL, 0.5, False),
        (REDUCE_SUM, MUL, 2, True),
        (REDUCE_SUM, DIV, 2, False),
        (REDUCE_L2, DIV, 0.5, True),
        (REDUCE_MEAN, MUL, 0.5, True),
        (REDUCE_SUM, ADD, 1, False),
        (REDUCE_MEAN, ADD, 1, True),
    ],
)
def test_sums_of_f16_do_not_grow(reduction: Operation, op: Operation, number: float, moves: bool) -> None:
    b = Building()
    graph = b.done(b(reduction, b(op, b.input("x", (3, 40), f16), b.constant(number, f16)), axes=[1]))
    ctx = check_numbers(PASS, graph, exact=False)
    assert (names(graph)[0] == reduction.name) is moves
    assert moves or any("might overflow" in text for text in remarks(ctx))


# --- what stays


def stays(why: str, graph: Any, target: str = "directml") -> None:
    before = names(graph)
    feeds = random_feeds(graph, {"n": 2})
    values = evaluate(graph, feeds)
    ctx = run(PASS, graph, context(target, ALL))
    assert names(graph) == before
    assert why in " | ".join(remarks(ctx)), remarks(ctx)
    for old, new in zip(values, evaluate(graph, feeds), strict=True):
        np.testing.assert_array_equal(old, new)


def test_near_misses() -> None:
    b = Building()
    x = b.input("x", (3, 4))
    relu = b(RELU, x)
    stays("used 2 times", b.done(b(REDUCE_MAX, relu, axes=[0]), relu))
    b = Building(n=(0, 5))
    stays("the maximum or minimum of no elements", b.done(b(REDUCE_MAX, b(RELU, b.input("x", ("n", 4))), axes=[0])))
    for factor in (0.0, [[1.0], [-1.0], [2.0]], np.inf):
        b = Building()
        graph = b.done(b(REDUCE_MAX, b(MUL, b.input("x", (3, 4)), b.constant(factor)), axes=[1]))
        stays("not all positive, or all negative, and finite", graph)
    b = Building()
    graph = b.done(b(REDUCE_MAX, b(MUL, b.input("x", (3, 4)), b.input("c", (3, 1))), axes=[1]))
    stays("the sign of c is not known", graph)
    b = Building()
    graph = b.done(b(REDUCE_SUM, b(MUL, b.input("x", (3, 4)), b.constant([1, 2, 3, 4])), axes=[1]))
    stays("the result of constant varies along axis 1", graph)
    b = Building()
    stays("neither rises nor falls", b.done(b(REDUCE_MAX, b(DIV, b.constant(2), b.input("x", (3, 4))), axes=[1])))
    b = Building()
    stays("divided by the summed value", b.done(b(REDUCE_SUM, b(DIV, b.constant(2), b.input("x", (3, 4))), axes=[1])))
    b = Building(n=(1, 5))
    graph = b.done(b(REDUCE_SUM, b(ADD, b.input("x", ("n", 4)), b.constant(2)), axes=[0]))
    stays("how often the number is added", graph)
    b = Building()
    graph = b.done(b(REDUCE_L2, b(MUL, b.input("x", (3, 4)), b.input("c", (3, 1))), axes=[1]))
    stays("is not a constant", graph)
    b = Building()
    stays("may wrap", b.done(b(REDUCE_MAX, b(ADD, b.input("x", (3, 4), i32), b.constant(2, i32)), axes=[1])))
    b = Building()
    c = b.input("c", (3, 1))
    graph = b.done(b(REDUCE_SUM, b(MUL, b.input("x", (3, 4)), c), axes=[1], keepdims=False))
    stays("c would have to be squeezed", graph)


def test_what_the_node_before_takes_in() -> None:
    b = Building()
    product = b(MATMUL, b.input("x", (3, 4)), b.input("w", (4, 5)))
    stays("computed together with the MatMul before it", b.done(b(REDUCE_MAX, b(RELU, product), axes=[0])))


def test_what_is_no_pattern_leaves_no_remark() -> None:
    b = Building()
    x, y = b.input("x", (3, 4)), b.input("y", (3, 4))
    values = [b(REDUCE_SUM, b(MUL, x, y), axes=[1]), b(REDUCE_SUM, b(MUL, x, x), axes=[1]), b(REDUCE_MAX, x, axes=[1])]
    values += [b(REDUCE_SUM, b(RELU, x), axes=[1]), b(REDUCE_SUM, b(SUB, b.input("u", (3, 1)), b.input("v", (1, 4))))]
    graph = b.done(*values)
    before = names(graph)
    ctx = check_numbers(PASS, graph)
    assert names(graph) == before
    assert remarks(ctx) == []


@pytest.mark.parametrize("other", [("max", "Min"), ("min", "Max")])
def test_the_negated_extreme_of_a_negation_is_one_node(other: tuple[str, str]) -> None:
    text = f"model m(x: f32[3, 4]) -> (y) {{\n    return -reduce_{other[0]}(-x, axes=[1])\n}}\n"
    for target in ("directml", "cpu", "onnx"):
        program = dmlc.compile(dmlc.Source(text, name="m.dml"), target=target, exact=True)
        assert [node.op_type for node in program.to_onnx().graph.node] == [f"Reduce{other[1]}"]
