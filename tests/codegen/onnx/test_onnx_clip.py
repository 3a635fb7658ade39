"""Clips with one bound: an ONNX Clip without the other ends at the largest finite number, the language's does not."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

_TYPES = {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE}
_X = [math.inf, -math.inf, 1.0, -1.0, 0.0]


def _onnx(dtype: str, bounds: dict[str, float], opset: int = 17) -> ModelProto:
    """Clip with the bounds that are given; as attributes below opset 11."""
    element, names = _TYPES[dtype], ["min", "max"]
    if opset < 11:
        node = helper.make_node("Clip", ["x"], ["y"], **bounds)
        constants = []
    else:
        node = helper.make_node("Clip", ["x", *(name if name in bounds else "" for name in names)], ["y"])
        constants = [helper.make_tensor(name, element, [], [value]) for name, value in bounds.items()]
    x, y = (helper.make_tensor_value_info(name, element, [5]) for name in "xy")
    graph = helper.make_graph([node], "g", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("bound", ["min=0.5", "max=0.5"])
def test_infinities_stay_where_there_is_no_bound(dtype: str, bound: str) -> None:
    source = Source("m.dml", f"model m(x: {dtype}[5]) -> (y) {{\n    y = clip(x, {bound})\n    return y\n}}\n")
    program = dmlc.compile(source, target="cpu")
    x = np.array(_X).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])
    wanted = np.maximum(x, 0.5) if "min" in bound else np.minimum(x, 0.5)
    for backend in ("cpu", "numpy", "reference"):
        assert np.array_equal(program.run({"x": x}, backend=backend)["y"], wanted), backend


@each_row("dtype", _TYPES)
@each_row("bounds", [{"min": 0.5}, {"max": 0.5}, {}])
def test_an_onnx_clip_keeps_its_own_meaning_and_gets_no_bound(dtype: str, bounds: dict[str, float]) -> None:
    model = _onnx(dtype, bounds)
    program = dmlc.compile(model, target="cpu")
    (node,) = program.to_onnx().graph.node
    assert (
        node.op_type == "Clip"
        and [bool(name) for name in node.input][1:] == [bool(name) for name in model.graph.node[0].input][1:]
    )
    x = np.array(_X).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])
    most = np.finfo(x.dtype).max
    wanted = np.clip(x, bounds.get("min", -most), bounds.get("max", most))
    assert np.array_equal(program.run({"x": x}, backend="cpu")["y"], wanted)
    assert np.array_equal(program.run({"x": x}, backend="reference")["y"], wanted)


@pytest.mark.parametrize("bounds", [{"min": 0.5}, {"max": 0.5}])
def test_in_f16_before_opset_12_both_bounds_are_written(bounds: dict[str, float]) -> None:
    """ONNX Runtime's CPU provider computes it in f32 there, where the largest f32 is the bound that is left out."""
    x = np.array(_X, np.float16)
    most = np.finfo(np.float16).max
    wanted = np.clip(x, bounds.get("min", -most), bounds.get("max", most))
    for target in ("directml", "cpu"):
        program = dmlc.compile(_onnx("f16", bounds), target=target, opset=11)
        assert np.array_equal(program.run({"x": x}, backend="cpu")["y"], wanted)


def test_before_opset_11_the_bound_is_the_largest_f32() -> None:
    program = dmlc.compile(_onnx("f32", {"min": 0.5}, opset=10), target="cpu")
    x = np.array(_X, np.float32)
    wanted = np.clip(x, np.float32(0.5), np.finfo(np.float32).max)
    assert np.array_equal(program.run({"x": x}, backend="reference")["y"], wanted)
    assert np.array_equal(program.run({"x": x}, backend="cpu")["y"], wanted)


def test_an_infinite_bound_is_none() -> None:
    program = dmlc.compile(_onnx("f32", {"min": -math.inf, "max": math.inf}), target="cpu")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Identity"]


def test_a_bound_of_an_integer_that_is_not_given_needs_none() -> None:
    source = Source("m.dml", "model m(x: i32[5]) -> (y) {\n    y = clip(x, min=-3)\n    return y\n}\n")
    model = dmlc.compile(source, target="cpu").to_onnx()
    (node,) = model.graph.node
    assert len([name for name in node.input if name]) == 2
    onnx.checker.check_model(model)
