"""Models of a few nodes, compiled with and without fusions: what the tests of fusion rules share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dmlc

node = helper.make_node
FLOAT = TensorProto.FLOAT
#: A few roundings of each dtype.
RTOL = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}


def info(name: str, shape: Sequence[Any] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[Any] = (3, 4),
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
    dtype: int = FLOAT,
    types: Mapping[str, int] | None = None,
    **weights: Any,
) -> onnx.ModelProto:
    """A model of one input ``x``; keyword arguments are its constants."""
    tensors = [numpy_helper.from_array(np.asarray(w), k) for k, w in weights.items()]
    outs = [info(name, None, (types or {}).get(name, dtype)) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", [info("x", shape, dtype)], outs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def operators(program: dmlc.Program) -> list[str]:
    return [n.op_type for n in program.to_onnx().graph.node]


def inputs(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> list[np.ndarray]:
    """Normal numbers, ties, zeros of both signs, a large mean."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(shape)
    ties = rng.integers(-1, 2, shape).astype(float)
    return [np.asarray(a).astype(dtype) for a in (normal, ties, np.zeros(shape) * -1, normal + 8)]


def check(
    m: onnx.ModelProto,
    want: Sequence[str],
    *,
    exact: bool = False,
    shape: Sequence[int] | None = None,
    feeds: Sequence[np.ndarray] = (),
    **options: Any,
) -> dmlc.Program:
    """Compile, compare the operators, and run it beside the model without rewrites."""
    program = dmlc.compile(m, **options)
    assert operators(program) == list(want), (operators(program), [r.reason() for r in program.remarks])
    plain = dmlc.compile(m, target=options.get("target", "directml"), only_rules=["dce"])
    declared = m.graph.input[0].type.tensor_type
    sizes = shape or [d.dim_value for d in declared.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(declared.elem_type)
    for x in feeds or inputs(sizes, dtype):
        before, after = plain.run({"x": x}, "cpu"), program.run({"x": x}, "cpu")
        for name, old in before.items():
            assert after[name].dtype == old.dtype
            if exact or old.dtype.kind != "f":
                np.testing.assert_array_equal(after[name], old)
            else:
                rtol = RTOL[old.dtype.name]
                np.testing.assert_allclose(after[name], old, rtol=rtol, atol=rtol * 4)
    return program


def reasons(program: dmlc.Program, rule: str) -> str:
    return " | ".join(r.reason() for r in program.remarks if r.rule == rule)


def classes(program: dmlc.Program) -> dict[str, str]:
    return {e.rule: e.rewrite_class for e in program.ledger}
