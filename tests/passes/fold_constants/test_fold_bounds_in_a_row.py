"""Bounds one after another: positive, near-miss and numerical tests."""

from __future__ import annotations

import pytest
from pass_helpers import Building, check_numbers, context, ledger, names, run

from dmlc.ir import DType, Value
from dmlc.ir.dtype import f16, f32, f64, i32, i64
from dmlc.ops.binary import MAX, MIN
from dmlc.ops.choose import CLIP
from dmlc.ops.elementwise import RELU
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()


def bounded(b: Building, x: Value, text: str, dtype: DType) -> Value:
    """``x`` within the bounds of a text such as ``max 0, min 6``."""
    for part in text.split(", "):
        name, *numbers = part.split()
        if name == "relu":
            x = b(RELU, x)
        elif name == "clip":
            low, high = map(float if dtype.is_float else int, numbers)
            x = b(CLIP, x, min=low, max=high)
        else:
            x = b(MAX if name == "max" else MIN, x, b.constant(float(numbers[0]), dtype))
    return x


@each_row("dtype", [f16, f32, i32])
@each_row(
    "text",
    [
        "max 0, min 6",
        "min 6, max 0",
        "relu, min 6",
        "clip -3 3, max -1",
        "clip -3 3, clip -1 9",
        "max 1, max 2, min 5",
        "max 6, min 0",
        "min 0, max 6",
    ],
)
def test_bounds_become_one_clip(text: str, dtype: DType) -> None:
    if dtype is i32 and "relu" in text:
        dtype = f64
    b = Building()
    found = check_numbers(PASS, b.done(bounded(b, b.input("x", (7,), dtype), text, dtype))).ledger
    wanted = "reassociates" if dtype.is_float else "exact"
    assert {(e.rule, e.rewrite_class) for e in found} == {("bounds-in-a-row", wanted)}
    assert names(b.graph) == ["clip"]


@pytest.mark.parametrize(
    "text", ["min 3.4028235e38, max -3.4028235e38", "max 0, max 1", "relu", "min inf, max 0", "min nan, max 0"]
)
def test_bounds_that_stay(text: str) -> None:
    b = Building()
    found = ledger(run(PASS, b.done(bounded(b, b.input("x", (7,)), text, f32))))
    assert "bounds-in-a-row" not in dict(found)


def test_bounds_of_more_axes_stay() -> None:
    b = Building()
    wide = b(MAX, b.input("x", (7,)), b.constant([[0.0]]))
    assert not run(PASS, b.done(b(MIN, wide, b.constant(6.0)))).ledger


def test_bounds_that_others_need_stay() -> None:
    b = Building()
    low = b(MAX, b.input("x", (7,)), b.constant(0.0))
    assert not run(PASS, b.done(b(MIN, low, b.constant(6.0)), low)).ledger


def test_bounds_without_a_kernel_of_clip_stay() -> None:
    b = Building()
    graph = b.done(bounded(b, b.input("x", (7,), i64), "max 0, min 6", i64))
    assert not run(PASS, graph, context("cpu")).ledger
