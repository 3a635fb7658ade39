"""Models whose nodes the DirectML execution provider is known to get wrong, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.targets.provider import provider
from tests.kit import refusal, run

node = helper.make_node
FLOAT, HALF, DOUBLE, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BOOL
KINDS: dict[str, int] = {
    "f16": HALF, "f32": FLOAT, "f64": DOUBLE, "bool": BOOL,
    "i8": TensorProto.INT8, "i16": TensorProto.INT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8, "u16": TensorProto.UINT16, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64,
}  # fmt: skip
Info = tuple[str, int, Sequence[Any] | None]


def model(
    nodes: onnx.NodeProto | Sequence[onnx.NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    *,
    opset: int = 21,
    **weights: Any,
) -> onnx.ModelProto:
    """Inputs and outputs are (name, kind, shape); keyword arguments are the constants."""
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else list(nodes)
    values = [[helper.make_tensor_value_info(*info) for info in infos] for infos in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "g", *values, tensors)
    versions = {"": opset} | {made.domain: 1 for made in nodes if made.domain}
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*each) for each in versions.items()], ir_version=8
    )


def reduction(
    op: str,
    kind: int = FLOAT,
    opset: int = 21,
    *,
    shape: Sequence[Any] = (2, 3),
    axes: Sequence[int] = (1,),
    keepdims: int = 1,
) -> onnx.ModelProto:
    """One reduction, its axes where the opset has them."""
    left = [(1 if keepdims else None) if i in axes else d for i, d in enumerate(shape)]
    outputs = [("y", kind, [d for d in left if d is not None])]
    if opset < (13 if op == "ReduceSum" else 18):
        made = node(op, ["x"], ["y"], axes=list(axes), keepdims=keepdims)
        return model(made, [("x", kind, shape)], outputs, opset=opset)
    made = node(op, ["x", "axes"], ["y"], keepdims=keepdims)
    return model(made, [("x", kind, shape)], outputs, opset=opset, axes=np.array(axes, np.int64))


def operators(program: dmlc.Program) -> list[str]:
    return [n.op_type for n in program.to_onnx().graph.node]


def fired(program: dmlc.Program) -> list[tuple[str, str]]:
    """The rules in the ledger, with their classes."""
    return [(entry.rule, entry.rewrite_class) for entry in program.ledger]


def troubles(program: dmlc.Program) -> set[str]:
    """The known failures that nodes of the artifact meet."""
    limits = [finding.limit for _, finding in program.placement().findings]
    return {f.id for f in provider("dml_ep").failures if any(f.what in limit for limit in limits)}


def refusals(program: dmlc.Program) -> list[str]:
    """The codes that the program is refused with."""
    try:
        program.require_sound()
    except DmlcError as error:
        return [d.code.id for d in error.diagnostics]
    return []


def faulty(m: onnx.ModelProto) -> None:
    """The model is refused as faulty, and ONNX Runtime does not load it either."""
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(m).require_sound()
    assert caught.value.diagnostics[0].code.id == "E0431"
    assert refusal(m)


def repaired(
    m: onnx.ModelProto, failure: str, rule: str, *feeds: Mapping[str, Any], rtol: float = 0.0, **options: Any
) -> dmlc.Program:
    """Compile; the rule has fired, the failure is gone, and the numbers are those of the model."""
    program = dmlc.compile(m, **options)
    assert rule in dict(fired(program)), (fired(program), [r.reason() for r in program.remarks])
    assert failure not in troubles(program)
    assert not refusals(program)
    for feed in feeds:
        same(run(m, feed), program.run(feed, backend="cpu"), rtol)
    return program


def same(old: Mapping[str, Any], new: Mapping[str, Any], rtol: float = 0.0) -> None:
    for name, before in old.items():
        after = new[name]
        assert (after.dtype, after.shape) == (before.dtype, before.shape), name
        if rtol:
            np.testing.assert_allclose(after, before, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(after, before)


def left_alone(m: onnx.ModelProto, rule: str, **options: Any) -> dmlc.Program:
    """Compile; the rule has not fired."""
    program = dmlc.compile(m, **options)
    assert rule not in dict(fired(program))
    return program
