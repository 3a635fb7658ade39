"""Constant data: immutable, row-major, equal by bytes."""

from __future__ import annotations

import numpy as np
import pytest

from dmlc.ir import Tensor
from dmlc.ir.dtype import f16, f32, f64, i32, u8
from tests.rows import each_row


def test_data_is_a_read_only_copy() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Tensor(array)
    array[0, 0] = 99
    assert tensor.array[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        tensor.array[0, 0] = 1


def test_read_only_data_is_not_copied() -> None:
    array = np.arange(6, dtype=np.float32)
    array.flags.writeable = False
    assert Tensor(array).array is array


@each_row("array", [
    np.arange(6, dtype=np.int32).reshape(2, 3).T, np.arange(6, dtype=">i4"), np.arange(12, dtype=np.int32)[::2],
])  # fmt: skip
def test_any_layout_becomes_native_and_row_major(array: np.ndarray) -> None:
    tensor = Tensor(array)
    assert tensor.array.flags.c_contiguous
    assert tensor.array.dtype.isnative
    assert tensor.dtype is i32
    assert np.array_equal(tensor.array, array)
    assert tensor == Tensor(np.ascontiguousarray(array).astype(np.int32))


def test_equality_is_of_bytes_dtype_and_shape() -> None:
    assert Tensor([np.nan], f32) == Tensor([np.nan], f32)
    assert Tensor([0.0], f32) != Tensor([-0.0], f32)
    assert Tensor([1], i32) != Tensor([1], f32)
    assert Tensor([[1]], i32) != Tensor([1], i32)
    assert Tensor([1, 2], u8) != Tensor([2, 1], u8)
    assert Tensor([1], i32) != [1]
    assert hash(Tensor([1.5], f64)) == hash(Tensor([1.5], f64))
    assert len({Tensor([1], i32), Tensor([1], i32), Tensor([2], i32)}) == 2


def test_type_and_text() -> None:
    tensor = Tensor(np.zeros((2, 0)), f16, note="w.npy")
    assert str(tensor.type) == "f16[2, 0]"
    assert repr(tensor) == "Tensor(f16[2, 0])"
    assert tensor.note == "w.npy"
    assert str(Tensor(1.0, f32).type) == "f32[]"
