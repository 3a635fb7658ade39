"""Compare two results of ONNX Runtime: integers exactly, floats within a tolerance of their dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """The distance that floats may be apart: ``absolute + relative * |expected|``."""

    relative: float
    absolute: float


#: For models of many layers. A rewrite sums in another order; each dtype rounds at its last place, and some dozens of
#: layers multiply that: f16 and bf16 have 11 and 8 bits; f32 runs through convolutions of thousands of products; f64
#: meets functions that kernels compute to about 1e-9.
MODEL_TOLERANCES = {
    "float16": Tolerance(2e-2, 2e-2),
    "bfloat16": Tolerance(5e-2, 5e-2),
    "float32": Tolerance(1e-3, 1e-5),
    "float64": Tolerance(1e-7, 1e-9),
}
#: For one node or a few: a reassociated sum of some dozens of numbers.
NODE_TOLERANCES = {
    "float16": Tolerance(4e-3, 4e-3),
    "bfloat16": Tolerance(3e-2, 3e-2),
    "float32": Tolerance(2e-5, 2e-5),
    "float64": Tolerance(1e-12, 1e-12),
}


def difference(expected: Any, found: Any, tolerances: Mapping[str, Tolerance], slack: Any = 0.0) -> str | None:
    """Describe how two results differ; None if they are equal within the tolerances.

    Sequences, maps and absent optionals are compared part by part. ``slack`` is added to the tolerance of floats.
    """
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        if expected.keys() != found.keys():
            return f"keys {sorted(expected)} became {sorted(found)}"
        return _first(difference(_narrow(expected[k]), _narrow(found[k]), tolerances) for k in expected)
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
        if len(expected) != len(found):
            return f"{len(expected)} elements became {len(found)}"
        return _first(difference(a, b, tolerances) for a, b in zip(expected, found, strict=True))
    if expected is None or found is None:
        return None if expected is found else f"{expected} became {found}"
    return _array_difference(np.asarray(expected), np.asarray(found), tolerances, slack)


def _narrow(value: Any) -> Any:
    """A map's value: ONNX Runtime returns f32 as a Python float, so it is compared as f32."""
    return np.float32(value) if isinstance(value, float) else value


def _first(found: Any) -> str | None:
    return next((text for text in found if text is not None), None)


def _array_difference(
    expected: np.ndarray, found: np.ndarray, tolerances: Mapping[str, Tolerance], slack: Any
) -> str | None:
    if expected.dtype.kind in "OUS" and found.dtype.kind in "OUS":
        expected, found = expected.astype(object), found.astype(object)
    if expected.dtype != found.dtype:
        return f"dtype {expected.dtype} became {found.dtype}"
    if expected.shape != found.shape:
        return f"shape {list(expected.shape)} became {list(found.shape)}"
    tolerance = tolerances.get(expected.dtype.name)
    outside = expected != found if tolerance is None else outside_of(expected, found, tolerance, slack)
    if not np.any(outside):
        return None
    index = tuple(int(i) for i in np.argwhere(np.atleast_1d(outside))[0]) if expected.shape else ()
    return f"{expected[index]} became {found[index]} at {list(index)}, {int(np.sum(outside))} of {expected.size} differ"


def outside_of(expected: np.ndarray, found: np.ndarray, tolerance: Tolerance, slack: Any = 0.0) -> np.ndarray:
    """Mark the floats that are neither equal nor within the tolerance; NaN and infinities must be the same."""
    a, b = expected.astype(np.float64), found.astype(np.float64)
    with np.errstate(all="ignore"):
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        near = np.abs(a - b) <= tolerance.absolute + tolerance.relative * np.abs(a) + slack
        return np.asarray(~(equal | (near & np.isfinite(a) & np.isfinite(b))))


def differences(
    expected: Mapping[str, Any] | Sequence[Any], found: Mapping[str, Any] | Sequence[Any],
    tolerances: Mapping[str, Tolerance] = MODEL_TOLERANCES,
) -> list[str]:  # fmt: skip
    """Describe the outputs that differ, by name or by number."""
    a: Mapping[Any, Any] = expected if isinstance(expected, Mapping) else dict(enumerate(expected))
    b: Mapping[Any, Any] = found if isinstance(found, Mapping) else dict(enumerate(found))
    if a.keys() != b.keys():
        return [f"outputs {list(a)} became {list(b)}"]
    told = {name: difference(a[name], b[name], tolerances) for name in a}
    return [f"{name}: {text}" for name, text in told.items() if text is not None]
