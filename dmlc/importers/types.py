"""ONNX types as types of the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import TypeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.inference.protos import NO_NAMES
from dmlc.ir import UNKNOWN, Dim, ForeignType, TensorType, symbol
from dmlc.onnx_schema.declared import without_item_shapes
from dmlc.onnx_schema.types import DTYPE_OF


def type_of(
    proto: TypeProto | None,
    binding: Mapping[str, int],
    fresh: Callable[[], Dim],
    named: Callable[[str], Dim] = symbol,
) -> TensorType:
    """Return the type; ``UNKNOWN`` if the proto declares none. Shapes of a sequence's items are ignored.

    ``fresh`` makes a dim for a size without a name, ``named`` one for a size with a name.
    """
    if proto is None or proto.WhichOneof("value") is None:
        return UNKNOWN
    if proto.HasField("tensor_type"):
        tensor = proto.tensor_type
        dtype = DTYPE_OF.get(tensor.elem_type)
        if dtype is not None and tensor.HasField("shape"):
            return TensorType(dtype, tuple([_size(d, binding, fresh, named) for d in tensor.shape.dim]))
    return ForeignType(proto=without_item_shapes(proto).SerializeToString(deterministic=True))


def _size(
    proto: TypeProto.Tensor.Shape.Dimension,
    binding: Mapping[str, int],
    fresh: Callable[[], Dim],
    named: Callable[[str], Dim],
) -> Dim:
    if proto.HasField("dim_value") and proto.dim_value >= 0:
        return int(proto.dim_value)
    if proto.dim_value < -1:  # -1 is what some exporters write for a size that they do not know
        raise fail(codes.BROKEN_MODEL, f"an axis has size {proto.dim_value}")
    name = proto.dim_param
    if name in NO_NAMES:
        return fresh()
    return binding[name] if name in binding else named(name)


def bind(proto: TypeProto, binding: Mapping[str, int]) -> None:
    """Replace the bound dims of a tensor type in place."""
    if proto.HasField("tensor_type"):
        for dim in proto.tensor_type.shape.dim:
            if dim.dim_param in binding:
                dim.dim_value = binding[dim.dim_param]
