"""``accumulate="f32"``: written-out squares, products and variances of f16 are computed in f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.diagnostics import DmlcError, Source

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


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx", "numpy"])
@pytest.mark.parametrize("body", BODIES)
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


@pytest.mark.parametrize(
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
        "y = x / sqrt(reduce_mean(x * x, axes=[1]) + 0.00001)",
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
    assert [e.before for e in p.ledger if e.rule == "accumulate-f32"] == [("square", "mean", "add plus", "sqrt y")]
    np.testing.assert_allclose(p.run({"x": X}, "cpu")["y"], np.sqrt(mean(WIDE**2) + 0.01), rtol=RTOL)
