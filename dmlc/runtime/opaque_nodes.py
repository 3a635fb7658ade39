"""Opaque nodes of a graph that is computed by the references: each alone, on ONNX Runtime's CPU provider or by ONNX's
own reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from dmlc.ir import Array, ForeignType, Graph, Node, Tensor, Value
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.runtime.ort_model import NONE, OrtModel
from dmlc.runtime.runnable import NotRunnable, RunFailed, Runnable

#: The model format of the single nodes.
_IR_VERSION = 8


def runs_alone(node: Node) -> bool:
    """Return whether a node without a reference can run as a model of its own."""
    values = [v for v in (*node.operands, *node.results) if v is not None]
    return node.op is OPAQUE and not node.regions and not any(isinstance(v.type, ForeignType) for v in values)


class OpaqueNodes:
    """The opaque nodes of a graph, each loaded when it first runs, and kept; without ``on_runtime`` they run by ONNX's
    reference."""

    def __init__(self, graph: Graph, folder: Path | None = None, *, on_runtime: bool = True) -> None:
        self._versions = dict(graph.origin.versions) if graph.origin is not None else {}
        self._opset = graph.opset
        self._folder = folder
        self._on_runtime = on_runtime
        self._loaded: dict[Node, Runnable] = {}

    def run(self, node: Node, operands: Sequence[Array | None]) -> tuple[Array, ...]:
        """The results of a node that ``runs_alone``. Raises ``RunFailed``, ``NotRunnable`` for one that ONNX's
        reference does not know, and ``NoEvidence`` as ``OrtModel``."""
        if node not in self._loaded:
            self._loaded[node] = self._load(self._model(node))
        feeds = {_name(v): np.asarray(x) for v, x in zip(node.operands, operands, strict=True) if v and x is not None}
        found = self._loaded[node].run(feeds)
        return tuple(np.asarray(found[f"y{index}"]) for index in range(len(node.results)))

    def _load(self, model: ModelProto) -> Runnable:
        if self._on_runtime:
            return OrtModel(model, self._folder, level=NONE, threads=1, isolated=True)
        from dmlc.runtime.onnx_reference import OnnxReference  # loads onnx.reference, which is slow

        return OnnxReference(model, self._folder)

    def _model(self, node: Node) -> ModelProto:
        record = node.attributes_as(OpaqueAttributes)
        made = helper.make_node(
            record.op_type,
            ["" if value is None else _name(value) for value in node.operands],
            [f"y{index}" for index in range(len(node.results))],
            domain=record.domain,
        )
        made.attribute.extend([_attribute(name, value) for name, value in record.attributes])
        made.attribute.extend([held.proto for held in record.unplain])
        given = {_name(value): _info(_name(value), value) for value in node.operands if value is not None}
        results = [_info(f"y{index}", value) for index, value in enumerate(node.results)]
        graph = helper.make_graph([made], "node", list(given.values()), results)
        versions = {"": self._opset, **self._versions}
        sets = [helper.make_opsetid(domain, versions.get(domain, 1)) for domain in {"", record.domain}]
        return helper.make_model(graph, opset_imports=sets, ir_version=_IR_VERSION)


def _name(value: Value) -> str:
    return f"x{id(value)}"


def _info(name: str, value: Value) -> ValueInfoProto:
    if isinstance(value.type, ForeignType):
        raise NotRunnable(f"{value.type} has no arrays")
    element = helper.np_dtype_to_tensor_dtype(np.dtype(value.type.dtype.numpy))
    return helper.make_tensor_value_info(name, element, None)


def _attribute(name: str, value: Any) -> AttributeProto:
    if isinstance(value, Tensor):
        proto: TensorProto = numpy_helper.from_array(value.array)
        return helper.make_attribute(name, proto)
    try:
        return helper.make_attribute(name, list(value) if isinstance(value, tuple) else value)
    except (TypeError, ValueError) as error:  # an empty list has no type
        raise RunFailed(f"attribute {name} of a node: {error}") from None
