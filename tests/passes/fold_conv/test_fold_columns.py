"""A scale for each column of a product: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, names, remarks, run

from dmlc.ir import DType, Value
from dmlc.ir.dtype import f16, f32, f64, i32
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.matmul import MATMUL
from dmlc.passes.fold_conv import FoldConv
from tests.rows import each_row

PASS = FoldConv()
SCALE = [0.5, 2.0, -4.0, 0.25]  # powers of two: exact


def product(b: Building, dtype: DType = f32, bias: bool = True, shape: Any = (5, 3, 6)) -> Value:
    made = b(MATMUL, b.input("x", shape, dtype), b.constant(np.arange(24).reshape(6, 4) - 12, dtype))
    return b(ADD, made, b.constant([1.0, -2.0, 3.0, -4.0], dtype)) if bias else made


@each_row("bias", [True, False])
@each_row("dtype", [f16, f32, f64])
@each_row("shape", [(5, 3, 6), (5, 6)])
@each_row("scale", [SCALE, [SCALE]])
def test_scale_of_columns_becomes_part_of_the_matrix(bias: bool, dtype: DType, shape: Any, scale: Any) -> None:
    b = Building()
    found = check_numbers(PASS, b.done(b(MUL, b.constant(scale, dtype), product(b, dtype, bias, shape)))).ledger
    assert [(e.rule, e.rewrite_class) for e in found] == [("fold-scale-into-product", "reassociates")]
    assert names(b.graph) == ["matmul", "add"][: 1 + bias]


@pytest.mark.parametrize("scale", [2.0, [2.0], [[2.0], [3.0], [4.0]], np.ones((2, 1, 1, 4)) * 2])
def test_other_scales_stay(scale: Any) -> None:
    """One number may be the scale of an attention, which is looked for as it is."""
    b = Building()
    assert not run(PASS, b.done(b(MUL, product(b), b.constant(scale)))).ledger


def test_scale_that_leaves_the_range_stays() -> None:
    b = Building()
    ctx = run(PASS, b.done(b(MUL, product(b, f16), b.constant([1.0, 2.0, 30000.0, 1.0], f16))))
    assert not ctx.ledger
    assert any("leave the range" in text for text in remarks(ctx))


@pytest.mark.parametrize("place", [0, 1])
def test_values_that_others_need_stay(place: int) -> None:
    b = Building()
    total = product(b)
    assert total.producer is not None
    kept = (total, total.producer.operand("a"))[place]
    assert not run(PASS, b.done(b(MUL, total, b.constant(SCALE)), kept)).ledger


def test_matrix_that_others_need_stays() -> None:
    b = Building()
    matrix = b.constant(np.ones((6, 4)))
    scaled = b(MUL, b(MATMUL, b.input("x", (5, 6)), matrix), b.constant(SCALE))
    assert not run(PASS, b.done(scaled, b(MATMUL, b.input("y", (5, 6)), matrix))).ledger


def test_matrix_that_is_fed_stays() -> None:
    b = Building()
    scaled = b(MUL, b(MATMUL, b.input("x", (5, 6)), b.input("w", (6, 4))), b.constant(SCALE))
    assert not run(PASS, b.done(scaled)).ledger


def test_scales_of_integers_stay() -> None:
    b = Building()
    made = b(MATMUL, b.input("x", (5, 6), i32), b.constant(np.ones((6, 4)), i32))
    check_numbers(PASS, b.done(b(MUL, made, b.constant([1, 2, 3, 4], i32))))
    assert names(b.graph) == ["matmul", "mul"]
