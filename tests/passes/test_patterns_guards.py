"""Spellings of squares, roots and quotients that are none: each test fails where a guard of ``patterns`` is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pass_helpers import ALL, Building, check_numbers, context, ledger

from dmlc.ir import Value
from dmlc.ops.binary import DIV, MUL, POW
from dmlc.ops.reduce import REDUCE_L2, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.passes.recognize_reduce import RecognizeReduce


def recognized(made: Callable[[Building, Value], Value]) -> set[str]:
    b = Building()
    graph = b.done(made(b, b.input("x", (3, 4))))
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4) / 4 - 1}
    with np.errstate(all="ignore"):
        ctx = check_numbers(RecognizeReduce(), graph, context(allowed=ALL), exact=False, feeds=feeds)
    return {rule for rule, _ in ledger(ctx)}


def total(b: Building, value: Value) -> Value:
    return b(REDUCE_SUM, value, axes=[value.type.rank - 1])


@pytest.mark.parametrize(("exponent", "fires"), [(2.0, True), (3.0, False), ([[[2.0]]], False)])
def test_squares(exponent: Any, fires: bool) -> None:
    assert bool(recognized(lambda b, x: total(b, b(POW, x, b.constant(exponent))))) is fires


@pytest.mark.parametrize(("exponent", "fires"), [(0.5, True), (0.4, False), ([[[0.5]]], False)])
def test_roots(exponent: Any, fires: bool) -> None:
    squares: Any = lambda b, x: b(REDUCE_SUM_SQUARE, x, axes=[1])  # noqa: E731
    assert ("root-of-squares" in recognized(lambda b, x: b(POW, squares(b, x), b.constant(exponent)))) is fires


@pytest.mark.parametrize(("one", "fires"), [(1.0, True), (2.0, False), ([[[1.0]]], False)])
def test_one_over_a_norm(one: Any, fires: bool) -> None:
    norm: Any = lambda b, x: b(REDUCE_L2, x, axes=[1])  # noqa: E731
    assert bool(recognized(lambda b, x: b(MUL, x, b(DIV, b.constant(one), norm(b, x))))) is fires
