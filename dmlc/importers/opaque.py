"""Nodes that the language has no operation for: their attributes, and the types of their results."""

from __future__ import annotations

from onnx import (
    AttributeProto,
    NodeProto,
    TensorProto,
)

from dmlc.importers.weights import attribute_data
from dmlc.ir import Tensor, TensorType
from dmlc.onnx_schema.nested import holds_graphs
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.ops.opaque import Held, OpaqueAttributes, Plain


def opaque_attributes(proto: NodeProto, domain: str, types: tuple[TensorType, ...]) -> OpaqueAttributes:
    """The record of an opaque node; graphs are regions, not attributes."""
    plain: list[tuple[str, Plain]] = []
    unplain: list[Held] = []
    for attribute in proto.attribute[:]:
        if holds_graphs(attribute):
            continue
        value = _plain(attribute, proto.op_type)
        if value is None:
            unplain.append(Held(attribute, attribute.name))
        else:
            plain.append((attribute.name, value))
    plain.sort(key=lambda pair: pair[0])
    return OpaqueAttributes(
        op_type=proto.op_type, domain=domain, types=types, attributes=tuple(plain), unplain=tuple(unplain)
    )


def _plain(a: AttributeProto, op_type: str) -> Plain | None:
    kind = a.type
    if a.ref_attr_name:
        return None
    if kind == AttributeProto.INT:
        return int(a.i)
    if kind == AttributeProto.FLOAT:
        return float(a.f)
    if kind == AttributeProto.STRING:
        return _text(a.s)
    if kind == AttributeProto.INTS:
        return tuple(a.ints[:])
    if kind == AttributeProto.FLOATS:
        return tuple(a.floats[:])
    if kind == AttributeProto.STRINGS:
        return tuple([_text(s) for s in a.strings])
    if kind == AttributeProto.TENSOR and a.t.data_location != TensorProto.EXTERNAL:
        data = attribute_data(a, op_type)
        return Tensor(data) if a.t.data_type in DTYPE_OF else None
    return None


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data
