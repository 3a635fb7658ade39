"""Promised ranges prove that no partial result of an integer reduction overflows, where a target saturates."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc

RULES = {
    "reduce_sum(reduce_sum(x, axes=[1]), axes=[0])": "merge-nested-reductions",
    "reduce_sum(reduce_l1(x, axes=[1]))": "merge-nested-reductions",
    "reduce_sum(reduce_sum(x * 2, axes=[1]))": "merge-nested-reductions",
    "reduce_sum(reduce_sum_square(x, axes=[1]))": "merge-nested-reductions",
    "reduce_sum(x * x)": "sum-of-squares",
    "reduce_sum(abs(x))": "sum-of-magnitudes",
}


def compiled(line: str, range: str, dims: str = "4, 6", bounds: str = "", *, exact: bool = False) -> dmlc.Program:
    text = f"{bounds}model m(x: i32[{dims}]{range}) -> (y) {{\n    return {line}\n}}\n"
    return dmlc.compile(dmlc.Source(text), target="onnx", exact=exact)


def applied(program: dmlc.Program, rule: str) -> list[str]:
    return [f"{entry.rewrite_class} {entry.text}" for entry in program.ledger if entry.rule == rule]


@pytest.mark.parametrize(("line", "rule"), RULES.items())
def test_promised_bounds_let_integer_reductions_merge(line: str, rule: str) -> None:
    assert not applied(compiled(line, ""), rule)
    assert not applied(compiled(line, " in -100..100", exact=True), rule)
    program = compiled(line, " in -100..100")
    (entry,) = applied(program, rule)
    assert entry.startswith("reassociates")
    assert "promised: x in -100..100" in entry
    x = np.random.default_rng(0).integers(-100, 101, (4, 6)).astype(np.int32)
    np.testing.assert_array_equal(program.run({"x": x})["y"], compiled(line, "").run({"x": x}, "reference")["y"])


@pytest.mark.parametrize(("line", "rule"), RULES.items())
def test_bounds_that_may_overflow_together_prove_nothing(line: str, rule: str) -> None:
    assert not applied(compiled(line, " in -200000000..200000000"), rule)
    assert not applied(compiled(line, " in -100..100", "N, 6"), rule)
    assert applied(compiled(line, " in -100..100", "N, 6", "dim N in 1..1000\n"), rule)
    assert not applied(compiled(line, " in -100..100", "N, 6", "dim N in 1..4000000\n"), rule)
