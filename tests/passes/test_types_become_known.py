"""Types become more precise while a graph is rewritten: of nodes whose rank was hidden, and through graphs in nodes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import dmlc
from tests.rows import each_row
from tools.canonical_form import canonical_form
from tools.model_checks import run, session

TARGETS = ("onnx", "cpu", "directml")
#: Too many elements for the importer to look at: their maximum, 2, is known when it has folded.
_WEIGHT = np.linspace(0, 2, 3000, dtype=np.float32)
_INTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] rest = {-1}, int64[3] sizes = {4, 3, 2}, int64 count = {3},"
    " bool yes = {1}, float[1] unit = {1}"
)
#: The rank of ``v`` is known when ``two`` has folded.
_HIDDEN = "top = ReduceMax <keepdims = 1> (weight) two = Cast <to = 7> (top) s = Slice (sizes, zero, two)"
_V = f"{_HIDDEN} v = Reshape (x, s)"
#: Transposes that undo each other are seen to do so where the rank of ``r`` is known.
_TAIL = "w = Transpose <perm = [1, 0]> (r) u = Transpose <perm = [1, 0]> (w) y = Relu (u)"
_KEEP = "bool[4] k"

#: Nodes whose results have sizes that only they provide: the further inputs, and the nodes.
OWN_SIZES = {
    "compress": (_KEEP, "r = Compress <axis = 0> (v, k)"),
    "slice": ("int64[1] k", "r = Slice (v, zero, k)"),
    "resize": ("float[2] k", "r = Resize (v, , k)"),
    "pad": ("int64[4] k", "r = Pad (v, k)"),
    "split": ("int64[2] k", "r, r2 = Split <axis = 0> (v, k)"),
    "unique": (_KEEP, "r = Unique <axis = 0> (v)"),
    "one after another": (
        f"int64[4] k1, {_KEEP}", "p = Pad (v, k1) q = Slice (p, zero, one, one) r = Compress <axis = 0> (q, k)",
    ),
    "its sizes are asked for": (
        _KEEP, "c = Compress <axis = 0> (v, k) d = Shape (c) r = Expand (unit, d)",
    ),
    "its sizes are asked for twice": (
        _KEEP, "c = Compress <axis = 0> (v, k) d = Shape (c) e = Compress <axis = 0> (v, k) f = Shape (e)"
        " h = ConstantOfShape (f) r = Add (c, h)",
    ),
}  # fmt: skip

#: Nodes with graphs that pass types in and out.
GRAPHS = {
    "if": (
        "bool c", f"{_HIDDEN} r = If (c) <then_branch = t () => (float[] o) {{ o = Reshape (x, s) }}, else_branch ="
        " e () => (float[] p) { n = Neg (x) p = Reshape (n, s) }>",
    ),
    "if of other sizes": (
        f"bool c, {_KEEP}", f"{_V} r = If (c) <then_branch = t () => (float[] o) {{ o = Compress <axis = 0> (v, k) }},"
        " else_branch = e () => (float[] p) { p = Identity (v) }>",
    ),
    "if whose sizes are asked for": (
        f"bool c, {_KEEP}", f"{_V} i = If (c) <then_branch = t () => (float[] o) {{ o = Compress <axis = 0> (v, k) }},"
        " else_branch = e () => (float[] p) { p = Identity (v) }> d = Shape (i) r = Expand (unit, d)",
    ),
    "if in an if": (
        "bool c", f"{_V} r = If (c) <then_branch = t () => (float[] o) {{ o = If (c) <then_branch ="
        " t1 () => (float[] a) { a = Neg (v) }, else_branch = e1 () => (float[] b) { b = Abs (v) }> }, else_branch ="
        " e () => (float[] p) { p = Identity (v) }>",
    ),
    "loop": (
        "", f"{_V} r = Loop (count, yes, v) <body = b (int64 i, bool ci, float[] a) => (bool co, float[] o)"
        " { co = Identity (ci) n = Neg (x) o = Reshape (n, s) }>",
    ),
    "outputs of a loop": (
        "", f"{_HIDDEN} r = Loop (count, yes) <body = b (int64 i, bool ci) => (bool co, float[] o)"
        " { co = Identity (ci) n = Reshape (x, s) o = Gather <axis = 0> (n, i) }>",
    ),
}  # fmt: skip

#: Bodies whose declared ranks hide sizes, which are known when ``two`` has folded.
SCANS = {
    "scan": (
        "", "r = Scan (v) <num_scan_inputs: int = 1, body = b (float[p] a) => (float[p] o) { o = Neg (a) }>",
    ),
    "scan along other axes": (
        "", "r = Scan (v) <num_scan_inputs: int = 1, scan_input_axes: ints = [-1], scan_output_axes: ints = [1],"
        " body = b (float[p] a) => (float[p] o) { o = Neg (a) }>",
    ),
    "a scan that carries": (
        "float[6] h", "f, r = Scan (h, v) <num_scan_inputs: int = 1, body = b (float[p] t, float[q] a) =>"
        " (float[q] t1, float[p] o) { o = Add (a, t) t1 = Neg (t) }>",
    ),
    "a scan of what it captures": (
        "", "q = ReduceSum <keepdims = 0> (v, one) r = Scan (q) <num_scan_inputs: int = 1, body = b (float a) =>"
        " (float[p] o) { n = Mul (v, a) o = ReduceSum <keepdims = 0> (n, zero) }>",
    ),
}  # fmt: skip


def _model(further: str, body: str, tail: str = _TAIL) -> ModelProto:
    given = ", ".join(filter(None, ["float[12] x", further]))
    text = f'<ir_version: 8, opset_import: ["" : 18]> g ({given}) => (float[a, b] y) <{_INTS}> {{ {body} {tail} }}'
    model = parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(_WEIGHT, "weight"))
    onnx.checker.check_model(model)
    return model


_FEEDS = {
    "x": np.arange(-6, 6, dtype=np.float32),
    "c": np.array(True),
    "h": np.arange(6, dtype=np.float32),
    "k1": np.array([1, 0, 0, 2], np.int64),
    "bool": np.array([True, False, True, True]),
    "float": np.array([1, 2], np.float32),
    "int64": np.array([3], np.int64),
    "int64 of split": np.array([1, 3], np.int64),
    "int64 of pad": np.array([0, 1, 1, 0], np.int64),
}


def _feeds(model: ModelProto, name: str) -> dict[str, np.ndarray]:
    out = {}
    for info in model.graph.input:
        kind = {1: "float", 7: "int64", 9: "bool"}[info.type.tensor_type.elem_type]
        out[info.name] = _FEEDS.get(info.name, _FEEDS.get(f"{kind} of {name}", _FEEDS[kind]))
    return out


def _check(name: str, source: ModelProto, target: str) -> ModelProto:
    model = dmlc.compile(source, target=target).to_onnx()
    assert "Transpose" not in {node.op_type for node in model.graph.node}
    assert canonical_form(dmlc.compile(model, target=target).to_onnx()) == canonical_form(model)
    feeds = _feeds(source, name)
    for truth in (True, False):
        feeds.update({"c": np.array(truth)} if "c" in feeds else {})
        expected, found = run(session(source), feeds), run(session(model), feeds)
        assert all(np.array_equal(expected[key], found[key]) for key in expected)
    return model


@each_row("target", TARGETS)
@each_row("name", OWN_SIZES)
def test_a_node_of_hidden_rank_is_read_again_though_sizes_stay_open(name: str, target: str) -> None:
    further, body = OWN_SIZES[name]
    _check(name, _model(further, f"{_V} {body}"), target)


@each_row("target", TARGETS)
@each_row("name", GRAPHS)
def test_results_are_joined_anew_when_the_graphs_inside_become_more_precise(name: str, target: str) -> None:
    _check(name, _model(*GRAPHS[name]), target)


@each_row("target", TARGETS)
@each_row("name", SCANS)
def test_sizes_reach_the_body_of_a_scan_and_its_results(name: str, target: str) -> None:
    further, body = SCANS[name]
    hidden = "top = ReduceMax <keepdims = 1> (weight) two = Cast <to = 7> (top) s = Concat <axis = 0> (two, rest)"
    tail = "d = Shape (r) e = ConstantOfShape (d) y = Sub (r, e)"
    model = _check(name, _model(further, f"{hidden} v = Reshape (x, s) {body}", tail), target)
    assert not {"Shape", "ConstantOfShape"} & {node.op_type for node in model.graph.node}


def test_new_dims_are_unlike_those_that_the_model_declares() -> None:
    """Two sizes of 3 and 2 that one name would make equal: the sum of nothing but equal sizes would not be checked."""
    body = f"{_V} a = Compress <axis = 0> (v, k) b = Compress <axis = 0> (v, j) r = Concat <axis = 0> (a, b, z)"
    source = _model("bool[unknown_0] k, bool[unknown_1] j, float[unknown_2, 3] z", body)
    model = dmlc.compile(source, target="onnx").to_onnx()
    feeds = {
        "x": _FEEDS["x"],
        "k": np.array([True, False, True, True]),
        "j": np.array([False, True, True, False]),
        "z": np.ones((1, 3), np.float32),
    }
    expected, found = run(session(source), feeds), run(session(model), feeds)
    assert np.array_equal(expected["y"], found["y"])


@pytest.mark.parametrize("name", ["if of other sizes", "if in an if", "loop"])
def test_the_types_of_a_copy_become_known_alike(name: str) -> None:
    source = _model(*GRAPHS[name])
    first = dmlc.compile(source, target="onnx").to_onnx()
    assert first.SerializeToString() == dmlc.compile(source, target="onnx").to_onnx().SerializeToString()
