"""Forms of valid models that few exporters write."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from import_helpers import BOOL, INT64, info, model, node, operators, same, weight
from onnx import TensorProto, checker, helper, parser

import dmlc
from tests.rows import each_row


def _branch(name: str, nodes: list[onnx.NodeProto], out: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [info(out, None)])


def test_a_sparse_output_is_copied() -> None:
    """ONNX Runtime runs no graph whose output is a sparse tensor itself, so the copy that a model makes of it stays."""
    sparse = helper.make_sparse_tensor(weight("", [2], np.float32), weight("", [1], np.int64), [3])
    held = [node("Constant", [], ["c"], sparse_value=sparse), node("Identity", ["c"], ["o"])]
    inner = [node("Constant", [], ["d"], sparse_value=sparse), node("Identity", ["d"], ["p"])]
    other = _branch("else", [node("Relu", ["x"], ["r"])], "r")
    held.append(node("If", ["b"], ["y"], then_branch=_branch("then", inner, "p"), else_branch=other))
    m = model(held, [info("x", [3]), info("b", [], BOOL)], [info("y", [3]), info("o", [3])])
    for chosen in (True, False):
        same(m, {"x": np.ones(3, np.float32), "b": np.array(chosen)})


@each_row("condition", [True, False])
@each_row(("a", "b"), [([8], [2, 0, 2]), ([2, 0, 2], [8]), (8, [1, 2]), ([1, 2], 8), ([5], 4)])
def test_one_truth_chooses_of_known_integers(condition: bool, a: Any, b: Any) -> None:
    """Both sides broadcast, the one that is not chosen too."""
    weights = [weight("c", condition, np.bool_), weight("a", a, np.int64), weight("b", b, np.int64)]
    out = [info("y", [None] if np.ndim(a) + np.ndim(b) else [], INT64)]
    made = same(model([node("Where", ["c", "a", "b"], ["y"])], [info("x", [2])], out, weights), {"x": np.zeros(2, "f")})
    assert operators(made) == []


def test_a_size_that_the_body_of_a_loop_is_given() -> None:
    """The depth of a one-hot that a hardmax becomes is a size of the body's own input."""
    body = helper.make_graph(
        [node("Hardmax", ["s"], ["t"], axis=0), node("Identity", ["go"], ["on"])],
        "body",
        [info("i", [], INT64), info("go", [], BOOL), info("s", [None, None])],
        [info("on", [], BOOL), info("t", [None, None])],
    )
    nodes = [node("Loop", ["n", "", "x"], ["y"], body=body)]
    m = model(nodes, [info("x", [3, 4])], [info("y", [None, None])], [weight("n", 2, np.int64)])
    same(m, {"x": np.arange(12, dtype=np.float32).reshape(3, 4) % 5}, lower_hardmax=True)


@pytest.mark.parametrize(("opset", "want"), [(17, ["Pow"]), (12, ["Pow"])])
def test_a_power_of_integers_keeps_its_kernel(opset: int, want: list[str]) -> None:
    """Asked for at an older opset too: negative exponents are what the runtime makes of them."""
    i32 = TensorProto.INT32
    m = model(
        [node("Pow", ["x", "e"], ["y"])], [info("x", [4], i32), info("e", [4], i32)], [info("y", [4], i32)], opset=18
    )
    feeds = {"x": np.array([-8, 2, 3, -1], np.int32), "e": np.array([-8, -1, 4, 3], np.int32)}
    assert operators(same(m, feeds, target="cpu", opset=opset, exact=True)) == want


def test_a_layer_norm_without_bias_as_numpy_code() -> None:
    m = model(
        [node("LayerNormalization", ["x", "s"], ["y"])],
        [info("x", [2, 3])],
        [info("y", [2, 3])],
        [weight("s", [1, 2, 3])],
    )
    program = dmlc.compile(m, target="numpy")
    x = np.array([[1, 2, 4], [0, -1, 5]], np.float32)
    np.testing.assert_allclose(
        program.run({"x": x}, "numpy")["y"], program.run({"x": x}, "cpu")["y"], rtol=1e-5, atol=1e-6
    )


def test_defaults_where_numpy_code_runs() -> None:
    """Also those of inputs that stand before others."""
    given = [info("x", [3]), info("c", [3]), info("z", [3])]
    m = model(
        [node("Sub", ["x", "c"], ["d"]), node("Mul", ["d", "z"], ["y"])],
        given,
        [info("y", [3])],
        [weight("c", [1, 2, 3])],
    )
    program = dmlc.compile(m, target="numpy")
    feeds = {"x": np.array([4, 5, 6], np.float32), "z": np.array([1, 2, 3], np.float32)}
    np.testing.assert_array_equal(program.run(feeds, "numpy")["y"], np.array([3, 6, 9], np.float32))
    fed = program.run({**feeds, "c": np.zeros(3, np.float32)}, "numpy")["y"]
    np.testing.assert_array_equal(fed, np.array([4, 10, 18], np.float32))


@pytest.mark.parametrize("target", ["directml", "onnx", "cpu"])
@pytest.mark.parametrize("opset", [13, 18])
def test_a_log_sum_exp_stays_one_node_where_only_exact_is_allowed(opset: int, target: str) -> None:
    """Written out with the maximum taken out it rounds otherwise: that is a rewrite, and stands in the ledger."""
    if opset >= 18:
        held = node("ReduceLogSumExp", ["x", "a"], ["y"])
    else:
        held = node("ReduceLogSumExp", ["x"], ["y"], axes=[1])
    m = model([held], [info("x", [5, 7, 3])], [info("y", [5, 1, 3])], [weight("a", [1], np.int64)], opset=opset)
    program = dmlc.compile(m, target=target, exact=True)
    assert [n.op_type for n in program.to_onnx().graph.node] == ["ReduceLogSumExp"]
    assert not program.ledger
    assert program.verify(24).ok
    other = dmlc.compile(m, target="directml")
    assert [entry.rule for entry in other.ledger] == ["shift-log-sum-exp"]
    assert len(other.to_onnx().graph.node) > 1


def test_two_equal_outputs_of_maps_are_not_copied() -> None:
    """ONNX has no Identity of a sequence of maps."""
    model = parser.parse_model(
        """<ir_version: 7, opset_import: ["": 13, "ai.onnx.ml": 2]>
        g (float[8,2] x) => (seq(map(int64, float)) a, seq(map(int64, float)) b) {
            a = ai.onnx.ml.ZipMap <classlabels_int64s: ints = [0, 1]> (x)
            b = ai.onnx.ml.ZipMap <classlabels_int64s: ints = [0, 1]> (x) }"""
    )
    made = dmlc.compile(model, target="onnx").to_onnx()
    assert [node.op_type for node in made.graph.node] == ["ZipMap", "ZipMap"]
    checker.check_model(made, full_check=True)
