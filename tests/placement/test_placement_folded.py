"""Placement of nodes that are folded while the model is loaded, though their sizes are known to the runtime alone."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.cli.main import main
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests.rows import each_row

#: Nodes that make q of constants; nothing but running them tells its size.
COUNTS = {
    "NonZero": "q = NonZero(c)",
    "Unique": "q = Unique(c)",
    "Compress": "q = Compress(c, b)",
    "Slice": "n = NonZero(c) m = ReduceMax <axes = [1], keepdims = 0> (n) q = Slice(c, z, m, z)",
    "Expand": "n = NonZero(c) q = Reshape(n, m1)",
}
#: Nodes that make s of q, and y of s.
SHAPES = {
    "Shape": "s = Shape(q) y = Cast <to = 1> (s)",
    "a part of it": "s = Shape <start = 0, end = 1> (q) y = Cast <to = 1> (s)",
    "Size": "s = Size(q) y = Cast <to = 1> (s)",
    "a computed size": "h = Shape(q) s = Mul(h, h) f = Cast <to = 1> (s) y = Add(f, x)",
    "a shape": "s = Shape(q) y = Expand(x, s)",
    "axes": "h = Shape(q) s = Sub(h, h) g = Gather(s, z) y = ReduceSum <keepdims = 0> (x, g)",
}


@each_row("inside", [False, True], ids=["main", "branch"])
@each_row("shape", SHAPES)
@pytest.mark.parametrize("count", COUNTS)
def test_an_open_size_of_a_folded_node(count: str, shape: str, inside: bool, tmp_path: object) -> None:
    """The other targets, which place no node, take turns, and so does the command line."""
    nodes = f"{COUNTS[count]} {SHAPES[shape]}"
    if inside:
        nodes = (
            "r = ReduceMax <keepdims = 0> (x) t = Cast <to = 9> (r) y = If (t) <then_branch = a () => (float[] y1) "
            f"{{ {nodes} y1 = Identity(y) }}, else_branch = e () => (float[] y2) {{ y2 = Exp(x) }}>"
        )
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[1] x) => (float[] y)
        <float[3] c = {{1, 0, 2}}, bool[3] b = {{1, 0, 1}}, int64[1] z = {{0}}, int64[1] m1 = {{-1}}> {{ {nodes} }}""")
    assert placement(model, load_target("directml")).nodes
    turn = [*COUNTS].index(count) + [*SHAPES].index(shape) + inside
    dmlc.compile(model, target=("directml", "onnx", "directml", "cpu")[turn % 4]).to_onnx()
    if turn % 4 == 0:
        return
    path = f"{tmp_path}/m.onnx"
    onnx.save(model, path)
    assert main(["check", path, "-q"]) in (0, 1)  # 3 is a bug
