"""Constant data."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from dmlc.ir.dtype import DType, as_dtype
from dmlc.ir.types import TensorType


class Tensor:
    """An immutable array that compares by value: bytes, dtype and shape (so NaN equals itself and -0 is not 0).

    ``note`` says where the data came from (a file name), for printers.
    """

    __slots__ = ("_digest", "array", "note")

    def __init__(self, array: Any, dtype: DType | None = None, note: str = "") -> None:
        wanted = None if dtype is None else dtype.numpy
        data = np.asarray(array, dtype=wanted)
        if data.flags.writeable or not data.flags.c_contiguous or not data.dtype.isnative:
            data = np.array(data, dtype=data.dtype.newbyteorder("="), order="C")
        data.flags.writeable = False
        self.array: np.ndarray[Any, np.dtype[Any]] = data
        self.note = note
        self._digest: bytes | None = None

    @property
    def dtype(self) -> DType:
        return as_dtype(self.array.dtype)

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, tuple(self.array.shape))

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
