"""Element types of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np


class DType:
    """An element type. Each exists once, so identity is equality.

    ``name`` is the language's short name; ``kind`` is ``float int uint bool`` or ``other`` for the types
    that only carried ONNX operators use; ``bits`` is the width (0 where it has none). ``is_integer`` is true of signed
    and unsigned ones; bool is not an integer.
    """

    __slots__ = ("bits", "is_float", "is_integer", "kind", "long_name", "name", "numpy")

    def __init__(self, name: str, long_name: str, kind: str, bits: int, numpy: Any) -> None:
        self.name: str = name
        self.long_name: str = long_name
        self.kind: str = kind
        self.is_float: bool = kind == "float"
        self.is_integer: bool = kind in ("int", "uint")
        self.bits: int = bits
        self.numpy: np.dtype[Any] = np.dtype(numpy)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        """A copy is the same object: the global of this module."""
        return {"bool": "bool_", "foreign": "FOREIGN"}.get(self.name, self.name)

    @property
    def lowest(self) -> int | float:
        """The smallest value; minus infinity for floats."""
        if self.kind == "float":
            return float("-inf")
        return int(np.iinfo(self.numpy).min) if self.is_integer else 0

    @property
    def highest(self) -> int | float:
        """The largest value; infinity for floats."""
        if self.kind == "float":
            return float("inf")
        return int(np.iinfo(self.numpy).max) if self.is_integer else 1

    @property
    def accumulator(self) -> DType:
        """The dtype that sums are taken in: f32 for f16, otherwise the dtype itself."""
        return f32 if self is f16 else self

    def holds(self, other: DType) -> bool:
        """Return whether every value of the other dtype is a number of this one, as a cast makes it."""
        if other.kind == "bool":
            return True
        if other.is_float:
            return self.is_float and self.bits >= other.bits
        if self.is_float:
            return _MANTISSA[self.bits] >= other.bits - (other.kind == "int")
        return int(self.lowest) <= int(other.lowest) and int(other.highest) <= int(self.highest)


#: Bits of the integers that a float of so many bits holds, each and all.
_MANTISSA = {16: 11, 32: 24, 64: 53}

f16: DType = DType("f16", "float16", "float", 16, np.float16)
f32: DType = DType("f32", "float32", "float", 32, np.float32)
f64: DType = DType("f64", "float64", "float", 64, np.float64)
i8: DType = DType("i8", "int8", "int", 8, np.int8)
i16: DType = DType("i16", "int16", "int", 16, np.int16)
i32: DType = DType("i32", "int32", "int", 32, np.int32)
i64: DType = DType("i64", "int64", "int", 64, np.int64)
u8: DType = DType("u8", "uint8", "uint", 8, np.uint8)
u16: DType = DType("u16", "uint16", "uint", 16, np.uint16)
u32: DType = DType("u32", "uint32", "uint", 32, np.uint32)
u64: DType = DType("u64", "uint64", "uint", 64, np.uint64)
bool_: DType = DType("bool", "bool", "bool", 8, np.bool_)
#: Values without a type in the language (strings, sequences, bfloat16, an unknown rank): only opaque nodes take them.
FOREIGN = DType("foreign", "foreign", "other", 0, object)

#: The language's dtypes, in the order of the language reference.
DTYPES: tuple[DType, ...] = (f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool_)
FLOATS: tuple[DType, ...] = (f16, f32, f64)
INTEGERS: tuple[DType, ...] = (i8, i16, i32, i64, u8, u16, u32, u64)
NUMERIC: tuple[DType, ...] = FLOATS + INTEGERS
#: Dtypes that an index result may have (DirectML ARGMAX output types).
INDEX: tuple[DType, ...] = (u32, i32, i64, u64)

DTYPE_BY_NAME: dict[str, DType] = {d.name: d for d in DTYPES}
_BY_ANY: dict[Any, DType] = {
    **DTYPE_BY_NAME,
    **{d.long_name: d for d in DTYPES},
    **{d.numpy: d for d in DTYPES},
}


def as_dtype(value: object) -> DType:
    """A dtype from a dtype, its short or NumPy name, or anything ``numpy.dtype`` takes.

    Raises ``KeyError`` where the language has no such type.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, (str, np.dtype)) and value in _BY_ANY:
        return _BY_ANY[value]
    # numpy.dtype(None) is float64, and NumPy warns of an object, such as a module, whose own dtype is something else
    own = None if isinstance(value, type) else getattr(value, "dtype", None)
    if value is None or not isinstance(own, np.dtype | None):
        raise KeyError(value)
    try:
        found = _BY_ANY.get(np.dtype(value).newbyteorder("="))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise KeyError(value)
    return found
