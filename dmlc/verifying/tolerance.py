"""Tolerances for comparing two results of one function, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmlc.verifying.patterns import FLOATS

EXACT, REASSOCIATES, RANGE = "exact", "reassociates", "range"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|a - b| <= relative * |a| + scaled * (the largest finite |a| of the output) + least``."""

    relative: float
    scaled: float
    least: float
    reason: str

    def bound(
        self, a: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """The largest difference for each element; ``a`` is finite or NaN where nothing is to be compared."""
        finite = a[np.isfinite(a)]
        top = float(np.abs(finite).max()) if finite.size else 0.0
        with np.errstate(all="ignore"):
            return np.asarray(self.relative * np.abs(a) + (self.scaled * top + self.least))


def _of(kind: str, relative: int, scaled: int, why: str) -> Tolerance:
    limits = FLOATS[kind]
    reason = f"{relative} units of {kind} in the last place of the element, {scaled} of the largest element: {why}"
    # kernels make 0 of smaller numbers; many of f16 are no larger
    least = 16 * limits.smallest if kind == "float16" else limits.smallest_normal
    return Tolerance(relative * limits.eps, scaled * limits.eps, least, reason)


_SUMS = "a sum of n terms in another order moves by up to n / 2 units of its largest partial sum"
_NARROW = "intermediate results may be rounded to the narrow type or kept in f32"

#: For rewrites that reassociate, by kind. Larger differences are compared with the moves of the original
#: itself when its inputs move in their last places.
TOLERANCES: dict[str, Tolerance] = {
    "float16": _of("float16", 8, 4, _NARROW),
    "bfloat16": _of("bfloat16", 8, 2, _NARROW),
    "float32": _of("float32", 1024, 16, _SUMS),
    "float64": _of("float64", 1024, 16, _SUMS),
}


def asked_tolerance(rtol: float | None, atol: float | None) -> Tolerance | None:
    """``|a - b| <= atol + rtol * |a|``, each 0 if only the other is given; None if neither is.

    Raises ``ValueError`` for a number below 0 and for NaN.
    """
    if rtol is None and atol is None:
        return None
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not value >= 0:
            raise ValueError(f"{name} is 0 or more, not {value}")
    return Tolerance(rtol or 0.0, 0.0, atol or 0.0, "asked for")
