"""Slices of open axes: the places that NumPy's clamping means, and the shortest slice that means given places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dmlc.ir import Dim, DimExpr, DimTable, dim_names, evaluate, larger, smaller, symbol
from dmlc.ir.dim import Negative

#: A start or an end of a slice; None where it is left out.
Written = Dim | None
#: So many starts and ends are tried.
_MOST_TRIED = 12
#: A longer expression is not clamped.
_MOST_TEXT = 120


def clamped(dims: DimTable, size: Dim, start: Written, stop: Written) -> tuple[Dim, Dim] | None:
    """Return the first place and the end that ``start:stop`` means on an axis, as NumPy clamps them.

    Integers below 0, and sizes that are proved to be, count from the end. None for places that would be longer
    expressions than anybody reads.
    """
    low = _place(dims, size, start, 0)
    high = _most(dims, _place(dims, size, stop, size), size, least=True)
    count = _most(dims, high - low, 0, least=False)
    if count == 0:
        return 0, 0
    first = _most(dims, low, size, least=True)
    last = first + count
    return None if max(len(str(first)), len(str(last))) > _MOST_TEXT else (first, last)


def _place(dims: DimTable, size: Dim, written: Written, default: Dim) -> Dim:
    """The place that is meant, 0 or more, which may lie beyond the end."""
    if written is None:
        return default
    from_end = written < 0 if isinstance(written, int) else dims.at_most(written, -1)
    return _most(dims, size + written, 0, least=False) if from_end else written


def _most(dims: DimTable, a: Dim, b: Dim, *, least: bool) -> Dim:
    """The larger of two sizes, or the smaller one where ``least`` is true: one of them where that is proved."""
    if dims.at_most(a, b):
        return a if least else b
    if dims.at_most(b, a):
        return b if least else a
    return smaller(a, b) if least else larger(a, b)


def as_written(dims: DimTable, size: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim | None, Dim | None]:
    """Return the start and the end of a slice without ``min`` and ``max``; None for one that may be left out.

    NumPy and ONNX clamp the result, and so take the same elements. The two stay as they are if no simpler form does.
    """
    if not (_is_clamped(start) or _is_clamped(end)):
        return start, end
    if step < 0:
        return _without_limit(start, size - 1), _without_limit(end, size - 1)
    candidates, samples = _candidates(size, start, end), _samples(dims, size, start, end)
    firsts = [place for place in candidates if _agrees(place, samples, is_end=False)]
    lasts = [place for place in candidates if _agrees(place, samples, is_end=True)]
    for first in firsts[:_MOST_TRIED]:
        for last in lasts[:_MOST_TRIED]:
            if clamped(dims, size, first, last) == (start, end):
                return first, last
    return start, end


#: A binding of the dims, and the size of the axis, the start and the end under it.
_Sample = tuple[dict[str, int], int, int, int]


def _samples(dims: DimTable, *sizes: Dim) -> list[_Sample]:
    """Values under a few bindings of the dims, each within its bounds."""
    names = sorted({name for size in sizes for name in dim_names(size)})
    parts = [*sizes, *[difference for size in sizes for difference in _differences(size)]]
    far = max([abs(number) for part in parts for number in _constants(part)], default=0)
    found = []
    for round_, step in enumerate((0, 1, 2, 3, 5, 8, 13, far, far + 1, far + 4, 2 * far + 40)):
        binding = {}
        for place, name in enumerate(names):
            low, high = dims.interval(symbol(name))
            binding[name] = int(min(low + step + place * (round_ % 3), high))
        try:
            size, start, end = [evaluate(part, binding) for part in sizes]
        except ZeroDivisionError:
            continue
        if size >= 0:
            found.append((binding, size, start, end))
    return found


def _agrees(place: Written, samples: Sequence[_Sample], *, is_end: bool) -> bool:
    """Return whether the place means the end, or the start, of each sample that is not empty: a proof is worth trying
    for no other."""
    for binding, size, start, end in samples:
        try:
            value = None if place is None else evaluate(place, binding)
        except (KeyError, ZeroDivisionError):
            return False
        found = slice(None, value).indices(size)[1] if is_end else slice(value, None).indices(size)[0]
        if start < end and found != (end if is_end else start):
            return False
    return True


def _without_limit(place: Dim, limit: Dim) -> Dim:
    """``a`` for ``min(a, limit)``."""
    clamp = place.as_clamp() if isinstance(place, DimExpr) else None
    if clamp is None or clamp[0] != "min" or limit not in clamp[1:]:
        return place
    return clamp[2] if clamp[1] == limit else clamp[1]


def _candidates(size: Dim, *places: Dim) -> list[Written]:
    """Places that may have been written: none, those themselves, their numbers, and the differences in their atoms."""
    found: dict[Written, None] = {None: None, **dict.fromkeys(place for place in places if not _is_clamped(place))}
    differences = [difference for place in (*places, size) for difference in _differences(place)]
    written = {number for part in (*places, *differences) for number in _constants(part)}
    numbers = written | {a + b for a in written for b in written} | {a - b for a in written for b in written}
    for number in sorted(numbers):
        found.update({number: None, -number: None})
    for difference in differences:
        for one in (difference, -difference):
            for other in (one, size + one, one - size):
                if not _is_clamped(other):
                    found.update(dict.fromkeys([other, *[other + number for number in sorted(written)]]))
    return list(found)


def _differences(place: Dim) -> Iterator[Dim]:
    if isinstance(place, DimExpr):
        yield from [atom.size for atom in place.atoms() if isinstance(atom, Negative)]


def _constants(size: Dim) -> Iterator[int]:
    if isinstance(size, DimExpr):
        yield from [coefficient for monomial, coefficient in size.terms if not monomial]


def _is_clamped(place: Dim) -> bool:
    return isinstance(place, DimExpr) and place.is_clamped
