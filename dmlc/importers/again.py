"""Reading one opaque node again, with what rewrites have found out about its operands since the model was read."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from onnx import ModelProto, NodeProto, ValueInfoProto, numpy_helper

from dmlc.diagnostics import DmlcError
from dmlc.importers.model import import_model
from dmlc.importers.types import Placeholders
from dmlc.ir import Dim, ForeignType, Graph, Node, OpError, Tensor, Value, dim_names, symbol
from dmlc.ir.providers import alone
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.origin import NodeOrigin
from dmlc.onnx_schema.types import type_proto
from dmlc.ops.constant import constant_of

#: Larger constants are not looked at: no operator takes so many sizes.
_MOST_ELEMENTS = 1024


def read_again(node: Node) -> tuple[Graph, list[Value]] | None:
    """The node as a graph of its own, and the operands that the graph's inputs stand for.

    None where the node cannot be read alone. Sizes that follow from the operands are expressions of their dims. A size
    that only the node itself provides keeps the dim that it had, or gets a new one of the node's graph.
    """
    origin: NodeOrigin | None = node.origin
    if origin is None or node.regions:
        return None
    placed = Placeholders()
    model = ModelProto(ir_version=8)
    model.graph.name = "one_node"
    proto = model.graph.node.add()
    proto.CopyFrom(origin.proto)
    model.opset_import.add(domain=proto.domain, version=origin.version)
    if plain_domain(proto.domain):
        model.opset_import.add(domain="", version=node.graph.opset if node.graph is not None else origin.version)
    values = _feed(model, node, origin, placed)
    _name_results(model, proto, node)
    try:
        inner = import_model(model)
        inner = inner.clone({**placed.dims, **_set_apart(inner, node)})
        _take_names(inner, node)
        return None if not _keep_dims(inner, node) else (inner, values)
    except (DmlcError, OpError):
        return None


def _feed(model: ModelProto, node: Node, origin: NodeOrigin, placed: Placeholders) -> list[Value]:
    """Declare the inputs of the node: small constants as weights, others by their types. Return those inputs."""
    values: dict[str, Value] = {}
    known: set[str] = set()
    proto = model.graph.node[0]
    del proto.input[:]
    names: dict[Value, str] = {}
    for number, place in enumerate(origin.inputs):
        value = None if place is None or isinstance(place, Tensor) else node.operands[place]
        if value is None and not isinstance(place, Tensor):  # an operand that is left out
            proto.input.append("")
            continue
        tensor = place if isinstance(place, Tensor) else constant_of(value)
        name = f"in_{number}" if value is None else names.setdefault(value, f"in_{number}")
        proto.input.append(name)
        if tensor is not None and tensor.size <= _MOST_ELEMENTS:
            if name not in known:
                known.add(name)
                model.graph.initializer.append(numpy_helper.from_array(tensor.array, name))
        elif value is not None and name not in values:
            values[name] = value
            info = ValueInfoProto(name=name)
            declared = placed.type(value.type)
            if declared != ForeignType():
                info.type.CopyFrom(type_proto(declared))
            model.graph.input.append(info)
    return list(values.values())


def _name_results(model: ModelProto, proto: NodeProto, node: Node) -> None:
    had = node.origin.proto.output[:]
    del proto.output[:]
    for number, value in enumerate(node.results):
        named = had[number] if number < len(had) else ""
        proto.output.append(f"out_{number}" if named or value.uses else "")
        if proto.output[-1]:
            model.graph.output.add(name=proto.output[-1])


def _take_names(inner: Graph, node: Node) -> None:
    """Name the results as they are in the model, and nothing else."""
    for made in inner:
        for value in made.results:
            value.name = None
    found = dict(inner.outputs)
    for number, old in enumerate(node.results):
        new = found.get(f"out_{number}")
        if new is not None and new.producer is not None:
            new.name = old.name


def _set_apart(inner: Graph, node: Node) -> dict[str, Dim]:
    """Give the dims that only the node provides names that no operand or result of the node has.

    The importer makes up their names without the graph around the node, where another dim may have the same one.
    """
    around = {name for value in (*node.operands, *node.results) if value is not None for name in _names(value)}
    free = (name for number in count() if (name := f"own_{number}") not in around)
    return {name: symbol(next(free)) for name in sorted(_own_dims(inner))}


def _keep_dims(inner: Graph, node: Node) -> bool:
    """Give sizes that only the node provides the dims that they had, or new ones of the graph around it; False where
    a size is not a dim of its own."""
    assert node.graph is not None
    own = _own_dims(inner)
    renamed: dict[str, Dim] = {}
    found = dict(inner.outputs)
    for number, old in enumerate(node.results):
        new = found.get(f"out_{number}")
        if new is not None and old.uses and not isinstance(old.type, ForeignType) and old.type.rank == new.type.rank:
            for mine, had in zip(new.shape, old.shape, strict=True):
                if not isinstance(mine, int) and mine.name in own:
                    renamed[mine.name] = had
    made = {name: node.graph.dims.new_dim() for name in sorted(own - renamed.keys())}
    _rename(inner, {**renamed, **made})
    return _provide(inner, {str(dim) for dim in made.values()})


def _own_dims(inner: Graph) -> set[str]:
    """The dims that no input has."""
    names = {name for made in inner for value in made.results for name in _names(value)}
    return names.difference(*map(_names, inner.inputs))


def _names(value: Value) -> set[str]:
    """The dims in the sizes of the value."""
    return {name for size in value.shape for name in dim_names(size)}


def _rename(inner: Graph, names: Mapping[str, Dim]) -> None:
    if names:
        for node in inner:
            node.attributes = node.attributes.substitute(names)
            inner.reinfer(node)


def _provide(inner: Graph, names: set[str]) -> bool:
    """Note the values that provide the dims ``names``, and no others; whether all are provided."""
    inner.provides.clear()
    for node in inner:
        for value in node.results:
            found = {name: (name, axis) for name, axis in reversed(alone(value)) if name in names}
            if found:
                inner.provides[value] = tuple(found.values())
                names.difference_update(found)
    return not names
