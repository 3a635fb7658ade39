"""Functions of a model: their bodies stand in the place of the calls and mean what they meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from import_helpers import operators, run, same
from onnx import parser

import dmlc
from dmlc.onnx_schema.inlining import inlined
from tests.rows import each_row
from tests.versions import needs_onnx_runtime

X = np.array([[1, -2, 3, -4], [0.5, 6, -7, 8]], np.float32)

MAIN = """<ir_version: {ir}, opset_import: ["": {opset}, "f": 1]>
    g (float[N, 4] x) => (float[?, ?] y) {{ h = f.K{call}(x) y = Relu(h) }}"""


def calling(body: str, *, opset: int, own: int | None = None, call: str = "", ir: int = 8) -> onnx.ModelProto:
    """A model of one call; ``body`` is the function from its name on."""
    imports = f'<domain: "f", opset_import: ["": {own or opset}, "f": 1]>'
    functions = "".join(f"{imports} {text}" for text in body.split("\n") if text.strip())
    return parser.parse_model(MAIN.format(ir=ir, opset=opset, call=call) + functions)


def compiled(model: onnx.ModelProto, feeds: Mapping[str, Any], **options: Any) -> onnx.ModelProto:
    """Compile for every ONNX target and compare to the original; the model for DirectML."""
    for target in ("onnx", "cpu"):
        same(model, feeds, target=target, **options)
    out = same(model, feeds, **options)
    onnx.checker.check_model(out, full_check=True)
    assert not out.functions
    return out


#: Bodies whose operators later opsets changed, with the opsets at which they are written.
CHANGED = {
    "Softmax": ("K <zz: int = 1> (a) => (b) { b = Softmax <axis = 0> (a) }", (8, 9, 11, 12)),
    "LogSoftmax": ("K <ax: int = 0> (a) => (b) { b = LogSoftmax <axis: int = @ax> (a) }", (11, 12)),
    "ReduceMean": ("K <ax: ints = [1]> (a) => (b) { b = ReduceMean <axes: ints = @ax> (a) }", (11, 13, 17)),
    "ReduceSum": ("K <k: int = 1> (a) => (b) { b = ReduceSum <axes = [0], keepdims: int = @k> (a) }", (9, 11, 12)),
    "Squeeze": (
        "K <zz: int = 1> (a) => (b) { c = ReduceMax <axes = [0]> (a) d = Squeeze <axes = [0]> (c) "
        "b = Unsqueeze <axes = [1]> (d) }",
        (9, 12),
    ),
    "Split": ("K <zz: int = 1> (a) => (b) { c, d = Split <axis = 1> (a) b = Sub(c, d) }", (9, 12, 17)),
    "LeakyRelu": ("K <slope: float = 0.5> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }", (9, 13, 15)),
    "Clip": ("K <low: float = -1.5> (a) => (b) { b = Clip <min: float = @low> (a) }", (8, 9, 10)),
    "Cast": ("K <to: int = 6> (a) => (b) { c = Cast <to: int = @to> (a) b = Cast <to = 1> (c) }", (9, 13, 17)),
}


@each_row(("name", "opset"), [(name, opset) for name, (_, all_) in CHANGED.items() for opset in all_])
def test_a_body_with_defaults_is_raised_with_its_model(name: str, opset: int) -> None:
    compiled(calling(CHANGED[name][0], opset=opset), {"x": X})


@pytest.mark.parametrize("opset", [11, 12, 17])
def test_a_function_that_nothing_calls_goes(opset: int) -> None:
    text = "K (a) => (b) { b = Neg(a) }\nUnused <q: float = 1.0> (a) => (b) { b = Softmax <axis = 0> (a) }"
    assert operators(compiled(calling(text, opset=opset), {"x": X})) == ["Neg", "Relu"]


def test_a_call_replaces_a_default() -> None:
    text = "K <slope: float = 0.5> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }"
    compiled(calling(text, opset=15, call=" <slope = 0.25>"), {"x": X})


def test_an_attribute_that_nothing_gives_is_absent() -> None:
    compiled(calling("K <ax> (a) => (b) { b = Softmax <axis: int = @ax> (a) }", opset=17), {"x": X})


def test_defaults_pass_through_calls_of_calls() -> None:
    compiled(
        calling(
            "K <outer: float = 0.5> (a) => (b) { c = f.L <slope: float = @outer> (a) b = f.L(c) }\n"
            "L <slope: float = 0.125> (a) => (b) { h = Neg(a) b = LeakyRelu <alpha: float = @slope> (h) }",
            opset=15,
        ),
        {"x": X},
    )


def test_calls_in_graphs_inside_nodes() -> None:
    compiled(
        calling(
            "K <q: int = 0> (a) => (b) { z = Constant <value_int = 0> () s = ReduceSum <keepdims = 0> (a) "
            "n = Cast <to = 1> (z) c = Greater(s, n) "
            "b = If (c) <then_branch = t () => (float[?, ?] o) { h = Neg(a) o = f.L(h) }, "
            "else_branch = e () => (float[?, ?] o) { h = f.L(a) o = Exp(h) }> }\n"
            "L <ax: int = 1> (a) => (b) { h = Softmax <axis: int = @ax> (a) b = Neg(h) }",
            opset=17,
        ),
        {"x": X},
    )


def test_names_of_bodies_do_not_meet_those_around_them() -> None:
    m = parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "f": 1]>
        g (float[2, 4] x, float[2, 4] a) => (float[2, 4] y, float[2, 4] b_1) {
            [n] h = Neg(x)  [n_1] b = f.K(h)  [n_2] b_1 = f.K(a)  d = Add(b, h)  y = f.K(d) }
        <domain: "f", opset_import: ["": 17]> K <q: int = 0> (x) => (y) {
            [n] h = Exp(x)  [n_1] b = Add(h, x)  a = Relu(b)  y = Sub(a, h) }""")
    compiled(m, {"x": X, "a": X[::-1].copy()})


def test_absent_operands_and_results() -> None:
    m = parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "f": 1]>
        g (float[2, 4] x, float top) => (float[2, 4] y, float[2, 4] z) { y, _ = f.K(x, "", top) z, w = f.K(x) }
        <domain: "f", opset_import: ["": 17]> K <q: int = 0> (x, low, high) => (y, z) {
            y = Clip(x, low, high) z = Exp(x) }""")
    m.graph.node[0].output[1] = ""
    flat = inlined(m)
    onnx.checker.check_model(flat, full_check=True)
    top = np.array(1.5, np.float32)
    for out in (flat, dmlc.compile(m).to_onnx()):
        assert not out.functions
        y, z = run(out, {"x": X, "top": top})
        np.testing.assert_array_equal(y, np.minimum(X, top))
        np.testing.assert_array_equal(z, X)


@needs_onnx_runtime(1, 27, "calls the function of another overload")
def test_overloads_are_functions_of_their_own() -> None:
    m = parser.parse_model("""<ir_version: 10, opset_import: ["": 17, "f": 1]>
        g (float[2, 4] x) => (float[2, 4] y) { h = f.K:one(x) y = f.K:two(h) }
        <domain: "f", overload: "one", opset_import: ["": 17]> K <q: int = 0> (x) => (y) { y = Neg(x) }
        <domain: "f", overload: "two", opset_import: ["": 17]> K <q: int = 0> (x) => (y) { y = Exp(x) }""")
    assert operators(compiled(m, {"x": X})) == ["Neg", "Exp"]


def test_an_operator_is_not_replaced_by_a_function_of_its_name() -> None:
    m = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2, 4] x) => (float[2, 4] y) { y = Relu(x) }
        <domain: "", opset_import: ["": 17]> Relu (x) => (y) { y = Neg(x) }""")
    assert operators(compiled(m, {"x": X})) == ["Relu"]


def test_a_function_may_use_a_domain_that_the_model_does_not_import() -> None:
    m = parser.parse_model("""<ir_version: 8, opset_import: ["f": 1]>
        g (float[2, 4] x) => (float[2, 4] y) { y = f.K(x) }
        <domain: "f", opset_import: ["": 13]> K (x) => (y) { y = Softmax <axis = 0> (x) }""")
    assert operators(compiled(m, {"x": X})) == ["Softmax"]


def test_a_graph_that_a_call_gives_speaks_of_the_values_around_the_call() -> None:
    m = parser.parse_model("""<ir_version: 10, opset_import: ["": 17, "f": 1]>
        g (float[2, 4] x, bool c) => (float[2, 4] y) {
            h = Neg(x) y = f.K <part = t () => (float[2, 4] q) { q = Exp(h) }> (x, c) }
        <domain: "f", opset_import: ["": 17]> K <part> (x, c) => (y) { i = Relu(x)
            y = If <then_branch: graph = @part, else_branch = e () => (float[2, 4] q) { q = Neg(i) }> (c) }""")
    for target in ("onnx", "cpu", "directml"):
        out = dmlc.compile(m, target=target).to_onnx()
        onnx.checker.check_model(out, full_check=True)
        for c, want in ((True, np.exp(-X)), (False, np.minimum(-X, 0))):
            np.testing.assert_allclose(run(out, {"x": X, "c": np.array(c)})[0], want, rtol=1e-6)


# --- bodies of other opsets


def spelled(body: str, opset: int, **feeds: Any) -> Any:
    """The result of a body as a model of its own opset."""
    m = parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[2, 4] x) => (float[?, ?] y) {{ {body} }}""")
    return run(m, feeds)[0]


@each_row(
    ("opset", "own", "body"),
    [
        (13, 12, "y = Squeeze <axes = [0]> (x0)"),
        (12, 13, "y = Squeeze (x0, axes)"),
        (18, 11, "s = ReduceMean <axes = [0], keepdims = 0> (x0) y = Identity(s)"),
        (11, 18, "y = ReduceMean <keepdims = 0> (x0, axes)"),
        (21, 12, "y = ReduceSum <axes = [0], keepdims = 0> (x0)"),
    ],
)
def test_a_body_of_another_opset_is_converted(opset: int, own: int, body: str) -> None:
    lifted = "x0 = Unsqueeze <axes = [0]> (x)" if own < 13 else "x0 = Unsqueeze(x, zero)"
    axes = "axes = Constant <value = int64[1] {0}> () zero = Constant <value = int64[1] {0}> () "
    m = calling(f"K <q: int = 0> (x) => (y) {{ {axes} {lifted} {body} }}", opset=opset, own=own)
    want = np.maximum(spelled(f"{axes} {lifted} {body}", own, x=X), 0)
    out = dmlc.compile(m, target="onnx").to_onnx()
    assert not out.functions
    np.testing.assert_allclose(run(out, {"x": X})[0], want, rtol=1e-6)


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
def test_a_body_that_cannot_be_converted_keeps_the_model_at_its_opset(target: str) -> None:
    text = "K <q: int = 0> (a) => (b) { b = Gelu(a) }\nUnused (a) => (b) { b = Neg(a) }"
    m = calling(text, opset=17, own=20)
    out = dmlc.compile(m, target=target).to_onnx()
    assert {e.domain: e.version for e in out.opset_import} == {"": 17, "f": 1}
    assert [f.name for f in out.functions] == ["K"]
    assert out.functions[0] == m.functions[0]


def test_a_call_of_too_many_operands_is_an_error() -> None:
    m = calling("K (a) => (b) { b = Neg(a) }", opset=17)
    m.graph.node[0].input.append("x")
    with pytest.raises(dmlc.DmlcError, match="has 2 operands, the function K has 1") as caught:
        dmlc.compile(m)
    assert caught.value.diagnostics[0].code.id == "E0431"
