"""Scaled sums and roots that ``fuse-instance-norm`` tidies: each test fails where a guard of its rules is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pass_helpers import ALL, Building, check_numbers, context, ledger, names, remarks

from dmlc.ir import DType, Value
from dmlc.ir.dtype import f16, f32, f64, i32
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.elementwise import SQRT
from dmlc.ops.move import UNSQUEEZE
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, ReduceAttributes
from dmlc.passes.fuse_instance_norm import FuseInstanceNorm
from dmlc.passes.manager import PassContext

Made = Callable[[Building, Value], "Value | tuple[Value, ...]"]
SCALED, ROOT = "scaled-statistic", "root-of-statistic"


def tidied(
    made: Made, shape: Any = (3, 8), dtype: DType = f32, target: str = "directml", *, exact: bool = False
) -> tuple[list[str], PassContext]:
    b = Building()
    out = made(b, b.input("x", shape, dtype))
    graph = b.done(*(out if isinstance(out, tuple) else (out,)))
    with np.errstate(all="ignore"):
        ctx = check_numbers(FuseInstanceNorm(), graph, context(target, ALL), exact=exact)
    return [rule for rule, _ in ledger(ctx)], ctx


def times(b: Building, value: Value, *numbers: float) -> Value:
    """The value times the first number, over the second, and so on."""
    for i, number in enumerate(numbers):
        value = b(DIV if i % 2 else MUL, value, b.constant(number, value.type.dtype))
    return value


def mean_square(b: Building, x: Value, *, keepdims: bool = True) -> Value:
    return b(REDUCE_MEAN, b(MUL, x, x), axes=[1], keepdims=keepdims)


def test_in_one_step() -> None:
    assert tidied(lambda b, x: times(b, mean_square(b, x), 3, 3))[0] == [SCALED]
    assert tidied(lambda b, x: times(b, b(REDUCE_SUM, x, axes=[1]), 8, 7))[0] == [SCALED]


def test_a_scaled_sum_that_is_used_on_the_way() -> None:
    def made(b: Building, x: Value) -> tuple[Value, ...]:
        first = times(b, b(REDUCE_SUM, x, axes=[1]), 8)
        return b(DIV, first, b.constant(7)), first

    assert tidied(made, exact=True)[0] == []


def test_sums_over_no_axis_and_of_integers_are_left() -> None:
    def none(b: Building, x: Value) -> Value:
        total = b.graph.add(REDUCE_SUM, [x], ReduceAttributes(axes=(), keepdims=True)).result
        return times(b, total, 8, 7)

    assert tidied(none, exact=True)[0] == []
    assert tidied(lambda b, x: times(b, b(REDUCE_SUM, x, axes=[1]), 8, 7), dtype=i32)[0] == []


def test_sums_of_no_elements() -> None:
    assert tidied(lambda b, x: times(b, b(REDUCE_SUM, x, axes=[1]), 8, 7), (3, 0))[0] == [SCALED]
    tidied(lambda b, x: times(b, mean_square(b, x), 8, 7), (3, 0))
    tidied(lambda b, x: b(SQRT, times(b, mean_square(b, x), 8, 7)), (3, 0))


def test_squares_of_squares() -> None:
    fourth: Made = lambda b, x: times(b, b(REDUCE_SUM_SQUARE, b(MUL, x, x), axes=[1]), 8, 7)  # noqa: E731
    assert tidied(fourth)[0] == [SCALED]
    assert tidied(lambda b, x: b(SQRT, fourth(b, x)))[0] == [SCALED, ROOT]


def test_f16_only_where_the_target_computes_it() -> None:
    for made in (
        lambda b, x: times(b, b(REDUCE_MEAN, x, axes=[1]), 8, 7),
        lambda b, x: b(SQRT, mean_square(b, x)),
    ):
        assert tidied(made, dtype=f16)[0]
        assert not tidied(made, dtype=f16, target="cpu", exact=True)[0]


def test_axes_that_are_put_back_before_a_factor() -> None:
    made: Made = lambda b, x: times(b, b(UNSQUEEZE, mean_square(b, x, keepdims=False), axes=[1]), 8, 7)  # noqa: E731
    assert tidied(made, exact=True)[0] == []


def test_a_mean_of_squares_that_is_used_elsewhere_keeps_its_root() -> None:
    def plain(b: Building, x: Value) -> tuple[Value, ...]:
        mean = mean_square(b, x)
        return b(SQRT, mean), mean

    def scaled(b: Building, x: Value) -> tuple[Value, ...]:
        mean = mean_square(b, x)
        return b(SQRT, times(b, mean, 8)), mean

    def on_the_way(b: Building, x: Value) -> tuple[Value, ...]:
        last = times(b, mean_square(b, x), 8)
        return b(SQRT, last), last

    for made in (plain, scaled, on_the_way):
        assert ROOT not in tidied(made)[0]


@pytest.mark.parametrize(
    ("dtype", "shape", "numbers", "why"),
    [
        (f32, (3, 8), (1e-38, 1e38), "out of the range of f32"),
        (f64, (3, 8), (1e-300, 1e300), "out of the range of f64"),
        (f64, (3, 8), (1e300, 1e-300), "out of the range of f64"),
        (f16, (1, 40000), (1,), "too large for f16"),
    ],
)
def test_factors_and_sums_out_of_range(dtype: DType, shape: Any, numbers: Any, why: str) -> None:
    rules, ctx = tidied(lambda b, x: b(SQRT, times(b, mean_square(b, x), *numbers)), shape, dtype)
    assert ROOT not in rules
    assert why in " | ".join(remarks(ctx))


def test_factors_that_are_zero_together() -> None:
    b = Building()
    graph = b.done(times(b, mean_square(b, b.input("x", (3, 8), f64)), 1e-300, 1e300))
    check_numbers(FuseInstanceNorm(), graph, context("directml", ALL))
    assert names(graph) == ["mul", "reduce_mean", "mul", "div"]
