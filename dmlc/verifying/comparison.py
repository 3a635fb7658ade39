"""Two results, output by output: the same, within a class of rewrites, or different and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from dmlc.diagnostics.counted import counted
from dmlc.ir import Array
from dmlc.ir.answers import Answer
from dmlc.verifying.parts import Path, are_alike, as_array, is_composite, leaves
from dmlc.verifying.tolerance import EXACT, RANGE, REASSOCIATES, TOLERANCES, Tolerance

SAME, WITHIN, DIFFERENT = "exact", "within", "different"


@dataclass(frozen=True, slots=True)
class Errors:
    """The largest errors over the elements that are finite numbers on both sides; ``ulp`` in units in the last place,
    ``scaled`` is ``absolute`` over the largest finite magnitude of the original's output.

    ``noise`` is the ratio of signal to noise in decibels and ``cosine`` that of the two outputs: the smallest of any
    input, None if nothing differs by a number.

    0 where nothing differs. None where something differs and nothing that differs has such an error: NaN or an infinity
    against something else, truth values, texts, another dtype or shape; relative to 0; integers have no ``ulp``.
    """

    absolute: float | None = 0.0
    relative: float | None = 0.0
    ulp: float | None = 0.0
    scaled: float | None = 0.0
    noise: float | None = None
    cosine: float | None = None

    def worst(self, other: Errors) -> Errors:
        """The worse of each. An error that is known stands for elements that have none."""
        pairs = zip(self._all(), other._all(), strict=True)
        found = Errors(*[_larger(a, b) for a, b in pairs])
        noise, cosine = _smaller(self.noise, other.noise), _smaller(self.cosine, other.cosine)
        return replace(found, noise=noise, cosine=cosine)

    def _all(self) -> tuple[float | None, ...]:
        return self.absolute, self.relative, self.ulp, self.scaled


#: The errors of values that differ and have no distance in numbers.
NO_ERRORS = Errors(None, None, None, None)


def _larger(a: float | None, b: float | None) -> float | None:
    """The larger error; None beats a 0, which means that nothing differs."""
    if a is None or b is None:
        return a or b or None
    return max(a, b)


def _smaller(a: float | None, b: float | None) -> float | None:
    return min((x for x in (a, b) if x is not None), default=None)


class Difference(Answer, frozen=True, rename={"a": "original", "b": "result", "count": "elements", "size": "of"}):
    """The first element, in row-major order, that is not within the class; ``count`` of ``size`` elements are not.

    ``index`` starts with places in sequences and keys of maps. It is None where the outputs have no common elements.
    """

    what: str
    index: Path | None = None
    a: Any = None
    b: Any = None
    count: int = 1
    size: int = 1

    def __str__(self) -> str:
        if self.index is None:
            return self.what
        place = f"[{', '.join(map(show, self.index))}]" if self.index else "the value"
        part = f"{self.count} of {counted(self.size, 'element')}"
        return f"{self.what} at {place}: {show(self.a)} became {show(self.b)} ({part})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output: ``status`` is ``exact``, ``within`` or ``different``; ``zeros`` counts zeros of another sign,
    which are equal. ``places`` marks the elements that are not within the class."""

    name: str
    status: str
    errors: Errors = Errors()
    difference: Difference | None = None
    zeros: int = 0
    places: Any = None


def _unlike(name: str, what: str) -> Comparison:
    """Two outputs without elements to compare."""
    return Comparison(name, DIFFERENT, NO_ERRORS, Difference(what))


def classes(allowed: str | Iterable[str]) -> frozenset[str]:
    """The classes with those that they include. Raises ``ValueError`` for a name that is none."""
    found = frozenset([allowed] if isinstance(allowed, str) else allowed) | {EXACT}
    unknown = found - {EXACT, REASSOCIATES, RANGE}
    if unknown:
        raise ValueError(f"there is no class of rewrites {', '.join(sorted(unknown))}")
    return found | {REASSOCIATES} if RANGE in found else found


def compare(
    outputs_a: Mapping[str, Any],
    outputs_b: Mapping[str, Any],
    allowed: str | Iterable[str] = REASSOCIATES,
    *,
    kinds: Mapping[str, str] | None = None,
    tolerance: Tolerance | None = None,
) -> dict[str, Comparison]:
    """Compare each output of ``b`` with the output of ``a``, under the allowed classes of rewrites.

    Integers, booleans and texts are equal or different. Floats are equal if they are the same number (all NaN are
    equal, and so are -0 and 0). If a class allows it, floats may differ within the tolerance of their dtype; NaN and
    infinities must stay where they are. ``kinds`` names the dtype of outputs that are passed in a wider one
    (``bfloat16``, values of maps). Lists (a sequence), mappings and None (an absent optional) are compared part by
    part. The single numbers of a map, or of a sequence of maps, are compared as one tensor. ``tolerance`` replaces
    each dtype's.
    """
    chosen = classes(allowed)
    out: dict[str, Comparison] = {}
    for name in [*outputs_a, *(n for n in outputs_b if n not in outputs_a)]:
        if name not in outputs_a or name not in outputs_b:
            side = "the original" if name not in outputs_a else "the result"
            out[name] = _unlike(name, f"{side} has no such output")
        else:
            kind = (kinds or {}).get(name)
            out[name] = compare_values(name, outputs_a[name], outputs_b[name], chosen, kind, tolerance=tolerance)
    return out


def compare_values(
    name: str,
    a: Any,
    b: Any,
    allowed: frozenset[str],
    kind: str | None = None,
    slack: Any = None,
    tolerance: Tolerance | None = None,
) -> Comparison:
    """One output. ``slack`` is what each element may be apart beyond the tolerance, by default the dtype's."""
    if is_composite(a) or is_composite(b):
        return _compare_parts(name, a, b, allowed, kind, tolerance)
    a, b = as_array(a, kind), as_array(b, kind)
    if a.dtype.kind in "OUS" and b.dtype.kind in "OUS":
        a, b = a.astype(object), b.astype(object)
    if a.dtype != b.dtype:
        return _unlike(name, f"dtype {a.dtype} became {b.dtype}")
    if a.shape != b.shape:
        return _unlike(name, f"shape {list(a.shape)} became {list(b.shape)}")
    if a.tobytes() == b.tobytes():  # most are the same, bit by bit
        return Comparison(name, SAME)
    if a.dtype.kind == "c":
        part = np.float32 if a.dtype == np.complex64 else np.float64
        a, b = (np.ascontiguousarray(x).reshape(*x.shape, 1).view(part) for x in (a, b))
    if a.dtype.kind == "f":
        kind = kind or a.dtype.name
        return _compare_floats(name, a, b, allowed, kind, slack, tolerance or TOLERANCES[kind])
    unequal = np.asarray(a != b, dtype=bool)
    if not unequal.any():
        return Comparison(name, SAME)
    return Comparison(name, DIFFERENT, _integer_errors(a, b), _first("values differ", unequal, a, b), places=unequal)


def _integer_errors(a: Array, b: Array) -> Errors:
    """Integers of 64 bits and their distances have more digits than f64, so they are Python's."""
    if a.dtype.kind not in "iu":
        return NO_ERRORS
    differs = a != b
    pairs = [(int(x), int(y)) for x, y in zip(a[differs].flat, b[differs].flat, strict=True)]
    relative = max((abs(x - y) / abs(x) for x, y in pairs if x), default=None)
    worst, top = max(abs(x - y) for x, y in pairs), max(abs(int(a.max())), abs(int(a.min())))
    return Errors(float(worst), relative, None, worst / top if top else None)


def _compare_floats(
    name: str, a: Array, b: Array, allowed: frozenset[str], kind: str, slack: Any, tolerance: Tolerance
) -> Comparison:
    with np.errstate(all="ignore"):
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        zeros = int((equal & (a == 0) & (np.signbit(a) != np.signbit(b))).sum())
        if equal.all():
            return Comparison(name, SAME, zeros=zeros)
        finite = np.isfinite(a) & np.isfinite(b)
        errors = _errors(a, b, finite & ~equal, kind)
        outside = ~equal
        if REASSOCIATES in allowed:
            bound = tolerance.bound(a.astype(np.float64))
            apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
            if slack is not None:
                bound = bound + slack
            # the difference of two finite f64 may overflow; then they are apart
            outside = ~equal & ~(finite & (apart <= bound))
    if not outside.any():
        return Comparison(name, WITHIN, errors, zeros=zeros)
    return Comparison(name, DIFFERENT, errors, _first(_what(a, b, outside), outside, a, b), zeros, outside)


def _what(a: Array, b: Array, outside: Array) -> str:
    place = tuple(np.argwhere(outside)[0])
    if np.isfinite(a[place]) and np.isfinite(b[place]):
        return "values differ"
    return "NaN or infinity at another place"


def _errors(a: Array, b: Array, places: Array, kind: str) -> Errors:
    """Over the places; the relative error is against the original's element."""
    if not places.any():
        return NO_ERRORS
    x, y = a[places], b[places]
    wide = np.float64 if x.dtype != np.float64 else np.longdouble
    apart = np.abs(x.astype(wide) - y.astype(wide))
    size = np.abs(x.astype(wide))
    relative = apart[size > 0] / size[size > 0]
    top = _top(np.abs(a[np.isfinite(a)].astype(wide))) if np.isfinite(a).any() else 0.0
    worst = _top(apart)
    scaled = worst / top if top else None
    relative_top = _top(relative) if relative.size else None
    return Errors(worst, relative_top, _top(steps_apart(x, y, kind)), scaled, *_likeness(a, b, wide))


def _likeness(a: Array, b: Array, wide: type) -> tuple[float | None, float | None]:
    """The ratio of signal to noise in decibels, and the cosine, over the elements that are finite on both sides."""
    finite = np.isfinite(a) & np.isfinite(b)
    x: Array = a[finite].astype(wide)
    y: Array = b[finite].astype(wide)
    top = max(np.abs(x).max(initial=0), np.abs(y).max(initial=0))
    if not top:
        return None, None
    x, y = x / top, y / top  # squares of large numbers overflow
    signal, other, noise = np.sum(x * x), np.sum(y * y), np.sum((x - y) ** 2)
    decibels = float(10 * np.log10(signal / noise)) if signal and noise else None
    cosine = float(np.sum(x * y) / np.sqrt(signal * other)) if signal and other else None
    return decibels, cosine


def steps_apart(x: Array, y: Array, kind: str) -> Array:
    """The distance of finite floats in units in the last place of ``kind``, the name of their dtype.

    Handed over as f32, the numbers next to each other of bfloat16 are 2^16 steps apart.
    """
    return np.asarray(_steps(x, y) / (65536 if kind == "bfloat16" else 1))


def _top(errors: Array) -> float:
    """The largest, as a finite number: the distance of two numbers may be no f64 any more."""
    return float(min(errors.max(), np.finfo(np.float64).max))


def _steps(x: Array, y: Array) -> Array:
    """Return the error in units in the last place: the distance of two floats, counted in numbers of their dtype."""
    bits: Any = {2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]

    def order(v: Array) -> Array:
        raw = np.ascontiguousarray(v).view(bits).astype(np.longdouble)
        lowest = np.longdouble(np.iinfo(bits).min)
        return np.asarray(np.where(raw < 0, lowest - raw, raw))

    return np.asarray(np.abs(order(x) - order(y)).astype(np.float64))


def _first(what: str, places: Array, a: Array, b: Array) -> Difference:
    index = tuple(int(i) for i in np.argwhere(places)[0])
    return Difference(what, index, _plain(a[index]), _plain(b[index]), int(places.sum()), places.size)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def show(value: Any) -> str:
    """A value in a message: enough digits to distinguish two."""
    return f"{value:.9g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)


def _compare_parts(
    name: str, a: Any, b: Any, allowed: frozenset[str], kind: str | None, tolerance: Tolerance | None
) -> Comparison:
    """A sequence, a map or an absent optional."""
    if a is None or b is None:
        return Comparison(name, SAME) if a is b else _unlike(name, "present on one side only")
    if are_alike(a, b) and all(np.isscalar(leaf) for _, leaf in leaves(a)):
        return _compare_tables(name, a, b, allowed, kind, tolerance)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted(a, key=repr)
        if keys != sorted(b, key=repr):
            return _unlike(name, f"keys {keys} became {sorted(b, key=repr)}")
        pairs = [(a[key], b[key]) for key in keys]
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        pairs = list(zip(a, b, strict=True))
    else:
        return _unlike(name, f"{_extent(a)} became {_extent(b)}")
    return _joined(name, [compare_values(name, x, y, allowed, kind, tolerance=tolerance) for x, y in pairs])


def _compare_tables(
    name: str, a: Any, b: Any, allowed: frozenset[str], kind: str | None, tolerance: Tolerance | None
) -> Comparison:
    """Maps of single values, as one tensor: a small probability is as exact as the largest beside it."""
    paths = [path for path, _ in leaves(a)]
    x, y = (np.array([as_array(leaf, kind) for _, leaf in leaves(value)]) for value in (a, b))
    found = compare_values(name, x, y, allowed, kind, tolerance=tolerance)
    if found.difference is None or found.difference.index is None:
        return found
    return replace(found, difference=structs.replace(found.difference, index=paths[int(found.difference.index[0])]))


def _extent(value: Any) -> str:
    return f"{len(value)} parts" if isinstance(value, (list, tuple, Mapping)) else "a tensor"


def _joined(name: str, parts: list[Comparison]) -> Comparison:
    errors = Errors()
    for part in parts:
        errors = errors.worst(part.errors)
    zeros = sum(part.zeros for part in parts)
    for number, part in enumerate(parts):
        if part.difference is not None:
            found = part.difference
            index = None if found.index is None else (number, *found.index)
            moved = Difference(f"part {number}: {found.what}", index, found.a, found.b, found.count, found.size)
            return Comparison(name, DIFFERENT, errors, moved, zeros)
    status = SAME if all(part.status == SAME for part in parts) else WITHIN
    return Comparison(name, status, errors, zeros=zeros)
