"""Types that a node passes into the graphs inside it and out of them, kept up to date as graphs change."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dmlc.inference.joins import GraphsInside, differ, narrower
from dmlc.ir import UNKNOWN, Dim, ForeignType, Graph, Node, TensorType, Value, dim_names, symbol
from dmlc.ir.providers import alone
from dmlc.onnx_schema.origin import NodeOrigin
from dmlc.ops.opaque import OpaqueAttributes

#: Stands for a size that the graphs inside do not provide.
_OPEN = symbol("?")


def settle_types(node: Node) -> None:
    """Type the inputs of the graphs inside a node by what it feeds them, and its results by what they make.

    Known parts of a result's type stay known.
    """
    origin: NodeOrigin | None = node.origin
    assert node.graph is not None
    _feed_captured(node)
    if origin is None:
        return
    inputs = [node.operands[place] if isinstance(place, int) else None for place in origin.inputs]
    graph = node.graph
    inside = GraphsInside(origin.proto, origin.version, inputs, node.regions, graph.dims, graph.inputs)
    if inside.kind == "Scan":
        _feed_formals(node, inside)
    _join(node, graph, inside)


def _feed_captured(node: Node) -> None:
    for region in node.regions:
        for value, place in zip(region.captured, region.captures, strict=True):
            operand = node.operands[place]
            if operand is not None:
                _retype(region.graph, value, operand.type)


def _feed_formals(node: Node, inside: GraphsInside) -> None:
    for region in node.regions:
        formals = region.formals
        for index, value in enumerate(formals):
            fed = inside.fed(index, len(formals))
            if fed is not None:
                _retype(region.graph, value, _refined(value.type, narrower(value.type, fed), inside.dims_around))


def _retype(graph: Graph, value: Value, type: TensorType) -> None:
    if type != value.type:
        value.type = type
        graph.retyped.update(dict.fromkeys(value.users))


def _join(node: Node, graph: Graph, inside: GraphsInside) -> None:
    made: set[str] = set()

    def closed(size: Dim) -> Dim:
        if size == _OPEN:
            size = graph.dims.new_dim()
            made.add(str(size))
        return size

    types = []
    for index, value in enumerate(node.results):
        found = inside.joined(index, lambda: _OPEN)
        type = value.type if found is None else _refined(value.type, found, inside.dims_around)
        types.append(type if isinstance(type, ForeignType) else type.with_shape(tuple(map(closed, type.shape))))
    _set_types(node, types)
    for value in node.results if made else ():
        pairs = tuple([(name, axis) for name, axis in alone(value) if name in made])
        if pairs:
            graph.provides[value] = graph.provides.get(value, ()) + pairs


def take_types(node: Node, types: Sequence[TensorType]) -> None:
    """Refine the types of an opaque node's results by an equal node's types."""
    around = {name for v in node.operands if v is not None for size in v.type.shape for name in dim_names(size)}
    _set_types(node, [_refined(v.type, type, around) for v, type in zip(node.results, types, strict=True)])


def _set_types(node: Node, types: Sequence[TensorType]) -> None:
    attributes, graph = node.attributes_as(OpaqueAttributes), node.graph
    assert graph is not None
    for value, type in zip(node.results, types, strict=True):
        _retype(graph, value, type)
    node.attributes = replace(attributes, types=tuple(types))


def _refined(had: TensorType, found: TensorType, around: set[str]) -> TensorType:
    """The type that was known, with what is found beside it. Sizes of the dims ``around`` are better than others."""
    if isinstance(found, ForeignType) or differ(had, found):
        return found if had == UNKNOWN else had
    if isinstance(had, ForeignType):
        return found
    return had.with_shape(tuple([_better(old, new, around) for old, new in zip(had.shape, found.shape, strict=True)]))


def _better(old: Dim, new: Dim, around: set[str]) -> Dim:
    if isinstance(old, int) or new == _OPEN:
        return old
    return new if isinstance(new, int) or dim_names(new) <= around < around | dim_names(old) else old
