"""Indices that the fast style finds from maxima over layers are those of a plain search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_models import Model, check, function, source

from dmlc.codegen.numpy import fast_selection, support

SHAPES = [
    ((8, 6, 96, 70), (0, 2)),
    ((5, 48, 9, 64), (1, 3)),
    ((4, 640, 80), (1,)),
    ((2048, 65), (0,)),
    ((60, 2, 32, 66), (0, 2)),
    ((16, 7, 40, 64), (0, 2, 3)),
]


def data(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if kind == "some ties":
        return rng.integers(0, 400, shape).astype(np.int32)
    if kind == "ties":
        return rng.integers(0, 3, shape).astype(np.float32)
    x = rng.normal(size=shape).astype(np.float16 if kind == "f16" else np.float32)
    if kind == "NaN":
        x[rng.random(shape) < 0.002] = np.nan
        x[..., 3] = np.nan
    return x


@pytest.mark.parametrize("kind", ["normal", "some ties", "ties", "NaN", "f16"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_indices(shape: tuple[int, ...], axes: tuple[int, ...], kind: str) -> None:
    x = data(kind, shape)
    for largest in (True, False):
        for last in (True, False):
            wanted = support._arg(x, axes, largest, last)
            assert np.array_equal(fast_selection._arg(x, axes, largest, last), wanted)


@pytest.mark.parametrize(
    ("kind", "used"), [("normal", True), ("some ties", True), ("ties", False), ("NaN", True)], ids=str
)
def test_maxima_are_used_where_few_are_equal(kind: str, used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    by_maxima = fast_selection._by_maxima

    def noted(*arguments: Any) -> Any:
        found.append(by_maxima(*arguments))
        return found[-1]

    monkeypatch.setattr(fast_selection, "_by_maxima", noted)
    fast_selection._arg(data(kind, SHAPES[0][0]), (0, 2), True, False)
    assert [index is not None for index in found] == [used]


@pytest.mark.parametrize(("shape", "axes"), [((8, 6, 96, 70), (3,)), ((5, 3, 70), (1,)), ((2048, 9), (0,))], ids=str)
def test_near_misses(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Along rows, few to search, narrow: another way is quicker."""
    groups = [int(np.prod(shape[: axes[0]])), shape[axes[0]], int(np.prod(shape[axes[0] + 1 :]))]
    x = data("normal", shape).reshape([n for n in groups if n > 1])
    searched = [[n for n in groups if n > 1].index(shape[axes[0]])]
    assert fast_selection._by_maxima(x, searched, True, False) is None


def test_generated_hardmax() -> None:
    model = Model()
    graph = model.returns(y=model.call("hardmax", model.input("x", "f32", 8, 6, 96, 70), axes=[0, 2]))
    made = function(source(graph), graph.name)
    assert "_by_maxima" in made.__globals__
    x = data("ties", (8, 6, 96, 70))
    assert np.array_equal(made(x), support._hardmax(x, (0, 2)))


@pytest.mark.parametrize("far", [0.0, 59.0, 70.0, 900.0])
def test_softmax_far_from_zero(far: float) -> None:
    model = Model()
    x = model.input("x", "f32", 700, 300)
    graph = model.returns(
        soft=model.call("softmax", x, axes=[1]),
        log=model.call("reduce_log_sum_exp", x, axes=[1]),
    )
    given = np.random.default_rng(0).normal(size=(700, 300)).astype(np.float32)
    given[::2] += np.float32(far)
    given[1::2] -= np.float32(far)
    soft, log = function(source(graph), graph.name)(given)
    wide = given.astype(np.float64)
    peak = wide.max(axis=1, keepdims=True)
    powers = np.exp(wide - peak)
    np.testing.assert_allclose(soft, powers / powers.sum(axis=1, keepdims=True), rtol=3e-6)
    np.testing.assert_allclose(log, np.log(powers.sum(axis=1, keepdims=True)) + peak, rtol=3e-6)


@pytest.mark.parametrize("axes", [[0], [1]], ids=str)
def test_softmax_of_what_is_masked_or_far_apart(axes: list[int]) -> None:
    """Zeros, not lost digits, stand where something is hidden; a row of them alone has no softmax."""
    model = Model()
    x = model.input("x", "f32", 700, 900)
    graph = model.returns(soft=model.call("softmax", x, axes=axes), log=model.call("reduce_log_sum_exp", x, axes=axes))
    given = np.random.default_rng(0).normal(size=(700, 900)).astype(np.float32)
    given[::3, ::5] = -np.inf
    made = function(source(graph), graph.name)
    check(graph, given)
    assert (made(given)[0][::3, ::5] == 0).all()
    check(graph, given - 30)
    given[5] = -np.inf
    given[:, 5] = -np.inf
    check(graph, given)
    given[9, 7], given[11, 3] = np.inf, 200
    check(graph, given)
    check(graph, np.where(np.arange(900) % 2, np.float32(0), np.float32(-80)) - np.full((700, 1), 20, np.float32))


def test_softmax_has_all_digits_of_small_parts() -> None:
    """exp(x) itself would be below the normal numbers here; with the maximum taken out it is not."""
    model = Model()
    x = model.input("x", "f32", 400, 300)
    made = function(source(model.returns(y=model.call("softmax", x, axes=[1]))))
    given = np.full((400, 300), -100, np.float32)
    given[:, 0] = -30
    powers = np.exp(given.astype(np.float64) + 30)
    np.testing.assert_allclose(made(given), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("n", [200, 700, 1024, 3000])
def test_sums_of_rows_are_as_exact(n: int) -> None:
    model = Model()
    x = model.input("x", "f32", 400_000 // n, n)
    total = model.call("reduce_sum", x, axes=[1])
    graph = model.returns(y=model.call("-", x, total), total=total)
    assert "_sum(x, axes=(1,))" in source(graph)
    given = np.random.default_rng(0).random((400_000 // n, n)).astype(np.float32)
    _, found = function(source(graph))(given)
    exact = np.sum(given, axis=1, keepdims=True, dtype=np.float64)
    ours, plain = [np.sqrt(np.mean((t - exact) ** 2)) for t in (found, np.sum(given, axis=1, keepdims=True))]
    assert ours <= 1.35 * plain
