"""Dtypes: every spelling leads to the one object, and the limits are NumPy's."""

from __future__ import annotations

import copy
import pickle
from math import inf

import numpy as np
import pytest

from dmlc.ir import DTYPE_BY_NAME, DTYPES, FLOATS, INDEX, INTEGERS, NUMERIC, DType, as_dtype
from dmlc.ir.dtype import bool_, f16, f32, u32
from tests.rows import each_row


@each_row("dtype", DTYPES)
def test_every_spelling_is_the_same_object(dtype: DType) -> None:
    spellings = (dtype, dtype.name, dtype.long_name, dtype.numpy, dtype.numpy.type, dtype.numpy.newbyteorder(">"))
    for spelling in spellings:
        assert as_dtype(spelling) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert repr(dtype) == dtype.name
    assert DTYPE_BY_NAME[dtype.name] is dtype


@each_row("spelling", ["f9", "complex64", "object", np.complex64, "S3", type(None), None, 3, ""])
def test_what_the_language_has_not_is_a_key_error(spelling: object) -> None:
    with pytest.raises(KeyError):
        as_dtype(spelling)


def test_numpys_other_names_are_taken_too() -> None:
    assert as_dtype("f4") is f32
    assert as_dtype(float) is as_dtype("float64")
    assert as_dtype(bool) is bool_


@each_row("dtype", DTYPES)
def test_kinds_widths_and_limits(dtype: DType) -> None:
    assert dtype.bits == 8 * dtype.numpy.itemsize
    assert dtype.is_float is (dtype in FLOATS)
    assert dtype.is_integer is (dtype in INTEGERS)
    if dtype.is_float:
        assert (dtype.lowest, dtype.highest) == (-inf, inf)
    elif dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        assert (dtype.lowest, dtype.highest) == (info.min, info.max)
    else:
        assert (dtype.lowest, dtype.highest) == (0, 1)


def test_the_groups() -> None:
    assert len(DTYPES) == 12
    assert NUMERIC == FLOATS + INTEGERS
    assert bool_ not in NUMERIC
    assert INDEX[0] is u32
    assert f16 is not f32


def corners(dtype: DType) -> np.ndarray:
    """The numbers of the dtype that another one loses first: its limits, and powers of two with their neighbours."""
    if dtype.is_float:
        info = np.finfo(dtype.numpy)
        return np.array([info.max, info.tiny, info.eps + 1, info.smallest_subnormal, 0.5], dtype.numpy)
    found = [power + step for exponent in range(dtype.bits + 1) for power in (2**exponent,) for step in (-1, 0, 1)]
    found += [-number for number in found]
    lowest, highest = (int(limit) for limit in (dtype.lowest, dtype.highest))
    return np.array([number for number in found if lowest <= number <= highest], dtype.numpy)


@each_row("other", DTYPES)
@each_row("dtype", DTYPES)
def test_a_dtype_holds_another_whose_numbers_a_cast_keeps(dtype: DType, other: DType) -> None:
    numbers = corners(other)
    with np.errstate(all="ignore"):
        kept = numbers.astype(dtype.numpy)
    # Python's numbers compare without a common dtype that would round them.
    assert dtype.holds(other) is all(a == b for a, b in zip(kept.tolist(), numbers.tolist(), strict=True))
