"""Integers that are known while a model is read: what exporters compute shapes with.

Each function gives the elements of a node's result, as numbers or dims, or None where one of them is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from dmlc.importers.registry import Reading
from dmlc.importers.scope import MOST_KNOWN, Known
from dmlc.ir import FOREIGN, Dim, floordiv, product

Knower: TypeAlias = Callable[[Reading], "Known | None"]
KNOWERS: dict[str, Knower] = {}


def _knows(*names: str) -> Callable[[Knower], Knower]:
    def register(function: Knower) -> Knower:
        for name in names:
            KNOWERS[name] = function
        return function

    return register


def _input(reading: Reading, index: int) -> Known | None:
    value = reading.input(index)
    return None if value is None else reading.scope.known(value)


@_knows("Shape")
def _shape(reading: Reading) -> Known | None:
    value = reading.input(0)
    if value is None or value.type.dtype is FOREIGN:
        return None
    rank = value.type.rank
    first, last = reading.integer("start", 0), reading.integer("end", rank)
    return value.shape[slice(first, last)] if first < rank or rank == 0 else ()


@_knows("Size")
def _size(reading: Reading) -> Known | None:
    value = reading.input(0)
    return None if value is None or value.type.dtype is FOREIGN else product(value.shape)


@_knows("Gather")
def _gather(reading: Reading) -> Known | None:
    data, places = _input(reading, 0), _input(reading, 1)
    if not isinstance(data, tuple) or reading.integer("axis", 0) not in (0, -1) or places is None:
        return None
    wanted = places if isinstance(places, tuple) else (places,)
    if not all(isinstance(i, int) and -len(data) <= i < len(data) for i in wanted):
        return None
    picked = tuple([data[i] for i in wanted if isinstance(i, int)])
    return picked if isinstance(places, tuple) else picked[0]


@_knows("Concat")
def _concat(reading: Reading) -> Known | None:
    out: list[Dim] = []
    for index in range(len(reading.inputs)):
        part = _input(reading, index)
        if not isinstance(part, tuple):
            return None
        out.extend(part)
    return tuple(out) if len(out) <= MOST_KNOWN else None


@_knows("Unsqueeze")
def _unsqueeze(reading: Reading) -> Known | None:
    known = _input(reading, 0)
    return None if known is None or isinstance(known, tuple) else (known,)


@_knows("Squeeze")
def _squeeze(reading: Reading) -> Known | None:
    known = _input(reading, 0)
    return known[0] if isinstance(known, tuple) and len(known) == 1 else None


@_knows("Reshape")
def _reshape(reading: Reading) -> Known | None:
    known, shape = _input(reading, 0), reading.ints(1) if len(reading.inputs) > 1 else None
    if known is None or shape is None or len(shape) > 1:
        return None
    flat = known if isinstance(known, tuple) else (known,)
    if not shape:
        return flat[0] if len(flat) == 1 else None
    return flat if shape[0] in (-1, len(flat)) else None


@_knows("Identity")
def _identity(reading: Reading) -> Known | None:
    return _input(reading, 0)


@_knows("Cast")
def _cast(reading: Reading) -> Known | None:
    known = _input(reading, 0)
    flat = known if isinstance(known, tuple) else (known,)
    # Only between integers: i32 and i64 hold any size that a tensor has.
    return known if reading.integer("to", 0) in (6, 7) and not any(isinstance(k, bool) for k in flat) else None


@_knows("Slice")
def _slice(reading: Reading) -> Known | None:
    known = _input(reading, 0)
    if not isinstance(known, tuple):
        return None
    steps: tuple[int, ...] | None = (1,)
    if reading.opset < 10:
        starts, ends = reading.integers("starts"), reading.integers("ends")
    else:
        starts, ends = reading.ints(1), reading.ints(2)
        steps = reading.ints(4) if reading.input(4) is not None else (1,)
    if not starts or not ends or not steps or len(starts) != 1 or steps[0] == 0:
        return None
    return known[starts[0] : ends[0] : steps[0]] if steps[0] > 0 else None


def _elementwise(reading: Reading, combine: Callable[[Dim, Dim], Dim | None]) -> Known | None:
    a, b = _input(reading, 0), _input(reading, 1)
    if a is None or b is None:
        return None
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return combine(a, b)
    left, right = _stretched(a, b), _stretched(b, a)
    if len(left) != len(right):
        return None
    out = [combine(x, y) for x, y in zip(left, right, strict=True)]
    return None if any(o is None for o in out) else tuple([o for o in out if o is not None])


def _stretched(a: Known, other: Known) -> Sequence[Dim]:
    row = a if isinstance(a, tuple) else (a,)
    return row * len(other) if len(row) == 1 and isinstance(other, tuple) else row


@_knows("Add")
def _add(reading: Reading) -> Known | None:
    return _elementwise(reading, lambda a, b: a + b)


@_knows("Sub")
def _sub(reading: Reading) -> Known | None:
    return _elementwise(reading, lambda a, b: a - b)


@_knows("Mul")
def _mul(reading: Reading) -> Known | None:
    return _elementwise(reading, lambda a, b: a * b)


@_knows("Div")
def _div(reading: Reading) -> Known | None:
    dims = reading.graph.dims

    def quotient(a: Dim, b: Dim) -> Dim | None:
        # ONNX truncates; of two that are not negative that is the floor.
        return floordiv(a, b) if dims.interval(a)[0] >= 0 and dims.interval(b)[0] > 0 else None

    return _elementwise(reading, quotient)


@_knows("Equal")
def _equal(reading: Reading) -> Known | None:
    # bool is an int: the elements of a comparison are truths
    return _elementwise(reading, lambda a, b: reading.graph.dims.equal(a, b))


@_knows("Where")
def _where(reading: Reading) -> Known | None:
    condition, a, b = _input(reading, 0), _input(reading, 1), _input(reading, 2)
    if condition is None or a is None or b is None:
        return None
    if not isinstance(condition, tuple):
        if not isinstance(condition, (bool, int)):
            return None
        chosen, other = (a, b) if condition else (b, a)
        if not isinstance(other, tuple) or chosen == other:
            return chosen
        stretched = tuple(_stretched(chosen, other))
        return stretched if len(other) in (1, len(stretched)) else None
    left, right = _stretched(a, condition), _stretched(b, condition)
    if not len(condition) == len(left) == len(right) or not all(isinstance(c, (bool, int)) for c in condition):
        return None
    return tuple([x if c else y for c, x, y in zip(condition, left, right, strict=True)])


@_knows("ReduceProd")
def _reduce_prod(reading: Reading) -> Known | None:
    known = _input(reading, 0)
    if not isinstance(known, tuple) or reading.wants(1):
        return None
    total = product(known)
    return (total,) if reading.integer("keepdims", 1) else total


@_knows("ConstantOfShape")
def _constant_of_shape(reading: Reading) -> Known | None:
    sizes = reading.ints(0)
    value = reading.tensor("value")
    if sizes is None or len(sizes) > 1 or value is None or value.dtype.kind not in "iu" or value.size != 1:
        return None
    number = int(value.reshape(-1)[0])
    return number if not sizes else (number,) * sizes[0] if sizes[0] <= MOST_KNOWN else None


@_knows("Range")
def _range(reading: Reading) -> Known | None:
    start, limit, step = (_input(reading, i) for i in range(3))
    if not (isinstance(start, int) and isinstance(limit, int) and isinstance(step, int)) or step == 0:
        return None
    numbers = range(start, limit, step)
    return None if numbers[MOST_KNOWN:] else tuple(numbers)  # whose length may be more than Python counts
