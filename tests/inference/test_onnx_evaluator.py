"""Operators that ONNX's own reference computes otherwise than ONNX defines them."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc

X = np.random.default_rng(0).standard_normal((2, 6, 2, 3)).astype(np.float32)


def result(call: str, x: np.ndarray, backend: str) -> np.ndarray:
    sizes = ", ".join(map(str, x.shape))
    text = f"model m(x: f32[{sizes}]) -> (y) {{\n    y = {call}\n    return y\n}}\n"
    return np.asarray(dmlc.compile(dmlc.Source(text), target="cpu").run({"x": x}, backend=backend)["y"])


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_each_channel_is_normalized_by_those_around(size: int, backend: str) -> None:
    given, wanted = 3 * X, np.empty_like(X)
    for batch, channel in np.ndindex(2, 6):
        near = given[batch, max(0, channel - size // 2) : channel + size // 2 + 1].astype(np.float64)
        wanted[batch, channel] = given[batch, channel] / (2 + 0.5 / size * (near**2).sum(axis=0)) ** 0.75
    call = f"onnx.LRN(x * 3, size={size}, alpha=0.5, beta=0.75, bias=2.0)"
    np.testing.assert_allclose(result(call, X, backend), wanted, rtol=1e-5)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("p", [1, 2])
def test_a_norm_is_of_magnitudes(p: int, backend: str) -> None:
    norm = (np.abs(X.astype(np.float64)) ** p).sum(axis=1, keepdims=True) ** (1 / p)
    np.testing.assert_allclose(result(f"onnx.LpNormalization(x, axis=1, p={p})", X, backend), X / norm, rtol=1e-5)
