"""Other values for inputs with a default that give shapes, axes and counts.

The model itself says which it accepts: candidates are made from the default and tried on the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.runtime.runnable import RunFailed
from dmlc.verifying.inputs import Default, Feeds

#: For one input so many candidates are tried, until so many were accepted.
_TRIED, _ACCEPTED = 40, 4
#: Entries are changed one by one where there are at most so many.
_FEW = 8
#: Sizes that come out of a candidate stay about so large.
_MOST = 1 << 12


@dataclass(slots=True)
class Overrides:
    """The feeds that replace defaults and that the original runs on, and the names that nothing was found for."""

    accepted: list[Feeds] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def find_overrides(
    defaults: Sequence[Default],
    run: Callable[[Feeds], dict[str, Any]],
    differs: Callable[[dict[str, Any], dict[str, Any]], bool],
    seed: int,
    budget: int,
) -> Overrides:
    """Candidates that ``run`` accepts, those first that change what it computes.

    ``run`` computes the original with other values for some defaults; ``budget`` is how often it is called. Defaults of
    the same value are replaced together where none can be replaced alone: shapes that must agree.
    """
    out = Overrides()
    if not defaults:
        return out
    usual = run({})
    tries = max(1, min(_TRIED, budget // len(defaults)))
    alone: set[str] = set()
    for place, group in enumerate(_groups(defaults)):
        names = [default.name for default in group]
        if len(group) > 1 and alone.issuperset(names):
            continue
        found: list[Feeds] = []
        quiet: list[Feeds] = []
        rng = np.random.default_rng([seed, 13, place])
        for value in _distinct(candidates(group[0], rng), group[0].value, tries):
            feeds = dict.fromkeys(names, value)
            try:
                changed = differs(usual, run(feeds))
            except RunFailed as error:
                if error.ended:
                    break
                continue
            (found if changed else quiet).append(feeds)
            if len(found) == _ACCEPTED:
                break
        if found:
            alone.update(names)
        out.accepted += found or quiet[:1]
    fed = {name for feeds in out.accepted for name in feeds}
    out.missing = [default.name for default in defaults if default.name not in fed]
    return out


def _groups(defaults: Sequence[Default]) -> list[list[Default]]:
    """Each alone, then equal values together."""
    equal: dict[tuple[str, tuple[int, ...], bytes], list[Default]] = {}
    for default in defaults:
        key = (default.value.dtype.str, default.value.shape, _bytes(default.value))
        equal.setdefault(key, []).append(default)
    return [[default] for default in defaults] + [group for group in equal.values() if len(group) > 1]


def _bytes(value: Array) -> bytes:
    return repr(value.tolist()).encode() if value.dtype.kind == "O" else value.tobytes()


def _distinct(values: Iterator[Array], default: Array, most: int) -> Iterator[Array]:
    """Values that are not the default, each once."""
    seen = {(default.shape, _bytes(default))}
    for value in values:
        key = (value.shape, _bytes(value))
        if key not in seen:
            seen.add(key)
            yield value
            if len(seen) > most:
                return


def candidates(default: Default, rng: np.random.Generator) -> Iterator[Array]:
    """Values near the default, of its dtype: the likeliest first, then random ones."""
    value = default.value
    kind = value.dtype.kind
    makers = {"i": _integers, "u": _integers, "f": _floats, "b": _truths, "O": _texts}
    if kind not in makers:
        return
    found = makers[kind](value, rng)
    if default.is_free and value.ndim == 1:
        found = _alternating(found, _lengths(value))
    with np.errstate(all="ignore"):
        for array in found:
            if kind not in "iu" or _holds(value.dtype, array):
                yield np.asarray(array).astype(value.dtype)


def _holds(dtype: np.dtype[Any], array: Array) -> bool:
    limits = np.iinfo(dtype)
    return all(limits.min <= x <= limits.max for x in array.flat)


def _alternating(first: Iterator[Any], second: Iterator[Any]) -> Iterator[Any]:
    """One of each in turn; the rest of the longer at the end."""
    queues = [first, second]
    while queues:
        for queue in list(queues):
            try:
                yield next(queue)
            except StopIteration:
                queues.remove(queue)


def _integers(value: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Shapes of as many elements, permutations, each entry a little more or less, small numbers."""
    wide = value.astype(object)
    top = max([2, *(abs(int(x)) for x in wide.flat)])
    for array in _integer_ideas(wide, top, rng):
        made = np.asarray(array, object)
        if all(abs(x) <= 2 * top + 8 for x in made.flat):
            yield made


def _integer_ideas(value: Array, top: int, rng: np.random.Generator) -> Iterator[Array]:
    if value.size > 1:
        yield np.flip(value)
        yield from _factors(value, rng)
        yield np.roll(value, 1)
    flat = value.reshape(-1)
    places = range(min(value.size, _FEW))
    for step in (1, -1):
        yield from (_changed(value, i, flat[i] + step) for i in places)
    yield from (_changed(_changed(value, i, flat[i] + 1), j, flat[j] - 1) for i in places for j in places if i != j)
    yield value + 1
    yield value - 1
    if top <= _MOST:
        yield value * 2
        yield from (_changed(value, i, flat[i] * 2) for i in places)
        yield value // 2
    for number in (1, 0, 2, -1, 3, -2, 4, 5):
        yield np.full(value.shape, number, object)
    for number in (1, -1, 0, 2):
        yield from (_changed(value, i, number) for i in places)
    for _ in range(8):
        yield rng.integers(-1, min(top, _MOST) + 2, value.shape).astype(object)


def _factors(value: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Other shapes of as many elements."""
    total = int(np.prod(value, dtype=object))
    if not 1 < total <= _MOST * _MOST or any(x < 1 for x in value.flat):
        return
    for _ in range(4):
        rest, sizes = total, []
        for _ in range(value.size - 1):
            divisors = [d for d in range(1, min(rest, _MOST) + 1) if rest % d == 0]
            sizes.append(int(rng.choice(divisors)))
            rest //= sizes[-1]
        yield np.array([*sizes, rest], object).reshape(value.shape)


def _changed(value: Array, place: int, to: Any) -> Array:
    out = np.array(value)
    out.reshape(-1)[place] = to
    return out


def _floats(value: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Scales and limits: multiples, entry by entry too."""
    places = range(min(value.size, _FEW))
    flat = value.reshape(-1)
    yield value * 2
    yield from (_changed(value, i, flat[i] * 2) for i in places)
    yield from (_changed(value, i, flat[i] + 1) for i in places)
    yield value / 2
    yield np.where(value == 1, value, value + 1)
    yield np.flip(value)
    yield value + 1
    yield value - 1
    yield from (_changed(value, i, flat[i] / 2) for i in places)
    for number in (1.0, 0.0, 2.0, 0.5, -1.0, 3.0):
        yield np.full(value.shape, number)


def _truths(value: Array, rng: np.random.Generator) -> Iterator[Array]:
    yield ~value
    yield np.full(value.shape, True)
    yield np.full(value.shape, False)
    yield from (_changed(value, i, not value.reshape(-1)[i]) for i in range(min(value.size, _FEW)))


def _texts(value: Array, rng: np.random.Generator) -> Iterator[Array]:
    yield np.flip(value)
    yield np.roll(value, 1)
    yield np.full(value.shape, "a", object)


def _lengths(value: Array) -> Iterator[Array]:
    """Vectors of another length: axes and shapes of another rank."""
    numbers = value.astype(object) if value.dtype.kind in "iu" else value
    one = np.array([1], numbers.dtype)
    yield np.concatenate([numbers, one])
    yield np.concatenate([one, numbers])
    yield numbers[1:]
    yield numbers[:-1]
    if value.dtype.kind in "iu":
        yield np.array([int(np.prod(numbers, dtype=object))], object)
        yield np.arange(value.size + 1).astype(object)
        yield np.arange(1, value.size + 2).astype(object)
