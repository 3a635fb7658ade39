"""Constants come back bit for bit, however they are written."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_models import Model, function, source

from dmlc.ir.dtype import DTYPES, FLOATS, DType
from tests.rows import each_row


def back(array: np.ndarray, name: str | None = "c") -> tuple[np.ndarray, str]:
    model = Model()
    text = source(model.returns(y=model.constant(array, name)))
    return function(text)(), text


def same_bits(array: np.ndarray) -> str:
    got, text = back(array)
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())
    return text


@each_row("dtype", DTYPES, ids=str)
@each_row("shape", [(), (1,), (7,), (2, 3), (2, 1, 3), (300,), (20, 40), (0,), (3, 0)])
def test_every_dtype_and_size(dtype: DType, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    if dtype.is_float:
        array = rng.normal(size=shape).astype(dtype.numpy)
    elif dtype.kind == "bool":
        array = np.asarray(rng.random(shape) < 0.5)
    else:
        array = rng.integers(dtype.lowest, dtype.highest, shape, dtype.numpy, endpoint=True)
    same_bits(np.asarray(array))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ends_and_special_values(dtype: DType) -> None:
    info = np.finfo(dtype.numpy)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        info.max,
        info.min,
        info.tiny,
        info.smallest_subnormal,
        info.eps,
        0.1,
    ]
    array = np.array(special, dtype.numpy)
    assert "np.nan" in same_bits(array)
    for value in array:
        same_bits(value[...])
        same_bits(np.full(20, value))
        same_bits(np.concatenate([array] * 60))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_other_nan(dtype: DType) -> None:
    """A NaN with a sign or a payload has no literal."""
    array = -np.array([np.nan, 1, np.nan], dtype.numpy)
    assert "bytes.fromhex" in same_bits(array)


def test_all_f16() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    plain = every[~np.isnan(every)]
    for part in np.array_split(plain, 200):
        same_bits(part)
    same_bits(every)


def test_f32_that_python_reads_with_one_rounding_more() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 5000, np.uint32)
    array = bits.view(np.float32)
    for part in np.array_split(array[np.isfinite(array)], 20):
        same_bits(part)


def test_forms() -> None:
    """Short ones above the function on one line, longer ones below, large ones as bytes."""
    assert (
        "\n_C = np.array([[1, 2], [3, 4]], dtype=np.int32)\n\n\ndef model"
        in back(np.array([[1, 2], [3, 4]], np.int32))[1]
    )
    assert "_C = np.full((4, 4), 0.5, dtype=np.float32)" in back(np.full((4, 4), 0.5, np.float32))[1]
    assert "_C = np.zeros((0, 3), dtype=np.uint8)" in back(np.zeros((0, 3), np.uint8))[1]
    listed = back(np.linspace(0, 1, 99, dtype=np.float64).reshape(9, 11))[1]
    assert "# fmt: off\n_C = np.array([\n    0.0, 0.01" in listed
    assert "], dtype=np.float64).reshape(9, 11)\n# fmt: on\n" in listed
    assert max(map(len, listed.splitlines())) <= 100
    many = np.arange(10_000, dtype=np.float32)
    large = same_bits(many)
    assert len(large) < 9 * many.size
    assert "_CONSTANT = " in back(many, None)[1]


def test_one_constant_is_written_once() -> None:
    model = Model()
    x = model.input("x", "f32", 3)
    a, b = (model.constant(np.array([1, 2, 3], np.float32), name) for name in ("first", "second"))
    text = source(model.returns(y=model.call("*", model.call("+", x, a), b)))
    assert "_FIRST" in text and "_SECOND" not in text


def test_numbers_beside_arrays_and_scalars() -> None:
    model = Model()
    x, s = model.input("x", "f16", 3), model.input("s", "f16")
    text = source(
        model.returns(
            a=model.call("*", x, 0.1),
            b=model.call("*", s, 0.1),
            c=model.call("+", x, model.constant(np.array([[2.5]], np.float16))),
            d=model.call("min", x, 65504.0),
        )
    )
    assert "a = x * 0.1\n" in text
    assert "b = s * np.float16(0.1)\n" in text  # NumPy 1 makes f64 of a scalar and a Python number
    assert "c = x + _CONSTANT\n" in text  # the shape would be another one
    assert "d = np.minimum(x, np.float16(65504.0))\n" in text  # NumPy 1 widens near the end of the range
