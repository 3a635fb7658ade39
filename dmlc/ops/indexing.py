"""NumPy's basic indexing: integers drop an axis, slices keep it, an ellipsis stands for the axes between."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from dmlc.diagnostics import Help, Span, proposal
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.ir import FOREIGN, Dim, DimExpr, DimTable, Graph, OpError, Value
from dmlc.ir.size_number import SizeNumber
from dmlc.ops.attributes import integer_help, show, size_help
from dmlc.ops.call import AttributeSite, CallSite, apply
from dmlc.ops.foreign import NEW_AXIS
from dmlc.ops.move import SLICE, SQUEEZE
from dmlc.ops.slicing import Written, as_written, clamped
from dmlc.ops.written import foreign_error

#: An end that is further away than any axis is long.
_FAR = 2**63 - 1
#: The start, the end and the step of a slice.
_Row: TypeAlias = tuple[Dim, Dim, int]
#: The axis of a row, and the place in the source that asks for it.
_Sliced: TypeAlias = tuple[int, _Row, Span | None]


class SliceItem(Struct, frozen=True):
    """``start:stop:step``; None where one is left out."""

    start: Any = None
    stop: Any = None
    step: Any = None


def index_tensor(graph: Graph, x: Value, items: Sequence[Any], site: CallSite) -> Value:
    """Return the part of ``x`` that the items take: integers, sizes, ``SliceItem`` and at most one ``Ellipsis``.

    ``site.operands`` are the places of the items, ``site.names`` begins with the name of ``x``. An ``OpError`` names
    the item in ``at``: E0340 for an item that is not an index, E0341 for an integer that lies outside of its axis.
    """
    if x.type.dtype is FOREIGN:
        raise foreign_error("an index", (site.names[0] if site.names else None) or x.name or "it", 0)
    slices: tuple[list[_Sliced], list[_Sliced]] = [], []
    dropped: list[int] = []
    for position, axis, item in _axes(x, items):
        size = x.type.shape[axis]
        if isinstance(item, SliceItem):
            rows = _sliced(graph, item, size, position)
        else:
            rows = [_taken(graph, item, axis, size, position)]
            dropped.append(axis)
        for row, same in zip(rows, slices, strict=False):
            same.append((axis, row, site.place(position)))
    for same in slices:
        x = _slice(graph, x, same, site) if same else x
    if dropped:
        outer = CallSite(site.span, (site.span,), {}, site.names, site.outer)
        x = apply(graph, SQUEEZE, [x], {"axes": dropped}, outer).result
    return x


def _slice(graph: Graph, x: Value, slices: Sequence[_Sliced], site: CallSite) -> Value:
    """Add one node for the slices, each along an axis of its own."""
    rows = [row for _, row, _ in slices]
    keywords = {
        "starts": [row[0] for row in rows],
        "ends": [row[1] for row in rows],
        "axes": [axis for axis, _, _ in slices],
        "steps": [row[2] for row in rows],
    }
    places = AttributeSite(None, site.span, tuple([span for *_, span in slices if span is not None]))
    outer = CallSite(site.span, (site.span,), dict.fromkeys(keywords, places), site.names, site.outer)
    return apply(graph, SLICE, [x], keywords, outer).result


def _axes(x: Value, items: Sequence[Any]) -> list[tuple[int, int, Any]]:
    """Return (position, axis, item) of each item but the ellipsis. Raises E0340."""
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise OpError(
            codes.WRONG_INDEX, "an index has one ... at most", at=ellipses[1], help=proposal("write : for an axis", ":")
        )
    count, rank = len(items) - len(ellipses), len(x.type.shape)
    if count > rank:
        what = "is a scalar" if rank == 0 else f"has {counted(rank, 'axis')}"
        given = "1 index" if count == 1 else f"{count} indices"
        raise OpError(codes.WRONG_INDEX, f"{x.name or 'it'} {what}, and {given} given", at=rank + len(ellipses))
    first = ellipses[0] if ellipses else len(items)
    out = []
    for position, item in enumerate(items):
        if item is not Ellipsis:
            out.append((position, position if position < first else rank - len(items) + position, item))
    return out


def place_of(item: Any, position: int) -> Dim:
    """An integer or a size of an index. Raises E0340 with what to write for anything else."""
    if isinstance(item, DimExpr):
        return item
    if isinstance(item, SizeNumber):
        raise OpError(codes.WRONG_INDEX, f"{item} is not an index", at=position, help=size_help(item))
    help: Help
    if item is None:
        message, help = "none is not an index", NEW_AXIS
    elif isinstance(item, bool):
        message, help = f"{show(item)} is not an index", "elements are chosen by where(cond, a, b)"
    elif isinstance(item, (list, tuple)):
        message, help = "a list is not an index", "rows by number are taken by gather(x, i, axis=0)"
    else:
        try:
            return _in_64_bits(operator.index(item), position)
        except TypeError:
            message, help = f"{show(item)} is not an index", integer_help(item) or "an index is an integer"
    raise OpError(codes.WRONG_INDEX, message, at=position, help=help)


def _in_64_bits(place: int, position: int) -> int:
    if not -(2**63) <= place < 2**63:
        raise OpError(codes.WRONG_INDEX, f"{show(place)} does not fit 64 bits", at=position)
    return place


def _taken(graph: Graph, item: Any, axis: int, size: Dim, position: int) -> _Row:
    """The row of one element. Raises E0341 for one that is proved to lie outside of the axis."""
    place = place_of(item, position)
    start = size + place if isinstance(place, int) and place < 0 and isinstance(size, int) else place
    if isinstance(place, DimExpr) and graph.dims.at_most(place, -1):
        start = size + place
    wanted = size + place if isinstance(place, int) and place < 0 else start
    if graph.dims.at_most(wanted + 1, size) is False or graph.dims.at_most(0, wanted) is False:
        message = f"index {place} does not exist: axis {axis} has {counted(size, 'element')}"
        help: Help = proposal(f"the last is {size - 1}, or -1", str(size - 1)) if size != 0 else "the axis is empty"
        raise OpError(codes.INDEX_OUT_OF_RANGE, message, at=position, under="out of range", help=help)
    is_last = isinstance(start, int) and start == -1
    return start, _FAR if is_last else start + 1, 1


def _sliced(graph: Graph, item: SliceItem, size: Dim, position: int) -> list[_Row]:
    """The rows of a slice, one after the other; none for one that takes the whole axis."""
    step = 1 if item.step is None else place_of(item.step, position)
    if not isinstance(step, int):
        raise OpError(codes.WRONG_INDEX, f"a step is a number, not {step}", at=position)
    if step == 0:
        raise OpError(codes.WRONG_INDEX, "a step cannot be 0", at=position, help="leave it out, or write 1")
    start, stop = [None if end is None else place_of(end, position) for end in (item.start, item.stop)]
    if step == 1 and start in (None, 0) and stop is None:
        return []
    if isinstance(size, int) and not isinstance(start, DimExpr) and not isinstance(stop, DimExpr):
        first, last, _ = slice(start, stop, step).indices(size)
        if not range(first, last, step):
            return [(0, 0, 1)]
        return [(first, -_FAR if last < 0 else last, step)]
    return _open_rows(graph.dims, size, start, stop, step)


def _open_rows(dims: DimTable, size: Dim, start: Written, stop: Written, step: int) -> list[_Row]:
    """The rows of a slice where a place or the size is open.

    The first row takes the part forward. If the step is negative, a second row takes that part backward, unless the
    places are proved to lie within the axis.
    """
    forward = (start, stop)
    if step < 0:  # from start down to stop are the elements from behind stop to behind start
        low, high = [None if end is None else end + 1 for end in (stop, start)]
        forward = (size if stop == -1 else low, None if start == -1 else high)
    places = clamped(dims, size, *forward)
    if places is None:
        start, stop = [
            size + end if isinstance(end, DimExpr) and dims.at_most(end, -1) else end for end in (start, stop)
        ]
        near, far = (0, _FAR) if step > 0 else (_FAR, -_FAR)
        return [(near if start is None else start, far if stop is None else stop, step)]
    first, last = places
    if step > 0:
        return [] if (first, last, step) == (0, size, 1) else [(first, last, step)]
    if (first, last) == (0, size):
        return [(_FAR, -_FAR, step)]
    if dims.at_most(1, last) and (first == 0 or dims.at_most(1, first)):
        row = (last - 1, -_FAR if first == 0 else first - 1, step)
        if not any(isinstance(place, DimExpr) and place.is_clamped for place in as_written(dims, size, *row)):
            return [row]
    return [(first, last, 1), (_FAR, -_FAR, step)]


def index_list(values: Any, items: Sequence[Any]) -> Any:
    """Return an element of a nested list of numbers, or a part of it. Raises ``OpError`` as ``index_tensor`` does."""
    for position, item in enumerate(items):
        if not isinstance(values, (list, tuple)):
            raise OpError(codes.WRONG_INDEX, f"{show(values)} has no elements", at=position)
        if isinstance(item, SliceItem):
            parts = [None if part is None else place_of(part, position) for part in (item.start, item.stop, item.step)]
            if any(isinstance(part, DimExpr) for part in parts) or parts[2] == 0 or position + 1 < len(items):
                message = "a list is indexed by integers, or by one slice of integers whose step is not 0"
                raise OpError(codes.WRONG_INDEX, message, at=position)
            start, stop, step = [part if isinstance(part, int) else None for part in parts]
            values = values[start:stop:step]
            continue
        place = None if item is Ellipsis else place_of(item, position)
        if not isinstance(place, int):
            raise OpError(codes.WRONG_INDEX, "a list is indexed by integers", at=position)
        if not -len(values) <= place < len(values):
            count = counted(len(values), "element")
            message = f"index {place} does not exist: the list has {count}"
            raise OpError(codes.INDEX_OUT_OF_RANGE, message, at=position, under="out of range")
        values = values[place]
    return values
