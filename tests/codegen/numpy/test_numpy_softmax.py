"""Softmax and log-sum-exp of large, small, masked and infinite numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_models import Model, check, function, source


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
