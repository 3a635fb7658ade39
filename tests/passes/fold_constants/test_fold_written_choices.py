"""Choices between integers that are written as products: positive, near-miss and numerical tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, names, remarks, run

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import DType, Value
from dmlc.ir.dtype import bool_, f32, i16, i32, i64
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import NOT
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()
Made = Callable[[Building, Value, Value, Value], Value]


def cast(b: Building, cond: Value, dtype: DType = i32) -> Value:
    return b(CAST, cond, to=dtype)


def graph_of(made: Made, dtype: DType = i32) -> Building:
    b = Building()
    cond, x, y = b.input("c", (3, 1), bool_), b.input("x", (3, 4), dtype), b.input("y", (4,), dtype)
    b.done(made(b, cond, x, y))
    return b


@each_row(
    "made",
    [
        lambda b, c, x, y: b(ADD, b(MUL, cast(b, c), x), b(MUL, cast(b, b(NOT, c)), y)),
        lambda b, c, x, y: b(ADD, b(MUL, y, cast(b, b(NOT, c))), b(MUL, cast(b, c), x)),
        lambda b, c, x, y: b(ADD, b(MUL, cast(b, b(NOT, c)), x), b(MUL, y, cast(b, c))),
    ],
)
def test_a_choice_is_read(made: Made) -> None:
    b = graph_of(made)
    check_numbers(PASS, b.graph)
    assert names(b.graph) == ["where"]


def test_a_number_that_is_a_truth_too() -> None:
    """Both factors of a product are casts of truths."""
    b = Building()
    cond, other, y = b.input("c", (3,), bool_), b.input("d", (3,), bool_), b.input("y", (3,), i32)
    b.done(b(ADD, b(MUL, cast(b, other), cast(b, cond)), b(MUL, cast(b, b(NOT, cond)), y)))
    check_numbers(PASS, b.graph)
    assert sorted(names(b.graph)) == ["cast", "where"]


@each_row(
    "made",
    [
        lambda b, c, x, y: b(ADD, b(MUL, cast(b, c), x), b(MUL, cast(b, c), y)),
        lambda b, c, x, y: b(ADD, b(MUL, cast(b, c), x), b(MUL, cast(b, b(NOT, b.input("d", (3, 1), bool_))), y)),
        lambda b, c, x, y: b(ADD, b(MUL, cast(b, c), x), y),
        lambda b, c, x, y: b(ADD, b(MUL, cast(b, c), x), b(MUL, x, y)),
        lambda b, c, x, y: b(MUL, b(MUL, cast(b, c), x), b(MUL, cast(b, b(NOT, c)), y)),
    ],
)
def test_other_sums_stay(made: Made) -> None:
    b = graph_of(made)
    check_numbers(PASS, b.graph)
    assert WHERE.name not in names(b.graph)


def test_a_choice_of_floats_stays() -> None:
    """The product of zero and an infinity is NaN."""
    b = graph_of(lambda b, c, x, y: b(ADD, b(MUL, cast(b, c, f32), x), b(MUL, cast(b, b(NOT, c), f32), y)), f32)
    run(PASS, b.graph)
    assert WHERE.name not in names(b.graph)


@pytest.mark.parametrize("second", [False, True])
def test_a_product_that_is_used_elsewhere_stays(second: bool) -> None:
    b = Building()
    cond, x, y = b.input("c", (3,), bool_), b.input("x", (3,), i32), b.input("y", (3,), i32)
    products = b(MUL, cast(b, cond), x), b(MUL, cast(b, b(NOT, cond)), y)
    graph = b.done(b(ADD, *products), products[second])
    ctx = run(PASS, graph)
    assert WHERE.name not in names(graph)
    assert any("is used 2 times" in text for text in remarks(ctx))


@each_row(("dtype", "fires"), [(i64, True), (i16, False)])
def test_a_kernel_is_needed(dtype: DType, fires: bool) -> None:
    word = dtype.name
    text = f"""model m(c: bool[3], x: {word}[3], y: {word}[3]) -> (z) {{
    z = cast(c, to={word}) * x + cast(!c, to={word}) * y
    return z
}}
"""
    program = dmlc.compile(Source("m.dml", text), target="cpu")
    assert ("choice-by-products" in {entry.rule for entry in program.ledger}) is fires
    feeds = {"c": np.array([True, False, True]), "x": np.arange(3, dtype=word.replace("i", "int"))}
    feeds["y"] = feeds["x"] + feeds["x"].dtype.type(7)
    np.testing.assert_array_equal(program.run(feeds)["z"], [0, 8, 2])
