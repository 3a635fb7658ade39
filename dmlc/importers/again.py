"""Reading one opaque node again, with what rewrites have found out about its operands since the model was read."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, NodeProto, ValueInfoProto, numpy_helper

from dmlc.diagnostics import DmlcError
from dmlc.importers.model import import_model
from dmlc.ir import Dim, ForeignType, Graph, Node, OpError, Shape, Tensor, TensorType, Value, dim_names, symbol
from dmlc.onnx_schema.origin import NodeOrigin
from dmlc.onnx_schema.values import type_proto
from dmlc.ops.constant import constant_of

#: Larger constants are not looked at: no operator takes so many sizes.
_MOST_ELEMENTS = 1024
_PLACE = "place_"


def read_again(node: Node) -> tuple[Graph, list[Value]] | None:
    """The node as a graph of its own, and the operands that the graph's inputs stand for.

    None where the node cannot be read alone. Sizes that follow from the operands are expressions of their dims; where
    only the node itself tells a size, it keeps the dim that it had.
    """
    origin: NodeOrigin | None = node.origin
    if origin is None or node.regions:
        return None
    placed = _Placed()
    model = ModelProto(ir_version=8)
    model.graph.name = "one_node"
    proto = model.graph.node.add()
    proto.CopyFrom(origin.proto)
    model.opset_import.add(domain=proto.domain, version=origin.version)
    if proto.domain not in ("", "ai.onnx"):
        model.opset_import.add(domain="", version=node.graph.opset if node.graph is not None else origin.version)
    values = _feed(model, node, origin, placed)
    _name_results(model, proto, node)
    try:
        inner = import_model(model)
        inner = inner.clone(placed.dims)
        _take_names(inner, node)
        return None if not _keep_dims(inner, node) else (inner, values)
    except (DmlcError, OpError):
        return None


class _Placed:
    """Stand-ins for the sizes of operands: an expression of dims is not a name."""

    def __init__(self) -> None:
        self.dims: dict[str, Dim] = {}
        self._names: dict[Dim, str] = {}

    def type(self, type: TensorType) -> TensorType:
        return type if isinstance(type, ForeignType) else type.with_shape(self.shape(type.shape))

    def shape(self, shape: Shape) -> Shape:
        return tuple([size if isinstance(size, int) else self._of(size) for size in shape])

    def _of(self, size: Dim) -> Dim:
        name = self._names.setdefault(size, f"{_PLACE}{len(self._names)}")
        self.dims[name] = size
        return symbol(name)


def _feed(model: ModelProto, node: Node, origin: NodeOrigin, placed: _Placed) -> list[Value]:
    """Declare the inputs of the node: small constants as weights, others by their types. Those that are inputs."""
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


def _keep_dims(inner: Graph, node: Node) -> bool:
    """Give sizes that only the node tells the dims that they had; False where that is not possible."""
    around = {name for value in inner.inputs for size in value.shape for name in dim_names(size)}
    wanted = [value for value in node.results if value.uses]
    renamed: dict[str, Dim] = {}
    found = dict(inner.outputs)
    for number, old in enumerate(node.results):
        new = found.get(f"out_{number}")
        if new is None or old not in wanted:
            continue
        own = {name for size in new.shape for name in dim_names(size)} - around
        if own and (isinstance(old.type, ForeignType) or old.type.rank != new.type.rank):
            return False
        for mine, had in zip(new.shape, old.shape, strict=False) if own else ():
            if not isinstance(mine, int) and mine.name in own:
                renamed[mine.name] = had
        if not own <= renamed.keys():
            return False
    _rename(inner, renamed)
    return True


def _rename(inner: Graph, names: Mapping[str, Dim]) -> None:
    if names:
        for node in inner:
            node.attributes = node.attributes.substitute(names)
            inner.reinfer(node)
