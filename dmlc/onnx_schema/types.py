"""Types of the IR as ONNX has them: numbers of element types, and type protos."""

from __future__ import annotations

from onnx import TensorProto, TypeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.models import BROKEN_MODEL
from dmlc.ir import DType, ForeignType, Shape, TensorType
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64

#: ONNX's number of each dtype of the language.
ELEMENT_TYPE: dict[DType, int] = {
    f16: TensorProto.FLOAT16, f32: TensorProto.FLOAT, f64: TensorProto.DOUBLE,
    i8: TensorProto.INT8, i16: TensorProto.INT16, i32: TensorProto.INT32, i64: TensorProto.INT64,
    u8: TensorProto.UINT8, u16: TensorProto.UINT16, u32: TensorProto.UINT32, u64: TensorProto.UINT64,
    bool_: TensorProto.BOOL,
}  # fmt: skip
#: The dtypes of the language by ONNX's number.
DTYPE_OF: dict[int, DType] = {number: dtype for dtype, number in ELEMENT_TYPE.items()}


def is_element_type(number: int) -> bool:
    """Return whether the installed onnx knows an element type of that number."""
    return number in TensorProto.DataType.values()


def element_name(number: int) -> str:
    """ONNX's name of an element type in lower case; its number where onnx does not know it."""
    return str(TensorProto.DataType.Name(number)).lower() if is_element_type(number) else f"type {number}"


def dtype_of_foreign(type: TensorType) -> DType | None:
    """The dtype of a tensor of unknown rank; None if it is not a tensor of a dtype of the language."""
    if not isinstance(type, ForeignType) or not type.proto:
        return None
    return DTYPE_OF.get(TypeProto.FromString(type.proto).tensor_type.elem_type)


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
    proto = TypeProto(tensor_type=TypeProto.Tensor(elem_type=ELEMENT_TYPE[dtype]))
    return ForeignType(proto=proto.SerializeToString(deterministic=True))


def type_proto(type: TensorType) -> TypeProto:
    """The type as ONNX declares it; symbolic sizes are parameters by their text."""
    if isinstance(type, ForeignType):
        return TypeProto.FromString(type.proto)
    return tensor_type_proto(ELEMENT_TYPE[type.dtype], type.shape)


def tensor_type_proto(element: int, shape: Shape | None) -> TypeProto:
    """A tensor's type by ONNX's number of its elements; ``shape`` is None for an unknown rank.

    Raises ``DmlcError`` E0431 for a size that ONNX cannot hold.
    """
    tensor = TypeProto.Tensor(elem_type=element)
    if shape is not None:
        tensor.shape.SetInParent()
        for size in shape:
            if isinstance(size, int):
                try:
                    tensor.shape.dim.add(dim_value=size)
                except ValueError:
                    raise fail(BROKEN_MODEL, f"a value has a size of {size}, above 2^63 - 1") from None
            else:
                tensor.shape.dim.add(dim_param=str(size))
    return TypeProto(tensor_type=tensor)
