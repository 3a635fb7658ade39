"""The reference interpreter."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import dmlc
from dmlc.ir import Graph, Operation, TensorType
from dmlc.ir.dtype import f32
from dmlc.ir.operation import Attributes
from dmlc.runtime.reference import evaluate


def test_dims_in_attributes_are_bound() -> None:
    g = dmlc.Graph("g")
    n = g.dim("N")
    x = g.input("x", "f32", ("N", 4))
    g.output("flat", dmlc.reshape(x, shape=(n * 4,)))
    g.output("steps", dmlc.iota(length=n, dtype="i64"))
    out = evaluate(g.graph, {"x": np.arange(12, dtype=np.float32).reshape(3, 4)})
    np.testing.assert_array_equal(out["flat"], np.arange(12))
    np.testing.assert_array_equal(out["steps"], [0, 1, 2])


def test_outputs_are_the_callers_own() -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", (3,))
    g.output("same", x)
    g.output("w", dmlc.constant(np.ones(2)))
    data = np.zeros(3, np.float32)
    out = evaluate(g.graph, {"x": data})
    out["same"][:] = 7
    out["w"][:] = 7
    assert data.tolist() == [0, 0, 0]
    assert evaluate(g.graph, {"x": data})["w"].tolist() == [1, 1]


def test_feeds_are_checked() -> None:
    g = dmlc.Graph("g")
    g.output("y", dmlc.exp(g.input("x", "f32", (3,))))
    with pytest.raises(dmlc.DmlcError, match=r"expected f32\[3\], got f64\[3\]"):
        evaluate(g.graph, {"x": np.zeros(3)})


def test_a_reference_that_breaks_its_type_is_our_bug() -> None:
    wrong = Operation(
        name="wrong",
        operands=(),
        infer=lambda call: [TensorType(f32, (2,))],
        reference=lambda attributes: np.zeros(3, np.float32),
        summary="",
    )
    graph = Graph("g")
    graph.set_outputs([("y", graph.add(wrong, (), Attributes()).result)])
    with pytest.raises(dmlc.DmlcError, match=r"float32\[3\]") as caught:
        evaluate(graph, {})
    assert caught.value.exit_code == 3


def test_an_operator_without_a_reference() -> None:
    unknown = Operation(name="Gelu", operands=(), infer=lambda call: [TensorType(f32, ())], summary="")
    graph = Graph("g")
    graph.set_outputs([("y", graph.add(unknown, (), Attributes()).result)])
    with pytest.raises(dmlc.DmlcError, match="only ONNX Runtime knows it") as caught:
        evaluate(graph, {})
    assert caught.value.diagnostics[0].code.id == "E0553"


def test_operators_that_onnx_alone_defines_run_by_its_reference() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x, float[3, 4] w, float[4] b) => (float[N, 4] y) '
        "{ g = Gemm <alpha = 0.5> (x, w, b) y = Relu (g) }"
    )
    x, w = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    feeds = {"x": np.ascontiguousarray(x[:, :3]), "w": w, "b": x[0]}
    found = dmlc.compile(model, target="cpu", only_rules=()).run(feeds, backend="reference")["y"]
    np.testing.assert_allclose(found, np.maximum(feeds["x"] @ w * 0.5 + x[0], 0), rtol=1e-6)


def test_operators_of_others_have_no_reference() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[3] x) => (float[3] y) '
        "{ y = com.microsoft.FusedMatMul (x, x) }"
    )
    program = dmlc.compile(model, target="cpu", only_rules=())
    with pytest.raises(dmlc.DmlcError, match=r"com\.microsoft\.FusedMatMul has no reference") as caught:
        program.run({"x": np.zeros(3, np.float32)}, backend="reference")
    assert caught.value.diagnostics[0].code.id == "E0553"


@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_relations_of_an_imported_model_are_checked_where_onnx_runtime_does_not(backend: str) -> None:
    """The fed arrays are wrong, not the compiler; and an empty batch is not wrong."""
    make = onnx.helper
    x = make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", "m"])
    outputs = [make.make_tensor_value_info(name, onnx.TensorProto.INT64, None) for name in ("best", "top")]
    nodes = [make.make_node("ArgMax", ["x"], ["best"], axis=1), make.make_node("TopK", ["x", "k"], ["values", "top"])]
    k = onnx.numpy_helper.from_array(np.array([3]), "k")
    model = make.make_model(
        make.make_graph(nodes, "g", [x], outputs, [k]), opset_imports=[make.make_opsetid("", 17)], ir_version=8
    )
    program = dmlc.compile(model, target="onnx")
    out = program.run({"x": np.zeros((0, 4), np.float32)}, backend=backend)
    assert (out["best"].shape, out["top"].shape) == ((0, 1), (0, 3))
    for columns in (0, 2):
        with pytest.raises(dmlc.DmlcError, match=f"3 <= m does not hold: m is {columns}") as caught:
            program.run({"x": np.zeros((2, columns), np.float32)}, backend=backend)
        assert {d.code.id for d in caught.value.diagnostics} == {"E0426"}
        assert caught.value.exit_code == 1
