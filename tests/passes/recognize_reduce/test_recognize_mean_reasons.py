"""Reasons why a sum is not rewritten to a mean, or a mean to a sum, are true for every constant and size."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

NUMBERS = ("2.0", "-1.0", "0.5", "0.25", "0.2", "0.3", "1e-30", "4.0", "5.0", "2.5", "-4.0", "1e30", "4.0000005")
FORMS = {
    "reduce_sum(x, axes=[1]) * {0}": (False, "*"),
    "reduce_sum(x, axes=[1]) / {0}": (False, "/"),
    "reduce_sum(x * {0}, axes=[1])": (False, "*"),
    "reduce_sum(x / {0}, axes=[1])": (False, "/"),
    "reduce_mean(x, axes=[1]) * {0}": (True, "*"),
}
RULES = ("mean-from-sum", "mean-of-parts", "sum-from-mean")


def reasons_of(program: dmlc.Program) -> list[str]:
    """The reasons of the three rules."""
    return [remark.reason() for remark in program.remarks if remark.rule in RULES]


@each_row("number", NUMBERS)
@each_row("size", ["1", "4", "5", "N"])
@each_row("form", FORMS)
def test_reasons_are_true(form: str, size: str, number: str) -> None:
    dims = "dim N in 4..8\n" if size == "N" else ""
    text = f"{dims}model m(x: f32[3, {size}]) -> (y) {{\n    return {form.format(number)}\n}}\n"
    for dtype in ("f32", "f16"):
        if dtype == "f16" and float(number) > 60_000:
            continue
        program = dmlc.compile(Source("m.dml", text.replace("f32", dtype)), target="onnx")
        is_mean, sign = FORMS[form]
        value = float(np.dtype({"f32": "float32", "f16": "float16"}[dtype]).type(float(number)))
        for reason in reasons_of(program):
            if "number of elements" not in reason:
                continue
            role, _, rest = reason.partition(" is ")
            word, told = role.removeprefix("the ").split(" ")
            assert word == ("factor" if sign == "*" else "divisor")
            assert float(told) == pytest.approx(value, rel=1e-7 if dtype == "f32" else 1e-3)
            assert ("one over the number" in rest) is (sign == "*" and not is_mean)
            inverse = sign == "*" and not is_mean
            sizes = range(4, 9) if size == "N" else [int(size)]
            equal = [n for n in sizes if value == (np.float64(_rounded(1 / n, dtype)) if inverse else n)]
            if rest.endswith("only for some sizes"):
                assert equal and len(equal) < len(sizes)
            else:
                assert rest.startswith("not ") and not equal


def _rounded(number: float, dtype: str) -> float:
    return float(np.float32(number) if dtype == "f32" else np.float16(number))


@pytest.mark.parametrize("number", ["2.0", "0.3", "-0.25", "7.0"])
def test_a_factor_that_is_no_reciprocal_is_no_near_miss(number: str) -> None:
    for form in ("reduce_sum(x * {0})", "reduce_sum(x) * {0}", "{0} * reduce_sum(x)"):
        text = f"model m(x: f32[3, 4]) -> (y) {{\n    return {form.format(number)}\n}}\n"
        program = dmlc.compile(Source("m.dml", text))
        assert reasons_of(program) == []


@each_row("count", [3, 7, 1000, 3000, 20_000])
@each_row("dtype", ["f16", "f32"])
def test_one_over_the_count_as_the_dtype_rounds_it(count: int, dtype: str) -> None:
    """Several counts share a reciprocal in f16: the factor need not give the count back."""
    inverse = np.float16(1 / count) if dtype == "f16" else np.float32(1 / count)
    assert math.isfinite(inverse)
    text = f"model m(x: {dtype}[{count}]) -> (y) {{\n    return reduce_sum(x) * {inverse!s}\n}}\n"
    program = dmlc.compile(Source("m.dml", text), target="onnx")
    assert "mean-from-sum" in [entry.rule for entry in program.ledger]
