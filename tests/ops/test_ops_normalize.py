"""Softmax, the normalisations and the scans against loops over groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ops_calls import code_of, run, types_of

from dmlc.ops import FAMILIES, OPERATIONS
from tests.rows import each_row
from tools.oracles import core
from tools.oracles import groups as oracle

SHAPES = [((4,), [0]), ((2, 3), [1]), ((3, 2), [0, 1]), ((2, 1, 3), [1]), ((2, 3, 1, 2), [0, 3])]
NORMS = ("softmax", "log_softmax", "mean_variance_norm", "layer_norm", "rms_norm", "lp_norm")


@pytest.mark.parametrize("dtype", core.FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str, dtype: str) -> None:
    for seed, (shape, axes) in enumerate(SHAPES):
        x = core.sample(dtype, shape, seed)
        expected = oracle.softmax(x, axes, dtype, logarithm=name == "log_softmax")
        core.same(run(OPERATIONS[name], x, axes=axes), expected, times=2)
    core.same(run(OPERATIONS[name], x), oracle.softmax(x, [3], dtype, logarithm=name == "log_softmax"), times=2)


def test_softmax_of_large_numbers_nan_and_infinities() -> None:
    x = np.array([[1000, 1000], [-math.inf, 0], [-math.inf, -math.inf], [math.inf, 0], [math.nan, 0]], np.float32)
    nan = math.nan
    expected = [[0.5, 0.5], [0, 1], [nan, nan], [nan, nan], [nan, nan]]
    np.testing.assert_array_equal(run(OPERATIONS["softmax"], x), np.array(expected, np.float32))
    logs = run(OPERATIONS["log_softmax"], np.array([[1000, 0]], np.float32))
    np.testing.assert_array_equal(logs, [[0, -1000]])


def test_every_normalization_is_here() -> None:
    assert set(NORMS) == {op.name for op in FAMILIES["Normalization"]}


@pytest.mark.parametrize("name", NORMS)
def test_empty_groups_give_an_empty_result(name: str) -> None:
    x = np.zeros((2, 0), np.float32)
    extra = {"axes": 1} if name == "mean_variance_norm" else {}
    operands = [x, np.ones(0, np.float32)] if name in ("layer_norm", "rms_norm") else [x]
    assert run(OPERATIONS[name], *operands, **extra).shape == (2, 0)


@pytest.mark.parametrize("dtype", core.FLOATS)
def test_mean_variance_norm(dtype: str) -> None:
    for seed, (shape, axes) in enumerate(SHAPES):
        x = core.sample(dtype, shape, seed)
        for epsilon in (1e-5, 0.5):
            expected = oracle.mean_variance(x, axes, dtype, epsilon)
            core.same(run(OPERATIONS["mean_variance_norm"], x, axes=axes, epsilon=epsilon), expected, times=4)
        centred = oracle.mean_variance(x, axes, dtype, 0, variance=False)
        core.same(run(OPERATIONS["mean_variance_norm"], x, axes=axes, variance=False), centred, times=4)


@pytest.mark.parametrize("dtype", core.FLOATS)
def test_layer_norm_and_rms_norm(dtype: str) -> None:
    x = core.sample(dtype, (2, 3, 4), 1)
    for axis in (0, 1, 2, -1, -2):
        axes = list(range(axis % 3, 3))
        tail = x.shape[axis % 3 :]
        for shape in (tail, tail[-1:], (1,), ()):
            scale, bias = core.sample(dtype, shape, 7), core.sample(dtype, shape, 8)
            wide = scale.astype(np.float64)
            centred = oracle.mean_variance(x.astype(np.float64), axes, "f64", 1e-5)
            expected = (centred * wide + bias.astype(np.float64)).astype(x.dtype)
            core.same(run(OPERATIONS["layer_norm"], x, scale, bias, axis=axis), expected, times=8)
            without = (centred * wide).astype(x.dtype)
            core.same(run(OPERATIONS["layer_norm"], x, scale, axis=axis), without, times=8)
            core.same(run(OPERATIONS["layer_norm"], x, scale, None, axis=axis), without, times=8)
            square = (oracle.rms(x.astype(np.float64), axes, "f64", 1e-5) * wide).astype(x.dtype)
            core.same(run(OPERATIONS["rms_norm"], x, scale, axis=axis), square, times=8)


@pytest.mark.parametrize("dtype", core.FLOATS)
def test_lp_norm(dtype: str) -> None:
    x = core.sample(dtype, (2, 3, 4), 1)
    x[0, 0] = 0
    for axis in (0, 1, -1):
        for p in (1, 2):
            core.same(run(OPERATIONS["lp_norm"], x, axis=axis, p=p), oracle.lp(x, axis % 3, dtype, p), times=2)


def test_lp_norm_of_a_zero_row_is_zero_and_nan_propagates() -> None:
    x = np.array([[0, 0], [3, 4], [math.nan, 1]], np.float32)
    expected = np.array([[0, 0], [0.6, 0.8], [math.nan, math.nan]], np.float32)
    np.testing.assert_array_equal(run(OPERATIONS["lp_norm"], x), expected)


def test_f16_squares_do_not_overflow() -> None:
    x = np.array([[300, -300]], np.float16)
    assert run(OPERATIONS["mean_variance_norm"], x, axes=1).tolist() == [[1, -1]]
    assert run(OPERATIONS["rms_norm"], x, 1.0).tolist() == [[1, -1]]


@pytest.mark.parametrize("name", NORMS)
def test_norm_errors(name: str) -> None:
    op = OPERATIONS[name]
    key = "axis" if name in ("layer_norm", "rms_norm", "lp_norm") else "axes"
    rest = [1.0] if name in ("layer_norm", "rms_norm") else []
    assert code_of(op, "f32[2, 3]", *rest, **{key: 1}) == ""
    assert code_of(op, "f32[2, 3]", *rest, **{key: 2}) == "E0301"
    assert code_of(op, "f32[]", *rest, **{key: -1}) == "E0301"
    assert code_of(op, "f32[2, 3]", *rest, **{key: "last"}) == "E0304"
    for dtype in core.ALL:
        expected = "" if dtype in core.FLOATS else "E0309"
        assert code_of(op, f"{dtype}[2, 3]", *rest, **{key: 1}) == expected


def test_mean_variance_norm_needs_axes() -> None:
    op = OPERATIONS["mean_variance_norm"]
    assert code_of(op, "f32[2]") == "E0306"
    assert code_of(op, "f32[2]", axes=0, epsilon=math.inf) == "E0304"
    assert code_of(op, "f32[2]", axes=0, epsilon=0) == ""
    assert code_of(op, "f32[2]", axes=0, variance=0) == "E0304"


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_scale_must_fit(name: str) -> None:
    op = OPERATIONS[name]
    assert types_of(op, "f32[2, N]", "f32[N]") == ["f32[2, N]"]
    assert code_of(op, "f32[2, N]", "f32[1]") == ""
    assert code_of(op, "f32[2, N]", "f32[2, N]") == "E0313"
    assert code_of(op, "f32[3, 3]", "f32[3, 3]") == "E0313"
    assert code_of(op, "f32[2, 3]", "f32[1, 3]") == "E0313"
    assert code_of(op, "f32[2, N]", "f32[2, N]", axis=0) == ""
    assert code_of(op, "f32[2, N]", "f32[M]") == "E0313"
    assert code_of(op, "f32[2, 1]", "f32[3]") == "E0313"
    assert code_of(op, "f32[2, 3]", "f16[3]") == "E0310"
    assert code_of(op, "f32[2, 3]") == "E0308"
    assert code_of(op, "f32[2, 3]", None) == "E0308"


def test_bias_must_fit() -> None:
    op = OPERATIONS["layer_norm"]
    assert code_of(op, "f32[2, N]", "f32[N]", "f32[2]") == "E0313"
    assert code_of(op, "f32[2, N]", "f32[N]", 0.5) == ""


def test_p() -> None:
    assert code_of(OPERATIONS["lp_norm"], "f32[2]", p=1) == ""
    for p in (0, 3, 2.0, True):
        assert code_of(OPERATIONS["lp_norm"], "f32[2]", p=p) == "E0304"


# --- scans


@each_row("dtype", core.NUMERIC)
@each_row("name", ["cumsum", "cumprod"])
def test_scans(name: str, dtype: str) -> None:
    for seed, (shape, axes) in enumerate(SHAPES):
        x = core.sample(dtype, shape, seed, full=True)
        for exclusive in (False, True):
            for reverse in (False, True):
                expected = oracle.scan(
                    x, axes[0], dtype, multiply=name == "cumprod", exclusive=exclusive, reverse=reverse
                )
                out = run(OPERATIONS[name], x, axis=axes[0] - len(shape), exclusive=exclusive, reverse=reverse)
                core.same(out, expected, times=8)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scan_errors(name: str) -> None:
    op = OPERATIONS[name]
    assert types_of(op, "i8[2, N]", axis=-1) == ["i8[2, N]"]
    assert run(op, np.zeros((0, 2), np.int32), axis=0, exclusive=True).shape == (0, 2)
    assert code_of(op, "f32[2]") == "E0306"
    assert code_of(op, "f32[2]", axis=1) == "E0301"
    assert code_of(op, "f32[]", axis=0) == "E0301"
    assert code_of(op, "f32[2]", axis=[0]) == "E0304"
    assert code_of(op, "bool[2]", axis=0) == "E0309"
    assert code_of(op, "f32[2]", axis=0, reverse="yes") == "E0304"


def test_f16_running_sums_are_taken_in_f32() -> None:
    out = run(OPERATIONS["cumsum"], np.ones(4096, np.float16), axis=0)
    assert out[-1] == 4096
