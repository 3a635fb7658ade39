"""Elements that nothing defines: what the original computed on the way decides whether an output is comparable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_pairs import verify_graph, verify_models
from onnx import parser

import dmlc
from dmlc.diagnostics import Source
from dmlc.verifying.rounding import Noise, Rounded
from dmlc.verifying.spread import jumped_on
from dmlc.verifying.subject import TraceStep
from dmlc.verifying.undefined import Definitions, UndefinedElements, departures, undefined_elements
from tests.rows import each_row

NAN, INF = np.nan, np.inf


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def i32(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def step(op: str, *operands: np.ndarray[Any, Any], gives: np.ndarray[Any, Any]) -> TraceStep:
    return TraceStep(op, operands, (gives,), writes=("y",))


def found(step: TraceStep, **more: bool) -> list[UndefinedElements]:
    return undefined_elements([step], Definitions(**more))


def places(step: TraceStep, **more: bool) -> list[int]:
    """The undefined elements of a step's result, by number."""
    return sorted({int(place) for one in found(step, **more) for place in np.flatnonzero(one.places)})


def test_nan_in_selections() -> None:
    assert places(step("argmax", f32(1, NAN), gives=i32(1))) == [0]
    assert not places(step("argmax", f32(1, NAN), gives=i32(1)), selections=True)
    assert not places(step("argmax", f32(1, 2), gives=i32(1)))
    assert not places(step("exp", f32(NAN), gives=f32(NAN)))
    assert places(step("max", f32(1, NAN), f32(2, 2), gives=f32(2, NAN))) == [1]
    chosen = TraceStep("if", (f32(NAN),), (f32(1),), frozenset({"reducemax"}), writes=("y",))
    assert places(chosen) == [0]


def test_the_root_of_an_infinity() -> None:
    assert places(step("pow", f32(1, -INF), f32(0.5, 0.5), gives=f32(1, INF))) == [1]
    assert not places(step("pow", f32(1, INF), f32(0.5, 0.5), gives=f32(1, INF)))
    assert not places(step("pow", f32(-INF), f32(2), gives=f32(INF)))


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
    assert bool(found(step("cast", f32(value), gives=np.zeros(1, target)))) is expected


def test_integers() -> None:
    top = 2**31 - 1
    assert found(step("reducesum", i32(top, 1), gives=i32(0)))
    assert not found(step("reducesum", i32(top - 1, 1), gives=i32(0)))
    assert not found(step("reducemax", i32(top, top), gives=i32(0)))
    assert found(step("reduceprod", i32(2**16, 2**16), gives=i32(0)))
    assert found(step("reducesumsquare", i32(2**16), gives=i32(0)))
    assert found(step("div", i32(1), i32(0), gives=i32(0)))
    assert not found(step("div", f32(1), f32(0), gives=f32(INF)))


def test_sums_of_i64_that_f64_rounds() -> None:
    two, one, zero = (np.array(n, np.int64) for n in ([2**53, 1], [2**53 - 1], [0]))
    assert found(step("reducemean", two, gives=zero))
    assert not found(step("reducemean", one, gives=zero))
    assert not found(step("cumsum", two, gives=zero))


def test_reductions_over_nothing() -> None:
    nothing = np.zeros((0, 3), np.float32)
    assert found(step("reducemean", nothing, gives=f32(0)))
    assert not found(step("reducemean", nothing, gives=f32(0)), empty=True)
    assert not found(step("add", nothing, gives=f32(0)))


@each_row(
    ("step", "overflowed", "pole", "undefined"),
    [
        (step("exp", f32(100), gives=f32(INF)), 1, 0, 0),
        (step("log", f32(-1), gives=f32(NAN)), 0, 0, 1),
        (step("log", f32(0), gives=f32(-INF)), 0, 1, 0),
        (step("div", f32(1), f32(0), gives=f32(INF)), 0, 1, 0),
        (step("div", f32(0), f32(0), gives=f32(NAN)), 0, 1, 0),
        (step("div", f32(1e30), f32(1e-30), gives=f32(INF)), 1, 0, 0),
        (step("sqrt", f32(4, -4), gives=f32(2, NAN)), 0, 0, 1),
        (step("pow", f32(0), f32(-1), gives=f32(INF)), 0, 1, 0),
        (step("pow", f32(1e30), f32(2), gives=f32(INF)), 1, 0, 0),
        (step("sub", f32(INF), f32(INF), gives=f32(NAN)), 0, 0, 0),
        (step("reducesum", f32(3e38, 3e38), gives=f32(INF)), 1, 0, 0),
        (step("reducelogsum", f32(0, 0), gives=f32(-INF)), 0, 1, 0),
        (step("layernormalization", f32(1, 1), gives=f32(NAN, NAN)), 0, 0, 2),
        (step("layernormalization", f32(1e30, 1), gives=f32(NAN, NAN)), 2, 0, 0),
        (step("exp", f32(1), gives=f32(2.7)), 0, 0, 0),
    ],
)
def test_how_the_range_is_left(step: TraceStep, overflowed: int, pole: int, undefined: int) -> None:
    (made,) = step.made()
    one = departures(step, made)
    assert (one.overflowed.sum(), one.pole.sum(), one.undefined.sum()) == (overflowed, pole, undefined)


@each_row(
    ("step", "expected"),
    [
        (step("reducesum", f32(3e38, 3e38, -3e38), gives=f32(3e38)), [0]),
        (step("reducesum", f32(3e38, -3e38), gives=f32(0)), []),
        (step("reducesum", f32(1e30, 1), gives=f32(1e30)), []),
        (step("reduceprod", f32(1e30, 1e-30, 1e30, 1e-30), gives=f32(1)), [0]),
        (step("reduceprod", f32(1e10, 1e-10, 1, 1e-10), gives=f32(1e-10)), []),
        (step("exp", f32(1, 100), gives=f32(2.7, INF)), [1]),
        (step("div", f32(1, 1), f32(2, 0), gives=f32(0.5, INF)), [1]),
        (step("log", f32(0), gives=f32(-INF)), []),
        (step("mul", f32(1e-40, 0), f32(1e-40, 1), gives=f32(0, 0)), [0]),
        (step("reducel2", f32(2e-36, 1e-36), gives=f32(0)), [0]),
        (step("exp", f32(-200, 1), gives=f32(0, 2.7)), [0]),
    ],
)
def test_floats_out_of_range(step: TraceStep, expected: list[int]) -> None:
    assert places(step, ranges=True) == expected
    assert not places(step)


def test_a_norm_of_one_small_element_is_its_magnitude() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> g (float[2, 1] x) => (float[2, 1] y) <float tiny = {1e-30}>
    { s = Mul (x, tiny) y = ReduceL2 <axes = [1], keepdims = 1> (s) }"""
    program = dmlc.compile(parser.parse_model(text), target="cpu")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Mul", "Abs"]
    (report,) = program.verify(3).outputs
    assert [status for status, _ in report.counts] == ["overflowed"]


SELECTED = """<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 4] y)
<float big = {1e38}, float zero = {0}> {
    e = Mul(x, big)
    s = Mul(e, e)
    m = Less(x, zero)
    r = Sigmoid(x)
    y = Where(m, s, r)
}"""


def test_an_overflow_counts_only_where_it_arrives() -> None:
    """The squares overflow in each run, and half of the outputs are others."""
    a, b = parser.parse_model(SELECTED), parser.parse_model(SELECTED)
    assert verify_models(a, a).status == "equal"
    b.graph.node[3].op_type = "Tanh"
    assert verify_models(a, b).status == "different"
    c = parser.parse_model(SELECTED)
    c.graph.node[1].op_type = "Add"  # finite where the square is infinite
    assert verify_models(a, c, inputs=1).status == "not verified"


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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_noise_keeps_ties_and_small_integers(dtype: Any) -> None:
    x = np.array([0.1, 0.1, 3, -2.5, 0, 1e-3, 7.7], dtype)
    drawn = np.array([Noise(seed, ties=True).factors(Rounded.by("", (), x)) for seed in range(64)])
    assert (drawn[:, 0] == drawn[:, 1]).all()
    assert (drawn[:, 2:5] == 1).all()
    assert (drawn[:, 5] != drawn[:, 6]).any()
    apart = np.abs(drawn.astype(np.float64) - 1) / float(np.finfo(dtype).eps)
    assert 1 <= apart[:, 0].max() <= 2


def test_noise_is_spread_evenly() -> None:
    x = np.random.default_rng(0).standard_normal(20_000).astype(np.float32)
    for ties in (True, False):
        up, down = (Noise(seed, ties).units(x) for seed in (6, 7))
        counts = np.bincount(up + 2, minlength=5)
        assert counts[2] == 0
        assert counts[[0, 1, 3, 4]].min() > 0.85 * counts.max()
        assert (up == -down).all()


def test_a_tie_that_is_broken_otherwise_is_found() -> None:
    """All elements are equal, and their softmax is rounded: noise moves them together."""
    text = "model m(x: f32[N, 4]) -> (y) {\n    return argmax(softmax(x, axes=[1]), axes=[1]%s)\n}\n"
    first, last = (dmlc.compile(Source("m.dml", text % end), target="onnx") for end in ("", ", ties=last"))
    assert verify_graph(first.source_graph, first.to_onnx()).ok
    assert verify_graph(first.source_graph, last.to_onnx()).status == "different"
