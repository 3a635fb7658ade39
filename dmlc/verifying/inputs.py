"""Seeded inputs for a model's interface, made of the patterns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Array, Condition, Dim, evaluate
from dmlc.ir.dim import Interval
from dmlc.ops.ranges import Range, into_range, of_indices
from dmlc.verifying.patterns import FROM_THE_END, PATTERNS, Pattern, fill
from dmlc.verifying.sizes import Binding, empty_candidates, size_candidates

#: Arrays (or lists of them, for a sequence) by input name.
Feeds: TypeAlias = dict[str, Any]

#: Assignments of sizes that the inputs go through.
SIZES = 6


class NoInputs(Exception):
    """Raised if no inputs can be made up; the message has the reason."""


#: The range of an input that promises nothing.
_ANY: Range = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input of a model.

    ``kind`` is a NumPy dtype's name, ``bfloat16`` or ``string``. ``limit`` is set for an index into something of that
    size, which counts from the end too if it ``wraps``. A ``length`` asks for a list of that many tensors. A divisor is
    ``nonzero``. ``value`` is the only integer that works. An ``optional`` input has a default and is fed from time to
    time. The shape is one of many if ``rank_is_open``. Every element lies in the ``range``, and is one of the
    ``choices`` if there are any.
    """

    name: str
    kind: str
    shape: tuple[Dim, ...]
    limit: Dim | None = None
    length: int | None = None
    nonzero: bool = False
    value: int | None = None
    optional: bool = False
    wraps: bool = False
    rank_is_open: bool = False
    range: Range | None = None
    choices: tuple[str | int, ...] = ()

    @property
    def is_integer(self) -> bool:
        return self.kind.startswith(("int", "uint"))


@dataclass(frozen=True, slots=True, eq=False)
class Default:
    """Default of an input that is a shape, axes or a count. ``is_free`` if another length may be fed too."""

    name: str
    value: Array
    is_free: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """Inputs to feed, with the limits of their sizes and values.

    ``least`` is the smallest size of a dim without bounds. ``widest`` is the largest magnitude of integers if larger
    ones would only cause failures.
    """

    inputs: tuple[InputSpec, ...]
    bounds: Mapping[str, Interval] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    least: int = 1
    widest: int | None = None

    def bindings(self, seed: int) -> Iterator[Binding]:
        """Sizes for the free dims, more than are needed. Raises ``NoInputs`` where there are none."""
        shapes = [spec.shape for spec in self.inputs]
        found = fed = False
        for binding in islice(size_candidates(shapes, self.bounds, self.conditions, seed, least=self.least), 20):
            found = True
            if self._has_places(binding):
                fed = True
                yield binding
        if not found:
            raise NoInputs(f"no sizes were found that keep {', '.join(map(str, self.conditions))}")
        if not fed:
            raise NoInputs("an input is an index into an axis without elements")

    def _has_places(self, binding: Binding) -> bool:
        """Return whether each index input has at least one valid value."""
        return all(
            spec.limit is None
            or of_indices(spec.range or _ANY, evaluate(spec.limit, binding)) is not None
            or 0 in [evaluate(size, binding) for size in spec.shape]
            for spec in self.inputs
        )

    def empty_bindings(self, usual: Binding) -> list[Binding]:
        """``usual`` with a dim that may be 0 being 0."""
        shapes = [spec.shape for spec in self.inputs]
        found = empty_candidates(shapes, self.bounds, self.conditions, usual, least=self.least)
        return list(filter(self._has_places, found))

    def feeds(self, bindings: Sequence[Binding], number: int, seed: int, draw: int = 0) -> Feeds:
        """Input number ``number``, drawn once more for each ``draw``. In the first round all operands have one pattern,
        later rounds mix them."""
        turn = number // len(PATTERNS)
        binding = bindings[(number + turn + draw) % len(bindings)] if number + draw else bindings[0]
        chosen = [PATTERNS[(number + turn * place) % len(PATTERNS)] for place in range(len(self.inputs))]
        feeds_optional = (number + draw) % 3 == 1
        return filled(self, binding, chosen, (seed, number), draw, feeds_optional=feeds_optional)

    def tamed(self) -> list[Interface]:
        """This interface, then with integers that more models take: 0 and 1, only 0, only 1."""
        out = [self]
        if any(spec.is_integer for spec in self.inputs):
            for limit, value in ((2, None), (1, None), (None, 1)):
                specs = [replace(s, limit=limit, wraps=False, value=value) if s.is_integer else s for s in self.inputs]
                out.append(replace(self, inputs=tuple(specs)))
        return out


def pattern_of(number: int) -> Pattern:
    """The pattern of an input's first operand."""
    return PATTERNS[number % len(PATTERNS)]


def filled(
    interface: Interface,
    binding: Binding,
    patterns: Sequence[Pattern],
    seeds: tuple[int, int],
    draw: int = 0,
    *,
    feeds_optional: bool = False,
) -> Feeds:
    """Arrays of these sizes, for each input of its pattern, the same for the same seeds."""
    has_nan = any(pattern.has_nan for pattern in patterns)
    out: Feeds = {}
    for place, spec in enumerate(interface.inputs):
        if spec.optional and not feeds_optional:
            continue
        # a NaN beside numbers out of range would leave open which of the two a difference comes from
        pattern = PATTERNS[0] if has_nan and not patterns[place].has_nan else patterns[place]
        rng = np.random.default_rng([*seeds, place, draw])
        arrays = [_array(spec, pattern, binding, rng, interface.widest) for _ in range(spec.length or 1)]
        if spec.range is not None:
            size = None if spec.limit is None else evaluate(spec.limit, binding)
            kept = (size is not None and of_indices(spec.range, size)) or spec.range
            arrays = [into_range(array, kept) for array in arrays]
        out[spec.name] = arrays[0] if spec.length is None else arrays
    return out


def _array(spec: InputSpec, pattern: Pattern, binding: Binding, rng: np.random.Generator, widest: int | None) -> Array:
    shape = tuple([evaluate(size, binding) for size in spec.shape])
    if spec.value is not None:
        return np.full(shape, spec.value, np.dtype(spec.kind))
    if spec.choices:
        chosen = np.array(spec.choices, object)[rng.integers(0, len(spec.choices), shape)]
        return np.asarray(chosen, object if spec.kind == "string" else np.dtype(spec.kind))
    limit = None if spec.limit is None else evaluate(spec.limit, binding)
    array = fill(pattern, spec.kind, shape, rng, limit, widest)
    if spec.wraps and pattern.name in FROM_THE_END and limit is not None:
        # numpy before 2 widens what has rank 0
        array = np.asarray(array - rng.integers(0, 2, shape).astype(array.dtype) * max(limit, 1)).astype(array.dtype)
    if not spec.nonzero or not spec.is_integer:
        return array
    alone = limit is not None and limit <= 1  # -1 is the only index then
    if alone and array.dtype.kind == "u" and array.size:
        raise NoInputs(f"input {spec.name} divides and is an index into one place, but no {spec.kind} can be both")
    other = -1 if alone else 1
    return np.where(array == 0, other, array).astype(array.dtype)


def shapes(feeds: Feeds) -> dict[str, list[int]]:
    """The shape of each array that is given; of a list of arrays the first one's."""
    return {n: list(np.shape(value[0] if isinstance(value, list) else value)) for n, value in feeds.items()}


def elements(feeds: Feeds) -> int:
    """Return the number of elements fed."""
    return sum(np.size(part) for value in feeds.values() for part in (value if isinstance(value, list) else [value]))
