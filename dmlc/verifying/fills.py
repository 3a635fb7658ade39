"""Elements that may be in the place of undefined ones: other numbers, signs, places and orders."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.verifying.rounding import axes_of
from dmlc.verifying.subject import TraceStep

#: The longest axis, and the most elements of an array, whose places are all tried.
_SHORT_AXIS, _SMALL = 16, 128


def signs(x: Array) -> Iterator[Array]:
    """The numbers, also with the other sign: all, every other one, and of few those before each place."""
    numbers = np.arange(x.size)
    starts = range(1, x.size) if x.size <= _SMALL else ()
    for turned in (numbers < 0, numbers >= 0, numbers % 2 == 0, numbers % 2 == 1, *(numbers < n for n in starts)):
        yield np.where(turned, -x, x)


def numbers_instead(made: Array, places: Any = True) -> tuple[Any, ...]:
    """NaN, numbers that are very different, and different ones for each place."""
    largest = float(np.finfo(made.dtype).max)
    count = int(np.broadcast_to(places, made.shape).sum())
    return np.nan, -largest, 0.0, largest, 1.0, -1.0, *shuffled(count, 0)


def chosen_numbers(step: TraceStep, made: Array) -> Iterator[Array]:
    """The smallest or largest of each group as a kernel finds it that passes over NaN, and each number of a small
    array: a kernel that begins again behind a NaN may find any. The axes follow from shapes."""
    x, function = next(step.floats()), np.fmin if step.op.endswith("min") else np.fmax
    if step.op in ("min", "max"):
        yield np.broadcast_to(reduce(function, step.floats()), made.shape)
    for axes in axes_of(x, made.shape) if step.op in ("reducemin", "reducemax") and x.size else ():
        yield function.reduce(x, axis=axes).reshape(made.shape)
    if step.op in ("reducemin", "reducemax") and x.size <= _SMALL:
        yield from (np.full(made.shape, number) for number in np.unique(x[np.isfinite(x)]))


def turned(made: Array) -> tuple[Array, ...]:
    """The elements, and 1 for each of them alone."""
    return (made, *np.eye(made.size, dtype=made.dtype)[: 8 * _SMALL])


def turns(shape: tuple[int, ...]) -> Iterator[Array]:
    """Numbers of which each along a short axis is the largest once, and each of a small array."""
    for axis, size in enumerate(shape):
        for turn in range(size) if 1 < size <= _SHORT_AXIS else ():
            order = (np.arange(size) + turn) % size
            yield np.broadcast_to(order.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
    count = math.prod(shape)
    for turn in range(count) if count <= _SMALL and len(shape) > 1 else ():
        yield ((np.arange(count) + turn) % count).reshape(shape)


def places_instead(step: TraceStep, made: Array) -> tuple[Any, ...]:
    """The computed places in an axis, the first for all, the second, and each other one if these are few; others in
    six orders; one behind the axis for all and for every other one, for where a selection is made by comparisons no
    element is equal to a NaN."""
    size = max([size for x in step.floats() for size in x.shape], default=1)
    if step.op in ("argmax", "argmin") and made.size:  # it may count through several axes
        size = max([x.size // made.size for x in step.floats()], default=1) or 1
    most = _SMALL if made.size <= _SMALL else _SHORT_AXIS
    turns = [(np.arange(made.size) + turn) % size for turn in range(min(size, most))]
    orders = [order % size for order in shuffled(made.size, 0)]
    other = np.arange(made.size) % 2 == 0
    some = (np.where(other, size, made), np.where(other, made, size))
    return made, 0, min(1, size - 1), *turns, *orders, size, *some


def shuffled(count: int, first: int) -> list[Array]:
    """Different numbers in three orders, and from the other end: each pair comes both ways round."""
    orders = [np.random.default_rng(seed).permutation(count) for seed in range(3)]
    return [first + each for order in orders for each in (order, count - 1 - order)]
