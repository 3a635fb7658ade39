"""Attributes of ONNX operators: what a user wrote, canonical values, and the protos that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import AttributeProto, TypeProto, helper, numpy_helper

from dmlc.diagnostics import did_you_mean
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import DTYPES, DType, ForeignType, OpError, Shape, Tensor, TensorType
from dmlc.onnx_schema.schemas import Schema
from dmlc.ops.attributes import show

#: A canonical attribute value: hashable.
Scalar = int | float | str
AttributeValue = Scalar | tuple[Scalar, ...] | Tensor


def element_type(dtype: DType) -> int:
    """ONNX's number of a dtype."""
    return int(helper.np_dtype_to_tensor_dtype(dtype.numpy))


def dtype_of_foreign(type: TensorType) -> DType | None:
    """The dtype of a tensor of unknown rank; None if it is not a tensor of a dtype of the language."""
    if not isinstance(type, ForeignType) or not type.proto:
        return None
    number = TypeProto.FromString(type.proto).tensor_type.elem_type
    return next((dtype for dtype in DTYPES if element_type(dtype) == number), None)


def has_unknown_rank(type: TensorType) -> bool:
    """True for the type of a value that is, or may be, a tensor of unknown rank."""
    if not isinstance(type, ForeignType):
        return False
    if not type.proto:
        return True
    proto = TypeProto.FromString(type.proto)
    return bool(proto.HasField("tensor_type") and not proto.tensor_type.HasField("shape"))


def unsized(dtype: DType) -> ForeignType:
    """The type of a tensor of that dtype and an unknown rank."""
    proto = TypeProto(tensor_type=TypeProto.Tensor(elem_type=element_type(dtype)))
    return ForeignType(proto=proto.SerializeToString(deterministic=True))


def type_proto(type: TensorType) -> TypeProto:
    """The type as ONNX declares it; symbolic sizes are parameters by their text."""
    if isinstance(type, ForeignType):
        return TypeProto.FromString(type.proto)
    return tensor_type_proto(element_type(type.dtype), type.shape)


def tensor_type_proto(element: int, shape: Shape | None) -> TypeProto:
    """A tensor's type by ONNX's number of its elements; ``shape`` is None for an unknown rank."""
    tensor = TypeProto.Tensor(elem_type=element)
    if shape is not None:
        tensor.shape.SetInParent()
        for size in shape:
            if isinstance(size, int):
                tensor.shape.dim.add(dim_value=size)
            else:
                tensor.shape.dim.add(dim_param=str(size))
    return TypeProto(tensor_type=tensor)


def canonical_attributes(schema: Schema, given: dict[str, Any]) -> tuple[tuple[str, AttributeValue], ...]:
    """The attributes checked against the schema, sorted by name; those that are not given stay unset.

    Raises ``OpError`` E0304, E0305 or E0306.
    """
    out = []
    for name, raw in given.items():
        known = schema.attributes.get(name)
        if known is None:
            takes = "it takes " + ", ".join(schema.attributes) if schema.attributes else "it takes none"
            help = "; ".join(filter(None, [did_you_mean(name, schema.attributes), takes]))
            raise OpError(codes.UNKNOWN_ATTRIBUTE, f"{schema.full_name} has no attribute {name}", at=name, help=help)
        out.append((name, _canonical(schema, name, known[0], raw)))
    for name, (kind, required) in schema.attributes.items():
        if required and kind not in _MEANING:
            raise OpError(
                codes.WRONG_ATTRIBUTE,
                f"{schema.full_name} has a {kind.lower()} as attribute, which no program can write",
            )
        if required and name not in given:
            raise OpError(
                codes.MISSING_ATTRIBUTE,
                f"{schema.full_name} needs {name}",
                help=f"write {name}=..., {_MEANING[kind]}",
            )
    return tuple(sorted(out, key=lambda pair: pair[0]))


_MEANING = {
    "INT": "an integer", "FLOAT": "a number", "STRING": "a word", "TENSOR": "a tensor",
    "INTS": "a list of integers", "FLOATS": "a list of numbers", "STRINGS": "a list of words",
}  # fmt: skip


def _canonical(schema: Schema, name: str, kind: str, raw: Any) -> AttributeValue:
    if kind == "TENSOR":
        if isinstance(raw, Tensor):
            return raw
        if isinstance(raw, (np.ndarray, np.generic)):
            return Tensor(raw)
    elif kind.endswith("S") and kind[:-1] in _MEANING:
        items = raw.tolist() if isinstance(raw, np.ndarray) else raw
        if isinstance(items, (list, tuple)):
            found = [_scalar(kind[:-1], item) for item in items]
            if None not in found:
                return tuple([item for item in found if item is not None])
    elif kind in _MEANING:
        value = _scalar(kind, raw)
        if value is not None:
            return value
    else:
        raise OpError(codes.WRONG_ATTRIBUTE, f"{name} of {schema.full_name} cannot be written in a program", at=name)
    written = raw if isinstance(raw, str) else show(raw)
    raise OpError(
        codes.WRONG_ATTRIBUTE, f"{name} of {schema.full_name} must be {_MEANING[kind]}, not {written}", at=name
    )


def _scalar(kind: str, raw: Any) -> Scalar | None:
    if kind == "STRING":
        return raw if isinstance(raw, str) else None
    if isinstance(raw, DType):
        return element_type(raw) if kind == "INT" else None
    if kind == "INT":
        return int(raw) if hasattr(raw, "__index__") else None
    if isinstance(raw, (bool, str)) or not hasattr(raw, "__float__"):
        return None
    return float(raw)


def attribute_protos(attributes: tuple[tuple[str, AttributeValue], ...], schema: Schema) -> list[AttributeProto]:
    """The attributes as ONNX stores them."""
    out = []
    for name, value in attributes:
        if isinstance(value, Tensor):
            value = numpy_helper.from_array(value.array)
        kind = schema.attributes[name][0]
        proto = helper.make_attribute(name, value, attr_type=getattr(AttributeProto, kind))
        out.append(proto)
    return out


__all__ = [
    "AttributeValue",
    "attribute_protos",
    "canonical_attributes",
    "element_type",
    "tensor_type_proto",
    "type_proto",
]
