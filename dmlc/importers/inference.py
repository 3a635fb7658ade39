"""The types of a model's values by ONNX's own inference, and the types that the model declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from dmlc.importers.dim_text import dim_of_text
from dmlc.importers.types import bind, type_of
from dmlc.ir import Dim, TensorType, substitute, symbol
from dmlc.onnx_schema.declared import claims, drop_claims, drop_contradicted, has_claims
from dmlc.onnx_schema.inference import infer, is_known

#: Begins the names that ONNX's inference makes up for sizes (onnx, shape_inference/implementation.h).
_MADE_UP = "unk__"
#: Where a graph stands in a model: for each step down, the node's number, the attribute, the graph in a list.
Path = tuple[tuple[int, str, int], ...]


class ModelTypes:
    """The types of all values, by graph and name. Weights are never part of the question.

    Three answers, from sure to supposed. ``inferred`` follows from the inputs of the model and its nodes alone.
    ``declared`` is what the model claims, which may be wrong. ``supposed`` is what ONNX infers where it believes the
    claims that the first does not contradict: a node without inference is typed by its claim, those behind it by it.
    Each is worked out when it is first asked for.
    """

    def __init__(self, model: ModelProto, binding: Mapping[str, int], fresh: Callable[[], Dim]) -> None:
        self._model = model
        self._binding = binding
        self._fresh = fresh
        self._named = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim}
        self._dims: dict[tuple[str, str], Dim] = {}
        self._graphs: dict[str, GraphProto] = {}
        self._tables: dict[tuple[str, Path], dict[str, TypeProto]] = {}

    def inferred(self, path: Path, name: str) -> TensorType:
        """The type of a value of the graph at ``path`` without any claim; unknown where ONNX does not know it."""
        found = self._table("inferred", path, self._infer).get(name)
        return type_of(found, {}, self._fresh, lambda dim: self._dim("inferred", dim))

    def declared(self, path: Path, name: str) -> TensorType:
        """The type that the model declares for the value; unknown where it declares none."""
        found = self._table("declared", path, lambda: self._model.graph).get(name)
        return type_of(found, self._binding, self._fresh, self._claimed)

    def _claimed(self, name: str) -> Dim:
        return substitute(dim_of_text(name, self._named), self._binding)

    def supposed(self, path: Path, name: str) -> TensorType:
        """The type of the value where claims are believed; unknown where ONNX does not know it."""
        found = self._table("supposed", path, self._suppose).get(name)
        return type_of(found, {}, self._fresh, lambda dim: self._dim("supposed", dim))

    def _dim(self, kind: str, name: str) -> Dim:
        """The dim of that name. A name that ONNX made up means another size in each inference."""
        if not name.startswith(_MADE_UP) or name in self._named:
            return symbol(name)
        found = self._dims.get((kind, name))
        if found is None:
            found = self._dims[kind, name] = self._fresh()
        return found

    def _table(self, kind: str, path: Path, make: Callable[[], GraphProto]) -> dict[str, TypeProto]:
        table = self._tables.get((kind, path))
        if table is None:
            if kind not in self._graphs:
                self._graphs[kind] = make()
            graph = _descend(self._graphs[kind], path)
            found = {} if graph is None else {info.name: info.type for info in claims(graph)}
            table = self._tables[kind, path] = {name: type for name, type in found.items() if type.WhichOneof("value")}
        return table

    def _infer(self) -> GraphProto:
        bare = bare_model(self._model, self._binding)
        drop_claims(bare.graph)
        return _inferred(bare)

    def _suppose(self) -> GraphProto:
        if not has_claims(self._model.graph):
            return GraphProto()
        bare = bare_model(self._model, self._binding)
        self._table("inferred", (), self._infer)
        drop_contradicted(bare.graph, self._graphs["inferred"])
        return _inferred(bare)


def _inferred(bare: ModelProto) -> GraphProto:
    with suppress(Exception):  # ONNX raises what it likes, RuntimeError and protobuf's own errors among them
        found = infer(bare)
        return bare.graph if found is None else found.graph
    return bare.graph


def _descend(graph: GraphProto, path: Path) -> GraphProto | None:
    for number, attribute, index in path:
        if number >= len(graph.node):
            return None
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
