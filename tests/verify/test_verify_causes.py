"""Causes: what the models computed on the way decides whether a difference is excused."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import parser

import dmlc
from dmlc.verify.causes import (
    Range,
    at_the_limit,
    integers_overflowed,
    left_range,
    nan_selected,
    reduced_nothing,
    rooted_infinity,
    underflowed,
    zeros_differ,
)
from dmlc.verify.trace import TraceStep
from dmlc.verify.undefined import divisions_by_zero, unspecified_casts
from dmlc.verify.unstable import jumped_on
from tests.rows import each_row

NAN, INF = np.nan, np.inf


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def i32(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def step(op: str, *operands: np.ndarray[Any, Any], gives: np.ndarray[Any, Any]) -> TraceStep:
    return TraceStep(op, operands, (gives,))


def test_nan_in_selections() -> None:
    assert nan_selected([step("argmax", f32(1, NAN), gives=i32(1))])
    assert not nan_selected([step("argmax", f32(1, 2), gives=i32(1))])
    assert not nan_selected([step("exp", f32(NAN), gives=f32(NAN))])
    assert nan_selected([TraceStep("if", (f32(NAN),), (None,), frozenset({"reducemax"}))])


def test_zeros_of_another_sign() -> None:
    def division(*by: float) -> list[TraceStep]:
        return [step("div", f32(1), f32(*by), gives=f32(0))]

    assert zeros_differ(division(0.0, 1), division(-0.0, 1))
    assert zeros_differ(division(0.0, 1), [step("reciprocal", f32(-0.0, 1), gives=f32(-INF, 1))])
    assert not zeros_differ(division(0.0, 1), division(0.0, 1))
    assert not zeros_differ(division(0.0, 1), division(-0.0, 2))
    assert not zeros_differ(division(0.0, 1), division(1, -0.0))
    assert not zeros_differ(division(1), [])
    turned = [step("div", f32(1), f32(1, 0.0).reshape(2, 1), gives=f32(0))]
    assert not zeros_differ(division(0.0, 1), turned)
    assert zeros_differ(division(-0.0, 1), turned)


def test_the_root_of_an_infinity() -> None:
    assert rooted_infinity([step("pow", f32(1, -INF), f32(0.5), gives=f32(1, INF))])
    assert not rooted_infinity([step("pow", f32(1, INF), f32(0.5), gives=f32(1, INF))])
    assert not rooted_infinity([step("pow", f32(-INF), f32(2), gives=f32(INF))])


@each_row(
    ("value", "target", "expected"),
    [
        (NAN, np.int32, True),
        (3e9, np.int32, True),
        (-3.5, np.uint8, True),
        (-0.5, np.uint8, False),
        (255.9, np.uint8, False),
    ],
)
def test_casts(value: float, target: Any, expected: bool) -> None:
    assert bool(unspecified_casts([step("cast", f32(value), gives=np.zeros(1, target))])) is expected


def test_integers() -> None:
    top = 2**31 - 1
    assert integers_overflowed([step("reducesum", i32(top, 1), gives=i32(0))])
    assert not integers_overflowed([step("reducesum", i32(top - 1, 1), gives=i32(0))])
    assert not integers_overflowed([step("reducemax", i32(top, top), gives=i32(0))])
    assert integers_overflowed([step("reduceprod", i32(2**16, 2**16), gives=i32(0))])
    assert integers_overflowed([step("reducesumsquare", i32(2**16), gives=i32(0))])
    assert divisions_by_zero([step("div", i32(1), i32(0), gives=i32(0))])
    assert not divisions_by_zero([step("div", f32(1), f32(0), gives=f32(INF))])


def test_sums_of_i64_that_f64_rounds() -> None:
    two, one, zero = (np.array(n, np.int64) for n in ([2**53, 1], [2**53 - 1], [0]))
    assert integers_overflowed([step("reducemean", two, gives=zero)])
    assert not integers_overflowed([step("reducemean", one, gives=zero)])
    assert not integers_overflowed([step("cumsum", two, gives=zero)])


def test_reductions_over_nothing() -> None:
    assert reduced_nothing([step("reducemean", np.zeros((0, 3), np.float32), gives=f32(0))])
    assert not reduced_nothing([step("add", np.zeros((0, 3), np.float32), gives=f32(0))])


@each_row(
    ("steps", "overflowed", "undefined"),
    [
        ([step("exp", f32(100), gives=f32(INF))], True, False),
        ([step("log", f32(-1), gives=f32(NAN))], False, True),
        ([step("log", f32(0), gives=f32(-INF))], False, True),
        ([step("exp", f32(-200), gives=f32(0)), step("log", f32(0), gives=f32(-INF))], True, False),
        ([step("div", f32(1), f32(0), gives=f32(INF))], False, True),
        ([step("div", f32(0), f32(0), gives=f32(NAN))], False, True),
        ([step("div", f32(1e30), f32(1e-30), gives=f32(INF))], True, False),
        ([step("sqrt", f32(4, -4), gives=f32(2, NAN))], False, True),
        ([step("pow", f32(0), f32(-1), gives=f32(INF))], False, True),
        ([step("pow", f32(1e30), f32(2), gives=f32(INF))], True, False),
        ([step("sub", f32(INF), f32(INF), gives=f32(NAN))], False, False),
        ([step("reducesum", f32(3e38, 3e38), gives=f32(INF))], True, False),
        ([step("reducelogsum", f32(0, 0), gives=f32(-INF))], False, True),
        ([step("layernormalization", f32(1, 1), gives=f32(NAN, NAN))], False, True),
        ([step("layernormalization", f32(1e30, 1), gives=f32(NAN, NAN))], True, False),
        ([step("exp", f32(1), gives=f32(2.7))], False, False),
    ],
)
def test_where_the_range_is_left(steps: list[TraceStep], overflowed: bool, undefined: bool) -> None:
    found = Range(steps)
    assert (found.overflowed, found.undefined) == (overflowed, undefined)


def test_limits() -> None:
    assert at_the_limit([step("reducesum", f32(3e38, 1), gives=f32(3e38))])
    assert not at_the_limit([step("reducesum", f32(1e30, 1), gives=f32(1e30))])
    assert at_the_limit([step("reduceprod", f32(1e30, 1e-30, 1e30, 1e-30), gives=f32(1))])
    assert not at_the_limit([step("reduceprod", f32(1e30, 1e-30, 1, 1e-30), gives=f32(0))])
    assert not at_the_limit([step("reduceprod", f32(1e30, 1e-30, 1e30, 1e-30), gives=f32(1, 1, 1, 1))])
    tiny = f32(1e-40)
    assert underflowed([step("mul", tiny, tiny, gives=f32(0))], {"x": tiny})
    assert not underflowed([step("mul", tiny, tiny, gives=f32(0))], {"x": tiny, "y": f32(1)})


def test_a_square_that_vanished_before_its_root() -> None:
    """The result, which takes no square, keeps what the original lost; elsewhere nothing is excused."""
    small, feeds = f32(2e-36, 3), {"x": f32(1, 1)}
    lost = [step("reducel2", small, gives=f32(0, 3))]
    first = np.array([True, False])
    assert left_range(f32(0, 3), small, first, lost, lost, feeds) == "partial results underflowed"
    assert not left_range(f32(0, 3), f32(1e-10, 3), first, lost, lost, feeds)
    assert not left_range(f32(0, 3), f32(2e-36, 4), np.array([True, True]), lost, lost, feeds)
    assert not left_range(f32(0, 3), small, first, [step("abs", small, gives=f32(0, 3))], lost, feeds)
    half = np.array([1e-4, 3], np.float16)
    gone = [step("reducel2", half, gives=np.array([0, 3], np.float16))]
    assert not left_range(np.array([0, 3], np.float16), half, first, gone, gone, feeds)


def test_a_norm_of_one_small_element_is_its_magnitude() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> g (float[2, 1] x) => (float[2, 1] y) <float tiny = {1e-30}>
    { s = Mul (x, tiny) y = ReduceL2 <axes = [1], keepdims = 1> (s) }"""
    program = dmlc.compile(parser.parse_model(text), target="cpu")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Mul", "Abs"]
    (report,) = program.verify(3).outputs
    assert [status for status, _ in report.counts] == ["overflowed"]


def test_inputs_that_are_jumped_on_as_they_are() -> None:
    moved = TraceStep("transpose", (None,), (None,), reads=("x",), writes=("t",))
    chosen = TraceStep("argmax", (None,), (None,), reads=("t",), writes=("y",))
    assert jumped_on([moved, chosen], {"x": f32(1)}) == {"x"}
    rounded = TraceStep("softmax", (None,), (None,), reads=("x",), writes=("t",))
    assert jumped_on([rounded, chosen], {"x": f32(1)}) == frozenset()
    against = TraceStep("greater", (None, None), (None,), reads=("x", "t"), writes=("y",))
    assert jumped_on([rounded, against], {"x": f32(1)}) == frozenset()
    constant = TraceStep("greater", (None, None), (None,), reads=("x", "weight"), writes=("y",))
    assert jumped_on([constant], {"x": f32(1)}) == {"x", "weight"}
