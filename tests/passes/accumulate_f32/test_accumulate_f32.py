"""``accumulate="f32"``: written-out squares, products and variances of f16 are computed in f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.diagnostics import DmlcError, Source
from tests.rows import each_row

HALF = TensorProto.FLOAT16
#: The result is rounded to f16 once; what is rounded before in f32 is far below that.
RTOL = float(np.finfo(np.float16).eps)
X = (np.random.default_rng(1).uniform(500, 600, (4, 100))).astype(np.float16)
WIDE = X.astype(np.float64)


def program(body: str, inputs: str = "x: f16[4, 100]", results: str = "y", **options: Any) -> dmlc.Program:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    source = Source("t.dml", f"model t({inputs}) -> ({results}) {{\n{lines}    return {results}\n}}\n")
    return dmlc.compile(source, **{"accumulate": "f32", **options})


def operators(p: dmlc.Program) -> list[str]:
    return [n.op_type for n in p.to_onnx().graph.node]


def fired(p: dmlc.Program) -> list[str]:
    return [e.rule for e in p.ledger if e.rule == "accumulate-f32"]


def mean(x: Any) -> Any:
    return x.mean(1, keepdims=True)


#: Bodies whose squares of 500 to 600 overflow f16 though the result does not, and the result in f64.
BODIES = {
    "y = sqrt(reduce_mean(x * x, axes=[1]))": lambda x: np.sqrt(mean(x * x)),
    "y = reduce_mean(x ** 2, axes=[1]) / 1000.0": lambda x: mean(x * x) / 1000,
    "y = sqrt(reduce_mean(x ** 2, axes=[1]) + 0.001)": lambda x: np.sqrt(mean(x * x) + 0.001),
    "y = reciprocal(sqrt(reduce_mean(x * x, axes=[1])))": lambda x: 1 / np.sqrt(mean(x * x)),
    "y = 0.5 / sqrt(reduce_mean(x * x, axes=[1]))": lambda x: 0.5 / np.sqrt(mean(x * x)),
    "y = reduce_sum(x * x, axes=[1]) / 1000.0": lambda x: (x * x).sum(1, keepdims=True) / 1000,
    "y = sqrt(squeeze(reduce_mean(x * x, axes=[1], keepdims=true), axes=[1]))": lambda x: np.sqrt((x * x).mean(1)),
    "y = log(reduce_mean(x * x, axes=[1]))": lambda x: np.log(mean(x * x)),
    "y = reduce_mean(x * x * 0.01, axes=[1])": lambda x: mean(x * x) / 100,
    "y = reduce_mean(-(x * x), axes=[1]) * 0.001": lambda x: -mean(x * x) / 1000,
    "d = x - 2.0 * reduce_max(x, axes=[1]); y = sqrt(reduce_mean(d * d, axes=[1]))": (
        lambda x: np.sqrt(mean((x - 2 * x.max(1, keepdims=True)) ** 2))
    ),
    "y = reduce_mean(x * x, axes=[1]) - reduce_mean(x, axes=[1]) ** 2": lambda x: mean(x * x) - mean(x) ** 2,
}  # fmt: skip


@each_row("target", ["directml", "cpu", "onnx", "numpy"])
@each_row("body", BODIES)
def test_numbers(body: str, target: str) -> None:
    p = program(body, target=target)
    assert fired(p)
    assert not p.diagnostics
    found = p.run({"x": X}, None if target == "numpy" else "cpu")["y"]
    assert found.dtype == np.float16
    want = BODIES[body](WIDE)
    # A difference of two means of squares loses the digits that these have in common, in f32 here.
    loss = 1e5 * float(np.finfo(np.float32).eps) * 100 if " - reduce_mean" in body else 0
    np.testing.assert_allclose(found, want, rtol=RTOL, atol=loss)


@pytest.mark.parametrize(
    "body", ["y = sqrt(reduce_mean(x * x, axes=[1]))", "y = reduce_mean(x ** 2, axes=[1]) / 1000.0"]
)
def test_without_it_the_squares_overflow(body: str) -> None:
    # ONNX Runtime's CPU provider keeps f16 in f32 where it may; for target cpu the casts are written.
    p = program(body, accumulate=None, target="cpu")
    assert not fired(p)
    assert np.isinf(p.run({"x": X}, "cpu")["y"]).all()


def test_a_variance_is_cast_once_each_way() -> None:
    p = program("m = reduce_mean(x, axes=[1]); d = x - m; y = sqrt(reduce_mean(d * d, axes=[1]) + 0.001)")
    assert operators(p) == ["Cast", "ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt", "Cast"]
    (entry,) = [e for e in p.ledger if e.rule == "accumulate-f32"]
    assert entry.rewrite_class == "reassociates"
    assert entry.text == "reduce_mean, sub, mul, add, sqrt of f16 in f32"
    assert {s.line for s in entry.spans} == {2, 3, 4}
    wide = np.linspace(-900, 900, 400).reshape(4, 100).astype(np.float16)
    want = np.sqrt(wide.astype(np.float64).var(1, keepdims=True) + 0.001)
    np.testing.assert_allclose(p.run({"x": wide}, "cpu")["y"], want, rtol=RTOL)


def test_products() -> None:
    p = program("y = reduce_mean(a * b * c, axes=[1])", "a: f16[2, 8], b: f16[2, 8], c: f16[2, 8]")
    assert operators(p) == ["Cast", "Cast", "Mul", "Cast", "Mul", "ReduceMean", "Cast"]
    feeds = {"a": np.full((2, 8), 300, np.float16), "b": np.full((2, 8), 400, np.float16)}
    feeds["c"] = np.full((2, 8), 0.25, np.float16)
    np.testing.assert_allclose(p.run(feeds, "cpu")["y"], np.full((2, 1), 30000), rtol=RTOL)


def test_an_epsilon_that_is_fed() -> None:
    p = program("y = sqrt(reduce_mean(x * x, axes=[1]) + eps)", "x: f16[4, 100], eps: f16[]")
    assert operators(p) == ["Cast", "Mul", "ReduceMean", "Cast", "Add", "Sqrt", "Cast"]
    found = p.run({"x": X, "eps": np.float16(2)}, "cpu")["y"]
    np.testing.assert_allclose(found, np.sqrt(mean(WIDE**2) + 2), rtol=RTOL)


def test_what_others_need_is_cast_back() -> None:
    p = program("s = x * x; m = reduce_mean(s, axes=[1]); y = sqrt(m)", results="s, m, y")
    assert operators(p).count("Cast") == 4
    small = (X / np.float16(100)).astype(np.float16)
    found, wide = p.run({"x": small}, "cpu"), small.astype(np.float64)
    np.testing.assert_allclose(found["s"], wide**2, rtol=RTOL)
    np.testing.assert_allclose(found["m"], mean(wide**2), rtol=RTOL)
    np.testing.assert_allclose(found["y"], np.sqrt(mean(wide**2)), rtol=RTOL)
    large = p.run({"x": X}, "cpu")
    assert np.isinf(large["m"]).all() and np.isfinite(large["y"]).all()


@each_row(
    "body",
    [
        "y = reduce_mean(x, axes=[1])",
        "y = reduce_mean(x * 2.0, axes=[1])",
        "y = reduce_max(x * x, axes=[1])",
        "y = x * x",
        "y = sqrt(reduce_sum(x * x, axes=[1]))",
        "y = reduce_sum_square(x, axes=[1])",
        "y = reduce_sum_square(x, axes=[1]) + 1.0",
        "y = clip(reduce_l2(x, axes=[1]), min=1)",
        "y = reduce_mean(x ** 0.5, axes=[1])",
    ],
)
def test_left_alone(body: str) -> None:
    assert not fired(program(body))


def test_other_types_are_left_alone() -> None:
    for dtype in ("f32", "i32"):
        assert not fired(program("y = reduce_sum(x * x * x, axes=[1])", f"x: {dtype}[4, 100]"))


def test_off_by_default_and_refused_with_exact() -> None:
    assert not fired(program("y = reduce_mean(x * x, axes=[1])", accumulate=None))
    with pytest.raises(DmlcError) as error:
        program("y = reduce_mean(x * x, axes=[1])", exact=True)
    assert error.value.exit_code == 2
    with pytest.raises(DmlcError):
        program("y = x", accumulate="f64")


def test_an_imported_model() -> None:
    node = helper.make_node
    nodes = [
        node("Pow", ["x", "two"], ["sq"], name="square"),
        node("ReduceMean", ["sq", "axes"], ["ms"], name="mean", keepdims=1),
        node("Add", ["ms", "eps"], ["plus"]),
        node("Sqrt", ["plus"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info("x", HALF, ["N", 100]), helper.make_tensor_value_info("y", HALF, ["N", 1])]
    weights = {"two": np.float16(2), "axes": np.array([1]), "eps": np.float16(0.01)}
    tensors = [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], tensors)
    graph.value_info.extend([helper.make_tensor_value_info(n, HALF, ["N", s]) for n, s in (("sq", 100), ("ms", 1))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    plain = dmlc.compile(model)
    (warning,) = plain.diagnostics
    assert "the square of x may overflow f16 before its reduce_mean" in warning.message
    p = dmlc.compile(model, accumulate="f32")
    onnx.checker.check_model(p.to_onnx(), full_check=True)
    assert operators(p) == ["Cast", "Pow", "ReduceMean", "Add", "Sqrt", "Cast"]
    assert not p.diagnostics
    assert [e.before for e in p.ledger if e.rule == "accumulate-f32"] == [("square", "mean", "plus/Add", "y/Sqrt")]
    np.testing.assert_allclose(p.run({"x": X}, "cpu")["y"], np.sqrt(mean(WIDE**2) + 0.01), rtol=RTOL)


def _norm_model(body: str, opset: int = 17) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {body}'
    return onnx.parser.parse_model(text)


NORMS = {
    "layer": "(float16[2,8] x, float16[8] g) => (float16[2,8] y) { y = LayerNormalization(x, g) }",
    "layer with statistics": "(float16[2,8] x, float16[8] g) => (float16[2,8] y, float[2,1] m)"
                             " { y, m = LayerNormalization(x, g) }",
    "simplified": "(float16[2,8] x, float16[8] g) => (float16[2,8] y) { y = SimplifiedLayerNormalization(x, g) }",
    "instance": "(float16[2,2,4] x, float16[2] g) => (float16[2,2,4] y) { y = InstanceNormalization(x, g, g) }",
    "skip": "(float16[1,2,8] x, float16[8] g) => (float16[1,2,8] y, float16[1,2,8] s)"
            " { y, , , s = com.microsoft.SkipLayerNormalization(x, x, g) }",
    "skip simplified": "(float16[1,2,8] x, float16[8] g) => (float16[1,2,8] y)"
                       " { y = com.microsoft.SkipSimplifiedLayerNormalization(x, x, g) }",
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norm_is_computed_in_f32(name: str) -> None:
    """Rows that spread by 2000, whose variance f16 does not hold."""
    made = _norm_model(NORMS[name])
    shape = [d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim]
    x = (np.arange(np.prod(shape)) % 8 - 3.5).reshape(shape) * 600
    feeds = {
        "x": x.astype(np.float16),
        "g": np.ones(made.graph.input[1].type.tensor_type.shape.dim[0].dim_value, np.float16),
    }
    advised = dmlc.compile(made)
    assert "W0611" in {d.code.id for d in advised.diagnostics}
    wide = dmlc.compile(made, accumulate="f32")
    assert "W0611" not in {d.code.id for d in wide.diagnostics}
    assert not wide.placement().findings
    (norm,) = [node for node in wide.to_onnx().graph.node if "Norm" in node.op_type]
    types = {i.name: i.type.tensor_type.elem_type for i in wide.to_onnx().graph.value_info}
    assert types[norm.output[0]] == onnx.TensorProto.FLOAT
    got, want = wide.run(feeds, backend="cpu"), advised.run(feeds, backend="cpu")
    for key, array in want.items():
        assert got[key].dtype == array.dtype
        np.testing.assert_allclose(got[key].astype(np.float64), array.astype(np.float64), rtol=2e-3, atol=2e-3)
    assert np.isfinite(got["y"]).all() and np.abs(got["y"]).max() > 1


def test_norm_of_f32_is_left_alone() -> None:
    made = _norm_model("(float[2,8] x, float[8] g) => (float[2,8] y) { y = LayerNormalization(x, g) }")
    program = dmlc.compile(made, accumulate="f32")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["LayerNormalization"]
    assert not program.diagnostics


def test_norm_of_a_bounded_operand_is_not_warned_of() -> None:
    for body, is_advised in (
        ("t = Tanh(x) y = LayerNormalization(t, g)", False),
        ("t = Transpose<perm = [0, 1]>(x) y = LayerNormalization(t, g)", True),
        ("c = Constant<value = float {-9}>() d = Constant<value = float {9}>()"
         " a = Cast<to = 10>(c) b = Cast<to = 10>(d) t = Clip(x, a, b)"
         " y = LayerNormalization(t, g)", False),
        ("c = Constant<value = float {-9}>() a = Cast<to = 10>(c) t = Clip(x, a) y = LayerNormalization(t, g)", True),
    ):  # fmt: skip
        program = dmlc.compile(_norm_model(f"(float16[2,8] x, float16[8] g) => (float16[2,8] y) {{ {body} }}"))
        assert ("W0611" in {d.code.id for d in program.diagnostics}) == is_advised, body


def test_norms_alike_share_one_message() -> None:
    body = "u = LayerNormalization(x, g) v = Exp(u) w = LayerNormalization(v, g) y = LayerNormalization(w, g)"
    program = dmlc.compile(_norm_model(f"(float16[2,8] x, float16[8] g) => (float16[2,8] y) {{ {body} }}"))
    (found,) = [d for d in program.diagnostics if d.code.id == "W0611"]
    assert "and 2 like it" in found.message
    assert program.problems(strict=True)[0].severity == "advice"
