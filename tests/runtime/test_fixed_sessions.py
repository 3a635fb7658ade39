"""Sessions with fixed dims: a few sets of sizes get their own, the others share one that leaves them open."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc
from dmlc.runtime import fixed_sessions
from dmlc.runtime.fixed_sessions import FixedSessions
from dmlc.targets.session_advice import free_dimensions, session_advice


def test_each_set_of_sizes_is_fixed_and_then_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Recorded(fixed_sessions.Session):
        def __init__(self, *args: object, dims: object = None) -> None:
            made.append(dims)
            super().__init__(*args, dims=dims)  # type: ignore[arg-type]

    monkeypatch.setattr(fixed_sessions, "Session", Recorded)
    g = dmlc.Graph("g")
    x = g.input("x", dtype="float32", shape=("N", 2))
    g.output("y", x + 1)
    sessions = FixedSessions(dmlc.compile(g).artifact("onnx"), "cpu", ["N"])
    for size in (1, 2, 1, 3, 4, 5, 6):
        out = sessions.run({"x": np.zeros((size, 2), np.float32)})
        assert out["y"].shape == (size, 2)
    assert made == [{"N": 1}, {"N": 2}, {"N": 3}, {"N": 4}, None]


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"schema": 2, "free_dimensions": ["N"]}', '{"schema": 1}'])
def test_advice_that_cannot_be_read_fixes_nothing(text: str | None) -> None:
    assert free_dimensions(text) == []


def test_advice_is_read_back() -> None:
    assert free_dimensions(session_advice({"b", "a"})) == ["a", "b"]
