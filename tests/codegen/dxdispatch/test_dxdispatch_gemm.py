"""ONNX's Gemm, which the language has no operation for, is DirectML's GEMM."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from dxdispatch_check import dispatched, machine_of, outputs_of
from onnx import helper

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

TYPES = {"float32": onnx.TensorProto.FLOAT, "float16": onnx.TensorProto.FLOAT16, "int32": onnx.TensorProto.INT32}


def gemm(dtype: str, c: tuple[int, ...] | None, trans: tuple[int, int], **factors: float) -> dmlc.Program:
    names = ["a", "b"] if c is None else ["a", "b", "c"]
    shapes = [(4, 3) if trans[0] else (3, 4), (5, 4) if trans[1] else (4, 5), c]
    node = helper.make_node("Gemm", names, ["y"], transA=trans[0], transB=trans[1], **factors)
    inputs = [helper.make_tensor_value_info(n, TYPES[dtype], s) for n, s in zip(names, shapes, strict=False)]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TYPES[dtype], [3, 5])])
    return dmlc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def feeds_of(program: dmlc.Program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {n: rng.integers(-4, 5, t.shape).astype(t.dtype.numpy) for n, t in program.signature.inputs}


def wanted(feeds: dict[str, np.ndarray], trans: tuple[int, int], alpha: float = 1, beta: float = 1) -> np.ndarray:
    """One product after another."""
    a = feeds["a"].T if trans[0] else feeds["a"]
    b = feeds["b"].T if trans[1] else feeds["b"]
    c = np.broadcast_to(feeds.get("c", np.zeros(())), (3, 5))
    rows = [[alpha * sum(float(p) * float(q) for p, q in zip(r, s, strict=True)) for s in b.T] for r in a]
    return np.array(rows) + beta * c


CS: list[tuple[int, ...] | None] = [None, (), (1,), (5,), (3, 1), (1, 5), (3, 5)]
FACTORS: list[dict[str, float]] = [{}, {"alpha": 0.5}, {"beta": 2.0}, {"alpha": -2.0, "beta": 0.25}, {"beta": 0.0}]


@each_row("trans", [(0, 0), (0, 1), (1, 0), (1, 1)])
@each_row("c", CS)
@each_row("factors", FACTORS)
def test_numbers(trans: tuple[int, int], c: tuple[int, ...] | None, factors: dict[str, float]) -> None:
    """The two dtypes take turns along each of the three."""
    dtype = ("float32", "float16")[(sum(trans) + CS.index(c) + FACTORS.index(factors)) % 2]
    program = gemm(dtype, c, trans, **factors)
    feeds = feeds_of(program)
    machine = machine_of(program, feeds)
    (found,) = machine.run().values()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted(feeds, trans, **factors).astype(dtype))  # exact: small quarters
    assert dispatched(machine) == ["GEMM"]


@pytest.mark.parametrize("trans", [(0, 0), (1, 1)])
@pytest.mark.parametrize("c", [None, (5,), (3, 5)])
def test_integers(trans: tuple[int, int], c: tuple[int, ...] | None) -> None:
    program = gemm("int32", c, trans)
    feeds = feeds_of(program)
    np.testing.assert_array_equal(outputs_of(program, feeds)["y"], wanted(feeds, trans))
    for factors in ({"alpha": 2.0}, {"beta": 0.5} if c else {"alpha": 0.5}):
        with pytest.raises(dmlc.DmlcError, match="E0580"):
            gemm("int32", c, trans, **factors).artifact("dxdispatch")


def test_in_a_program() -> None:
    text = "model m(a: f32[4, 3], b: f32[4, 5], c: f32[5]) -> (y) {\n    y = onnx.Gemm(a, b, c, transA=1, alpha=0.5)\n"
    program = dmlc.compile(Source("m.dml", f"{text}    return y\n}}"))
    feeds = feeds_of(program)
    np.testing.assert_array_equal(outputs_of(program, feeds)["y"], wanted(feeds, (1, 0), 0.5))


def test_other_domains_have_no_gemm() -> None:
    node = helper.make_node("Gemm", ["a", "b"], ["y"], domain="mine")
    inputs = [helper.make_tensor_value_info(n, 1, [2, 2]) for n in "ab"]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", 1, [2, 2])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    with pytest.raises(dmlc.DmlcError, match="E0580"):
        dmlc.compile(helper.make_model(graph, opset_imports=opsets, ir_version=8)).artifact("dxdispatch")
