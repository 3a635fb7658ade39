"""What ONNX's own inference knows of a model's values: asked once, when a node needs it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from dmlc.importers.types import bind
from dmlc.onnx_schema.inference import infer, is_known

#: Where a graph stands in a model: for each step down, the node's number, the attribute, the graph in a list.
Path = tuple[tuple[int, str, int], ...]


class ModelTypes:
    """The types of all values, by graph and name. Weights are never part of the question."""

    def __init__(self, model: ModelProto, binding: Mapping[str, int]) -> None:
        self._model = model
        self._binding = binding
        self._inferred: ModelProto | None = None
        self._tables: dict[Path, dict[str, TypeProto]] = {}

    def find(self, path: Path, name: str) -> TypeProto | None:
        """The type of a value of the graph at ``path``; None where ONNX does not know it."""
        table = self._tables.get(path)
        if table is None:
            table = self._tables[path] = _table(_descend(self._infer().graph, path))
        return table.get(name)

    def _infer(self) -> ModelProto:
        if self._inferred is None:
            bare = bare_model(self._model, self._binding)
            self._inferred = bare
            with suppress(Exception):  # ONNX raises what it likes, RuntimeError and protobuf's own errors among them
                self._inferred = infer(bare) or bare
        return self._inferred


def _table(graph: GraphProto | None) -> dict[str, TypeProto]:
    if graph is None:
        return {}
    return {info.name: info.type for infos in (graph.input, graph.output, graph.value_info) for info in infos}


def _descend(graph: GraphProto, path: Path) -> GraphProto | None:
    for number, attribute, index in path:
        found = next((a for a in graph.node[number].attribute if a.name == attribute), None)
        if found is None:
            return None
        graph = found.g if found.type == AttributeProto.GRAPH else found.graphs[index]
    return graph


def bare_model(model: ModelProto, binding: Mapping[str, int]) -> ModelProto:
    """The model with bound dims and without its large weights, which become inputs.

    An initializer that can be overridden is an input only: inference would take the shapes that follow from its default
    for facts (onnx 1.23 reads the data of initializers that are inputs too).
    """
    out = ModelProto(ir_version=max(model.ir_version, 4))
    out.opset_import.extend(model.opset_import)
    out.functions.extend(model.functions)
    source, graph = model.graph, out.graph
    graph.name = source.name
    graph.node.extend(source.node)
    for have, want in (
        (source.input, graph.input),
        (source.output, graph.output),
        (source.value_info, graph.value_info),
    ):
        want.extend(have)
        for info in want if binding else ():
            bind(info.type, binding)
    listed = {info.name for info in source.input}
    overridable = listed if model.ir_version >= 4 else ()
    for tensor in source.initializer:
        if tensor.name in overridable:
            continue
        if is_known(tensor):
            graph.initializer.add().CopyFrom(tensor)
        elif tensor.name not in listed:
            graph.input.append(weight_info(tensor))
    return out


def weight_info(tensor: TensorProto) -> ValueInfoProto:
    """The declaration of an input of a weight's type."""
    type = TypeProto.Tensor(elem_type=tensor.data_type)
    type.shape.SetInParent()
    for size in tensor.dims:
        type.shape.dim.add(dim_value=size)
    return ValueInfoProto(name=tensor.name, type=TypeProto(tensor_type=type))
