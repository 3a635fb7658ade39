"""Reshapes before reductions that stay: each test fails where one guard of the runs of axes is dropped."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source

RULE = "drop-flatten-before-reduction"
DIMS = "dim n in 1..9\ndim m in 1..9\n"


def compiled(inputs: str, shape: str, axis: int = 0) -> dmlc.Program:
    body = f"    y = reduce_sum(reshape(x, shape=[{shape}]), axes=[{axis}], keepdims=false)\n"
    text = f"{DIMS}model t({inputs}) -> (y) {{\n{body}    return y\n}}\n"
    return dmlc.compile(Source("t.dml", text), target="onnx")


def rules(program: dmlc.Program) -> list[str]:
    return [e.rule for e in program.ledger]


def test_axes_that_are_reduced_whole_need_no_reshape() -> None:
    assert RULE in rules(compiled("x: f32[n, 2, 3]", "n, 6", 1))


def test_no_runs_are_told_in_what_has_no_element() -> None:
    assert RULE not in rules(compiled("x: f32[2, 0, 3]", "2, 0"))


@pytest.mark.parametrize(
    ("inputs", "shape", "feed"),
    [
        ("x: f32[n, m]", "n", (3, 1)),  # m is 1
        ("x: f32[n], z: f32[m]", "n, m", (3,)),
    ],
)
def test_an_axis_that_has_to_be_1_is_in_no_run(inputs: str, shape: str, feed: tuple[int, ...]) -> None:
    program = compiled(inputs, shape)
    assert RULE not in rules(program)
    feeds = {"x": np.ones(feed, np.float32), **({"z": np.ones(1, np.float32)} if "z" in inputs else {})}
    assert program.run(feeds, "cpu")["y"].sum() == 3


@pytest.mark.parametrize(("dtype", "fires"), [("f32", True), ("i32", False)])
def test_means_of_integers_need_axes_that_are_known_not_to_be_empty(dtype: str, fires: bool) -> None:
    """(n + 1) * (n^2 - n + 1) is n^3 + 1, which is plainly no 0; of the second factor alone bounds do not tell it."""
    body = "    y = reduce_mean(reshape(x, shape=[n * n * n + 1]), axes=[0], keepdims=false)\n"
    text = f"{DIMS}model t(z: f32[n, m], x: {dtype}[n + 1, n * n - n + 1]) -> (y) {{\n{body}    return y\n}}\n"
    program = dmlc.compile(Source("t.dml", text), target="numpy")
    assert (RULE in rules(program)) == fires
