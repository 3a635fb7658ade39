"""The reference interpreter."""

from __future__ import annotations

import numpy as np
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
