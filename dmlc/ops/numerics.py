"""Helpers of the references: accumulation wider than f16, rounding once, no warnings for NaN and overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmlc.ir import Array


def wide(x: Array) -> Array:
    """f16 is computed in f32, as DirectML and ONNX Runtime do; other types in themselves."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function(attributes, *arrays)`` as a reference: its arrays widened, its result of the first one's dtype.

    NumPy's warnings about overflow, NaN and division by zero are off: the values are what counts.
    """

    def reference(attributes: Any, first: Array, *rest: Array | None) -> Array:
        with np.errstate(all="ignore"):
            out = function(attributes, wide(first), *[None if x is None else wide(x) for x in rest])
            return np.asarray(out).astype(first.dtype, copy=False)

    return reference
