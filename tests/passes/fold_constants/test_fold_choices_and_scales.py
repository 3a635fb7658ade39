"""Negated conditions of a choice, tables of zeros, scales of a product: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, ledger, names, remarks, run

from dmlc.ir import DType, Value
from dmlc.ir.dtype import bool_, f16, f32, f64, i32
from dmlc.ops.binary import ADD, DIV, MUL
from dmlc.ops.choose import WHERE
from dmlc.ops.elementwise import NOT
from dmlc.ops.matmul import MATMUL
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()


def test_a_negated_condition_swaps_the_operands_of_where() -> None:
    b = Building()
    cond, x, y = b.input("c", (3, 1), bool_), b.input("x", (3, 4)), b.input("y", ())
    check_numbers(PASS, b.done(b(WHERE, b(NOT, cond), x, y)))
    assert names(b.graph) == ["where"]


def test_a_negation_that_others_need_stays_beside_the_choice() -> None:
    b = Building()
    cond, x = b.input("c", (3,), bool_), b.input("x", (3,))
    negated = b(NOT, cond)
    check_numbers(PASS, b.done(b(WHERE, negated, x, b.constant(0.0)), negated))
    assert sorted(names(b.graph)) == ["not", "where"]


def test_a_condition_that_is_not_negated_stays() -> None:
    b = Building()
    cond, x = b.input("c", (3,), bool_), b.input("x", (3,), bool_)
    assert not check_numbers(PASS, b.done(b(WHERE, cond, b(NOT, x), x))).ledger


@pytest.mark.parametrize("place", [None, 0, -1])
def test_a_table_of_zeros_goes_whatever_its_size(place: int | None) -> None:
    """The biases of positions of a model that was not trained."""
    b = Building()
    table = np.zeros((4, 196, 196))
    if place is not None:
        table.flat[place] = 1
    graph = b.done(b(ADD, b.input("x", (4, 196, 196)), b.constant(table, f32)))
    run(PASS, graph)
    assert names(graph) == ([] if place is None else ["add"])


# --- scales-of-product


def scaled(b: Building, name: str, shape: Any, number: Any, op: Any = MUL, dtype: DType = f32) -> Value:
    return b(op, b.input(name, shape, dtype), b.constant(number, dtype))


@each_row("dtype", [f16, f32, f64])
@each_row(("op", "other"), [(MUL, MUL), (DIV, MUL), (MUL, DIV), (DIV, DIV)])
@each_row("number", [0.5, [[0.5]]])
def test_two_scales_become_one(dtype: DType, op: Any, other: Any, number: Any) -> None:
    b = Building()
    left, right = scaled(b, "x", (2, 3, 4), 0.25, op, dtype), scaled(b, "y", (2, 4, 5), number, other, dtype)
    found = check_numbers(PASS, b.done(b(MATMUL, left, right))).ledger  # powers of two: exact
    assert [(e.rule, e.rewrite_class) for e in found if e.rule == "scales-of-product"] == [
        ("scales-of-product", "reassociates")
    ]
    assert names(b.graph) == ["mul", "matmul"]


@each_row(
    ("left", "right", "op", "dtype"),
    [
        (1e-30, 1e-30, MUL, f32),
        (1e30, 1e30, MUL, f32),
        (0.0, 2.0, MUL, f32),
        (2.0, 0.0, DIV, f32),
        (1e-3, 1e-3, MUL, f16),
        (np.nan, 2.0, MUL, f32),
        ([[1.0], [2.0], [3.0], [4.0]], 2.0, MUL, f32),
        (2, 2, MUL, i32),
        (2.0, 2.0, ADD, f32),
    ],
)
def test_scales_that_stay(left: Any, right: Any, op: Any, dtype: DType) -> None:
    b = Building()
    x, y = scaled(b, "x", (4, 4), left, op, dtype), scaled(b, "y", (4, 4), right, op, dtype)
    ctx = run(PASS, b.done(b(MATMUL, x, y)))
    assert "scales-of-product" not in dict(ledger(ctx))
    assert names(b.graph) == [op.name, op.name, "matmul"]


def test_a_quotient_of_a_number_and_a_value_is_no_scale() -> None:
    b = Building()
    x, y = b(DIV, b.constant(2.0), b.input("x", (4, 4))), scaled(b, "y", (4, 4), 2.0)
    assert "scales-of-product" not in dict(ledger(run(PASS, b.done(b(MATMUL, x, y)))))


def test_a_scale_that_broadcasts_its_value_stays() -> None:
    b = Building()
    x, y = b(MUL, b.input("x", (4,)), b.constant([[2.0]])), scaled(b, "y", (4, 4), 2.0)
    assert "scales-of-product" not in dict(ledger(run(PASS, b.done(b(MATMUL, x, y)))))


@pytest.mark.parametrize("shared", [0, 1])
def test_scaled_values_that_others_need_stay(shared: int) -> None:
    b = Building()
    both = [scaled(b, "x", (4, 4), 0.25), scaled(b, "y", (4, 4), 0.5)]
    ctx = run(PASS, b.done(b(MATMUL, *both), both[shared]))
    assert "scales-of-product" not in dict(ledger(ctx))
    assert any("is used 2 times" in remark for remark in remarks(ctx))
