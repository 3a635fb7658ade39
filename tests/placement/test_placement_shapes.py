"""Nodes behind computed shapes: ONNX Runtime moves some to the CPU, others stay (GetCpuPreferredNodes)."""

from __future__ import annotations

from onnx import parser

import dmlc
from dmlc.diagnostics import Source
from dmlc.placement.advice import diagnose
from dmlc.placement.report import Placement, placement
from dmlc.targets import load_target
from tests.rows import each_row


def report(body: str, opset: int = 17) -> Placement:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {body}')
    return placement(model, load_target("directml"))


def on_cpu(body: str) -> list[str]:
    return [node.op for node in report(body).nodes if node.where == "cpu"]


MOVED = {
    "a reshape by a computed shape": (
        "(float[N,4] x) => (float[m] y) { t = Constant<value = int64[1] {1}>() s = Shape(x) c = Concat<axis = 0>(s, t)"
        " r = Reshape(x, c) y = Exp(r) }",
        ["Concat"],
    ),
    "a range": (
        "(float[N] x) => (float[N] y) { z = Constant<value = int64 {0}>() o = Constant<value = int64 {1}>()"
        " s = Shape(x) n = Squeeze(s) r = Range(z, n, o) c = Cast<to = 1>(r) y = Mul(x, c) }",
        ["Squeeze"],
    ),
    "a filled tensor": (
        "(float[N,4] x) => (float[m,k] y) { s = Shape(x) z = ConstantOfShape(s) y = Concat<axis = 0>(x, z) }",
        [],
    ),
    "an expand": ("(float[N,4] x, float[1,4] z) => (float[N,4] y) { s = Shape(x) e = Expand(z, s) y = Add(x, e) }", []),
    "a cast to f16": (
        "(float16[N] x) => (float16 y) { s = Shape(x) n = Squeeze(s) c = Cast<to = 10>(n) t = ReduceSum(x)"
        " y = Div(t, c) }",
        ["Squeeze", "Cast"],
    ),
    "a mean of an input": (
        "(float[N] x) => (float[N] y) { s = Shape(x) n = Squeeze(s) c = Cast<to = 1>(n) d = Div(x, c) y = Exp(d) }",
        ["Squeeze", "Cast", "Div", "Exp"],
    ),
    "a mean of a value": (
        "(float[N] x) => (float[N] y) { t = Tanh(x) s = Shape(x) n = Squeeze(s) c = Cast<to = 1>(n) y = Div(t, c) }",
        ["Squeeze", "Cast"],
    ),
    "an operand that is absent": (
        "(float[N] x) => (float y) { s = Shape(x) n = Squeeze(s) c = Cast<to = 1>(n) y = Clip(c, , c) }",
        ["Squeeze", "Cast"],
    ),
    "a large constant": (
        "(float[N,128] x) => (float[128] y) { k = Constant<value = int64[1] {128}>()"
        " w = ConstantOfShape<value = float[1] {2}>(k) s = Shape(x) f = Cast<to = 1>(s) g = ReduceSum<keepdims = 0>(f)"
        " y = Mul(w, g) }",
        ["Cast", "ReduceSum"],
    ),
    "a node without a kernel": (
        "(float[N] x) => (double y) { s = Shape(x) c = Cast<to = 11>(s) d = Sin(c) e = ReduceSum<keepdims = 0>(d)"
        " y = Neg(e) }",
        ["Cast", "Sin", "ReduceSum", "Neg"],
    ),
    "a size by an operator without a kernel": (
        "(float[N] x) => (float[k] y) { s = Shape(x) t = Constant<value = int64[1] {2}>() r = Mod(s, t) d = Div(s, t)"
        " n = Add(r, d) y = Expand(x, n) }",
        ["Mod", "Div", "Add"],
    ),
    "data behind a node without a kernel": (
        "(double[N] x) => (float[N] y) { s = Shape(x) n = Cast<to = 11>(s) d = Div(x, n) c = Cast<to = 1>(d)"
        " y = Exp(c) }",
        ["Cast", "Div", "Cast", "Exp"],
    ),
}  # fmt: skip


@each_row("name", MOVED)
def test_nodes_on_the_cpu(name: str) -> None:
    body, want = MOVED[name]
    assert on_cpu(body) == want


def test_data_that_follows_a_shape_is_warned_of() -> None:
    """Everything behind the input runs on the CPU; with the size bound the count is a constant, and nothing does."""
    body = MOVED["a mean of an input"][0]
    found = [(name, diagnostic) for name, diagnostic in diagnose(report(body))]
    assert [d.code.id for _, d in found] == ["W0601", "W0601"]
    assert "--bind N=SIZE" in (found[0][1].help or "") and " x " in found[0][1].message
    assert not on_cpu(body.replace("[N]", "[8]"))


def test_data_behind_a_node_without_a_kernel_is_warned_of() -> None:
    """It is on the CPU, and so is what reads it: each of these nodes is named."""
    found = list(diagnose(report(MOVED["data behind a node without a kernel"][0])))
    assert [d.code.id for _, d in found] == ["W0601", "W0601", "W0601"]


@each_row("name", [name for name in MOVED if name not in ("a mean of an input", "data behind a node without a kernel")])
def test_shape_arithmetic_is_not_warned_of(name: str) -> None:
    assert not report(MOVED[name][0]).findings


def test_maximum_of_integers_over_open_sizes_stays_on_the_device() -> None:
    text = "model m(x: i64[N, 3, H, W]) -> (y) {\n    return reduce_max(x, axes=[2, 3])\n}\n"
    program = dmlc.compile(Source("m.dml", text))
    where = {node.op: node.where for node in program.placement().nodes}
    assert {op for op, place in where.items() if place == "cpu"} <= {"Concat", "Gather", "Mul", "Squeeze", "Unsqueeze"}
    assert not program.diagnostics


@each_row(
    ("body", "bound"),
    [
        (
            "(float[N,W] x, float[N,M] z) => (float[N,M] y) { s = Shape<start = 1>(x) n = Squeeze(s)"
            " c = Cast<to = 1>(n) y = Div(z, c) }",
            "--bind W=SIZE makes",
        ),
        (
            "(float[N,W] x, float[N,M] z) => (float[N,M] y) { s = Shape(x) i = Constant<value = int64 {0}>()"
            " n = Gather(s, i) c = Cast<to = 1>(n) r = Sqrt(c) y = Div(z, r) }",
            "--bind N=SIZE makes",
        ),
        (
            "(float[N,W] x, float[M] z) => (float[M] y) { n = Size(x) c = Cast<to = 1>(n) r = Sqrt(c) y = Div(z, r) }",
            "--bind N=SIZE --bind W=SIZE makes",
        ),
    ],
)
def test_the_advice_names_the_sizes_that_the_number_is_computed_from(body: str, bound: str) -> None:
    (finding,) = [f for node in report(body).nodes for f in node.findings if f.source == "GetCpuPreferredNodes"]
    assert finding.repair.startswith(bound)
