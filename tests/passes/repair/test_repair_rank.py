"""Nodes of more axes than DirectML takes, between reshapes."""

import random

import numpy as np
import pytest
import repair_helpers as r
from onnx import parser

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row
from tools.model_checks import run, session

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


@each_row("seed", range(8))
def test_operands_that_broadcast(seed: int) -> None:
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
    joined = ["transpose-between-reshapes"]  # moves the axes of x, where the order of the nine is one of these
    program = r.repaired(m, "rank", "merge-transposed-axes", {"x": X}, exact=True, skip_rules=joined)
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


@each_row("call", ["Gelu(w)", 'Gelu<approximate = "tanh">(w)', "com.microsoft.Gelu(w)", "com.microsoft.FastGelu(w)"])
def test_gelu_of_nine_axes(call: str) -> None:
    """Another rule makes it an operator of com.microsoft, or several nodes, before its axes are merged."""
    m = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 20, "com.microsoft": 1]> g (float[24,4] x) => (float[96] y)'
        " <int64[9] nine = {2, 1, 3, 2, 2, 1, 2, 1, 2}, int64[1] flat = {-1}>"
        f" {{ w = Reshape(x, nine) z = {call} y = Reshape(z, flat) }}"
    )
    r.repaired(m, "rank", "merge-elementwise-axes", {"x": X / 8}, rtol=1e-5)


ELEMENTWISE = [
    ("HardSwish", {}, 1), ("LeakyRelu", {"alpha": 0.25}, 1), ("PRelu", {}, 2), ("Elu", {}, 1), ("Softplus", {}, 1),
    ("Max", {}, 3), ("Sum", {}, 3), ("Min", {}, 2), ("HardSigmoid", {"alpha": 0.5}, 1), ("ThresholdedRelu", {}, 1),
]  # fmt: skip


@each_row(("op", "attributes", "count"), ELEMENTWISE, ids=[op for op, *_ in ELEMENTWISE])
@each_row("sizes", [LARGE, [1, 2, 1, 1, 3, 1, 1, 1, 1], [1] * 8 + [6]])
def test_elementwise_nodes_of_a_model(op: str, attributes: dict[str, float], count: int, sizes: list[int]) -> None:
    """A chain through an operator that the language does not have, with operands that broadcast."""
    total = int(np.prod(sizes))
    weight = np.linspace(-1, 2, sizes[-1] * sizes[4], dtype=np.float32).reshape(sizes[4], 1, 1, 1, sizes[-1])
    nodes = [
        r.node("Reshape", ["x", "nine"], ["w"]),
        r.node("Add", ["w", "c"], ["a"]),
        r.node(op, ["a", "c", "w"][:count], ["b"], **attributes),
        r.node("Mul", ["b", "w"], ["z"]),
        r.node("Reshape", ["z", "flat"], ["y"]),
    ]
    infos = [("x", r.FLOAT, [total])], [("y", r.FLOAT, [total])]
    m = r.model(nodes, *infos, nine=np.array(sizes), flat=np.array([total]), c=weight)
    x = np.linspace(-4, 4, total, dtype=np.float32)
    r.repaired(m, "rank", "merge-elementwise-axes", {"x": x}, rtol=1e-6)


@each_row("axis", range(9))
@each_row("op", ["Concat", "Slice", "Split", "CumSum"])
@each_row("sizes", [[2, 1, 3, 1, 2, 1, 1, 2, 1], [1, 2, 1, 1, 3, 1, 1, 1, 1]])
def test_nodes_along_an_axis(op: str, axis: int, sizes: list[int]) -> None:
    total, weights = int(np.prod(sizes)), {}
    if op == "Concat":
        node = r.node("Concat", ["w", "w"], ["z"], axis=axis)
    elif op == "Slice":
        weights = {"s": np.array([0]), "e": np.array([1]), "a": np.array([axis])}
        node = r.node("Slice", ["w", "s", "e", "a"], ["z"])
    elif op == "Split":
        node = r.node("Split", ["w", "p"], ["z", "rest"], axis=axis)
        weights = {"p": np.array([1, sizes[axis] - 1])}
    else:
        node = r.node("CumSum", ["w", "a"], ["z"])
        weights = {"a": np.array(axis)}
    if op == "Split" and sizes[axis] == 1:
        return
    nodes = [r.node("Reshape", ["x", "nine"], ["w"]), node, r.node("Reshape", ["z", "flat"], ["y"])]
    infos = [("x", r.FLOAT, [total])], [("y", r.FLOAT, None)]
    m = r.model(nodes, *infos, opset=18, nine=np.array(sizes), flat=np.array([-1]), **weights)
    x = np.arange(total, dtype=np.float32)
    program = dmlc.compile(m)
    r.same(r.run(m, {"x": x}), program.run({"x": x}, "cpu"))
    assert not r.refusals(program)


def test_axes_that_do_not_merge_are_refused() -> None:
    weight = np.zeros([2 if axis % 2 else 1 for axis in range(9)], np.float32)
    nodes = [
        r.node("Reshape", ["x", "nine"], ["w"]),
        r.node("PRelu", ["w", "c"], ["z"]),
        r.node("Reshape", ["z", "f"], ["y"]),
    ]
    infos = [("x", r.FLOAT, [512])], [("y", r.FLOAT, [512])]
    m = r.model(nodes, *infos, nine=np.array([2] * 9), f=np.array([512]), c=weight)
    program = dmlc.compile(m)
    feeds = {"x": np.arange(512, dtype=np.float32)}
    r.same(r.run(m, feeds), program.run(feeds, "cpu"))
    assert r.refusals(program) == ["E0591"] * 3


@pytest.mark.parametrize("k", [0, 1, -2])
@pytest.mark.parametrize("before", ["u = Identity (t)", "u = Transpose <perm = [0, 1, 2, 4, 3]> (t)"])
def test_trilu_whose_result_has_dims_of_its_own(before: str, k: int) -> None:
    """The declared dims of the result are those of the operand, which has other names for them."""
    head = '<ir_version: 8, opset_import: ["" : 18]> g (float[n, m] x, int64[5] s, int64 k) => (float[a, b, c, d, e] y)'
    source = parser.parse_model(f"{head} {{ t = Reshape (x, s) {before} y = Trilu <upper = 0> (u, k) }}")
    x = np.arange(360, dtype=np.float32).reshape(6, 60)
    program = r.repaired(source, "trilu-rank", "merge-trilu-batch", exact=True)
    feeds = {"x": x, "s": np.array([2, 3, 1, 5, 12]), "k": np.array(k)}
    wanted = np.tril(x.reshape(2, 3, 1, 5, 12) if "Identity" in before else x.reshape(2, 3, 1, 5, 12).swapaxes(3, 4), k)
    for optimize in (False, True):
        found = run(session(program.to_onnx(), optimized=optimize), feeds)["y"]
        assert np.array_equal(found, wanted)


def test_lrn_whose_result_has_dims_of_its_own() -> None:
    head = '<ir_version: 8, opset_import: ["" : 18]> g (float[n, m] x, int64[5] s) => (float[a, b, c, d, e] y)'
    source = parser.parse_model(f"{head} {{ t = Reshape (x, s) y = LRN <size = 3> (t) }}")
    program = r.repaired(source, "lrn-rank", "merge-lrn-axes", exact=True)
    x = np.arange(360, dtype=np.float32).reshape(6, 60) / 90
    t = x.reshape(2, 3, 1, 5, 12).astype(np.float64)
    squares = np.pad(t**2, [(0, 0), (1, 1), (0, 0), (0, 0), (0, 0)])
    wanted = t / (1 + 1e-4 / 3 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:])) ** 0.75
    found = run(session(program.to_onnx()), {"x": x, "s": np.array([2, 3, 1, 5, 12])})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
