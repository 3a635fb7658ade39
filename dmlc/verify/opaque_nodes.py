"""Opaque nodes of a graph that is computed by the references: each alone on ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from dmlc.ir import Array, ForeignType, Graph, Node, Tensor, Value
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.verify.process import ProcessSession
from dmlc.verify.trace import NotVerifiable, RunFailed

#: The model format of the single nodes.
_IR_VERSION = 8


def runs_alone(node: Node) -> bool:
    """Return whether a node without a reference can run as a model of its own."""
    values = [v for v in (*node.operands, *node.results) if v is not None]
    return node.op is OPAQUE and not node.regions and not any(isinstance(v.type, ForeignType) for v in values)


class OpaqueNodes:
    """Sessions of the opaque nodes of a graph, made when a node first runs and kept."""

    def __init__(self, graph: Graph, folder: Path | None = None) -> None:
        self._versions = dict(graph.origin.versions) if graph.origin is not None else {}
        self._opset = graph.opset
        self._folder = folder
        self._sessions: dict[Node, ProcessSession] = {}

    def run(self, node: Node, operands: Sequence[Array | None]) -> tuple[Array, ...]:
        """The results of a node that ``runs_alone``. Raises ``RunFailed``, and ``NoEvidence`` as ``ProcessSession``."""
        if node not in self._sessions:
            self._sessions[node] = ProcessSession(
                self._model(node), None if self._folder is None else str(self._folder)
            )
        feeds = {_name(v): np.asarray(x) for v, x in zip(node.operands, operands, strict=True) if v and x is not None}
        names = [f"y{index}" for index in range(len(node.results))]
        found: list[Any] = self._sessions[node].run(names, feeds)
        return tuple(np.asarray(array) for array in found)

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
        raise NotVerifiable(f"{value.type} has no arrays")
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
