"""Sizes that only a node tells are there for whoever asks for them, though nothing else needs the node."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from import_helpers import run
from onnx import TensorProto, parser

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.ir import Graph, TensorType, symbol
from dmlc.ir.dtype import f32
from dmlc.ir.providers import record_providers
from dmlc.ir.verifier import verify
from dmlc.ops.move import EXPAND, ExpandAttributes
from tests.rows import each_row

X = np.array([[1, 0, 2, -1], [0, 0, 3, 5], [4, -2, 0, 0]], np.float32)
CONSTANTS = (
    "<int64[1] zero = {0}, int64[1] one = {1}, int64[2] zeroone = {0, 1}, float[1, 1] e = {2}, float[2] v = {0, 1}, "
    "float[1, 1, 2, 2] w = {1, 2, 3, 4}, float[4] scales = {1, 1, 2, 1.5}, int64[2] steps = {2, 2}, "
    "int64[2] ends = {9, 9}, int64[2] starts = {0, 0}, int64[1] m1 = {-1}, int64[1] three = {3}>"
)
#: Nodes that make q, of two axes, one of whose sizes is in no input.
PROVIDERS = {
    "NonZero": "q = NonZero(x)",
    "Conv": "u = Unsqueeze(x, zeroone) c = Conv <pads = [1, 1, 1, 1]> (u, w) q = Squeeze(c, zeroone)",
    "MaxPool": "u = Unsqueeze(x, zeroone) c = MaxPool <kernel_shape = [2, 2]> (u) q = Squeeze(c, zeroone)",
    "Resize": 'u = Unsqueeze(x, zeroone) c = Resize(u, "", scales) q = Squeeze(c, zeroone)',
    "Slice": "q = Slice(x, starts, ends, zeroone, steps)",
    "Slice by another input": "q = Slice(x, starts, k, zeroone)",
    "Tile": "q = Tile(x, k)",
    "Compress": "r = ReduceMax <axes = [1], keepdims = 0> (x) b = Cast <to = 9> (r) q = Compress <axis = 0> (x, b)",
    "Unique": "f = Unique(x) q = Unsqueeze(f, zero)",
    "If": (
        "r = ReduceMax <keepdims = 0> (x) b = Cast <to = 9> (r) q = If (b) <then_branch = t () => (float[?, ?] tq) "
        "{ tq = Tile(x, k) }, else_branch = f () => (float[?, ?] fq) { fq = Identity(x) }>"
    ),
    "Loop": (
        "n = Gather <axis = 0> (k, one) ns = Squeeze(n) c = Constant <value = bool {1}> () "
        "q = Loop (ns, c) <body = b (int64 i, bool ci) => (bool co, float[3] qo) "
        "{ co = Identity(ci) j = Cast <to = 1> (i) qo = Expand(j, three) }>"
    ),
    "TopK": "kk = Gather <axis = 0> (k, one) q, i_ = TopK(x, kk)",
    "Expand": "q = Expand(e, k)",
    "Pad": "p = Concat <axis = 0> (k, k) q = Pad(x, p)",
    "Range": "s_ = Squeeze(zero) t_ = Size(x) o_ = Squeeze(one) l = Range(s_, t_, o_) q = Unsqueeze(l, zero)",
}
#: Nodes that make y of the shape of q alone.
USERS = {
    "Expand": "s = Shape(q) y = Expand(e, s)",
    "Reshape": "s = Shape(q) z = ConstantOfShape(s) f_ = Reshape(z, m1) y = Reshape(f_, s)",
    "one of its sizes": (
        "s = Shape(q) d = Gather(s, one) h = Add(d, d) g = Concat <axis = 0> (one, h) y = Expand(e, g)"
    ),
    "a number": "s = Size(q) f_ = Cast <to = 1> (s) y = Mul(x, f_)",
    "a twin": "{twin} s = Shape(q) s2 = Shape(qt) a = Expand(e, s) b_ = Expand(e, s2) y = Add(a, b_)",
    "a slice": "s = Shape(q) d = Gather(s, one) t2 = Concat <axis = 0> (one, d) y = Slice(x, starts, t2, zeroone)",
}


def asking(provider: str, user: str, where: str) -> onnx.ModelProto:
    made = PROVIDERS[provider]
    twin = ""
    if user == "a twin":
        twin = re.split(r"(?:^| )q(?=,| = )", made)[1]
        twin = "qt" + twin.replace("i_ =", "it_ =")
    used = USERS[user].replace("{twin}", twin)
    if where == "a branch":
        used = (
            "rr = ReduceMin <keepdims = 0> (x) bb = Cast <to = 9> (rr) y = If (bb) <then_branch = tt () => "
            f"(float[?, ?] ty) {{ {used} ty = Identity(y) }}, else_branch = ff () => (float[?, ?] fy) "
            "{ fy = Neg(x) }>"
        )
    if where == "all in a branch":
        made, used = (
            "",
            (
                "rr = ReduceMin <keepdims = 0> (x) bb = Cast <to = 9> (rr) y = If (bb) <then_branch = tt () => "
                f"(float[?, ?] ty) {{ {made} {used} ty = Identity(y) }}, else_branch = ff () => (float[?, ?] fy) "
                "{ fy = Neg(x) }>"
            ),
        )
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[N, M] x, int64[2] k) => (float[?, ?] y) {CONSTANTS} {{ {made} {used} }}""")
    if where == "names":
        kind = TensorProto.INT64 if provider in ("NonZero", "Range") else TensorProto.FLOAT
        names = ["N", "M"] if provider == "none" else [f"{provider}_q__d0", f"{provider}_q__d1"]
        model.graph.value_info.append(onnx.helper.make_tensor_value_info("q", kind, names))
    return model


PLACES = ("main", "names", "a branch", "all in a branch")


@pytest.mark.parametrize("provider", PROVIDERS)
@each_row("user", USERS)
def test_a_size_outlives_what_needs_its_node(provider: str, user: str) -> None:
    """For one target, in one place, with ``exact`` or without: all take turns."""
    turn = [*PROVIDERS].index(provider) * len(USERS) + [*USERS].index(user)
    target, where, exact = ("onnx", "directml")[turn % 2], PLACES[(turn // 2 + turn) % 4], turn // 4 % 2 == 0
    model = asking(provider, user, where)
    feeds: dict[str, Any] = {"x": X, "k": np.array([1, 2])}
    out = dmlc.compile(model, target=target, exact=exact).to_onnx()
    onnx.checker.check_model(out, full_check=True)
    for old, new in zip(run(model, feeds), run(out, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6, err_msg=f"{target} {where} {exact}")


def test_a_node_whose_size_nothing_asks_for_goes() -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[N, M] x) => (int64[2] y) { q = NonZero(x) s = Shape(q) t = Shape(x) y = Add(t, t) }""")
    assert "NonZero" not in [node.op_type for node in dmlc.compile(model).to_onnx().graph.node]


def test_the_verifier_finds_a_size_that_nothing_provides() -> None:
    graph = dmlc.compile(asking("NonZero", "Expand", "main"), target="onnx").graph
    verify(graph)
    (node,) = [n for n in graph if getattr(n.attributes, "op_type", "") == "NonZero"]
    del graph.provides[node.result]
    graph.erase(node)
    with pytest.raises(DmlcError, match="nothing provides the dim") as caught:
        verify(graph)
    assert caught.value.diagnostics[0].code.id == "I0901"


def test_a_value_takes_over_what_its_twin_provides() -> None:
    graph = Graph("g")
    x = graph.add_input("x", TensorType(f32, (1,)))
    first, second = (graph.add(EXPAND, (x,), ExpandAttributes(shape=(symbol(name),))).result for name in ("a", "b"))
    record_providers(graph)
    graph.replace_all_uses(second, first)
    assert graph.provides == {first: (("a", 0), ("b", 0))}


def test_a_size_that_only_a_body_tells_is_not_asked_for_outside() -> None:
    """A Scan inside of the body gives the size, Tile multiplies it, the Loop stacks it, and a Shape asks for it."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 19]> g (float[5,N,2,5] x) => (float[?,?,?,?,?] y)
        <float[1,1,1,1] e = {1}, int64 turns = {3}> {
            last, stacked = Loop (turns, "", x) <body: graph = body
                (int64 turn, bool go, float[5,N,2,5] state) => (bool going, float[] next, float[] out)
                <int64[4] twice = {2,1,2,1}> {
                    next = Scan (state) <body: graph = inner (float[N,2,5] row) => (float[N,2,5] made)
                        { made = Exp (row) }, num_scan_inputs: int = 1>
                    out = Tile (next, twice)
                    going = Identity (go) }>
            s = Shape (stacked) y = Expand (e, s) }"""
    )
    program = dmlc.compile(model, target="onnx")
    assert program.run({"x": np.zeros((5, 3, 2, 5), np.float32)})["y"].shape == (3, 10, 3, 4, 5)
