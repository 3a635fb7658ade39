"""Constant data."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir.dtype import DType, as_dtype
from dmlc.ir.types import TensorType

_Data: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

#: Data kept elsewhere is compared by its bytes up to this size, and above it only with itself.
_COMPARED_BYTES = 4096


class Tensor:
    """An immutable array that compares by value: bytes, dtype and shape (so NaN equals itself and -0 is not 0).

    ``note`` says where the data came from (a file name), for printers.
    """

    __slots__ = ("_array", "_digest", "note")

    def __init__(self, array: Any, dtype: DType | None = None, note: str = "") -> None:
        wanted = None if dtype is None else dtype.numpy
        self._array: _Data | None = _frozen(np.asarray(array, dtype=wanted))
        self.note: str = note
        self._digest: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self.array, None, self.note)

    def __copy__(self) -> Tensor:
        return self  # it never changes

    def __deepcopy__(self, memo: object) -> Tensor:
        return self

    @property
    def array(self) -> _Data:
        assert self._array is not None
        return self._array

    @property
    def dtype(self) -> DType:
        return as_dtype(self.array.dtype)

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, tuple(self.array.shape))

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.array.size)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.bits // 8

    def _key(self) -> bytes:
        if self._digest is None:
            head = f"{self.array.dtype.str}{self.array.shape}".encode()
            self._digest = hashlib.blake2b(head + self.array.tobytes(), digest_size=16).digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and (self is other or self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Tensor({self.type})"


class StoredTensor(Tensor):
    """Data that stays where it is until it is asked for: a weight of a model, inside it or in a file beside it.

    ``store`` is what code generators pass on instead of the data. Large data is never read to be compared. Data that
    ``is_apart`` lies in a file of its own: no rewrite reads more of it than a few numbers.
    """

    __slots__ = ("_load", "_type", "is_apart", "store")

    def __init__(
        self, type: TensorType, store: object, load: Callable[[], Any], note: str = "", *, is_apart: bool = False
    ) -> None:
        self.is_apart: bool = is_apart
        self._array = None
        self._digest = None
        self._type = type
        self._load = load
        self.store: object = store
        self.note = note

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored, (self._type, self.store, self._load, self.note, self.is_apart)

    @property
    def array(self) -> _Data:
        if self._array is None:
            self._array = _frozen(np.asarray(self._load(), dtype=self._type.dtype.numpy))
        return self._array

    @property
    def dtype(self) -> DType:
        return self._type.dtype

    @property
    def type(self) -> TensorType:
        return self._type

    @property
    def size(self) -> int:
        return math.prod([d for d in self._type.shape if isinstance(d, int)])

    def _key(self) -> bytes:
        if self._digest is None and self.nbytes > _COMPARED_BYTES:
            self._digest = f"stored {id(self)}".encode()
        return super()._key()


def _stored(type: TensorType, store: object, load: Callable[[], Any], note: str, is_apart: bool) -> StoredTensor:
    return StoredTensor(type, store, load, note, is_apart=is_apart)


def _frozen(data: _Data) -> _Data:
    if data.flags.writeable or not data.flags.c_contiguous or not data.dtype.isnative:
        data = np.array(data, dtype=data.dtype.newbyteorder("="), order="C")
    data.flags.writeable = False
    return data
