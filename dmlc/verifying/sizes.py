"""Sizes for free dims: small ones, different ones, equal ones, the declared ends, larger ones where nothing smaller
fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, prod

import numpy as np

from dmlc.ir import Condition, Dim, dim_names, evaluate
from dmlc.ir.dim import Bound, Interval
from dmlc.ir.operation import tightened

#: One assignment of sizes to names.
Binding = dict[str, int]

#: Inputs of more elements than this are not made up for sizes that only might fit.
_MOST_ELEMENTS = 1 << 22
#: Nor are those of the ends of bounds for more than this: everything that the program makes of them is computed.
_MOST_AT_ENDS = 1 << 15
#: Nor those that are larger than 32 for the sake of size alone: a model that refuses them all is run with each.
_MOST_GROWN = 1 << 19
_EQUAL = (3, 1, 17, 2, 4, 8, 16, 32, 64, 128, 224, 256, 512)
_RANDOM = 400


def size_candidates(
    shapes: Sequence[tuple[Dim, ...]],
    bounds: Mapping[str, Interval],
    conditions: Sequence[Condition],
    seed: int,
    *,
    least: int = 1,
) -> Iterator[Binding]:
    """Assignments that keep the bounds and the relations, the most telling ones first; one for no free dims."""
    names = _names(shapes)
    spans = {name: tightened(name, bounds.get(name, (least, inf)), conditions) for name in names}
    seen: set[tuple[int, ...]] = set()
    for wanted, most in _wanted(names, spans, _leading(shapes), np.random.default_rng([seed, 7])):
        binding = {name: int(min(max(wanted[name], spans[name][0]), spans[name][1])) for name in names}
        key = tuple(binding.values())
        if key not in seen and _fits(binding, shapes, conditions, most):
            seen.add(key)
            yield binding
        if not names:
            return


def empty_candidates(
    shapes: Sequence[tuple[Dim, ...]],
    bounds: Mapping[str, Interval],
    conditions: Sequence[Condition],
    usual: Binding,
    *,
    least: int = 1,
) -> Iterator[Binding]:
    """``usual`` with dims that may be 0 being 0: all first axes where several are equal, then one after the other.

    First axes that are equal in ``usual`` are one batch under several names: the original refused other sizes.
    """
    names = _names(shapes)
    first = [name for name in names if name in _leading(shapes)]
    groups = [[name] for name in names]
    if len(first) > 1 and len({usual[name] for name in first}) == 1:
        groups.insert(0, first)
    for group in groups:
        binding = {**usual, **dict.fromkeys(group, 0)}
        if all(bounds.get(name, (least, inf))[0] <= 0 for name in group) and _fits(binding, shapes, conditions):
            yield binding


def _names(shapes: Sequence[tuple[Dim, ...]]) -> list[str]:
    return list(dict.fromkeys(name for shape in shapes for size in shape for name in sorted(dim_names(size))))


def _leading(shapes: Sequence[tuple[Dim, ...]]) -> set[str]:
    """The names of first axes: batches, mostly, which stay small while the others grow."""
    return {str(shape[0]) for shape in shapes if len(shape) > 1}


def _wanted(
    names: list[str], spans: Mapping[str, Interval], leading: set[str], rng: np.random.Generator
) -> Iterator[tuple[Mapping[str, Bound], int]]:
    """Sizes, and the elements that inputs may have with them."""
    lows = {name: max(spans[name][0], 1) for name in names}
    first = {name: max(lows[name], 2) + i % 3 for i, name in enumerate(names)}
    yield first, _MOST_ELEMENTS
    yield {name: high if (high := spans[name][1]) < inf else first[name] for name in names}, _MOST_AT_ENDS
    for size in _EQUAL:
        equal = {name: size if name not in leading or size < 8 else 2 for name in names}
        yield equal, _MOST_ELEMENTS if size <= 32 else _MOST_GROWN
    yield {name: lows[name] + 1 for name in names}, _MOST_ELEMENTS
    for attempt in range(_RANDOM):
        reach = 4 + attempt // 4 + 2 ** (attempt // 40)
        yield {name: lows[name] + int(rng.integers(0, reach)) for name in names}, _MOST_ELEMENTS


def _fits(
    binding: Binding, shapes: Sequence[tuple[Dim, ...]], conditions: Sequence[Condition], most: int = _MOST_ELEMENTS
) -> bool:
    total = 0
    try:
        for shape in shapes:
            sizes = [evaluate(size, binding) for size in shape]
            if any(size < 0 for size in sizes):
                return False
            total += prod(sizes)
        held = all(c.holds(evaluate(c.left, binding), evaluate(c.right, binding)) for c in conditions)
    except (KeyError, ZeroDivisionError):
        return False
    return held and (not binding or total <= most)
