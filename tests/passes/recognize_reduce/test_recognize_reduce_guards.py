"""Near misses of ``recognize-reduce``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import ALL, Building, check_numbers, context, ledger, remarks, run

from dmlc.ir.dtype import f32, f64, i32
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.elementwise import ABS
from dmlc.ops.reduce import REDUCE_L1, REDUCE_L2, REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.recognize_reduce import RecognizeReduce

PASS = RecognizeReduce()
WIDE = {"x": np.arange(32).reshape(4, 8) - 11}


def rules(b: Building, *outputs: Any, **feeds: Any) -> list[str]:
    graph = b.done(*outputs)
    arrays = {**WIDE, **feeds}
    given = {v.name: np.asarray(arrays[v.name or ""]).astype(v.type.dtype.numpy) for v in graph.inputs}
    with np.errstate(all="ignore"):
        ctx = check_numbers(PASS, graph, context(allowed=ALL), exact=False, feeds=given)  # type: ignore[arg-type]
    return [rule for rule, _ in ledger(ctx)]


@pytest.mark.parametrize(("dtype", "factor"), [(f32, 0.0), (f64, 5e-324)])
def test_a_factor_that_is_one_over_nothing(dtype: Any, factor: float) -> None:
    b = Building()
    total = b(REDUCE_SUM, b.input("x", (4, 8), dtype), axes=[1])
    assert not rules(b, b(MUL, total, b.constant(factor, dtype)))


@pytest.mark.parametrize("op", [DIV, MUL])
def test_a_count_of_more_axes_broadcasts(op: Any) -> None:
    b = Building()
    total = b(REDUCE_SUM, b.input("x", (4, 8)), axes=[1])
    number = np.full((1, 1, 1), 8.0 if op is DIV else 1 / 8)
    assert not rules(b, b(op, total, b.constant(number)))
    b = Building()
    number = np.full((1, 1, 1), 8.0 if op is DIV else 1 / 8)
    assert not rules(b, b(REDUCE_SUM, b(op, b.input("x", (4, 8)), b.constant(number)), axes=[2]))


def test_one_over_an_integer_is_nothing() -> None:
    b = Building()
    x = b.input("x", (4, 8), i32)
    total = b(REDUCE_SUM, b(ABS, x), axes=[1])
    assert "divide-by-norm" not in rules(b, b(MUL, x, b(DIV, b.constant(1, i32), total)))


@pytest.mark.parametrize("norm", [REDUCE_L1, REDUCE_L2])
def test_over_the_norm_of_another(norm: Any) -> None:
    b = Building()
    x, other = b.input("x", (4, 8)), b.input("other", (4, 8))
    assert not rules(b, b(DIV, x, b(norm, other, axes=[1])), other=WIDE["x"] + 7)


def test_integers_over_their_norm() -> None:
    b = Building()
    x = b.input("x", (4, 8), i32)
    assert not rules(b, b(DIV, x, b(REDUCE_L1, x, axes=[1])), x=WIDE["x"] * 2 + 1)


@pytest.mark.parametrize("axes", [[1], [0, 1]])
def test_a_mean_of_nothing_times_nothing(axes: list[int]) -> None:
    """The mean is NaN, a sum would be 0."""
    b = Building()
    x = b.input("x", (4, 0))
    mean = b(REDUCE_MEAN, x, axes=axes, keepdims=True)
    assert not rules(b, b(MUL, mean, b.constant(0.0)), x=np.zeros((4, 0)))


def test_over_no_axis() -> None:
    b = Building()
    x = b.input("x", (4, 8))
    square = b(MUL, x, x)
    over = b.graph.add(REDUCE_SUM, [square], ReduceAttributes(axes=(), keepdims=True)).result
    ctx = run(PASS, b.done(over), context(allowed=ALL))
    assert "it reduces over no axis" in remarks(ctx)
