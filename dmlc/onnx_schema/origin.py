"""Origin of an imported model: the form of each node, and the model around them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto

from dmlc.ir import Array, ForeignType, Node, Tensor, Value
from dmlc.onnx_schema.moves.draft import KnownValues
from dmlc.onnx_schema.types import type_proto
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import attribute_of, is_opaque


class NodeOrigin(Struct, frozen=True):
    """A node as the model has it. ``inputs`` says for each of its inputs which operand of the IR node that is, or
    which constant; None where it is absent. ``version`` is the version of its domain in the model."""

    proto: NodeProto
    inputs: tuple[int | Tensor | None, ...]
    version: int


class ModelOrigin(Struct, frozen=True):
    """The model that a graph came from: ``frame`` is the model without nodes and weights.

    ``folder`` is where its external data lies. ``inputs`` and ``outputs`` are the declarations of its interface, by
    name, as they stand after dims were bound. ``calls`` are the names of the calls, where a program calls models: then
    the frame holds their functions and the newest of their IR versions.
    """

    frame: ModelProto
    versions: dict[str, int]
    folder: Path | None = None
    inputs: dict[str, ValueInfoProto] = field(default_factory=dict)
    outputs: dict[str, ValueInfoProto] = field(default_factory=dict)
    calls: tuple[str, ...] = ()


def known_of(node: Node, names: Sequence[str]) -> KnownValues:
    """Return the known facts about the inputs of an opaque node, under the ``names`` that it gives them."""
    origin: NodeOrigin = node.origin
    values: dict[str, Value] = {}
    data: dict[str, Tensor] = {}
    for name, place in zip(names, origin.inputs, strict=True):
        if isinstance(place, Tensor):
            data[name] = place
        elif place is not None:
            value = node.operands[place]
            if value is None:
                continue
            values[name] = value
            tensor = constant_of(value) or _constant_node(value)
            if tensor is not None:
                data[name] = tensor

    def constant(name: str) -> Array | None:
        return data[name].array if name in data else None

    def type(name: str) -> TypeProto | None:
        found = values.get(name) or data.get(name)
        return None if found is None or found.type == ForeignType() else type_proto(found.type)

    return KnownValues(constant, type)


def _constant_node(value: Value) -> Tensor | None:
    """The data of a value that an opaque ``Constant`` makes from a tensor."""
    producer = value.producer
    if producer is None or not is_opaque(producer, "Constant"):
        return None
    data = attribute_of(producer, "value")
    return data if isinstance(data, Tensor) else None
