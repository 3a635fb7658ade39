"""fold-constants: what is evaluated and of which class, what is not and why, and the identities that are exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_helpers import (
    ALL,
    Building,
    assert_equal,
    check_numbers,
    context,
    evaluate,
    ledger,
    names,
    random_feeds,
    remarks,
    run,
)

from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import DTYPES, FLOATS, INTEGERS, NUMERIC, DType, Graph, Operation
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from dmlc.ops.binary import ADD, DIV, EQUAL, FLOORDIV, LESS, MAX, MIN, MOD, MUL, POW, SUB
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.elementwise import ABS, CEIL, ERF, EXP, FLOOR, LOG, NEG, NOT, RELU, ROUND, SIGN, SQRT, TANH
from dmlc.ops.index import FULL, GATHER, IOTA, SCATTER_ELEMENTS
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, EXPAND, PAD, RESHAPE, SLICE, SPLIT, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MEAN, REDUCE_SUM
from dmlc.ops.scan import CUMSUM
from dmlc.ops.select import ARGMAX, HARDMAX, TOP_K
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()
EXACT_ONLY = ("exact",)
NOT_EXACT = "it reassociates: rounding may differ, and only exact rewrites are allowed here"


def constants(graph: Any) -> list[np.ndarray]:
    return [v.producer.attributes_as(ConstantAttributes).value.array for _, v in graph.outputs]


# --- evaluation

BIT_DEFINED: list[tuple[Operation, dict[str, Any]]] = [
    (NEG, {}), (ABS, {}), (SQRT, {}), (FLOOR, {}), (CEIL, {}), (ROUND, {}), (SIGN, {}), (RELU, {}),
    (RESHAPE, {"shape": [3, 2]}), (TRANSPOSE, {"perm": [1, 0]}), (UNSQUEEZE, {"axes": [1]}),
    (SLICE, {"starts": [1], "ends": [2]}), (PAD, {"pads": [0, 1, 1, 0]}), (CLIP, {"min": -1, "max": 1}),
    (CAST, {"to": f16}), (CAST, {"to": i32}), (CAST, {"to": bool_}), (ARGMAX, {}), (HARDMAX, {"axes": [0, 1]}),
    (REDUCE_MAX, {"axes": [1]}),
]  # fmt: skip
ROUNDED: list[tuple[Operation, dict[str, Any]]] = [
    (EXP, {}), (LOG, {}), (TANH, {}), (ERF, {}), (SOFTMAX, {}), (REDUCE_SUM, {"axes": [1]}),
    (REDUCE_MEAN, {"axes": [0, 1]}), (CUMSUM, {"axis": 0}),
]  # fmt: skip
DATA = [[1.5, 0.25, 2.75], [0.0, 3.0, 9.0]]


@each_row(("op", "attributes"), BIT_DEFINED)
def test_results_that_are_defined_to_the_bit_fold_exactly(op: Operation, attributes: dict[str, Any]) -> None:
    b = Building()
    graph = b.done(b(op, b.constant(DATA), **attributes))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []
    assert ledger(ctx) == [("fold", "exact")]
    assert ctx.ledger[0].text == f"{op.name} of constants"


@each_row(("op", "attributes"), ROUNDED)
def test_what_targets_round_differently_reassociates(op: Operation, attributes: dict[str, Any]) -> None:
    b = Building()
    graph = b.done(b(op, b.constant(DATA), **attributes))
    twin = graph.clone()
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == [op.name]
    assert remarks(ctx) == [NOT_EXACT]
    ctx = check_numbers(PASS, twin)
    assert names(twin) == []
    assert ledger(ctx) == [("fold", "reassociates")]


@each_row("op", [ADD, SUB, MUL, DIV, MIN, MAX, EQUAL, LESS])
@each_row("dtype", [f16, f32, f64, i8, u32])
def test_binary_operations_fold_exactly(op: Operation, dtype: Any) -> None:
    b = Building()
    graph = b.done(b(op, b.constant([[1, 2, 3]], dtype), b.constant([[7], [2]], dtype)))
    check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []


@pytest.mark.parametrize("op", [POW, FLOORDIV, MOD])
def test_power_floor_and_remainder_are_exact_for_integers_only(op: Operation) -> None:
    for dtype, left in ((i32, []), (f32, [op.name])):
        b = Building()
        graph = b.done(b(op, b.constant([7, 2], dtype), b.constant([2, 3], dtype)))
        check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
        assert names(graph) == left


@pytest.mark.parametrize(("op", "attributes"), [(REDUCE_SUM, {}), (REDUCE_MEAN, {}), (CUMSUM, {"axis": 0})])
def test_integer_sums_fold_exactly(op: Operation, attributes: dict[str, Any]) -> None:
    b = Building()
    graph = b.done(b(op, b.constant([[100, 100], [100, -3]], i8), **attributes))
    check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []


def test_integer_matmul_is_exact_and_float_matmul_reassociates() -> None:
    for dtype, left in ((i32, []), (f32, ["matmul"])):
        b = Building()
        graph = b.done(b(MATMUL, b.constant([[1, 2]], dtype), b.constant([[3], [4]], dtype)))
        check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
        assert names(graph) == left


def test_folding_goes_on_through_a_whole_constant_part() -> None:
    b = Building()
    x = b.input("x", (3,))
    table = b(MUL, b(ADD, b.constant([1, 2, 3]), b.constant(1.0)), b(NEG, b.constant(2.0)))
    graph = b.done(b(ADD, x, table))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["add"]
    assert len(graph) == 2
    assert [e.text for e in ctx.ledger] == ["add of constants", "neg of constants", "mul of constants"]
    made = next(n for n in graph if n.op is CONSTANT)
    assert made.history.rules == ("fold",)
    # The first three places are those of the table's own call; the constants' own places are not part of it.
    assert made.spans[0].line == 6


def test_operations_with_several_results_fold() -> None:
    b = Building()
    values, indices = b.node(TOP_K, b.constant([3, 1, 2]), k=2)
    parts = b.node(SPLIT, b.constant([3, 1, 2]), axis=0, sizes=[1, 2])
    graph = b.done(values, indices, *parts)
    check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []
    assert [c.tolist() for c in constants(graph)] == [[3, 2], [0, 2], [3], [1, 2]]


def test_one_operand_that_is_no_constant_keeps_the_node() -> None:
    b = Building()
    x = b.input("x", (3,))
    graph = b.done(b(ADD, b.constant(2.0), x), b(WHERE, b.input("c", (3,), bool_), x, b.constant(1.0)))
    check_numbers(PASS, graph)
    assert names(graph) == ["add", "where"]


@pytest.mark.parametrize("op", [FULL, IOTA, EXPAND])
def test_small_descriptions_of_large_data_stay(op: Operation) -> None:
    b = Building()
    if op is FULL:
        value = b(FULL, shape=[1000, 1000, 1000], value=1.0, dtype=f32)
    elif op is IOTA:
        value = b(IOTA, length=1_000_000_000, dtype=i32)
    else:
        value = b(EXPAND, b.constant(1.0), shape=[1000, 1000, 1000])
    graph = b.done(b(NEG, value))
    run(PASS, graph)
    assert names(graph) == [op.name, "neg"]


def test_the_order_of_scattered_updates_is_unspecified() -> None:
    b = Building()
    x = b.constant([0.0, 0.0])
    graph = b.done(b(SCATTER_ELEMENTS, x, b.constant([0, 0], i32), b.constant([1.0, 2.0]), axis=0))
    run(PASS, graph)
    assert names(graph) == ["scatter_elements"]


def test_large_results_and_operands_stay_and_say_so() -> None:
    def column_of_rows() -> Graph:
        b = Building()
        return b.done(b(ADD, b.constant(np.zeros((1, 64))), b.constant(np.zeros((64, 1)))))

    graph = column_of_rows()
    ctx = run(PASS, graph, context(limits=Limits(folded_elements=64 * 64 - 1)))
    assert names(graph) == ["add"]
    expected = "W0606: f32[64, 64] has 4,096 elements, the limit is 4,095 (--limit folded_elements=4096)"
    assert remarks(ctx) == [expected]
    run(PASS, graph, context(limits=Limits(folded_elements=64 * 64)))
    assert names(graph) == []
    b = Building()
    graph = b.done(b(SLICE, b.constant(np.zeros(100)), starts=[0], ends=[1]))
    ctx = run(PASS, graph, context(limits=Limits(folded_elements=99)))
    assert remarks(ctx) == ["W0606: f32[100] has 100 elements, the limit is 99 (--limit folded_elements=100)"]
    graph = column_of_rows()
    ctx = run(PASS, graph, context(limits=Limits(folded_bytes=64 * 64 * 4 - 1)))
    expected = "W0607: the constants would take 16,384 bytes, the limit is 16,383 (--limit folded_bytes=16384)"
    assert (names(graph), remarks(ctx)) == (["add"], [expected])


def test_the_bytes_of_all_that_is_folded_count() -> None:
    b = Building()
    rows = [b(ADD, b.constant(np.zeros((1, 64)) + n), b.constant(np.zeros((64, 1)))) for n in range(3)]
    graph = b.done(*rows)
    run(PASS, graph, context(limits=Limits(folded_bytes=2 * 64 * 64 * 4)))
    assert names(graph) == ["add"]


def test_the_default_limits_are_those_of_the_table() -> None:
    assert context().options.limits == DEFAULTS
    assert (DEFAULTS.folded_elements, DEFAULTS.folded_bytes) == (2**20, 2**30)


def test_symbolic_attributes_stay_and_say_so() -> None:
    b = Building(n=(1, 4))
    graph = b.done(b(RESHAPE, b.constant([1.0, 2.0]), shape=["n"]))
    ctx = run(PASS, graph)
    assert names(graph) == ["reshape"]
    assert remarks(ctx) == ["its sizes are not known while compiling: f32[n]"]


def test_the_first_use_of_a_name_moves_to_the_constant() -> None:
    b = Building()
    value = b(ADD, b.constant(1.0), b.constant(2.0))
    value.name = "three"
    graph = b.done(b(MUL, b.input("x", (2,)), value))
    run(PASS, graph)
    assert [n.result.name for n in graph if n.op is CONSTANT] == ["three"]


# --- what is unspecified is not folded


@pytest.mark.parametrize("op", [DIV, FLOORDIV, MOD])
def test_an_integer_division_by_zero_stays(op: Operation) -> None:
    b = Building()
    zero = b(SUB, b.constant([1, 2], i32), b.constant([1, 1], i32))  # not a constant yet when the call is checked
    graph = b.done(b(op, b.constant([5, 6], i32), zero))
    ctx = run(PASS, graph)
    assert names(graph) == [op.name]
    assert remarks(ctx) == ["an integer division by zero is unspecified"]


def test_a_float_division_by_zero_is_defined() -> None:
    b = Building()
    graph = b.done(b(DIV, b.constant([1.0, -1.0, 0.0]), b.constant(0.0)))
    check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []


def test_an_integer_to_a_negative_power_stays() -> None:
    b = Building()
    minus = b(NEG, b.constant([1], i32))
    graph = b.done(b(POW, b.constant([2], i32), minus))
    ctx = run(PASS, graph)
    assert names(graph) == ["pow"]
    assert remarks(ctx) == ["an integer to a negative power is unspecified"]


@each_row("base", [2, -2, 3])
@each_row("dtype", [i32, i64])
def test_an_integer_power_that_overflows_stays(base: int, dtype: DType) -> None:
    """Some kernels wrap, others stop at the ends of the type."""
    for exponent, is_folded in ((dtype.bits // 2 - 1, True), (dtype.bits, False), (3 * dtype.bits, False)):
        b = Building()
        graph = b.done(b(POW, b.constant([base], dtype), b.constant([exponent], dtype)))
        ctx = run(PASS, graph)
        assert names(graph) == ([] if is_folded else ["pow"])
        assert remarks(ctx) == ([] if is_folded else ["an integer power that overflows is the target's"])


@pytest.mark.parametrize(("op", "attributes"), [
    (ARGMAX, {}), (TOP_K, {"k": 1}), (HARDMAX, {}), (REDUCE_MAX, {}), (CLIP, {"min": 0}), (RELU, {}),
])  # fmt: skip
def test_choosing_beside_a_nan_stays(op: Operation, attributes: dict[str, Any]) -> None:
    b = Building()
    graph = b.done(*b.node(op, b.constant([1.0, math.nan]), **attributes))
    ctx = run(PASS, graph)
    assert names(graph) == [op.name]
    assert remarks(ctx) == ["which value wins where another is NaN is unspecified"]


@each_row(("value", "to", "folds"), [
    (2.0**31, i32, False), (2.0**31 - 128, i32, True), (-(2.0**31), i32, True), (math.inf, i64, False),
    (math.nan, u8, False), (-0.5, u8, True), (-1.0, u8, False), (255.9, u8, True), (256.0, u8, False),
    (2.0**63, i64, False), (2.0**64, u64, False), (2.0**63, u64, True), (math.nan, bool_, True), (math.inf, f16, True),
])  # fmt: skip
def test_casts_that_do_not_fit_stay(value: float, to: Any, folds: bool) -> None:
    b = Building()
    graph = b.done(b(CAST, b.constant([value]), to=to))
    ctx = run(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == ([] if folds else ["cast"])
    assert remarks(ctx) == ([] if folds else ["a cast of NaN or out of range is unspecified"])


@pytest.mark.parametrize(("index", "dtype", "folds"), [
    (2, i32, True), (3, i32, False), (-3, i64, True), (-4, i64, False), (2, u32, True), (3, u32, False),
])  # fmt: skip
def test_indices_out_of_range_stay(index: int, dtype: Any, folds: bool) -> None:
    b = Building()
    graph = b.done(b(GATHER, b.constant([1.0, 2.0, 3.0]), b.constant([index], dtype)))
    ctx = run(PASS, graph)
    assert names(graph) == ([] if folds else ["gather"])
    assert remarks(ctx) == ([] if folds else ["an index out of range is unspecified"])


# --- identities

SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.tobytes() == b.tobytes()


@each_row("dtype", NUMERIC)
@each_row("form", ["x * 1", "1 * x", "x / 1", "x ** 1", "x - 0"])
def test_neutral_operands_go(form: str, dtype: Any) -> None:
    b = Building()
    x = b.input("x", (8,), dtype)
    op = {"*": MUL, "/": DIV, "**": POW, "-": SUB}[form.split()[1]]
    number = b.constant(0 if "0" in form else 1, dtype)
    graph = b.done(b(op, number, x) if form.startswith("1") else b(op, x, number))
    feeds = {"x": SPECIAL.astype(dtype.numpy)} if dtype.is_float else random_feeds(graph)
    before = evaluate(graph, feeds)
    ctx = run(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []
    assert ledger(ctx) == [("neutral-operand", "exact")]
    assert same_bits(before[0], evaluate(graph, feeds)[0])


@pytest.mark.parametrize("dtype", [f32, i32, u8])
def test_plus_zero_is_exact_for_integers_only(dtype: Any) -> None:
    for swapped in (False, True):
        b = Building()
        x, zero = b.input("x", (3,), dtype), b.constant(0, dtype)
        graph = b.done(b(ADD, zero, x) if swapped else b(ADD, x, zero))
        run(PASS, graph, context(allowed=EXACT_ONLY))
        assert names(graph) == (["add"] if dtype is f32 else [])  # -0.0 + 0.0 is 0.0
        ctx = run(PASS, graph, context(allowed=ALL))
        assert names(graph) == []
        assert ledger(ctx) == ([("neutral-operand", "reassociates")] if dtype is f32 else [])


@pytest.mark.parametrize(
    ("op", "zero", "goes"), [(ADD, -0.0, True), (ADD, 0.0, False), (SUB, 0.0, True), (SUB, -0.0, False)]
)
def test_the_sign_of_a_float_zero_decides(op: Operation, zero: float, goes: bool) -> None:
    b = Building()
    graph = b.done(b(op, b.input("x", (8,)), b.constant(zero)))
    before = evaluate(graph, {"x": SPECIAL})[0]
    run(PASS, graph, context(allowed=EXACT_ONLY))
    assert (names(graph) == []) is goes
    assert same_bits(before, SPECIAL) is goes


@pytest.mark.parametrize(("op", "number"), [(SUB, 0), (DIV, 1), (POW, 1)])
def test_the_left_side_of_what_does_not_commute_stays(op: Operation, number: int) -> None:
    b = Building()
    graph = b.done(b(op, b.constant(number), b.input("x", (3,))))
    run(PASS, graph)
    assert names(graph) == [op.name]


def test_a_neutral_operand_that_broadcasts_the_other_stays() -> None:
    b = Building()
    graph = b.done(b(MUL, b.input("x", (3,)), b.constant(np.ones((2, 3)))))
    run(PASS, graph)
    assert names(graph) == ["mul"]


def test_a_neutral_tensor_of_the_full_shape_goes_and_other_numbers_stay() -> None:
    b = Building()
    x = b.input("x", (2,))
    graph = b.done(b(MUL, x, b.constant([1, 1])), b(MUL, x, b.constant([1, 2])))
    check_numbers(PASS, graph)
    assert names(graph) == ["mul"]


def test_an_output_may_become_an_input() -> None:
    b = Building()
    x = b.input("x", (2,))
    graph = b.done(b(MUL, x, b.constant(1.0)))
    run(PASS, graph)
    assert [v for _, v in graph.outputs] == [x]


@each_row(("op", "dtype", "rule"), [
    (NEG, f32, "double-inverse"), (NEG, i8, "double-inverse"), (NOT, bool_, "double-inverse"),
    (NOT, u8, "double-inverse"), (ABS, f32, "idempotent"), (ABS, i8, "idempotent"), (RELU, f32, "idempotent"),
    (FLOOR, f32, "idempotent"), (CEIL, f16, "idempotent"), (ROUND, f64, "idempotent"), (SIGN, i32, "idempotent"),
])  # fmt: skip
def test_the_same_function_twice(op: Operation, dtype: Any, rule: str) -> None:
    b = Building()
    x = b.input("x", (8,), dtype)
    graph = b.done(b(op, b(op, x)))
    feeds = {"x": SPECIAL.astype(dtype.numpy)} if dtype.is_float else random_feeds(graph)
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY), feeds=feeds)
    assert names(graph) == ([] if rule == "double-inverse" else [op.name])
    assert ledger(ctx) == [(rule, "exact")]


@pytest.mark.parametrize(("outer", "inner"), [(NEG, ABS), (EXP, EXP), (FLOOR, CEIL), (TANH, TANH)])
def test_other_pairs_stay(outer: Operation, inner: Operation) -> None:
    b = Building()
    graph = b.done(b(outer, b(inner, b.input("x", (3,)))))
    run(PASS, graph, context(allowed=ALL))
    assert names(graph) == [inner.name, outer.name]


# --- casts


def test_a_cast_to_the_same_dtype_goes() -> None:
    b = Building()
    graph = b.done(b(CAST, b.input("x", (3,)), to=f32))
    ctx = run(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []
    assert ledger(ctx) == [("cast-to-same", "exact")]


def extremes(dtype: Any) -> np.ndarray:
    if dtype.kind == "bool":
        return np.array([True, False])
    if dtype.is_float:
        values = np.array([0, -0.0, 1.5, -1.5, 3.999, -3.999, 1 / 3, 65504, 2049, 16777217, 1e-30, 1e30, np.inf])
        with np.errstate(over="ignore"):
            return values.astype(dtype.numpy)
    low, high = int(dtype.lowest), int(dtype.highest)
    return np.array([low, low + 1, 0, 1, high // 2, high - 1, high], dtype.numpy)


def defined(source: np.ndarray, to: Any) -> np.ndarray:
    """The elements of which a cast to that dtype has a defined result."""
    if source.dtype.kind != "f" or not to.is_integer:
        return np.ones(source.shape, bool)
    whole = np.trunc(source.astype(np.float64))
    return np.isfinite(whole) & (whole >= float(to.lowest)) & (whole < float(int(to.highest) + 1))


@each_row("source", DTYPES)
def test_cast_chains_go_exactly_where_the_middle_does_not_matter(source: Any) -> None:
    """Over all dtypes: where the rule fires the numbers are the same, and where no value differs it does fire."""
    for middle in DTYPES:
        for to in DTYPES:
            b = Building()
            x = b.input("x", extremes(source).shape, source)
            graph = b.done(b(CAST, b(CAST, x, to=middle), to=to))
            feeds = {"x": extremes(source)}
            before = evaluate(graph, feeds)[0]
            run(PASS, graph, context(allowed=EXACT_ONLY))
            with np.errstate(invalid="ignore", over="ignore"):
                through = feeds["x"].astype(middle.numpy)
            good = defined(feeds["x"], middle) & defined(through, to)
            after = evaluate(graph, feeds)[0]
            assert np.array_equal(before[good], after[good]), (source, middle, to)


@each_row(("source", "middle", "to", "left"), [
    (u8, i32, f32, 1), (i16, f32, f64, 1), (f16, f32, f16, 0), (u8, f16, u8, 0), (i64, i32, i16, 1), (i32, i64, u8, 1),
    (bool_, i32, f32, 1), (bool_, f32, bool_, 0), (i32, u32, i32, 0), (u16, i16, u8, 1),
    (f32, f16, f32, 2), (i32, f32, i64, 2), (i64, i32, i64, 2), (f32, i32, f32, 2), (i32, bool_, i32, 2),
    (u16, f16, f32, 2), (i8, u8, i32, 2), (i64, i8, f32, 2),
])  # fmt: skip
def test_cast_chains(source: Any, middle: Any, to: Any, left: int) -> None:
    b = Building()
    graph = b.done(b(CAST, b(CAST, b.input("x", (2,), source), to=middle), to=to))
    run(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == ["cast"] * left


def test_a_middle_cast_that_others_use_stays_and_the_chain_goes() -> None:
    b = Building()
    middle = b(CAST, b.input("x", (2,), u8), to=i32)
    graph = b.done(b(CAST, middle, to=f32), middle)
    check_numbers(PASS, graph)
    assert [n.operand(0).producer for n in graph] == [None, None]


# --- moves

NOTHING: list[tuple[Operation, dict[str, Any]]] = [
    (TRANSPOSE, {"perm": [0, 1]}), (RESHAPE, {"shape": [2, 3]}), (EXPAND, {"shape": [3]}),
    (CONCAT, {"axis": 1}), (SPLIT, {"axis": 1, "sizes": [3]}), (SLICE, {"starts": [0, 0], "ends": [2, 3]}),
    (PAD, {"pads": [0, 0, 0, 0]}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attributes"), NOTHING)
def test_moves_of_nothing_go(op: Operation, attributes: dict[str, Any]) -> None:
    b = Building()
    graph = b.done(b(op, b.input("x", (2, 3)), **attributes))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []
    assert ledger(ctx) == [("move-nothing", "exact")]
    assert ctx.ledger[0].text == f"{op.name} that moves nothing"


@pytest.mark.parametrize(("op", "attributes"), [
    (TRANSPOSE, {"perm": [1, 0]}), (SLICE, {"starts": [-1], "ends": [-99], "steps": [-1]}),
    (PAD, {"pads": [0, 1, 0, 0]}), (EXPAND, {"shape": [2, 1, 1]}),
])  # fmt: skip
def test_moves_of_something_stay(op: Operation, attributes: dict[str, Any]) -> None:
    b = Building()
    graph = b.done(b(op, b.input("x", (2, 2)), **attributes))
    check_numbers(PASS, graph)
    assert names(graph) == [op.name]


def test_a_concat_of_two_and_a_split_in_two_stay() -> None:
    b = Building()
    x = b.input("x", (2, 3))
    graph = b.done(b(CONCAT, x, x, axis=0), *b.node(SPLIT, x, axis=1, sizes=[2, 1]))
    check_numbers(PASS, graph)
    assert names(graph) == ["concat", "split"]


@pytest.mark.parametrize("sizes", [[3, 0], [0, 3], [0, 3, 0]])
def test_a_split_that_cuts_nothing_off_is_its_operand(sizes: list[int]) -> None:
    b = Building()
    graph = b.done(*b.node(SPLIT, b.input("x", (2, 3)), axis=1, sizes=sizes))
    check_numbers(PASS, graph)
    assert "split" not in names(graph)


def test_reshapes_of_reshapes_become_one() -> None:
    b = Building(n=(1, 5))
    x = b.input("x", ("n", 6))
    y = b(RESHAPE, b(UNSQUEEZE, b(RESHAPE, x, shape=["n", 2, 3]), axes=[0]), shape=[3, "n", 2])
    graph = b.done(y, b(SQUEEZE, b(SQUEEZE, b(UNSQUEEZE, x, axes=[0, 2, 3]), axes=[0]), axes=[1]))
    check_numbers(PASS, graph, binding={"n": 2})
    assert names(graph) == ["reshape", "unsqueeze"]
    assert [n.attributes.axes for n in graph if n.op is UNSQUEEZE] == [(1,)]


def test_squeezes_and_unsqueezes_that_no_single_one_says_stay() -> None:
    b = Building(n=(1, 5))
    x = b.input("x", (1, "n", 6))
    graph = b.done(b(UNSQUEEZE, b(SQUEEZE, x, axes=[0]), axes=[2]))
    check_numbers(PASS, graph, binding={"n": 2})
    assert names(graph) == ["squeeze", "unsqueeze"]
    maybe = Building(n=(1, 5))
    y = maybe.input("x", ("n", 6))
    graph = maybe.done(maybe(UNSQUEEZE, maybe(SQUEEZE, y, axes=[0]), axes=[1]))  # n is 1 by a condition only
    check_numbers(PASS, graph, binding={"n": 1})
    assert names(graph) == ["squeeze", "unsqueeze"]


@pytest.mark.parametrize("back", ["reshape", "squeeze", "unsqueeze"])
def test_there_and_back_is_nothing(back: str) -> None:
    b = Building()
    x = b.input("x", (2, 1, 3))
    if back == "reshape":
        value = b(RESHAPE, b(RESHAPE, x, shape=[6]), shape=[2, 1, 3])
    elif back == "squeeze":
        value = b(SQUEEZE, b(UNSQUEEZE, x, axes=[1]), axes=[1])
    else:
        value = b(UNSQUEEZE, b(SQUEEZE, x, axes=[1]), axes=[1])
    graph = b.done(value)
    check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == []


@given(st.permutations(range(4)), st.permutations(range(4)))
@settings(max_examples=30)
def test_transposes_of_transposes_become_one_or_none(first: list[int], second: list[int]) -> None:
    b = Building()
    graph = b.done(b(TRANSPOSE, b(TRANSPOSE, b.input("x", (2, 3, 4, 5)), perm=first), perm=second))
    feeds = random_feeds(graph)
    before = evaluate(graph, feeds)
    run(PASS, graph)
    assert_equal(before, evaluate(graph, feeds))
    identity = [first[a] for a in second] == [0, 1, 2, 3]
    assert names(graph) == ([] if identity else ["transpose"])


def test_every_float_and_integer_dtype_folds_a_sum_of_two() -> None:
    for dtype in (*FLOATS, *INTEGERS):
        b = Building()
        graph = b.done(b(ADD, b.constant([1, 2], dtype), b.constant([3, 4], dtype)))
        run(PASS, graph)
        (array,) = constants(graph)
        assert array.dtype == dtype.numpy
        assert array.tolist() == [4, 6]


@each_row("dtype", NUMERIC, ids=str)
def test_the_magnitude_of_what_is_never_negative(dtype: Any) -> None:
    b = Building()
    x = b.input("x", (5,), dtype)
    graph = b.done(b(ABS, x))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ([] if dtype.kind == "uint" else ["abs"])
    assert [(entry.rule, entry.rewrite_class) for entry in ctx.ledger] == (
        [("within-bounds", "exact")] if dtype.kind == "uint" else []
    )
