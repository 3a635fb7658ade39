"""A declared type is a claim: where a node gives another type, that one counts, everywhere behind it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from import_helpers import run
from onnx import TensorProto, parser

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row

X = np.array([[1, -2, 3, -4], [0.5, 6, -7, 8], [2, 2, 1, 0]], np.float32)
T = np.array([1, 3, 0], np.int64)
HEAD = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[N, 4] x, int64[N] t) => (float{out} y, float{mid} m) """

#: Nodes that make ``v`` of x and t, and the shape of it; the first are opaque.
MAKERS: dict[str, tuple[str, tuple[int | str, ...]]] = {
    "loss": ('v = SoftmaxCrossEntropyLoss <reduction = "none"> (x, t)', ("N",)),
    "cumulative sum": ("a = Constant <value_int = 0> () v = CumSum(x, a)", ("N", 4)),
    "pool": (
        "o = Constant <value_ints = [1]> () u = Unsqueeze(x, o) p = MaxPool <kernel_shape = [2], strides = [2]> (u) "
        "v = Squeeze(p, o)",
        ("N", 2),
    ),
    "trilu": ("v = Trilu(x)", ("N", 4)),
    "relu": ("v = Relu(x)", ("N", 4)),
    "sum": ("v = ReduceSum <keepdims = 0> (x)", ()),
    "branches": (
        "r = ReduceMax <keepdims = 0> (x) z = Cast <to = 9> (r) "
        "v = If (z) <then_branch = a () => (float[] q) { q = CumSum(x, k) }, "
        "else_branch = b () => (float[] w) { w = Trilu(x) }>",
        ("N", 4),
    ),
}
#: Nodes that follow ``v``.
TAILS = {
    "mean": "y = ReduceMean <keepdims = 0> (v)",
    "maximum of the last axis": "h = ReduceMax <axes = [-1]> (v) y = Neg(h)",
    "shape": "s = Shape(v) y = Cast <to = 1> (s)",
    "softmax": "y = Softmax <axis = -1> (v)",
    "argmax": "a_ = ArgMax <axis = -1> (v) y = Cast <to = 1> (a_)",
    "opaque": "k_ = Constant <value_int = -1> () h = CumSum(v, k_) y = ReduceSum <keepdims = 0> (h)",
}


def wrong_shapes(shape: tuple[int | str, ...]) -> list[list[int | str]]:
    """Shapes that a value of ``shape`` cannot have."""
    wrong: list[list[int | str]] = [[*shape, 1], [1, 1, 1, 1]]
    if shape:
        wrong.append([])
    if len(shape) > 1:
        wrong.append([*shape[:-1]])
    if 4 in shape:
        wrong += [[s if s != 4 else 1 for s in shape], ["N", 7]]
    if 2 in shape:
        wrong += [["N", 1]]
    return wrong


CASES = [
    (maker, tail, shape)
    for maker, (_, right) in MAKERS.items()
    for tail in TAILS
    for shape in wrong_shapes(right)
    if not (maker == "sum" and tail not in ("mean", "shape"))
]


def declared(maker: str, tail: str, shape: list[int | str] | None, where: str) -> onnx.ModelProto:
    """The model in which ``v`` is declared with the shape; None declares nothing."""
    nodes, _ = MAKERS[maker]
    body = f"k = Constant <value_int = 1> () {nodes} {TAILS[tail]} m = Neg(v)"
    if where == "a branch":
        body = (
            "rx = ReduceMax <keepdims = 0> (x) cx = Cast <to = 9> (rx) y, m = If (cx) <then_branch = tt () => "
            f"(float[] y1, float[] m1) {{ {body} y1 = Identity(y) m1 = Identity(m) }}, "
            "else_branch = ee () => (float[] y2, float[] m2) { y2 = Exp(x) m2 = Exp(x) }>"
        )
    model = parser.parse_model(HEAD.format(out="[]", mid="[]") + "{" + body + "}")
    graphs = [model.graph, *(a.g for n in model.graph.node for a in n.attribute if a.HasField("g"))]
    if shape is not None:
        graph = graphs[1] if where == "a branch" else graphs[0]
        info = onnx.helper.make_tensor_value_info("v", TensorProto.FLOAT, shape)
        if where == "an output":
            model.graph.output.append(info)
        else:
            graph.value_info.append(info)
    elif where == "an output":
        model.graph.output.append(onnx.helper.make_tensor_value_info("v", TensorProto.FLOAT, None))
    return model


PLACES = ("a value", "an output", "a branch")


#: Each case in one of the places, which take turns: each nodes and each tail meet all of them.
TURNS = [(*case, PLACES[n % 3]) for n, case in enumerate(CASES)]


@cache
def undeclared(maker: str, tail: str, where: str) -> list[np.ndarray]:
    return run(declared(maker, tail, None, where), {"x": X, "t": T})


def test_each_maker_and_each_tail_meets_every_place() -> None:
    for part in (0, 1):
        assert {(case[part], case[3]) for case in TURNS} == {(case[part], p) for case in TURNS for p in PLACES}


@pytest.mark.parametrize(("maker", "tail"), dict.fromkeys((maker, tail) for maker, tail, _ in CASES))
def test_what_the_node_gives_counts(maker: str, tail: str) -> None:
    for shape, where in [case[2:] for case in TURNS if case[:2] == (maker, tail)]:
        check_declared(maker, tail, shape, where)


def check_declared(maker: str, tail: str, shape: list[int | str], where: str) -> None:
    """The targets take turns: the type is decided before one matters."""
    want = undeclared(maker, tail, where)
    model = declared(maker, tail, shape, where)
    for info, result in zip(model.graph.output[:2], want, strict=False):
        info.CopyFrom(onnx.helper.make_tensor_value_info(info.name, TensorProto.FLOAT, [None] * result.ndim))
    target = ("onnx", "directml")[(CASES.index((maker, tail, shape)) + PLACES.index(where)) % 2]
    program = dmlc.compile(model, target=target, strict=target == "onnx")
    assert "W0608" in [d.code.id for d in program.diagnostics]
    assert "v is declared f32[" in next(d.message for d in program.diagnostics if d.code.id == "W0608")
    out = program.to_onnx()
    onnx.checker.check_model(out, full_check=True)
    for old, new in zip(want, run(out, {"x": X, "t": T}), strict=True):
        assert old.shape == new.shape
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@each_row("kind", [TensorProto.INT64, TensorProto.DOUBLE, TensorProto.BOOL])
def test_so_does_its_element_type(kind: int) -> None:
    m = declared("cumulative sum", "mean", None, "a value")
    want = run(m, {"x": X, "t": T})
    m.graph.value_info.append(onnx.helper.make_tensor_value_info("v", kind, ["N", 4]))
    program = dmlc.compile(m, target="onnx")
    assert [d.code.id for d in program.diagnostics] == ["W0608"]
    for old, new in zip(want, run(program.to_onnx(), {"x": X, "t": T}), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5)


def test_a_declaration_that_adds_to_what_is_known_is_believed() -> None:
    m = parser.parse_model(
        HEAD.format(out="[N]", mid="[3, 4]")
        + "{ m = com.microsoft.Foo(x) y = ReduceSum <keepdims = 0> (m, c) c = Constant <value_ints = [1]> () }"
    )
    program = dmlc.compile(m, target="onnx")
    assert not program.diagnostics
    assert [d.dim_value for d in program.to_onnx().graph.output[1].type.tensor_type.shape.dim] == [3, 4]
    (node,) = [n for n in program.graph if getattr(n.attributes, "op_type", "") == "Foo"]
    assert str(node.result.type) == "f32[3, 4]"


def test_a_wrong_claim_behind_a_right_one_is_found() -> None:
    m = parser.parse_model(
        HEAD.format(out="[]", mid="[N, 4]")
        + """ {
        m = com.microsoft.Foo(x) k = Constant <value_int = 1> () v = CumSum(m, k) y = ReduceSum <keepdims = 0> (v) }"""
    )
    m.graph.value_info.append(onnx.helper.make_tensor_value_info("v", TensorProto.FLOAT, []))
    program = dmlc.compile(m, target="onnx")
    assert [d.message for d in program.diagnostics] == [
        "a declared type is wrong: v is declared f32[] and is f32[N, 4]"
    ]
    assert [n.op_type for n in program.to_onnx().graph.node if n.op_type != "Constant"][-1] == "ReduceSum"


# --- bodies


def looping(start: str, formal: str, body: str) -> onnx.ModelProto:
    """A Loop of three runs whose one state starts as ``start`` of x; the body declares it with the shape ``formal``."""
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[?, ?] y) {{
        n = Constant <value = int64 {{3}}> () c = Constant <value = bool {{1}}> () s = {start}
        e, p = Loop (n, c, s) <body = b (int64 i, bool ci, float{formal} a) => (bool co, float[] ao, float[] po) {{
            co = Identity(ci) {body} po = ReduceSum <keepdims = 0> (a) }}>
        y = Identity(e) }}""")


@pytest.mark.parametrize(
    ("start", "formal", "body"),
    [
        ("Identity(x)", "[1, 1]", "r = ReduceMax <axes = [1]> (a) ao = Sub(a, r)"),
        ("Identity(x)", "[1, 4, 1]", "r = ReduceMax <axes = [1]> (a) ao = Sub(a, r)"),
        (
            "ReduceMax <axes = [0]> (x)",
            "[1, 4]",
            "r = ReduceSum <keepdims = 0> (a) q = Add(a, r) ao = Concat <axis = 0> (q, a)",
        ),
        ("ReduceMax <axes = [0, 1]> (x)", "[1, 1]", "r = ReduceSum(a) q = Add(a, r) ao = Concat <axis = 1> (q, a)"),
    ],
)
def test_so_do_the_states_of_a_loop(start: str, formal: str, body: str) -> None:
    m = looping(start, formal, body)
    right = looping(start, "[]", body)
    want = run(right, {"x": X})
    for target in ("onnx", "directml"):
        program = dmlc.compile(m, target=target)
        assert [d.code.id for d in program.diagnostics if d.severity == "advice"] == ["W0608"]
        onnx.checker.check_model(program.to_onnx(), full_check=True)
        np.testing.assert_allclose(run(program.to_onnx(), {"x": X})[0], want[0], rtol=1e-5)


def test_the_advice_changes_no_exit_code(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    model = declared("loss", "mean", [], "a value")
    onnx.save(model, tmp_path / "m.onnx")
    command = ["compile", str(tmp_path / "m.onnx"), "--target", "onnx", "-o", str(tmp_path / "o.onnx")]
    assert main([*command, "--strict"]) == 0
    assert "hint[W0608]: a declared type is wrong: v is declared f32[] and is f32[N]" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "m.onnx"), "--target", "onnx", "--strict"]) == 0
