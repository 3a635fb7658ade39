"""The type of a value: element type and shape."""

from __future__ import annotations

from msgspec import Struct

from dmlc.ir.dim import Dim, Shape
from dmlc.ir.dtype import FOREIGN, DType


class TensorType(Struct, frozen=True):
    """A dense tensor; ``shape`` is a tuple of sizes, empty for a scalar."""

    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)

    def with_shape(self, shape: tuple[Dim, ...]) -> TensorType:
        return self if shape is self.shape else TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]"


class ForeignType(TensorType, frozen=True):
    """A type that the language does not have: only opaque nodes take and give it.

    ``proto`` is the serialized ``onnx.TypeProto``, empty where nothing is known of the value. The shape means nothing.
    """

    dtype: DType = FOREIGN
    shape: Shape = ()
    proto: bytes = b""

    def __str__(self) -> str:
        return "foreign" if self.proto else "unknown"


def is_absent(type: TensorType) -> bool:
    """Return whether nothing is known of a value: so are the optional results that an opaque node does not have."""
    return isinstance(type, ForeignType) and not type.proto


#: The type of a value of which nothing is known.
UNKNOWN = ForeignType()
