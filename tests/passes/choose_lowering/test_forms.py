"""Lowerings that are taken by times alone: what each gives, where none is possible, and that none is taken unasked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from search_helpers import check, chosen, fired, operators

import dmlc
from dmlc import builder


def einsum(equation: str, *shapes: tuple[int, ...]) -> Any:
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, shapes, strict=True)]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def top_k(k: int, axis: int, order: str = "largest") -> dmlc.Graph:
    graph = builder.Graph("m")
    values, indices = builder.top_k(graph.input("x", dtype="f32", shape=[4, 5, 6]), k=k, axis=axis, order=order)
    graph.output("v", values)
    graph.output("i", indices)
    return graph


def unary(op: str, dtype: str = "f32", **attributes: Any) -> dmlc.Graph:
    graph = builder.Graph("m")
    graph.output("y", getattr(builder, op)(graph.input("x", dtype=dtype, shape=[4, 6]), **attributes))
    return graph


@pytest.mark.parametrize(
    ("source", "rule", "gone"),
    [
        (top_k(1, 1), "top-k-by-argmax", "TopK"),
        (top_k(1, 2, "smallest"), "top-k-by-argmax", "TopK"),
        (top_k(3, 0), "top-k-of-last", ""),
        (unary("gelu"), "gelu-in-parts", "Gelu"),
        (unary("gelu", approximate="tanh"), "gelu-in-parts", "Gelu"),
        (einsum("abc,adc->adb", (2, 3, 4), (2, 5, 4)), "einsum-by-product", "Einsum"),
    ],
)
def test_each_gives_the_same_numbers(source: Any, rule: str, gone: str) -> None:
    assert rule not in fired(dmlc.compile(source, target="cpu"))
    program = dmlc.compile(source, target="cpu", opset=20, only_rules=[rule])
    assert rule in fired(program)
    assert gone not in operators(program)
    rng = np.random.default_rng(0)
    feeds = {v.name or "": rng.integers(-2, 3, [*v.shape]).astype(np.float32) for v in program.source_graph.inputs}
    if rule.startswith("top-k"):
        check(program, feeds)
    else:
        expected = program.run(feeds, backend="reference")["y"]
        np.testing.assert_allclose(program.run(feeds, backend="cpu")["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("source", "rule", "reason"),
    [
        (top_k(2, 1), "top-k-by-argmax", "more than one element is wanted"),
        (top_k(2, 2), "top-k-of-last", "it is along the last axis"),
        (einsum("ab,cb,db->acd", (2, 3), (4, 3), (5, 3)), "einsum-by-product", ""),
        (einsum("ab,cd->abcd", (2, 3), (4, 5)), "einsum-by-product", ""),
        (unary("reduce_sum", "f16", axes=[0]), "reduce-in-f32", ""),
    ],
)
def test_where_none_is_possible(source: Any, rule: str, reason: str) -> None:
    program = dmlc.compile(source, target="cpu", only_rules=[rule])
    assert fired(program) in ([], ["widen-dtype"])
    assert all(reason in text for text in chosen(program))
