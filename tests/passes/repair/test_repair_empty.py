"""Operands without an element, for which DirectML has no operator."""

from typing import Any

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

NOTHING = np.zeros((2, 0), np.float32)
WANT = {
    "ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceL1": 0, "ReduceL2": 0,
    "ReduceSumSquare": 0, "ReduceLogSum": -np.inf, "ReduceMean": np.nan,
}  # fmt: skip


def two(made: r.onnx.NodeProto, shapes: list[list[Any]], out: list[Any], **weights: Any) -> r.onnx.ModelProto:
    inputs = [(f"x{i}", r.FLOAT, shape) for i, shape in enumerate(shapes)]
    return r.model(made, inputs, [("y", r.FLOAT, out)], **weights)


@each_row("op", WANT)
@each_row("opset", [21, 13])
def test_reductions(op: str, opset: int) -> None:
    m = r.reduction(op, r.FLOAT, opset, shape=(2, 0))
    feeds = [] if op == "ReduceMean" else [{"x": NOTHING}]  # ONNX Runtime gives 0, ONNX leaves it undefined
    program = r.repaired(m, "empty", "reduction-of-nothing", *feeds, exact=True)
    assert dict(r.fired(program))["reduction-of-nothing"] == "exact"
    np.testing.assert_array_equal(program.run({"x": NOTHING}, "cpu")["y"], np.full((2, 1), WANT[op], np.float32))


def test_log_sum_exp() -> None:
    program = r.repaired(r.reduction("ReduceLogSumExp", shape=(2, 0)), "empty", "reduction-of-nothing")
    np.testing.assert_array_equal(program.run({"x": NOTHING}, "cpu")["y"], [[-np.inf], [-np.inf]])


@pytest.mark.parametrize(("dtype", "low", "high"), [("i32", -(2**31), 2**31 - 1), ("u8", 0, 255)])
def test_extremes_of_integers(dtype: str, low: int, high: int) -> None:
    for op, want in (("ReduceMax", low), ("ReduceMin", high)):
        m = r.reduction(op, r.KINDS[dtype], shape=(2, 0), keepdims=0)
        program = r.repaired(m, "empty", "reduction-of-nothing")
        x = np.zeros((2, 0), r.helper.tensor_dtype_to_np_dtype(r.KINDS[dtype]))
        assert program.run({"x": x}, "cpu")["y"].tolist() == [want, want]


def test_any_and_all_of_nothing() -> None:
    text = "model t(x: bool[2, 0]) -> (y, z) {\n    y = reduce_max(x, axes=1)\n    z = reduce_min(x, axes=1)\n" + (
        "    return y, z\n}\n"
    )
    program = dmlc.compile(Source("t.dml", text))
    out = program.run({"x": np.zeros((2, 0), bool)}, "cpu")
    assert not r.refusals(program) and not out["y"].any() and out["z"].all()


def test_what_is_reduced_need_not_be_computed() -> None:
    nodes = [r.node("Exp", ["x"], ["e"]), r.node("ReduceMax", ["e", "axes"], ["y"])]
    m = r.model(nodes, [("x", r.FLOAT, [2, 0])], [("y", r.FLOAT, [2, 1])], axes=np.array([1]))
    assert r.operators(r.repaired(m, "empty", "reduction-of-nothing", {"x": NOTHING})) == ["Identity"]


def test_an_axis_of_open_size_beside_it() -> None:
    m = r.reduction("ReduceSum", shape=("N", 0))
    r.repaired(m, "empty", "reduction-of-nothing", {"x": np.zeros((3, 0), np.float32)})


def test_empty_results() -> None:
    m = two(r.node("Add", ["x0", "x1"], ["y"]), [[2, 0], [2, 1]], [2, 0])
    feeds = {"x0": NOTHING, "x1": np.ones((2, 1), np.float32)}
    assert r.operators(r.repaired(m, "empty", "nothing-to-compute", feeds)) == ["Identity"]
    m = two(r.node("HardSigmoid", ["x0"], ["y"]), [[2, 0]], [2, 0])
    r.repaired(m, "empty", "nothing-to-compute", {"x0": NOTHING})


def test_concat() -> None:
    m = two(r.node("Concat", ["x0", "x1", "x2"], ["y"], axis=1), [[2, 0], [2, 3], [2, 2]], [2, 5])
    feeds = {"x0": NOTHING, "x1": np.ones((2, 3), np.float32), "x2": np.zeros((2, 2), np.float32)}
    program = r.repaired(m, "empty", "concat-of-some", feeds)
    assert [len(n.input) for n in program.to_onnx().graph.node] == [2]
    m = two(r.node("Concat", ["x0", "x1"], ["y"], axis=1), [[2, 0], [2, 3]], [2, 3])
    r.repaired(m, "empty", "concat-of-some", {"x0": NOTHING, "x1": np.ones((2, 3), np.float32)})


def test_pad() -> None:
    m = two(r.node("Pad", ["x0", "p", "v"], ["y"]), [[2, 0]], [2, 3], p=np.array([0, 1, 0, 2]), v=np.float32(5))
    assert r.operators(r.repaired(m, "empty", "pad-of-nothing", {"x0": NOTHING})) == ["Identity"]


def test_matmul() -> None:
    m = two(r.node("MatMul", ["x0", "x1"], ["y"]), [[2, 0], [0, 3]], [2, 3])
    r.repaired(m, "empty", "product-of-nothing", {"x0": NOTHING, "x1": NOTHING.reshape(0, 2).repeat(2, 1)[:, :3]})


def test_scatter() -> None:
    made = r.node("ScatterElements", ["x", "i", "u"], ["y"], axis=1)
    inputs = [("x", r.FLOAT, [2, 3]), ("i", r.KINDS["i64"], [2, 0]), ("u", r.FLOAT, [2, 0])]
    m = r.model(made, inputs, [("y", r.FLOAT, [2, 3])], opset=16)
    feeds = {"x": np.ones((2, 3), np.float32), "i": np.zeros((2, 0), np.int64), "u": NOTHING}
    r.repaired(m, "empty", "scatter-of-nothing", feeds)


def test_a_selection_over_nothing_stays_refused() -> None:
    index = r.KINDS["i64"]
    m = r.model(r.node("ArgMax", ["x"], ["y"], axis=1), [("x", r.FLOAT, [2, 0])], [("y", index, [2, 1])])
    assert r.refusals(dmlc.compile(m)) == ["E0592"]
    m = r.reduction("ReduceMean", r.KINDS["i32"], shape=(2, 0))
    assert set(r.refusals(dmlc.compile(m, opset=21))) == {"E0592"}


@pytest.mark.parametrize("last", ["ReduceSum", "Pad", "MatMul"])
def test_a_size_that_only_a_node_tells(last: str) -> None:
    """The repair keeps NonZero, of which the result has how many numbers are not zero."""
    nodes = [r.node("NonZero", ["x"], ["i"]), r.node("Cast", ["i"], ["f"], to=r.FLOAT)]
    nodes.append(r.node("Slice", ["f", "none", "none", "none"], ["s"]))  # [0, how many]
    weights = {"none": np.array([0])}
    if last == "MatMul":
        nodes += [r.node("Transpose", ["s"], ["t"]), r.node("MatMul", ["t", "w"], ["y"])]
        weights["w"] = np.zeros((0, 3), np.float32)
    else:
        weights["a"] = np.array([0, 0, 1, 0] if last == "Pad" else [0])
        nodes.append(r.node(last, ["s", "a"], ["y"]))
    m = r.model(nodes, [("x", r.FLOAT, ["N"])], [("y", r.FLOAT, None)], **weights)
    x = np.array([0, 1, 2, 0, 3], np.float32)
    program = dmlc.compile(m, exact=True)
    assert not r.refusals(program) and "NonZero" in r.operators(program)
    got = program.run({"x": x}, "cpu")["y"]
    np.testing.assert_array_equal(got, np.zeros((3, 3) if last == "MatMul" else (1, 3)))


def test_what_is_not_empty_is_left() -> None:
    for shape in ((2, 3), (2, "N")):
        m = r.reduction("ReduceMax", shape=shape)
        assert r.operators(r.left_alone(m, "reduction-of-nothing")) == ["ReduceMax"]
    m = r.reduction("ReduceMax", shape=(0, 3))
    assert "reduction-of-nothing" not in dict(r.fired(dmlc.compile(m)))
    m = r.reduction("ReduceMax", shape=(2, 0))
    assert r.operators(r.left_alone(m, "reduction-of-nothing", target="cpu")) == ["ReduceMax"]
