"""``where``, ``clip`` and ``cast``."""

from __future__ import annotations

import math

import numpy as np
from ops_calls import code_of, run, types_of

from dmlc.ops import OPERATIONS
from tests.rows import each_row
from tools.oracles import core
from tools.oracles.elements import cast

WHERE, CLIP, CAST = (OPERATIONS[n] for n in ("where", "clip", "cast"))


@each_row("dtype", core.ALL)
def test_where(dtype: str) -> None:
    shapes = [((), (), ()), ((3,), (3,), ()), ((2, 1), (3,), (2, 3)), ((1, 3), (2, 2, 1, 1), (2, 1, 3))]
    for seed, (c, s, t) in enumerate(shapes):
        cond, a, b = core.sample("bool", c, seed), core.sample(dtype, s, seed + 1), core.sample(dtype, t, seed + 2)

        def rule(at: tuple[int, ...], cond: np.ndarray = cond, a: np.ndarray = a, b: np.ndarray = b) -> object:
            pick = a if core.element(cond, core.broadcast_at(cond.shape, at)) else b
            return core.element(pick, core.broadcast_at(pick.shape, at))

        core.same(run(WHERE, cond, a, b), core.build(core.broadcast_shape(c, s, t), dtype, rule))


def test_where_literals_and_nan() -> None:
    cond = np.array([True, False])
    np.testing.assert_array_equal(run(WHERE, cond, 1.0, np.array([math.nan, 2], np.float16)), np.float16([1, 2]))
    assert types_of(WHERE, "bool[N]", 0, "u8[]") == ["u8[N]"]
    assert types_of(WHERE, True, "f32[2]", 0) == ["f32[2]"]
    assert code_of(WHERE, "bool[2]", 1, 0) == "E0312"
    assert code_of(WHERE, "f32[2]", "f32[2]", 0) == "E0309"
    assert code_of(WHERE, "bool[2]", "f32[2]", "i32[2]") == "E0310"
    assert code_of(WHERE, "bool[2]", "u8[2]", -1) == "E0311"
    assert code_of(WHERE, "bool[2]", "f32[3]", 0) == "E0313"
    assert code_of(WHERE, "bool[2]", "f32[2]") == "E0308"


@each_row("dtype", core.NUMERIC)
def test_clip(dtype: str) -> None:
    x = core.sample(dtype, (3, 4), full=True)
    for low, high in ((1, 5), (None, 3), (2, None), (5, 1)):
        keywords = {k: v for k, v in (("min", low), ("max", high)) if v is not None}

        def rule(at: tuple[int, ...], low: int | None = low, high: int | None = high) -> object:
            value = core.element(x, at)
            value = value if low is None or value > low else low
            return value if high is None or value < high else high

        core.same(run(CLIP, x, **keywords), core.build(x.shape, dtype, rule))


def test_clip_errors() -> None:
    assert types_of(CLIP, "i8[N]", min=-1) == ["i8[N]"]
    assert code_of(CLIP, "f32[2]") == "E0306"
    assert code_of(CLIP, "f32[2]", min=math.nan) == "E0304"
    assert code_of(CLIP, "f32[2]", min="low") == "E0304"
    assert code_of(CLIP, "f32[2]", max=math.inf) == ""
    assert code_of(CLIP, "i8[2]", max=math.inf) == "E0311"
    assert code_of(CLIP, "i8[2]", max=128) == "E0311"
    assert code_of(CLIP, "i8[2]", max=127) == ""
    assert code_of(CLIP, "i8[2]", min=0.5) == "E0311"
    assert code_of(CLIP, "u8[2]", min=-1) == "E0311"
    assert code_of(CLIP, "f16[2]", max=1e6) == "E0311"
    assert code_of(CLIP, "bool[2]", max=1) == "E0309"
    assert code_of(CLIP, "f32[2]", 0, 1) == "E0308"


def test_clip_keeps_nan() -> None:
    out = run(CLIP, np.array([math.nan, -1, 9], np.float32), min=0, max=1)
    np.testing.assert_array_equal(out, np.float32([math.nan, 0, 1]))


@each_row("source", core.ALL)
def test_cast(source: str) -> None:
    for target in core.ALL:
        narrow = core.is_float(source) and target[0] == "u"
        x = core.sample(source, (2, 3), full=True)
        x = np.abs(x) if narrow else x
        expected = core.build(x.shape, target, lambda at, x=x, to=target: cast(core.element(x, at), to))
        core.same(run(CAST, x, to=target), expected)


def test_cast_corners() -> None:
    x = np.array([math.nan, 0.25, -3, 0.0, -0.0, math.inf], np.float32)
    assert run(CAST, x, to="bool").tolist() == [True, True, True, False, False, True]
    assert run(CAST, np.float32([-1.7, 1.7, 2.5]), to="i32").tolist() == [-1, 1, 2]
    assert run(CAST, np.int32([300, -129]), to="i8").tolist() == [44, 127]
    assert run(CAST, np.int64([2**40 + 7]), to="u8").tolist() == [7]
    assert run(CAST, np.float32([65519, 65520, 2049, 2051]), to="f16").tolist() == [65504, math.inf, 2048, 2052]
    assert run(CAST, np.array([1e39]), to="f32").tolist() == [math.inf]
    assert run(CAST, np.float32([math.nan, 3e9]), to="i32").dtype == np.int32
    assert run(CAST, np.array([True, False]), to="f16").tolist() == [1, 0]
    assert run(CAST, np.int64([2**24 + 1]), to="f32").tolist() == [2**24]


def test_cast_errors() -> None:
    assert types_of(CAST, "f32[N]", to="float16") == ["f16[N]"]
    assert types_of(CAST, "f32[N]", to=np.int8) == ["i8[N]"]
    assert code_of(CAST, "f32[N]") == "E0306"
    assert code_of(CAST, "f32[N]", to="f31") == "E0304"
    assert code_of(CAST, "f32[N]", to="complex64") == "E0304"
    assert code_of(CAST, 1, to="f32") == "E0312"
