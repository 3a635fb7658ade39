"""Reductions of no integers in a model, of which one was made of two: the test fails where their guard is dropped."""

from __future__ import annotations

import numpy as np
import pytest
import repair_helpers as r

import dmlc


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_what_two_nodes_of_a_model_became_is_said_where_kernels_refuse_it(op: str) -> None:
    """A model's own node over an axis of size 0 stays as its users run it; one that a rule made does not."""
    both = [r.node(op, ["x", "a"], ["s"], keepdims=1), r.node(op, ["s", "b"], ["y"], keepdims=0)]
    inputs, outputs = [("x", r.KINDS["i32"], [2, 0, 3])], [("y", r.KINDS["i32"], [2, 1])]
    m = r.model(both, inputs, outputs, opset=20, a=np.array([1]), b=np.array([2]))
    program = dmlc.compile(m, target="cpu")
    assert [rule for rule, _ in r.fired(program)] == ["merge-nested-reductions", "extreme-of-nothing"]
    lowest = np.iinfo(np.int32).min if op == "ReduceMax" else np.iinfo(np.int32).max
    found = program.run({"x": np.zeros((2, 0, 3), np.int32)}, "cpu")["y"]
    np.testing.assert_array_equal(found, np.full((2, 1), lowest, np.int32))


@pytest.mark.parametrize("target", ["cpu", "onnx", "directml"])
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_an_open_size_that_is_fed_as_nothing_is_not_searched(op: str, target: str) -> None:
    """Two nodes over i64 became a search, which fails over nothing; the kernel does not."""
    both = [r.node(op, ["x", "a"], ["s"], keepdims=1), r.node(op, ["s", "b"], ["y"], keepdims=1)]
    inputs, outputs = [("x", r.KINDS["i64"], ["n", "m", 2])], [("y", r.KINDS["i64"], [1, 1, 2])]
    m = r.model(both, inputs, outputs, opset=18, a=np.array([0]), b=np.array([1]))
    program = dmlc.compile(m, target=target)
    assert [rule for rule, _ in r.fired(program)][:2] == ["merge-nested-reductions", "extreme-of-nothing"]
    for shape in [(0, 2, 2), (2, 0, 2), (0, 0, 2), (3, 2, 2)]:
        feeds = {"x": np.arange(np.prod(shape), dtype=np.int64).reshape(shape) - 2**60}
        largest = op == "ReduceMax"
        nothing = np.iinfo(np.int64).min if largest else np.iinfo(np.int64).max
        expected = (np.max if largest else np.min)(feeds["x"], axis=(0, 1), keepdims=True, initial=nothing)
        r.same({"y": expected}, program.run(feeds, "cpu"))
