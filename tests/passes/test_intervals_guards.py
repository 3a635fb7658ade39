"""Ranges of values with open ends: each test fails where one guard of ``intervals`` is dropped."""

from __future__ import annotations

import math

import pytest

from dmlc import text
from dmlc.diagnostics import Source
from dmlc.passes.intervals import Intervals


def of(expression: str, kind: str = "f16") -> tuple[float, float]:
    inputs = f"x: {kind}[3, 4], z: {kind}[3, 4]"
    graph = text.load(Source("t.dml", f"model t({inputs}) -> (y) {{\n    y = {expression}\n    return y\n}}\n"))
    return Intervals(graph).of(graph.outputs[0][1])


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("relu(x) * (-exp(z))", -math.inf, 0),
        ("(-exp(z)) * relu(x)", -math.inf, 0),
        ("exp(x) / (exp(z) + 1.0)", 0, math.inf),
        ("(-exp(x)) / (-exp(z) - 1.0)", 0, math.inf),
    ],
)
def test_zero_times_infinity_and_infinity_over_infinity(expression: str, low: float, high: float) -> None:
    assert of(expression) == (low, high)


def test_a_cast_between_floats_keeps_the_range() -> None:
    assert of("sigmoid(x) as f16", "f32") == (0, 1)


def test_what_is_infinite_less_itself_is_not_zero() -> None:
    assert of("sigmoid(x) - sigmoid(x)") != (0, 0)  # two values, as long as none is shared
    for made in ("exp(x)", "(-exp(x))"):
        graph = text.load(
            Source("t.dml", f"model t(x: f16[3]) -> (y) {{\n    e = {made}\n    y = e - e\n    return y\n}}\n")
        )
        assert not all(map(math.isfinite, Intervals(graph).of(graph.outputs[0][1])))


def test_a_sum_that_is_open_above_keeps_its_lower_end() -> None:
    low, high = of("reduce_sum(exp(x) - 5.0, axes=[1])")
    assert -25 < low < -19 and high == math.inf


def test_one_of_several_results_is_anything() -> None:
    graph = text.load(Source("t.dml", "model t(x: f16[3, 4]) -> (v, i) {\n    v, i = top_k(sigmoid(x), k=2, axis=1)\n"
                                      "    return v, i\n}\n"))  # fmt: skip
    assert Intervals(graph).of(graph.outputs[1][1])[1] > 4
