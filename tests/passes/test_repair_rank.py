"""Nodes of more axes than DirectML takes, between reshapes."""

import random

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from dmlc.diagnostics import Source

LARGE = [2, 1, 3, 2, 2, 1, 2, 1, 2]
COUNT = 2 * 3 * 2 * 2 * 2 * 2


def between(nodes: list[r.onnx.NodeProto], out: list[int] | None = None, **weights: object) -> r.onnx.ModelProto:
    """``x`` of two axes as ``w`` of nine, the nodes from ``w`` to ``z``, and ``z`` flat again."""
    first = r.node("Reshape", ["x", "nine"], ["w"])
    last = r.node("Reshape", ["z", "flat"], ["y"])
    return r.model(
        [first, *nodes, last],
        [("x", r.FLOAT, [COUNT // 4, 4])],
        [("y", r.FLOAT, out or [4, COUNT // 4])],
        nine=np.array(LARGE),
        flat=np.array(out or [4, COUNT // 4]),
        **weights,
    )


X = np.arange(COUNT, dtype=np.float32).reshape(-1, 4) - 20


def test_elementwise() -> None:
    nodes = [r.node("Add", ["w", "c"], ["a"]), r.node("Relu", ["a"], ["b"]), r.node("Mul", ["b", "w"], ["z"])]
    m = between(nodes, c=np.float32(3))
    program = r.repaired(m, "rank", "merge-elementwise-axes", {"x": X}, exact=True)
    assert [op for op in r.operators(program) if op != "Reshape"] == ["Add", "Relu", "Mul"]
    assert dict(r.fired(program))["merge-elementwise-axes"] == "exact"
    assert all(len(n.findings) == 0 for n in program.placement().nodes)


@pytest.mark.parametrize("seed", range(8))
def test_operands_that_stretch(seed: int) -> None:
    rng = random.Random(seed)
    shape = [d if rng.random() < 0.6 else 1 for d in LARGE][rng.randint(0, 4) :]
    weight = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    m = between([r.node("Sub", ["w", "c"], ["z"])], c=weight)
    program = dmlc.compile(m)
    r.same(r.run(m, {"x": X}), program.run({"x": X}, "cpu"))
    assert not r.refusals(program)


@pytest.mark.parametrize("seed", range(8))
def test_transposes(seed: int) -> None:
    rng = random.Random(seed)
    perm = list(range(9))
    cut = rng.randint(1, 8)
    perm = perm[cut:] + perm[:cut]
    perm.insert(rng.randint(0, 8), perm.pop(perm.index(rng.choice([1, 5, 7]))))
    m = between([r.node("Transpose", ["w"], ["z"], perm=perm)])
    program = r.repaired(m, "rank", "merge-transposed-axes", {"x": X}, exact=True)
    assert r.operators(program).count("Transpose") <= 1


def test_a_program_of_the_language() -> None:
    text = """
model t(x: f32[12, 8]) -> (y) {
    w = reshape(x, shape=[2, 1, 3, 2, 2, 1, 2, 1, 2])
    y = reshape(where(w > 0, exp(w), w), shape=[96])
    return y
}
"""
    program = dmlc.compile(Source("t.dml", text))
    feeds = {"x": np.linspace(-2, 2, 96, dtype=np.float32).reshape(12, 8)}
    r.same(program.run(feeds, "reference"), program.run(feeds, "cpu"), 1e-6)
    assert not r.refusals(program)


def test_too_many_axes_stay_refused() -> None:
    nine = [2] * 9
    m = r.model(r.node("Neg", ["x"], ["y"]), [("x", r.FLOAT, nine)], [("y", r.FLOAT, nine)])
    program = r.left_alone(m, "merge-elementwise-axes")
    assert r.refusals(program) == ["E0591"]
    assert any("9 axes where it comes from" in remark.reason() for remark in program.remarks)
    m = r.model(r.node("Add", ["x", "y"], ["z"]), [("x", r.FLOAT, nine), ("y", r.FLOAT, nine)], [("z", r.FLOAT, nine)])
    assert r.refusals(dmlc.compile(m)) == ["E0591"]


def test_axes_that_do_not_merge() -> None:
    weight = np.ones([d if i % 2 else 1 for i, d in enumerate([2] * 9)], np.float32)
    first, last = r.node("Reshape", ["x", "n"], ["w"]), r.node("Reshape", ["z", "f"], ["y"])
    nodes = [first, r.node("Add", ["w", "c"], ["z"]), last]
    m = r.model(
        nodes, [("x", r.FLOAT, [512])], [("y", r.FLOAT, [512])], c=weight, n=np.array([2] * 9), f=np.array([512])
    )
    program = r.left_alone(m, "merge-elementwise-axes")
    assert "E0591" in r.refusals(program)
    assert any("leaves 9 axes" in remark.reason() for remark in program.remarks)


def test_eight_axes_are_left() -> None:
    eight = [2] * 8
    m = r.model(r.node("Neg", ["x"], ["y"]), [("x", r.FLOAT, eight)], [("y", r.FLOAT, eight)])
    assert r.operators(r.left_alone(m, "merge-elementwise-axes")) == ["Neg"]
