"""The kit of the tests, held against what it must tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from tests import kit

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("on", ["cpu", "optimized", "reference", "numpy"])
def test_a_model_runs_everywhere(on: str) -> None:
    model = kit.onnx("g (float[N, 4] x) => (float[N, 4] y) { r = Relu(x) y = Mul(r, k) }", k=[1, 2, 3, 4.0])
    assert kit.same(kit.run(model, x=X, on=on), {"y": np.maximum(X, 0) * np.float32([1, 2, 3, 4])})


@pytest.mark.parametrize("on", ["", "optimized", "reference", "numpy"])
def test_a_program_runs_everywhere(on: str) -> None:
    program = kit.dml("(x: f32[N, 4]) -> (y) {\n    return softmax(x, axes=[1])\n}")
    e = np.exp(X - X.max(1, keepdims=True))
    assert kit.same(kit.run(program, x=X, on=on)["y"], e / e.sum(1, keepdims=True))


def test_inner_values_of_a_graph() -> None:
    program = kit.dml("(x: f32[N, 4]) -> (y) {\n    a = exp(x)\n    y = a + 1\n    return y\n}")
    assert kit.same(kit.run(program.source_graph, x=X, wanted=["a"]), {"a": np.exp(X)})


def test_what_is_not_the_same() -> None:
    one = np.float32([1, 2, 3])
    assert kit.same(one, one * np.float32(1 + 1e-6))
    assert not kit.same(one, one * np.float32(1 + 1e-6), exact=True)
    assert not kit.same(one, one * np.float32(1.001))
    assert not kit.same(one, one.astype(np.float64))
    assert not kit.same(one, one[:2])
    assert not kit.same(np.int32([1]), np.int32([2]))
    assert not kit.same(np.float32([np.nan, 1]), np.float32([1, np.nan]))
    assert not kit.same(np.float32([np.inf]), np.float32([-np.inf]))
    assert kit.same(np.float32([np.nan]), np.float32([np.nan]))
    assert not kit.same({"y": one}, {"z": one})
    assert not kit.same([one], [one, one])
