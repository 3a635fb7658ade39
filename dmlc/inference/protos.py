"""Facts from what ONNX and the graph say of values, and back: types, weights, attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from onnx import AttributeProto, TensorProto, TypeProto, helper, numpy_helper

from dmlc.inference.fact import FLOATS, INTEGERS, NOTHING, Fact, of_array
from dmlc.ir import Dim, ForeignType, Tensor, TensorType, symbol
from dmlc.onnx_schema.types import DTYPE_OF, ELEMENT_TYPE, tensor_type_proto

#: Names that some exporters write for a size that they do not know.
NO_NAMES = frozenset(("", "?", "None", "-1", "unk", "unknown"))
#: Names that ONNX's inference, the importer and the rules make up for sizes.
_MADE_UP = re.compile(r"unk__\d+|unknown_\d+|\?\d*|")
#: Constants whose elements take part: integers and truths up to the first number, floats up to the second.
_MOST_INTEGERS, _MOST_FLOATS = 1024, 16


def is_made_up(name: str) -> bool:
    """True for the name of a dim that a tool made up: it means nothing to a user of the model."""
    return _MADE_UP.fullmatch(name) is not None


def of_type(type: TensorType, new_dim: Callable[[], Dim]) -> Fact:
    """The fact that a type of the graph says; ``new_dim`` makes a dim for a size without a name."""
    if isinstance(type, ForeignType):
        return of_proto(TypeProto.FromString(type.proto), new_dim) if type.proto else NOTHING
    return Fact(ELEMENT_TYPE[type.dtype], type.shape)


def of_proto(proto: TypeProto, new_dim: Callable[[], Dim]) -> Fact:
    """The fact that a declaration says. A negative size is not known."""
    if not proto.HasField("tensor_type"):
        return Fact(proto=proto.SerializeToString(deterministic=True)) if proto.WhichOneof("value") else NOTHING
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return Fact(tensor.elem_type)
    return Fact(tensor.elem_type, tuple([_size(size, new_dim) for size in tensor.shape.dim]))


def _size(proto: TypeProto.Tensor.Shape.Dimension, new_dim: Callable[[], Dim]) -> Dim:
    if proto.HasField("dim_value") and proto.dim_value >= 0:
        return int(proto.dim_value)
    return new_dim() if proto.dim_param in NO_NAMES else symbol(proto.dim_param)


def of_tensor(tensor: TensorProto) -> Fact:
    """The fact about a weight: with its elements where these are few and in the model."""
    shape, element = tuple(tensor.dims), tensor.data_type
    if tensor.data_location != TensorProto.EXTERNAL and takes_part(element, prod(shape)):
        try:
            return of_array(element, numpy_helper.to_array(tensor))
        except (ValueError, TypeError, KeyError):
            return Fact(element, shape)  # a weight without its data
    return Fact(element, shape)


def takes_part(element: int, size: int) -> bool:
    """True where the elements of a constant of that many are looked at."""
    if element in FLOATS:
        return size <= _MOST_FLOATS
    return size <= _MOST_INTEGERS and (element in INTEGERS or element == TensorProto.BOOL)


def type_proto_of(fact: Fact) -> TypeProto:
    """The fact as ONNX declares it; sizes that are expressions are parameters by their text."""
    if fact.proto:
        return TypeProto.FromString(fact.proto)
    return tensor_type_proto(fact.element, fact.shape)


def type_of(fact: Fact) -> TensorType:
    """The type in the graph; ``ForeignType`` where the language has none for it, empty where nothing is known."""
    if fact.proto:
        return ForeignType(proto=fact.proto)
    dtype = DTYPE_OF.get(fact.element)
    if dtype is not None and fact.shape is not None:
        return TensorType(dtype, fact.shape)
    if not fact.element:
        return ForeignType()
    return ForeignType(proto=type_proto_of(fact).SerializeToString(deterministic=True))


def sequence_of(item: TypeProto | None) -> Fact:
    """The fact about a sequence of items of that type; ``NOTHING`` where the type is empty."""
    if item is None or item.WhichOneof("value") is None:
        return NOTHING
    out = TypeProto()
    out.sequence_type.elem_type.CopyFrom(item)
    return Fact(proto=out.SerializeToString(deterministic=True))


def asked_attributes(attributes: Iterable[AttributeProto]) -> dict[str, Any]:
    """Attributes as rules take them, types as facts. Graphs and texts that are not UTF-8 are left out.

    Raises ``ValueError`` for a tensor whose data does not fit its shape.
    """
    values = ((a.name, _plain(a)) for a in attributes)
    return {name: value for name, value in values if value is not None}


def _plain(attribute: AttributeProto) -> Any:
    kind = attribute.type
    if attribute.ref_attr_name or kind in _WITHOUT_VALUE:
        return None
    if kind == AttributeProto.TENSOR:
        data = attribute.t
        if data.data_type not in DTYPE_OF or data.data_location == TensorProto.EXTERNAL:
            return Fact(data.data_type, tuple(data.dims))
        return Tensor(numpy_helper.to_array(data))
    if kind == AttributeProto.TYPE_PROTO:
        return Fact(proto=attribute.tp.SerializeToString(deterministic=True))
    value = helper.get_attribute_value(attribute)
    if kind in (AttributeProto.STRING, AttributeProto.STRINGS):
        texts = [value] if isinstance(value, bytes) else list(value)
        found = tuple([text.decode("utf-8", "replace") for text in texts])
        return found[0] if kind == AttributeProto.STRING else found
    return tuple(value) if kind in (AttributeProto.INTS, AttributeProto.FLOATS) else value


_WITHOUT_VALUE = frozenset(
    (
        *(AttributeProto.UNDEFINED, AttributeProto.GRAPH, AttributeProto.GRAPHS),
        *(AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS, AttributeProto.TENSORS),
        AttributeProto.TYPE_PROTOS,
    )
)
