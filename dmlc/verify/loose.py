"""Rounding differences between kernels and references, by a unit or two in the last place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Array, Operation
from dmlc.ops.elementwise import ELU, GELU, HARD_SIGMOID, SIGMOID, SILU, SOFTPLUS, UNARY
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX

#: Functions that every kernel approximates in its own way.
_APPROXIMATED = frozenset((*(op for op in UNARY if op.rounding == "approximate"), SOFTMAX, LOG_SOFTMAX))
#: Bits of a number times this are as good as random in the upper places (D. Knuth, TAOCP 3, 6.4: the golden ratio).
_GOLDEN = {4: np.uint32(0x9E3779B1), 8: np.uint64(0x9E3779B97F4A7C15)}
#: Functions whose kernels add numbers of the size of 1 or of the operand.
_CANCELLING = (ELU, GELU, HARD_SIGMOID, SILU, SOFTPLUS)
_UNITS = 2


def loose(x: Array) -> Array:
    """A value as it is inside of a runtime: f16 stays f32 between nodes."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def loose_result(op: Operation, x: Array, operands: Sequence[Array | None]) -> Array:
    """A result as a kernel might give it. Approximated numbers move by up to two units in the last place, the same for
    equal operands, so that ties stay ties. Numbers below the normal ones are 0. A sigmoid is as exact as 1 is."""
    x = loose(x)
    if op not in _APPROXIMATED or operands[0] is None:
        return x
    units, unit = _units(loose(operands[0])), np.finfo(x.dtype).eps
    if op is SIGMOID:
        x = np.maximum(x - (1 + np.abs(units)) * unit, 0)
    else:
        size = np.maximum(np.abs(x), np.clip(np.abs(loose(operands[0])), 1, 32)) if op in _CANCELLING else x
        x = x + units * unit * size
    return np.asarray(np.where(np.abs(x) < np.finfo(x.dtype).tiny, 0, x).astype(x.dtype))


def _units(operand: Array) -> Array:
    """Whole numbers from -2 to 2 that hang on nothing but the numbers of the operand."""
    size = operand.dtype.itemsize
    numbers = np.asarray(operand + 0.0, order="C")  # -0 is 0
    mixed = np.multiply(numbers.view(_GOLDEN[size].dtype), _GOLDEN[size]) >> (8 * size - 16)
    return np.asarray((mixed % (2 * _UNITS + 1)).astype(operand.dtype) - _UNITS)
