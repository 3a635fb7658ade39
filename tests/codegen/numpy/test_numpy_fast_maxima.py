"""Indices that the fast style finds from maxima over layers are those of a plain search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_models import Model, function, source

from dmlc.codegen.numpy import fast_selection, support
from tests.rows import each_row

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


@each_row("kind", ["normal", "some ties", "ties", "NaN", "f16"])
@each_row(("shape", "axes"), SHAPES, ids=str)
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
    made = function(source(graph, "fast"), graph.name)
    assert "_by_maxima" in made.__globals__
    x = data("ties", (8, 6, 96, 70))
    assert np.array_equal(made(x), support._hardmax(x, (0, 2)))
