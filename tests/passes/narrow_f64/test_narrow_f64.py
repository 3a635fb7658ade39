"""``f64="f32"``: what is f64 is computed in f32, the interface keeps its types, and nothing stays on the CPU for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.diagnostics import DmlcError, Source
from dmlc.ir.dtype import f64
from tests.rows import each_row

node = helper.make_node
DOUBLE, FLOAT, BOOL = TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.BOOL
#: Inputs, each operation and outputs are rounded to f32: a few units of it.
RTOL = 32 * float(np.finfo(np.float32).eps)


def program(body: str, inputs: str = "x: f64[3, 4]", results: str = "y", **options: Any) -> dmlc.Program:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    source = Source("t.dml", f"model t({inputs}) -> ({results}) {{\n{lines}    return {results}\n}}\n")
    return dmlc.compile(source, **{"f64": "f32", **options})


def model(nodes: list[onnx.NodeProto], inputs: list, outputs: list, **weights: Any) -> onnx.ModelProto:
    values = [[helper.make_tensor_value_info(*info) for info in infos] for infos in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "g", *values, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def on_cpu(p: dmlc.Program) -> list[str]:
    return [n.op for n in p.placement().nodes if n.where == "cpu"]


def interface(p: dmlc.Program) -> list[int]:
    graph = p.to_onnx().graph
    onnx.checker.check_model(p.to_onnx())
    return [v.type.tensor_type.elem_type for v in (*graph.input, *graph.output)]


X = np.random.default_rng(0).uniform(0.5, 2, (3, 4))


@each_row(
    ("body", "expected"),
    [
        ("y = exp(x) + 2.0 * x", lambda x: np.exp(x) + 2 * x),
        ("y = erf(x) / sqrt(x)", None),
        ("y = reduce_sum(x * x, axes=[1])", lambda x: (x * x).sum(1, keepdims=True)),
        ("y = softmax(x, axes=[0, 1])", lambda x: np.exp(x) / np.exp(x).sum()),
        ("y = layer_norm(x, full(shape=[4], value=1, dtype=f64), axis=1)", None),
        ("y = matmul(x, transpose(x, perm=[1, 0]))", lambda x: x @ x.T),
        ("y = where(x > 1.0, x, clip(x, max=0.75))", lambda x: np.where(x > 1, x, np.minimum(x, 0.75))),
        ("y = iota(length=4, dtype=f64) + x", lambda x: np.arange(4) + x),
        ("y = one_hot(argmax(x, axes=[1], keepdims=false), depth=4, on=2.5, dtype=f64)", None),
        ("y = (x as i32) as f64", lambda x: np.trunc(x)),
        ("y = pad(x, pads=[1, 0, 0, 2], value=0.1)", lambda x: np.pad(x, [(1, 0), (0, 2)], constant_values=0.1)),
    ],
)
def test_programs(body: str, expected: Any) -> None:
    p = program(body)
    assert not on_cpu(p)
    assert interface(p) == [DOUBLE, DOUBLE]
    assert not p.diagnostics
    want = p.run({"x": X}, "reference")["y"] if expected is None else expected(X)
    found = p.run({"x": X}, "cpu")["y"]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, want, rtol=RTOL, atol=RTOL)
    assert all(v.type.dtype is not f64 or n.op.name == "cast" for n in p.graph for v in n.results)


def test_it_is_really_f32() -> None:
    x = np.full((3, 4), 1 + 2.0**-40)
    assert program("y = x - 1.0").run({"x": x}, "cpu")["y"].max() == 0
    assert program("y = x - 1.0", f64=None).run({"x": x}, "cpu")["y"].max() == 2.0**-40


def test_what_nobody_computes_keeps_every_digit() -> None:
    p = program("y = x; z = 1.1 as f64; k = argmax(x, axes=[1])", results="y, z, k")
    found = p.run({"x": X / 3}, "cpu")
    np.testing.assert_array_equal(found["y"], X / 3)
    assert found["z"] == 1.1
    np.testing.assert_array_equal(found["k"], (X / 3).argmax(1)[:, None])


def test_casts_between() -> None:
    p = program("y = (k as f64) * (x as f64); z = y as f32", "k: i32[3], x: f32[3]", "y, z")
    assert [n.op_type for n in p.to_onnx().graph.node] == ["Cast", "Mul", "Cast"]
    found = p.run({"k": np.array([1, 2, 3], np.int32), "x": np.array([0.1, 0.2, 0.3], np.float32)}, "cpu")
    np.testing.assert_array_equal(found["z"], found["y"].astype(np.float32))


def test_numbers_that_f32_has_not() -> None:
    p = program("y = x * 1e300; z = clip(x, max=1e200); w = x + 1e-60", results="y, z, w")
    assert [d.code.id for d in p.diagnostics] == ["W0603"] * 3
    text = " ".join(d.message for d in p.diagnostics)
    assert "1e+300 is inf" in text and "1e+200 of max of clip is inf" in text and "1e-60 is 0" in text
    assert [d.span.line for d in p.diagnostics if d.span] == [2, 4, 3] or all(d.span for d in p.diagnostics)
    assert np.isinf(p.run({"x": X}, "cpu")["y"]).all()
    with pytest.raises(DmlcError):
        program("y = x * 1e300", strict=True)


def test_the_ledger_has_words_of_its_own() -> None:
    entry = program("y = exp(x)").ledger[0]
    assert (entry.rule, entry.rewrite_class) == ("narrow-f64", "asked for")
    assert entry.text == "every f64 computation is done in f32, as was asked for: 1 node"
    assert [s.line for s in entry.spans] == [2]
    assert not [e for e in program("y = exp(x)", "x: f32[3]").ledger if e.rule == "narrow-f64"]
    assert not [e for e in program("y = exp(x)", f64=None).ledger if e.rule == "narrow-f64"]


def test_without_it_the_warning_names_what_works() -> None:
    plain = program("y = exp(x)", f64=None)
    assert on_cpu(plain) == ["Exp"]
    assert [d.help for d in plain.diagnostics] == ["--f64 f32 computes it in f32"]
    assert not program("y = exp(x)", strict=True).diagnostics


@pytest.mark.parametrize("target", ["cpu", "onnx", "numpy"])
def test_other_targets(target: str) -> None:
    p = program("y = exp(x)", target=target)
    found = p.run({"x": X})["y"]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.exp(X), rtol=RTOL)
    assert (found == np.exp(X.astype(np.float32)).astype(np.float64)).mean() > 0.5


def test_a_program_of_onnx_operators() -> None:
    p = program("y = onnx.HardSigmoid(x, alpha=0.3)")
    assert not on_cpu(p)
    np.testing.assert_allclose(p.run({"x": X}, "cpu")["y"], np.clip(0.3 * X + 0.5, 0, 1), rtol=RTOL)


def test_wrong_words() -> None:
    with pytest.raises(DmlcError) as error:
        program("y = x", f64="f16")
    assert error.value.exit_code == 2


# --- imported models


def compiled(m: onnx.ModelProto) -> dmlc.Program:
    onnx.checker.check_model(m, full_check=True)
    p = dmlc.compile(m, f64="f32")
    onnx.checker.check_model(p.to_onnx(), full_check=True)
    return p


def agree(m: onnx.ModelProto, p: dmlc.Program, **feeds: Any) -> None:
    plain = dmlc.compile(m, target="onnx").run(feeds, "cpu")
    found = p.run(feeds, "cpu")
    for name, want in plain.items():
        assert found[name].dtype == want.dtype
        np.testing.assert_allclose(found[name], want, rtol=RTOL, atol=RTOL)


def test_passed_on_operators_take_f32() -> None:
    nodes = [
        node("Gemm", ["x", "w", "b"], ["g"], alpha=0.5),
        node("Einsum", ["g", "g"], ["e"], equation="ij,ij->i"),
        node("Clip", ["e", "low"], ["c"]),
        node("Softplus", ["c"], ["y"]),
    ]
    weights = {"w": np.ones((4, 2)), "b": np.array([0.1, 0.2]), "low": np.array(0.3)}
    m = model(nodes, [("x", DOUBLE, [3, 4])], [("y", DOUBLE, [3])], **weights)
    m.graph.value_info.append(helper.make_tensor_value_info("e", DOUBLE, [3]))
    m.graph.value_info.append(helper.make_tensor_value_info("g", DOUBLE, [3, 2]))
    p = compiled(m)
    assert not on_cpu(p)
    assert interface(p) == [DOUBLE, DOUBLE]
    g = (0.5 * X) @ np.ones((4, 2)) + [0.1, 0.2]
    want = np.log1p(np.exp(np.maximum((g * g).sum(1), 0.3)))  # ONNX Runtime has no Softplus of f64
    np.testing.assert_allclose(p.run({"x": X}, "cpu")["y"], want, rtol=RTOL)


def test_results_that_are_f64_whatever_the_operands_are() -> None:
    nodes = [node("EyeLike", ["x"], ["eye"], dtype=DOUBLE), node("MatMul", ["x", "eye"], ["y"])]
    m = model(nodes, [("x", DOUBLE, [3, 3])], [("y", DOUBLE, [3, 3])])
    p = compiled(m)
    types = {n.op_type: n for n in p.to_onnx().graph.node}
    assert {"EyeLike", "MatMul"} <= set(types)
    agree(m, p, x=X[:, :3])


def test_graphs_inside_nodes_stay_f64_with_casts_around() -> None:
    inner = [
        helper.make_graph(
            [node(op, ["h"], [f"o{i}"])], f"b{i}", [], [helper.make_tensor_value_info(f"o{i}", DOUBLE, [3])]
        )
        for i, op in enumerate(("Exp", "Neg"))
    ]
    nodes = [
        node("Sqrt", ["x"], ["h"]),
        node("If", ["c"], ["r"], then_branch=inner[0], else_branch=inner[1]),
        node("Sin", ["r"], ["y"]),
    ]
    m = model(nodes, [("x", DOUBLE, [3]), ("c", BOOL, [])], [("y", DOUBLE, [3]), ("r", DOUBLE, [3])])
    p = compiled(m)
    assert "If stayed f64" in p.ledger[0].text
    assert set(on_cpu(p)) <= {"If", "Exp", "Neg"}
    for c in (True, False):
        agree(m, p, x=X[0, :3], c=np.array(c))
    inside = p.run({"x": X[0, :3], "c": np.array(True)}, "cpu")["r"]
    assert (inside != inside.astype(np.float32)).any()  # a result that stays f64 is given as it is


def test_operators_that_do_not_take_f32_stay() -> None:
    nodes = [node("Add", ["x", "x"], ["a"]), node("Warp", ["a"], ["w"], domain="acme"), node("Exp", ["w"], ["y"])]
    m = model(nodes, [("x", DOUBLE, [3])], [("y", DOUBLE, [3])])
    m.graph.value_info.append(helper.make_tensor_value_info("w", DOUBLE, [3]))
    m.opset_import.append(helper.make_opsetid("acme", 1))
    made = dmlc.compile(m, f64="f32").to_onnx().graph
    assert [n.op_type for n in made.node] == ["Cast", "Add", "Cast", "Warp", "Cast", "Exp", "Cast"]


def test_a_model_without_f64_is_left_alone() -> None:
    m = model([node("Exp", ["x"], ["y"])], [("x", FLOAT, [3])], [("y", FLOAT, [3])])
    assert [n.op_type for n in dmlc.compile(m, f64="f32").to_onnx().graph.node] == ["Exp"]


def test_verified_against_what_was_asked_for() -> None:
    assert program("y = softmax(x, axes=[1]) + erf(x)").verify(6).ok
    nodes = [node("ReduceMean", ["x"], ["m"]), node("Sub", ["x", "m"], ["d"]), node("Sinh", ["d"], ["y"])]
    m = model(nodes, [("x", DOUBLE, [3, 4])], [("y", DOUBLE, [3, 4])])
    assert compiled(m).verify(6).ok
