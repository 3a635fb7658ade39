"""RMS normalizations in every spelling, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layer_norm_spellings import STEP, built, untouched
from pass_helpers import Building, check_numbers, context, ledger, names, run

import dmlc
from dmlc.ir import Value
from dmlc.ir.dtype import f16, f32, f64
from dmlc.ops import binary as b2
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import RECIPROCAL, SQRT
from dmlc.ops.normalize import RMS_NORM, NormAttributes
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from tests.rows import each_row

GAMMA = np.linspace(0.5, 1.5, 8)


def mean_square(b: Building, x: Value, axes: Any = -1) -> Value:
    return b(REDUCE_MEAN, b(b2.POW, x, b.constant(2.0, x.type.dtype)), axes=axes)


def under(b: Building, x: Value, epsilon: float = 1e-6) -> Value:
    return b(b2.ADD, mean_square(b, x), b.constant(epsilon, x.type.dtype))


def inverse(b: Building, x: Value) -> Value:
    return b(RECIPROCAL, b(SQRT, under(b, x)))


def scaled(b: Building, y: Value, gamma: Any = GAMMA) -> Value:
    return b(b2.MUL, b.constant(gamma, y.type.dtype), y)


def plain(b: Building, x: Value) -> Value:
    return b(b2.MUL, x, inverse(b, x))


def divided(b: Building, x: Value) -> Value:
    return scaled(b, b(b2.DIV, x, b(SQRT, under(b, x))))


def scale_first(b: Building, x: Value) -> Value:
    return b(b2.MUL, scaled(b, x), inverse(b, x))


def scale_on_the_inverse(b: Building, x: Value) -> Value:
    return b(b2.MUL, x, scaled(b, inverse(b, x)))


def one_over(b: Building, x: Value) -> Value:
    return scaled(b, b(b2.MUL, b(b2.DIV, b.constant(1.0), b(SQRT, under(b, x))), x))


def power(b: Building, x: Value) -> Value:
    return scaled(b, b(b2.MUL, x, b(b2.POW, under(b, x), b.constant([-0.5]))))


def sum_of_squares(b: Building, x: Value) -> Value:
    v = b(b2.MUL, b.constant(0.125), b(REDUCE_SUM_SQUARE, x, axes=-1))
    return scaled(b, b(b2.DIV, x, b(SQRT, b(b2.ADD, b.constant(1e-6), v))))


def sum_over_count(b: Building, x: Value) -> Value:
    v = b(b2.DIV, b(REDUCE_SUM, b(b2.MUL, x, x), axes=-1), b.constant([[8.0]]))
    return scaled(b, b(b2.DIV, x, b(SQRT, b(b2.ADD, v, b.constant(1e-6)))))


def one_more_than_the_weight(b: Building, x: Value) -> Value:
    """Gemma's scale, as constant folding leaves it."""
    return b(b2.MUL, plain(b, x), b.constant(1 + GAMMA.reshape(1, 8)))


SPELLINGS: list[Callable[[Building, Value], Value]] = [
    plain,
    divided,
    scale_first,
    scale_on_the_inverse,
    one_over,
    power,
    sum_of_squares,
    sum_over_count,
    one_more_than_the_weight,
]


@each_row("shape", [(2, 3, 8), ("N", "S", 8)], ids=str)
@each_row("spelling", SPELLINGS, ids=lambda f: f.__name__)
def test_each_spelling_becomes_one_node(spelling: Callable[[Building, Value], Value], shape: Any) -> None:
    graph = built(spelling, shape)
    ctx = check_numbers(STEP, graph, exact=False, binding={"N": 2, "S": 3})
    assert names(graph) == ["rms_norm"]
    assert {c for _, c in ledger(ctx)} == {"reassociates"}
    (node,) = [n for n in graph if n.op is RMS_NORM]
    assert node.attributes_as(NormAttributes) == NormAttributes(axis=2, epsilon=float(np.float32(1e-6)))


def test_numbers_that_break_sums() -> None:
    graph = built(plain, (6, 8))
    x = np.zeros((6, 8), np.float32)
    x[0] = 1e-25  # the squares are 0: epsilon decides
    x[1, 3] = np.nan
    x[2, 0] = -np.inf
    x[3] = 1e25  # the squares are infinite, on either side
    x[4] = -0.0
    x[5] = np.arange(8) + 1e4
    check_numbers(STEP, graph, exact=False, feeds={"x": x})


# --- casts


def wide(b: Building, x: Value) -> Value:
    return b(CAST, x, to=f32)


def t5(b: Building, x: Value) -> Value:
    """Statistics in f32, and back before the scale."""
    return scaled(b, b(CAST, plain(b, wide(b, x)), to=f16))


def scale_in_f32(b: Building, x: Value) -> Value:
    return b(CAST, scaled(b, plain(b, wide(b, x))), to=f16)


def inverse_in_f16(b: Building, x: Value) -> Value:
    """Only the statistics are in f32."""
    return scaled(b, b(b2.MUL, x, b(CAST, inverse(b, wide(b, x)), to=f16)))


def mean_in_f32(b: Building, x: Value) -> Value:
    """The squares are f16."""
    v = b(REDUCE_MEAN, wide(b, b(b2.MUL, x, x)), axes=-1)
    return scaled(b, b(b2.DIV, x, b(CAST, b(SQRT, b(b2.ADD, v, b.constant(1e-6))), to=f16)))


@pytest.mark.parametrize("spelling", [t5, scale_in_f32, inverse_in_f16], ids=lambda f: f.__name__)
def test_statistics_in_f32(spelling: Callable[[Building, Value], Value]) -> None:
    graph = built(spelling, dtype=f16)
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["cast", "rms_norm", "cast"]


@pytest.mark.parametrize("spelling", [divided, scale_first, mean_in_f32], ids=lambda f: f.__name__)
def test_squares_in_f16(spelling: Callable[[Building, Value], Value]) -> None:
    graph = built(spelling, dtype=f16)
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["rms_norm"]  # an epsilon of 1e-6 is above 0 in f16 too


def test_a_cast_that_rounds_the_operand_is_not_looked_through() -> None:
    """The squares are of other numbers than the numerator."""

    def rounded(b: Building, x: Value) -> Value:
        return b(b2.MUL, x, b(CAST, inverse(b, b(CAST, x, to=f16)), to=f32))

    untouched(built(rounded), "what is divided by the deviation is not")


# --- near misses


def test_no_epsilon() -> None:
    untouched(built(lambda b, x: b(b2.DIV, x, b(SQRT, mean_square(b, x)))), "no epsilon under the root")


def test_epsilon_that_f16_rounds_to_zero() -> None:
    untouched(built(lambda b, x: b(b2.DIV, x, b(SQRT, under(b, x, 1e-9))), dtype=f16), "epsilon is 0.0, not above 0")


def test_sum_for_a_mean() -> None:
    def total(b: Building, x: Value) -> Value:
        v = b(b2.ADD, b(REDUCE_SUM, b(b2.MUL, x, x), axes=-1), b.constant(1e-6))
        return b(b2.DIV, x, b(SQRT, v))

    untouched(built(total), "8 times the mean of squares over axes [2]")


def test_another_numerator() -> None:
    b = Building()
    x, z = b.input("x", (2, 8)), b.input("z", (2, 8))
    untouched(b.done(b(b2.MUL, z, inverse(b, x))), "what is divided by the deviation is not what is squared")


def test_a_product_for_a_square() -> None:
    b = Building()
    x, z = b.input("x", (2, 8)), b.input("z", (2, 8))
    v = b(b2.ADD, b(REDUCE_MEAN, b(b2.MUL, x, z), axes=-1), b.constant(1e-6))
    untouched(b.done(b(b2.DIV, x, b(SQRT, v))))


def test_a_factor_that_stands_there_twice() -> None:
    b = Building()
    x = b.input("x", (2, 8))
    graph = b.done(b(b2.MUL, plain(b, x), x))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["rms_norm", "mul"]


def test_the_deviation_along_another_axis() -> None:
    def crossed(b: Building, x: Value) -> Value:
        v = b(REDUCE_MEAN, b(b2.MUL, x, x), axes=-1, keepdims=False)
        return b(b2.DIV, x, b(SQRT, b(b2.ADD, v, b.constant(1e-6))))

    untouched(built(crossed, (8, 8)), "keepdims=false")


def test_channels_first_stays() -> None:
    def first(b: Building, x: Value) -> Value:
        return b(b2.DIV, x, b(SQRT, b(b2.ADD, mean_square(b, x, 1), b.constant(1e-6))))

    untouched(built(first, (2, 8, 4)), "two transposes cost what it saves")


@pytest.mark.parametrize("which", ["square", "inverse"])
def test_what_is_used_elsewhere_stays(which: str) -> None:
    b = Building()
    x = b.input("x", (2, 8))
    square = b(b2.MUL, x, x)
    r = b(RECIPROCAL, b(SQRT, b(b2.ADD, b(REDUCE_MEAN, square, axes=-1), b.constant(1e-6))))
    graph = b.done(b(b2.MUL, x, r), square if which == "square" else r)
    untouched(graph, "is used outside of the pattern too")


def test_the_operand_may_be_used_elsewhere() -> None:
    b = Building()
    x = b(b2.ADD, b.input("x", (2, 8)), b.input("r", (2, 8)))
    graph = b.done(b(b2.ADD, x, scaled(b, plain(b, x))))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["add", "rms_norm", "add"]


def test_an_added_constant_is_no_bias() -> None:
    graph = built(lambda b, x: b(b2.ADD, plain(b, x), b.constant(GAMMA)))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["rms_norm", "add"]


def test_f64_stays() -> None:
    untouched(built(plain, dtype=f64), "this is f64")


@pytest.mark.parametrize(("target", "opset"), [("onnx", 21), ("onnx", 22)])
def test_plain_onnx_has_it_from_opset_23_on(target: str, opset: int) -> None:
    ctx = context(target, opset=opset)
    untouched(built(plain), f"RMSNormalization needs opset 23, and opset {opset} is emitted", ctx)
    ctx = context(target, opset=23)
    graph = built(plain)
    check_numbers(STEP, graph, ctx, exact=False)
    assert names(graph) == ["rms_norm"]


@pytest.mark.parametrize("target", ["directml", "cpu"])
@pytest.mark.parametrize("opset", [11, 13, 21])
def test_onnx_runtime_has_it_at_every_opset(target: str, opset: int) -> None:
    ctx = context(target, opset=opset)
    graph = built(plain)
    run(STEP, graph, ctx)
    assert names(graph) == ["rms_norm"]


@pytest.mark.parametrize("call", ["layer_norm(x, s, b)", "layer_norm(x, s)", "mean_variance_norm(x, axes=[-1])"])
@pytest.mark.parametrize("opset", [16, 17])
def test_a_norm_of_f16_far_from_zero_keeps_its_mean(call: str, opset: int) -> None:
    """The mean is not rounded to f16, whose steps are a tenth of the deviation here."""
    text = f"model m(x: f16[8, 64], s: f16[64], b: f16[64]) -> (y) {{ return {call} }}"
    program = dmlc.compile(dmlc.Source(text), target="cpu", opset=opset)
    x = (np.random.default_rng(0).normal(size=(8, 64)) * 0.05 + 3).astype(np.float16)
    y = program.run({"x": x, "s": np.ones(64, np.float16), "b": np.zeros(64, np.float16)}, "cpu")["y"]
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, expected, atol=2e-3)  # half a step of f16 up to 4
