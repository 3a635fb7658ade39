"""A model's graph without its names: two models of the same form compute the same in the same nodes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, numpy_helper

from dmlc.onnx_schema.nested import all_nodes, graphs_in, holds_graphs

Form = tuple[str, tuple[str, ...]]


def operators(model: ModelProto) -> Counter[str]:
    """The number of nodes by operator, those of graphs inside nodes included."""
    return Counter(f"{node.domain}:{node.op_type}" for node in all_nodes(model.graph.node))


def canonical_form(model: ModelProto) -> Form:
    """Return a digest of what the outputs are made of, and the sorted digests of all nodes."""
    return _form(model.graph, {})


def _form(graph: GraphProto, outer: Mapping[str, str]) -> Form:
    values = dict(outer)
    for number, info in enumerate(graph.input):
        values[info.name] = f"input {number}"
    for tensor in graph.initializer:
        values[tensor.name] = _tensor(tensor)
    nodes = []
    for node in graph.node:
        attributes = sorted((a.name, _attribute(a, values)) for a in node.attribute)
        made = _digest(node.domain, node.op_type, [values.get(name, "") for name in node.input], attributes)
        nodes.append(made)
        for number, name in enumerate(node.output):
            values[name] = f"{made} {number}"
    return _digest([values.get(info.name, "") for info in graph.output]), tuple(sorted(nodes))


def _attribute(attribute: AttributeProto, values: Mapping[str, str]) -> str:
    if holds_graphs(attribute):
        return _digest([_form(graph, values) for graph in graphs_in(attribute)])
    if attribute.type == AttributeProto.TENSOR:
        return _tensor(attribute.t)
    data: bytes = attribute.SerializeToString(deterministic=True)
    return data.hex()


def _tensor(tensor: TensorProto) -> str:
    if tensor.data_location == TensorProto.EXTERNAL:
        return _digest(sorted((entry.key, entry.value) for entry in tensor.external_data))
    data = numpy_helper.to_array(tensor)
    content = repr(data.tolist()).encode() if data.dtype.hasobject else data.tobytes()
    return _digest(tensor.data_type, list(tensor.dims), content)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
