"""Constants one after another: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

from pass_helpers import Building, check_numbers, context, names, remarks, run

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import DType, Operation, Value
from dmlc.ir.dtype import f16, f32, f64, i32, u8
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.passes.hoist import Hoist
from dmlc.passes.manager import EXACT
from tests.rows import each_row

PASS = Hoist()
#: Forms of an operation with a constant: the operation, and the operand that the constant is.
FORMS = [(ADD, 1), (ADD, 0), (SUB, 1), (SUB, 0), (MUL, 1), (MUL, 0), (DIV, 1), (DIV, 0)]
TERMS, FACTORS = FORMS[:4], FORMS[4:]
ROW = [(a, b) for forms in (TERMS, FACTORS) for a in forms for b in forms]


def step(b: Building, form: tuple[Operation, int], x: Value, number: Any, dtype: DType = f32) -> Value:
    op, place = form
    constant = b.constant(number, dtype)
    return b(op, constant, x) if place == 0 else b(op, x, constant)


@each_row("dtype", [f16, f32, f64])
@each_row(("first", "second"), ROW)
def test_two_constants_of_floats_become_one(first: Any, second: Any, dtype: DType) -> None:
    b = Building()
    # terms that do not cancel, such as (x - 5) - 3 and -3 - (x + 5)
    sign = (-1 if first == (SUB, 1) else 1) * (-1 if second[0] is SUB else 1)
    numbers = [3.0 * sign, 2.0 * sign, 4.0 * sign, 1.5 * sign]
    y = step(b, second, step(b, first, b.input("x", (2, 4), dtype), 5.0, dtype), numbers, dtype)
    found = check_numbers(PASS, b.done(y), exact=False).ledger
    assert [(e.rule, e.rewrite_class) for e in found] == [("constants-in-a-row", "reassociates")]
    assert len(names(b.graph)) == 1


@each_row("dtype", [i32, u8])
@each_row(("first", "second"), [*[(a, b) for a in TERMS for b in TERMS], (FACTORS[0], FACTORS[1])])
def test_integers_wrap_in_one_step_as_in_two(first: Any, second: Any, dtype: DType) -> None:
    b = Building()
    y = step(b, second, step(b, first, b.input("x", (3,), dtype), 200, dtype), 100, dtype)
    found = check_numbers(PASS, b.done(y)).ledger
    assert {(e.rule, e.rewrite_class) for e in found} == {("constants-in-a-row", "exact")}
    assert len(names(b.graph)) == 1


def rows(dtype: DType, first: Any, one: Any, second: Any, other: Any, shape: Any = (4,)) -> Building:
    b = Building()
    b.done(step(b, second, step(b, first, b.input("x", shape, dtype), one, dtype), other, dtype))
    return b


@each_row(
    ("dtype", "first", "one", "second", "other"),
    [
        (f32, (ADD, 1), 12582912.0, (SUB, 1), 12582912.0),  # rounds to an integer
        (f32, (ADD, 1), 1e-6, (SUB, 0), 1e-6),
        (f16, (MUL, 1), 300.0, (MUL, 1), 300.0),  # overflows
        (f16, (MUL, 1), 1e-3, (DIV, 1), 2000.0),  # a subnormal number
        (f32, (MUL, 1), 0.0, (MUL, 1), 2.0),
        (f32, (MUL, 1), 0.0, (DIV, 0), 2.0),
        (f32, (MUL, 1), 2.0, (ADD, 1), 2.0),
        (i32, (DIV, 1), 2, (DIV, 1), 3),
        (f32, (MUL, 1), [[1.5], [2.5], [3.5]], (MUL, 1), [2.0, 3.0, 4.0, 5.0]),  # 12 numbers for 7
    ],
)
def test_rows_that_stay(dtype: DType, first: Any, one: Any, second: Any, other: Any) -> None:
    b = rows(dtype, first, one, second, other, (3, 4))
    assert not check_numbers(PASS, b.graph).ledger
    assert len(names(b.graph)) == 2


def test_a_reason_is_given() -> None:
    (reason,) = remarks(run(PASS, rows(f32, (ADD, 1), 1e6, (SUB, 1), 1e6).graph))
    assert "cancel" in reason


def test_a_first_step_that_others_need_stays() -> None:
    b = Building()
    inner = step(b, (MUL, 1), b.input("x", (4,)), 3.0)
    assert not check_numbers(PASS, b.done(step(b, (MUL, 1), inner, 2.0), inner)).ledger


def test_exact_rewrites_keep_floats() -> None:
    assert not run(PASS, rows(f32, (MUL, 1), 2.0, (MUL, 1), 3.0).graph, context(allowed=(EXACT,))).ledger


def test_floats_without_kernels_stay() -> None:
    """A new node of f16 would have casts around it."""
    assert not run(PASS, rows(f16, (MUL, 1), 2.0, (MUL, 1), 3.0).graph, context("onnx")).ledger
    assert run(PASS, rows(f16, (MUL, 1), 2.0, (MUL, 1), 3.0).graph, context("directml")).ledger


def test_a_sum_takes_the_factor_of_its_mean_first() -> None:
    """An unbiased variance: the mean of 30 squares times 30 is their sum."""
    text = "model m(x: f32[4, 30]) -> (y) {\n y = reduce_mean(x * x, axes=[1]) * 30.0 / 29.0\n return y\n}"
    found = dmlc.compile(Source("m.dml", text), target="directml").to_onnx()
    assert [node.op_type for node in found.graph.node] == ["ReduceSumSquare", "Div"]
