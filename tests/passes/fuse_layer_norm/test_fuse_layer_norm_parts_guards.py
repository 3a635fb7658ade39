"""Near misses of parts of a layer normalization: each test fails where one guard of ``fuse-layer-norm`` is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pass_helpers import ALL, Building, context, ledger, names, random_feeds, run
from pass_helpers import evaluate as values_of

from dmlc.ir import DType, Value
from dmlc.ir.dtype import f16, f32, f64, i32
from dmlc.ops.binary import ADD, DIV, MAX, MUL, SUB
from dmlc.ops.choose import CAST, CLIP
from dmlc.ops.elementwise import RECIPROCAL, SQRT
from dmlc.ops.move import EXPAND, TRANSPOSE
from dmlc.ops.normalize import LAYER_NORM
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.fuse_layer_norm import FuseLayerNorm
from dmlc.passes.manager import PassContext

Made = Callable[[Building, Value], "Value | tuple[Value, ...]"]
LAYER, RMS = "fuse-layer-norm", "fuse-rms-norm"
EPS = 1e-3


def done(made: Made, shape: Any = (3, 8), dtype: DType = f32, **binding: int) -> tuple[set[str], PassContext]:
    """The rules that fired; the numbers stay."""
    b = Building(n=(1, 99))
    out = made(b, b.input("x", shape, dtype))
    graph = b.done(*(out if isinstance(out, tuple) else (out,)))
    feeds = random_feeds(graph, binding)
    with np.errstate(all="ignore"):
        before = values_of(graph, feeds)
        ctx = run(FuseLayerNorm(), graph, context(allowed=ALL))
        for old, new in zip(before, values_of(graph, feeds), strict=True):
            rtol = 4e-3 if old.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(new, old, rtol=rtol, atol=rtol * 8)
    return {rule for rule, _ in ledger(ctx)}, ctx


def told(ctx: PassContext, rule: str) -> list[str]:
    return [r.reason() for r in ctx.remarks if r.rule == rule]


def mean(b: Building, x: Value, axes: Any = (1,), *, keepdims: bool = True) -> Value:
    return b(REDUCE_MEAN, x, axes=list(axes), keepdims=keepdims)


def root(b: Building, squares: Value, epsilon: Any = EPS) -> Value:
    """The root of what is given plus epsilon."""
    return b(SQRT, b(ADD, squares, epsilon if isinstance(epsilon, Value) else b.constant(epsilon, squares.type.dtype)))


def centred(b: Building, x: Value, axes: Any = (1,)) -> Value:
    return b(SUB, x, mean(b, x, axes))


def deviation(b: Building, x: Value) -> Value:
    d = centred(b, x)
    return root(b, mean(b, b(MUL, d, d)))


def moments(b: Building, x: Value, m: Value, axes: Any = (1,)) -> Value:
    return b(SUB, mean(b, b(MUL, x, x), axes), b(MUL, m, m))


def normalized(b: Building, x: Value) -> Value:
    return b(DIV, centred(b, x), deviation(b, x))


# --- statistics


def test_a_mean_that_drops_its_first_axes_stands_in_place() -> None:
    def made(b: Building, x: Value) -> Value:
        d = b(SUB, x, mean(b, x, (0,), keepdims=False))
        return b(DIV, d, root(b, mean(b, b(MUL, d, d), (0,), keepdims=False)))

    assert LAYER in done(made)[0]


def test_what_is_taken_out_is_the_mean() -> None:
    def scaled(b: Building, x: Value, number: float) -> Value:
        return b(SUB, x, b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant(number)))

    def made(b: Building, x: Value, number: float) -> Value:
        d = scaled(b, x, number)
        return b(DIV, d, root(b, mean(b, b(MUL, d, d))))

    assert LAYER in done(lambda b, x: made(b, x, 0.125))[0]
    assert LAYER not in done(lambda b, x: made(b, x, 0.3))[0]


def test_a_sum_over_zero_is_no_mean() -> None:
    def made(b: Building, x: Value) -> Value:
        d = b(SUB, x, b(DIV, b(REDUCE_SUM, x, axes=[1]), b.constant(0)))
        return b(DIV, d, root(b, mean(b, b(MUL, d, d))))

    assert LAYER not in done(made)[0]


def test_a_mean_over_no_axis() -> None:
    def made(b: Building, x: Value) -> Value:
        record = ReduceAttributes(axes=(), keepdims=True)
        d = b(SUB, x, b.graph.add(REDUCE_MEAN, [x], record).result)
        return b(DIV, d, root(b, b.graph.add(REDUCE_MEAN, [b(MUL, d, d)], record).result))

    assert not done(made)[0] & {LAYER, RMS}


def test_a_constant_of_more_axes_in_the_mean() -> None:
    def made(b: Building, x: Value) -> Value:
        m = b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant([[[0.125]]]))
        t = b(TRANSPOSE, b(SUB, x, m), perm=[0, 2, 1])
        return b(DIV, t, root(b, mean(b, b(MUL, t, t), (2,))))

    done(made)


def test_the_deviation_is_that_of_another_value() -> None:
    def other(b: Building, x: Value) -> Value:
        return b(DIV, centred(b, x), deviation(b, b.input("z", (3, 8))))

    def other_axes(b: Building, x: Value) -> Value:
        d = centred(b, x, (0,))
        return b(DIV, centred(b, x), root(b, mean(b, b(MUL, d, d), (0,))))

    assert LAYER not in done(other)[0]
    assert LAYER not in done(other_axes, (8, 8))[0]


# --- the mean of squares less the square of the mean


def of_moments(made: Callable[[Building, Value, Value], Value], shape: Any = (3, 8)) -> set[str]:
    """The rules that fire for x less its mean over the root of what is made of x and the mean."""

    def whole(b: Building, x: Value) -> Value:
        m = mean(b, x)
        return b(DIV, b(SUB, x, m), root(b, made(b, x, m)))

    return done(whole, shape)[0]


def test_moments_that_are_kept_from_going_below_zero() -> None:
    assert LAYER in of_moments(lambda b, x, m: b(MAX, b.constant(0), moments(b, x, m)))
    assert LAYER in of_moments(lambda b, x, m: b(MAX, moments(b, x, m), b.constant(0)))
    assert LAYER in of_moments(lambda b, x, m: b(CLIP, moments(b, x, m), min=0))
    for low, high in ((2, None), (0, 0.01)):
        assert LAYER not in of_moments(lambda b, x, m, low=low, high=high: b(CLIP, moments(b, x, m), min=low, max=high))
    assert LAYER not in of_moments(lambda b, x, m: b(MAX, moments(b, x, m), b.constant(2)))
    assert LAYER not in of_moments(lambda b, x, m: b(MAX, b.constant(2), moments(b, x, m)))


def test_moments_of_two_values_or_over_two_axes() -> None:
    assert LAYER not in of_moments(lambda b, x, m: moments(b, x, mean(b, b.input("z", (3, 8)))))
    assert LAYER not in of_moments(lambda b, x, m: moments(b, b.input("z", (3, 8)), m))
    assert LAYER not in of_moments(lambda b, x, m: moments(b, x, mean(b, x, (0,))), (8, 8))
    half: Made = lambda b, x: b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant(0.06))  # noqa: E731
    assert LAYER not in of_moments(lambda b, x, m: moments(b, x, half(b, x)))


def test_a_value_over_the_root_of_moments_is_no_rms_norm() -> None:
    assert RMS not in done(lambda b, x: b(DIV, x, root(b, moments(b, x, mean(b, x)))))[0]


# --- what is split


def split(
    b: Building, x: Value, *, of: Value | None = None, less: Value | None = None, own: Any = 1, others: Any = 1
) -> Value:
    s = b(RECIPROCAL, deviation(b, x if of is None else of))
    m = mean(b, x) if less is None else less
    left, right = (b(MUL, s, b.constant(n)) if n != 1 else s for n in (own, others))
    return b(SUB, b(MUL, x, left), b(MUL, m, right))


def test_split_and_what_is_not() -> None:
    assert LAYER in done(split)[0]
    assert LAYER not in done(lambda b, x: split(b, x, of=b.input("z", (3, 8))))[0]
    assert LAYER not in done(lambda b, x: split(b, x, less=b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant(0.2))))[0]


@pytest.mark.parametrize(("number", "fires"), [(0.125, True), (0.2, False)])
def test_split_by_what_is_no_mean(number: float, fires: bool) -> None:
    def made(b: Building, x: Value) -> Value:
        part = b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant(number))
        return split(b, x, less=b(EXPAND, part, shape=[3, 8]))

    assert (LAYER in done(made)[0]) is fires


def test_split_by_two_factors_that_differ() -> None:
    def made(b: Building, x: Value, *, last: bool) -> Value:
        s, m = b(RECIPROCAL, deviation(b, x)), mean(b, x)
        out = []
        for value, number in ((x, 2.0), (m, 3.0)):
            factor = b.constant(np.linspace(number, number + 1, 8))
            order = [value, s, factor] if last else [value, factor, s]
            out.append(b(MUL, b(MUL, order[0], order[1]), order[2]))
        return b(SUB, *out)

    assert LAYER not in done(lambda b, x: made(b, x, last=True))[0]
    assert LAYER not in done(lambda b, x: made(b, x, last=False))[0]


# --- where it stands


def test_a_long_row_that_is_scaled_twice_gets_no_ones() -> None:
    def made(b: Building, x: Value, *, twice: bool) -> Any:
        y, scale = normalized(b, x), b.input("g", (70000,))
        return (b(MUL, y, scale), b(MUL, y, y)) if twice else b(MUL, y, scale)

    assert LAYER in done(lambda b, x: made(b, x, twice=False), (1, 70000))[0]
    assert LAYER not in done(lambda b, x: made(b, x, twice=True), (1, 70000))[0]


def test_numbers_around_a_norm_are_one_factor() -> None:
    def made(b: Building, x: Value, *factors: float) -> Value:
        out = centred(b, x)
        for number in factors:
            out = b(MUL, out, b.constant(number, x.type.dtype))
        return b(DIV, out, deviation(b, x))

    assert LAYER in done(lambda b, x: made(b, x, *range(2, 9)))[0]
    assert LAYER in done(lambda b, x: made(b, x, 2, 3), dtype=f16)[0]
    assert LAYER not in done(lambda b, x: made(b, x, 1e-4, 1e-4), dtype=f16)[0]  # 1e-8 is 0 in f16


def test_what_is_made_of_the_value_again_stays() -> None:
    """The scale, or the bias, would need the node that the norm replaces."""

    def squared(b: Building, x: Value) -> Value:
        d = centred(b, x)
        return b(DIV, b(MUL, d, b(SQRT, b(MUL, x, x))), deviation(b, x))

    def plus_mean(b: Building, x: Value) -> Value:
        s, m = b(RECIPROCAL, deviation(b, x)), mean(b, x)
        return b(SUB, b(MUL, x, s), b(SUB, b(MUL, m, s), m))

    assert LAYER not in done(squared)[0]
    assert LAYER not in done(plus_mean)[0]


def test_a_bias_that_is_taken_away_before_the_mean() -> None:
    def made(b: Building, x: Value, bias: Value) -> Value:
        s = b(RECIPROCAL, deviation(b, x))
        return b(SUB, b(SUB, b(MUL, x, s), bias), b(MUL, mean(b, x), s))

    assert LAYER in done(lambda b, x: made(b, x, b.input("z", (3, 8))))[0]
    assert LAYER in done(lambda b, x: made(b, x, b.constant(0.5)))[0]
    assert LAYER in done(lambda b, x: made(b, x, x))[0]
    assert LAYER not in done(lambda b, x: made(b, x, b(MUL, x, b.constant(2.0))))[0]
    assert LAYER not in done(lambda b, x: made(b, x, b(MUL, x, b.input("z", (3, 8)))))[0]


# --- scale and bias


def test_what_a_scale_broadcasts_stays() -> None:
    def made(b: Building, x: Value) -> Value:
        norm = b(LAYER_NORM, x, b.constant(np.ones((1, 4))), axis=1, epsilon=EPS)
        return b(MUL, norm, b.constant(np.linspace(1, 2, 20).reshape(5, 4)))

    assert not done(made, (3, 1, 4))[0]
    assert not done(lambda b, x: b(MUL, normalized(b, x), b.constant(np.ones((1, 3, 8)) * 2)))[0] & {
        "absorb-norm-scale"
    }


def test_a_bias_along_sizes_that_are_not_known() -> None:
    def made(b: Building, x: Value) -> Value:
        norm = b(LAYER_NORM, x, b.input("g", ("n",)), axis=1, epsilon=EPS)
        return b(ADD, norm, b.constant(0.5))

    assert not done(made, (3, "n"), n=8)[0]


@pytest.mark.parametrize(("source", "to"), [(f16, f32), (f32, i32), (f32, f64)])
def test_a_scale_after_a_cast_that_is_not_to_f16(source: DType, to: DType) -> None:
    def made(b: Building, x: Value) -> Value:
        norm = b(LAYER_NORM, x, b.constant(np.ones(8), source), axis=1, epsilon=EPS)
        return b(MUL, b(CAST, norm, to=to), b.constant(np.arange(8), to))

    assert not done(made, dtype=source)[0]


# --- what is told


def test_one_reason_for_one_product() -> None:
    def scaled(b: Building, x: Value) -> Value:
        return b(MUL, b(DIV, b.input("z", (3, 8)), deviation(b, x)), b.constant(np.arange(8)))

    (reason,) = told(done(scaled)[1], LAYER)
    assert "is not the value less its mean" in reason

    def used_twice(b: Building, x: Value) -> tuple[Value, ...]:
        product = b(DIV, b.input("z", (3, 8)), deviation(b, x))
        return b(MUL, product, b.constant(2)), b(ADD, product, b.constant(1))

    (reason,) = told(done(used_twice)[1], LAYER)
    assert "is not the value less its mean" in reason

    def without_epsilon(b: Building, x: Value) -> Value:
        d = centred(b, x)
        return b(MUL, b(DIV, d, b(SQRT, mean(b, b(MUL, d, d)))), b.constant(np.arange(8)))

    (reason,) = told(done(without_epsilon)[1], LAYER)
    assert "no epsilon" in reason


def test_no_reason_for_what_is_no_layer_norm() -> None:
    def of_squares(b: Building, x: Value) -> Value:
        return b(DIV, b.input("z", (3, 8)), root(b, mean(b, b(MUL, x, x))))

    def times_deviation(b: Building, x: Value) -> Value:
        d = centred(b, b(CAST, x, to=f32))
        far = b(ADD, b(SQRT, mean(b, b(MUL, d, d))), b.constant(EPS))
        return b(MUL, x, b(CAST, far, to=f16))

    def by_row(b: Building, x: Value) -> Value:
        d = centred(b, x)
        return b(DIV, d, root(b, mean(b, b(MUL, d, d)), b.input("z", (3, 1))))

    def over_more(b: Building, x: Value) -> Value:
        d = centred(b, x)
        return b(DIV, d, b(ADD, mean(b, b(MUL, d, d)), b.input("z", (3, 1))))

    assert told(done(over_more)[1], LAYER) == []
    assert told(done(of_squares)[1], LAYER) == []
    assert told(done(times_deviation, dtype=f16)[1], LAYER) == []
    assert told(done(by_row)[1], LAYER) == []


def test_names() -> None:
    b = Building()
    graph = b.done(normalized(b, b.input("x", (3, 8))))
    run(FuseLayerNorm(), graph, context(allowed=ALL))
    assert names(graph) == ["layer_norm"]
