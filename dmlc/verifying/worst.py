"""The element of two arrays that is furthest apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlc.diagnostics.counted import counted
from dmlc.ir import Array
from dmlc.ir.answers import Answer, Real
from dmlc.verifying.comparison import show, steps_apart

_KEYS = {"scaled": "relative_to_largest", "count": "elements", "size": "of"}


class WorstElement(Answer, frozen=True, rename=_KEYS):
    """The elements of two arrays that differ most, and how many differ.

    ``absolute`` is None where no distance exists: NaN or an infinity against something else, truth values, texts.
    ``scaled`` is the distance over the largest finite magnitude of the first array, None where that is 0. ``ulp``
    counts units in the last place of the dtype; None for anything but floats.
    """

    index: tuple[int, ...]
    a: Any
    b: Any
    absolute: Real | None
    scaled: Real | None
    ulp: Real | None
    count: int
    size: int

    def __str__(self) -> str:
        place = f" at [{', '.join(map(str, self.index))}]" if self.index else ""
        text = f"{show(self.a)} -> {show(self.b)}{place}"
        if self.absolute is not None:
            text += f", {self.absolute:.3g} apart"
        if self.scaled is not None:
            text += f", {self.scaled:.3g} of the largest magnitude"
        if self.ulp is not None:
            text += f", {self.ulp:.3g} ulp"
        return f"{text} ({self.count} of {counted(self.size, 'element')} differ)"


def worst_element(a: Array, b: Array, kind: str | None = None) -> WorstElement | None:
    """The worst element of two arrays of one shape and dtype; None where all numbers are the same (all NaN are one).

    An element without a distance comes before all others. ``kind`` names the dtype where it is handed over in a wider
    one (``bfloat16``).
    """
    a, b, kind = _numbers(a, b, kind)
    differs = _differing(a, b)
    if not differs.any():
        return None
    apart = _distances(a, b, differs)
    flat = int(np.argmax(np.where(differs, apart, -1.0)))
    index = tuple([int(i) for i in np.unravel_index(flat, a.shape)])
    x, y = a[index], b[index]
    distance = float(apart.reshape(-1)[flat])
    absolute = distance if np.isfinite(distance) else None
    top = _largest(a)
    scaled = absolute / top if absolute is not None and top else None
    ulp = None
    if absolute is not None and a.dtype.kind == "f":
        ulp = float(steps_apart(np.asarray([x]), np.asarray([y]), kind or a.dtype.name)[0])
    return WorstElement(index, _plain(x), _plain(y), absolute, scaled, ulp, int(differs.sum()), int(a.size))


def _numbers(a: Array, b: Array, kind: str | None) -> tuple[Array, Array, str | None]:
    """Arrays of NumPy's own dtypes; dtypes of ONNX alone (bfloat16, 8 and 4 bits) become f32."""
    if a.dtype.kind in "fiubcOUS" and a.dtype.itemsize <= 16:
        return a, b, kind
    return a.astype(np.float32), b.astype(np.float32), kind or ("bfloat16" if a.dtype.name == "bfloat16" else None)


def _differing(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        unequal = np.asarray(a != b, dtype=bool)
        if a.dtype.kind in "fc":
            unequal &= ~(np.isnan(a) & np.isnan(b))
    return unequal


def _distances(a: Array, b: Array, differs: Array) -> Array:
    """Distance of each pair; infinite where it has none."""
    if a.dtype.kind not in "fiuc":
        return np.where(differs, np.inf, 0.0)
    wide = np.longdouble if a.dtype.kind in "fiu" else np.complex128
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(wide) - b.astype(wide)).astype(np.float64)
        if a.dtype.kind in "fc":
            apart = np.where(np.isfinite(a) & np.isfinite(b), np.minimum(apart, np.finfo(np.float64).max), np.inf)
    return np.asarray(apart)


def _largest(a: Array) -> float:
    """The largest finite magnitude; 0 for anything but numbers."""
    if a.dtype.kind not in "fiuc":
        return 0.0
    found = np.abs(a[np.isfinite(a)].astype(np.complex128 if a.dtype.kind == "c" else np.float64))
    return float(found.max()) if found.size else 0.0


def _plain(value: Any) -> Any:
    found = value.item() if isinstance(value, np.generic) else value
    return str(found) if isinstance(found, complex) else found
