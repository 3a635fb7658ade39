"""Near misses of ``accumulate="f32"``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

import pytest
from onnx import parser

import dmlc
from dmlc.diagnostics import Source
from dmlc.passes.accumulate_f32 import AccumulateF32
from dmlc.passes.manager import PassContext
from dmlc.passes.options import Options
from dmlc.targets import load_target
from tests.rows import each_row

TWO = "x: f16[4, 100], b: f16[4, 100]"


def program(body: str, inputs: str = TWO) -> dmlc.Program:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    return dmlc.compile(Source("t.dml", f"model t({inputs}) -> (y) {{\n{lines}    return y\n}}\n"), accumulate="f32")


def widened(p: dmlc.Program) -> list[str]:
    return [e.text for e in p.ledger if e.rule == "accumulate-f32"]


@pytest.mark.parametrize(
    "body",
    [
        "y = reduce_mean(tanh(x * b), axes=[1])",  # no sum of products
        "y = reduce_mean(x + b, axes=[1])",  # no product at all
        "y = reduce_mean(x * b + b - x + b - x + b - x + b, axes=[1])",  # so far before
    ],
)
def test_no_product_before_the_reduction(body: str) -> None:
    assert not widened(program(body))


@pytest.mark.parametrize(
    ("end", "last"),
    [
        ("s > 4.0", "greater"),  # gives no number that is rounded
        ("s / reduce_mean(x, axes=[1]) ** 2", "div"),  # no difference of two means
        ("s - reduce_max(b, axes=[1])", "sub"),
        ("s - reduce_mean(x, axes=[1]) * reduce_max(b, axes=[1])", "sub"),  # no square
    ],
)
def test_what_follows_and_is_no_part_of_it(end: str, last: str) -> None:
    (text,) = widened(program(f"s = reduce_mean(x * x + b, axes=[1]); y = {end}"))
    assert last not in text.removeprefix("mul, add, "), text


def test_nothing_to_widen_is_no_change() -> None:
    graph = program("y = reduce_mean(x + b, axes=[1])").source_graph
    assert AccumulateF32().run(graph.clone(), PassContext(load_target("cpu"), 21, Options(exact=True))) is False


@each_row(("call", "output"), [
    ("y = HardSwish (x)", "float16[2, 3, 4]"),  # another operator of f16
    ("y = LayerNormalization (w, v)", "double[2, 4]"),  # a norm of f64
    ("y = com.microsoft.GroupNorm ()", "float16[N]"),  # a norm of nothing
])  # fmt: skip
def test_nodes_of_models_that_stay(call: str, output: str) -> None:
    made = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (float16[2, 3, 4] x, float16[4] s, double[2, 4] w, double[4] v) => ({output} y) {{ {call} }}""")
    found = dmlc.compile(made, target="onnx", accumulate="f32")
    assert not widened(found)
    assert "Cast" not in [node.op_type for node in found.to_onnx().graph.node]


def test_a_norm_of_onnx_runtimes_own_is_widened() -> None:
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (float16[2, 3, 4] x, float16[4] s) => (float16[2, 3, 4] y)
        { r = com.microsoft.SkipGroupNorm (x, s, s, x) y = Relu (r) }""")
    found = dmlc.compile(made, target="onnx", accumulate="f32")
    assert widened(found) == ["SkipGroupNorm of f16 in f32"]
    assert found.to_onnx().graph.output[0].type == made.graph.output[0].type
