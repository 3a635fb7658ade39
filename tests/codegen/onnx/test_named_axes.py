"""Pad and Resize between transposes: ONNX Runtime's TransposeOptimizer forgets that they name axes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

import dmlc
from tests.rows import each_row
from tools.model_checks import run, session

X = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
WEIGHTS = {
    "last": "int64[1] last = {-1}",
    "all": "int64[4] all = {3, 2, -3, 0}",
    "two": "int64[2] two = {1, 2}",
    "many": "int64[8] many = {1, 2, 3, 0, 0, 1, 0, 1}",
    "seven": "float seven = {7}",
    "sizes": "int64[2] sizes = {8, 7}",
    "scales": "float[2] scales = {2.5, 1.5}",
    "region": "float[4] region = {0.1, 0.2, 0.8, 0.9}",
}
FED = {"pads": ("int64[2] pads", np.array([1, 2])), "axes": ("int64[k] axes", np.array([-2]))}
FED |= {"wanted": ("int64[2] wanted", np.array([8, 7])), "factors": ("float[1] factors", np.array([1.5], np.float32))}

#: Nodes from t, [2, 4, 5, 3], to s.
NODES = {
    "constant": "s = Pad (t, two, seven, last)",
    "all axes": "s = Pad (t, many, seven, all)",
    "reflected": 's = Pad <mode = "reflect"> (t, two, , last)',
    "edge": 's = Pad <mode = "edge"> (t, many, , all)',
    "computed pads": "s = Pad (t, pads, , last)",
    "computed axes": "s = Pad (t, two, seven, axes)",
    "both computed": 's = Pad <mode = "edge"> (t, pads, , axes)',
    "behind another node": "r = Relu (t) s = Pad (r, two, seven, last)",
    "sizes": 's = Resize <axes = [1, -2], mode = "linear"> (t, , , sizes)',
    "scales": "s = Resize <axes = [-2, 1]> (t, , scales)",
    "computed sizes": "s = Resize <axes = [1, 2]> (t, , , wanted)",
    "computed scales": 's = Resize <axes = [-2], mode = "linear"> (t, , factors)',
    "region": (
        's = Resize <axes = [1, 2], mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> '
        "(t, region, , sizes)"
    ),
}


def source_of(nodes: str, opset: int, shape: str = "2, 3, 4, 5") -> ModelProto:
    names = set(nodes.replace("(", " ").replace(")", " ").replace(",", " ").split())
    inputs = ", ".join([f"float[{shape}] x", *[text for name, (text, _) in FED.items() if name in names]])
    weights = ", ".join(text for name, text in WEIGHTS.items() if name in names)
    weights = f"<{weights}>" if weights else ""
    body = f"t = Transpose <perm = [0, 2, 3, 1]> (x) {nodes} y = Transpose <perm = [0, 3, 1, 2]> (s)"
    head = f'<ir_version: 9, opset_import: ["" : {opset}]>'
    return parser.parse_model(f"{head} g ({inputs}) => (float[a, b, c, d] y) {weights} {{ {body} }}")


@each_row("nodes", NODES)
@each_row("turn", range(3))
def test_named_axes_between_transposes_give_the_same_numbers(turn: int, nodes: str) -> None:
    """The shapes take turns at the targets."""
    target, opset = (("directml", 18), ("cpu", 21), ("onnx", 18))[turn]
    shape = ("2, 3, 4, 5", "n, c, h, w")[(turn + list(NODES).index(nodes)) % 2]
    source = source_of(NODES[nodes], opset, shape)
    feeds = {"x": X, **{name: array for name, (_, array) in FED.items()}}
    wanted = run(session(source), feeds)["y"]
    made = dmlc.compile(source, target=target, opset=opset).to_onnx()
    for optimized in (False, True):
        np.testing.assert_allclose(run(session(made, optimized=optimized), feeds)["y"], wanted, rtol=1e-5, atol=1e-6)
    again = dmlc.compile(made, target=target, opset=opset).to_onnx()
    assert [n.op_type for n in again.graph.node] == [n.op_type for n in made.graph.node]


@pytest.mark.parametrize("nodes", ["constant", "all axes", "reflected", "edge", "sizes", "scales"])
def test_constant_axes_need_no_node(nodes: str) -> None:
    source = source_of(NODES[nodes], 18)
    made = dmlc.compile(source, target="onnx").to_onnx()
    assert [n.op_type for n in made.graph.node] == [n.op_type for n in source.graph.node]
    node = made.graph.node[1]
    assert len(node.input) < 4 or node.op_type == "Resize"
    assert "axes" not in {a.name for a in node.attribute}


def test_pad_in_a_branch_gives_the_same_numbers() -> None:
    body = (
        "t = Transpose <perm = [0, 2, 3, 1]> (x) s = Pad (t, many, seven, all) z = Transpose <perm = [0, 3, 1, 2]> (s)"
    )
    branches = f"then_branch = th () => (float[a, b, c, d] z) {{ {body} }}, "
    branches += "else_branch = el () => (float[a, b, c, d] w) { w = Identity (x) }"
    text = f"m = ReduceMax <keepdims = 0> (x) p = Greater (m, zero) y = If (p) <{branches}>"
    weights = ", ".join([WEIGHTS["many"], WEIGHTS["seven"], WEIGHTS["all"], "float zero = {0}"])
    head = '<ir_version: 9, opset_import: ["" : 18]>'
    source = parser.parse_model(f"{head} g (float[2, 3, 4, 5] x) => (float[a, b, c, d] y) <{weights}> {{ {text} }}")
    made = dmlc.compile(source).to_onnx()
    wanted = run(session(source), {"x": X})["y"]
    assert np.array_equal(run(session(made, optimized=True), {"x": X})["y"], wanted)


def test_pad_of_unknown_rank_stays() -> None:
    """ONNX Runtime does not know the rank either, and moves no transpose through it."""
    text = "r = Reshape (x, k) s = Pad (r, two, seven, last) y = Reshape (s, minus)"
    weights = ", ".join([WEIGHTS["two"], WEIGHTS["seven"], WEIGHTS["last"], "int64[1] minus = {-1}"])
    head = '<ir_version: 9, opset_import: ["" : 18]>'
    source = parser.parse_model(f"{head} g (float[2, 3] x, int64[r] k) => (float[n] y) <{weights}> {{ {text} }}")
    made = dmlc.compile(source, target="onnx").to_onnx()
    (pad,) = [n for n in made.graph.node if n.op_type == "Pad"]
    assert len(pad.input) == 4
    feeds = {"x": X[0, :2, 0, :3], "k": np.array([3, 2])}
    wanted = run(session(source), feeds)["y"]
    assert np.array_equal(run(session(made, optimized=True), feeds)["y"], wanted)
