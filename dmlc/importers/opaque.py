"""Nodes that the language has no operation for: their attributes, and the types of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from dmlc.importers.registry import Reading
from dmlc.importers.types import DTYPE_OF, UNKNOWN, type_of
from dmlc.importers.weights import attribute_data
from dmlc.ir import FOREIGN, Dim, ForeignType, Tensor, TensorType, Value, dim_names
from dmlc.onnx_schema.inference import KNOWN_SIZE, infer
from dmlc.onnx_schema.values import element_type, type_proto
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import Held, OpaqueAttributes, Plain


def opaque_attributes(proto: NodeProto, domain: str, types: tuple[TensorType, ...]) -> OpaqueAttributes:
    """The record of an opaque node; graphs are regions, not attributes."""
    plain: list[tuple[str, Plain]] = []
    unplain: list[Held] = []
    for attribute in proto.attribute[:]:
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
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
    if kind == AttributeProto.TENSOR and a.t.data_type in DTYPE_OF and a.t.data_location != TensorProto.EXTERNAL:
        return Tensor(attribute_data(a, op_type))
    return None


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


# --- the types of the results


def refined_types(reading: Reading, types: Sequence[TensorType], versions: Mapping[str, int]) -> list[TensorType]:
    """The types, made more precise by ONNX's inference of this node alone: what reading found out about its operands
    (sizes that were computed, dims that were bound) is more than ONNX knows of the whole model."""
    if all(_is_precise(t) for t in types) or any(v is not None and v.type is UNKNOWN for v in reading.inputs):
        return list(types)
    try:
        model = infer(_one_node(reading, versions))
    except Exception:  # ONNX raises what it likes; then the inference of the whole model has the word
        return list(types)
    if model is None:
        return list(types)
    found = {info.name: info.type for infos in (model.graph.value_info, model.graph.output) for info in infos}
    out = []
    for name, type in zip(reading.proto.output, types, strict=True):
        mine = _typed(reading, found.get(name)) if name else UNKNOWN
        out.append(mine if _open_sizes(mine) <= _open_sizes(type) else type)
    return out


def _is_precise(type: TensorType) -> bool:
    return type.dtype is not FOREIGN and all(isinstance(d, int) for d in type.shape)


def _open_sizes(type: TensorType) -> float:
    """How much is not known of a type: the number of sizes that are not, more than any for a rank."""
    if isinstance(type, ForeignType):
        return 100 if type is not UNKNOWN else 101
    return sum(2 if name.startswith("unk") else 1 for d in type.shape for name in dim_names(d))


def _typed(reading: Reading, proto: TypeProto | None) -> TensorType:
    """The type, in which a text that is an operand's size is that size again; other names were made up by ONNX for
    this node alone."""
    type = type_of(proto, {}, reading.scope.fresh)
    if type.dtype is FOREIGN:
        return type
    sizes: dict[str, Dim] = {str(d): d for v in reading.inputs if v is not None for d in v.shape}
    return type.with_shape(
        tuple([d if isinstance(d, int) else sizes.setdefault(str(d), reading.scope.fresh()) for d in type.shape])
    )


def _one_node(reading: Reading, versions: Mapping[str, int]) -> ModelProto:
    node = NodeProto()
    node.CopyFrom(reading.proto)
    graph = GraphProto(name="one_node", node=[node])
    for name, value in dict(zip(reading.proto.input, reading.inputs, strict=True)).items():
        if value is not None:
            _declare(reading, graph, name, value)
    model = ModelProto(ir_version=8, graph=graph)
    for domain, version in versions.items():
        model.opset_import.add(domain=domain, version=version)
    return model


def _declare(reading: Reading, graph: GraphProto, name: str, value: Value) -> None:
    tensor = constant_of(value)
    known = reading.scope.known(value)
    if tensor is not None and tensor.size <= KNOWN_SIZE:
        graph.initializer.append(numpy_helper.from_array(tensor.array, name))
    elif isinstance(known, tuple) and value.type.dtype.is_integer and all(isinstance(d, int) for d in known):
        graph.initializer.append(helper.make_tensor(name, element_type(value.type.dtype), [len(known)], known))
    else:
        graph.input.append(ValueInfoProto(name=name, type=type_proto(value.type)))
