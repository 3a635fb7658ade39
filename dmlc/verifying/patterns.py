"""Data built to break rewrites: each pattern is one way in which wrong rewrites were seen to differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Array

Shape: TypeAlias = tuple[int, ...]
Rng: TypeAlias = np.random.Generator


@dataclass(frozen=True, slots=True)
class Floats:
    """The numbers of a float dtype that patterns are made of."""

    largest: float
    smallest_normal: float
    smallest: float
    eps: float
    #: The power of ten up to which sums of badly scaled data stay far from overflow.
    decades: int

    @property
    def large(self) -> float:
        """Numbers of this size overflow ``exp`` (f32 at 88.7, f16 at 11.1)."""
        return 2 * float(np.log(self.largest))


#: bfloat16 has no NumPy dtype: it is fed as f32, whose values here are rounded when the model casts them.
FLOATS: dict[str, Floats] = {
    "float16": Floats(65504.0, 2.0**-14, 2.0**-24, 2.0**-10, 2),
    "bfloat16": Floats(2.0**127 * (2 - 2.0**-7), 2.0**-126, 2.0**-133, 2.0**-7, 8),
    "float32": Floats(2.0**127 * (2 - 2.0**-23), 2.0**-126, 2.0**-149, 2.0**-23, 8),
    "float64": Floats(2.0**1023 * (2 - 2.0**-52), 2.0**-1022, 2.0**-1074, 2.0**-52, 12),
}

FloatMaker: TypeAlias = Callable[[Shape, Floats, Rng], Array]
IntegerMaker: TypeAlias = Callable[[Shape, int, int, Rng], Array]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Kind of test data: ``floats`` gives f64 data, ``integers`` Python integers within the two limits.

    ``is_plain`` data has no special values: a rewrite under a precondition on values must still hold there.
    """

    name: str
    floats: FloatMaker
    integers: IntegerMaker
    truth: float = 0.5
    is_plain: bool = False
    has_nan: bool = False


def _choice(values: list[float], weights: list[float] | None = None) -> FloatMaker:
    def make(shape: Shape, limits: Floats, rng: Rng) -> Array:
        return rng.choice(np.array(values), shape, p=weights)

    return make


def _pick(*values: int) -> IntegerMaker:
    """Some of the values, those that the dtype has."""

    def make(shape: Shape, low: int, high: int, rng: Rng) -> Array:
        return _of([v for v in values if low <= v <= high], shape, rng)

    return make


def _of(values: list[int], shape: Shape, rng: Rng) -> Array:
    table = np.array(values, dtype=object)
    return np.asarray(table[rng.integers(0, len(values), shape)])


def _small(least: int, most: int) -> IntegerMaker:
    def make(shape: Shape, low: int, high: int, rng: Rng) -> Array:
        return np.asarray(rng.integers(max(low, least), min(high, most) + 1, shape).astype(object))

    return make


def _odd(shape: Shape, low: int, high: int, rng: Rng) -> Array:
    """Odd numbers of both signs: a mean of them has a remainder."""
    return _of([v for v in range(-9, 10, 2) if low <= v <= high], shape, rng)


def _one_integer(shape: Shape, low: int, high: int, rng: Rng) -> Array:
    return np.full(shape, _of([v for v in (-3, 1, 5, 7) if low <= v <= high], (), rng), dtype=object)


def _integer_extremes(shape: Shape, low: int, high: int, rng: Rng) -> Array:
    return _of(sorted({low, min(low + 1, high), max(low, -1), 0, min(1, high), high - 1, high}), shape, rng)


def _integers_near_overflow(shape: Shape, low: int, high: int, rng: Rng) -> Array:
    """A few of them together overflow; one alone does not."""
    return _of([high // 2, high // 3, high // 2 + 1, low // 2, low // 3, 1], shape, rng)


def _powers(shape: Shape, low: int, high: int, rng: Rng) -> Array:
    return _of([v for bit in range(63) for v in (1 << bit, -(1 << bit)) if low <= v <= high], shape, rng)


def _normal(shape: Shape, limits: Floats, rng: Rng) -> Array:
    return rng.standard_normal(shape)


def _positive(shape: Shape, limits: Floats, rng: Rng) -> Array:
    return 1 - rng.random(shape)


def _negative(shape: Shape, limits: Floats, rng: Rng) -> Array:
    return -np.abs(rng.standard_normal(shape)) - 0.125


def _grid(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Small integers: many ties, and sums that come out even in any order."""
    return rng.integers(-3, 4, shape).astype(np.float64)


def _one_value(shape: Shape, limits: Floats, rng: Rng) -> Array:
    return np.full(shape, rng.choice([0.1, 1.0, -2.5, 3.0]))


def _shared_maximum(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """The largest and the smallest element come several times."""
    return np.clip(rng.standard_normal(shape) * 2, -0.75, 0.75)


def _near_ties(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Gaps that ``exp`` or an addition of 1 rounds away, rising or falling along the last axis, or anyhow."""
    steps = rng.integers(0, 3, shape)
    along = np.arange(shape[-1]) % 4 if shape else np.arange(1)
    turn = rng.integers(3)
    if shape and turn:
        steps = np.broadcast_to(along if turn == 1 else along[::-1], shape)
    return np.asarray(steps * (limits.eps / 128))


def _close(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Neighbouring numbers."""
    return 1 + rng.integers(0, 3, shape) * limits.eps


def _large(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Numbers in range whose exponentials mostly are not: all infinite, or all zero."""
    return rng.uniform(-0.3, 1, shape) * (limits.large if rng.random() < 0.7 else -limits.large)


def _zero_rows(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Along each axis some slices are zero altogether."""
    data = np.asarray(rng.standard_normal(shape))
    for axis in range(len(shape)):
        keep = rng.random(shape[axis]) < 0.6
        data = data * keep.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return data


def _offset(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """A large mean and a small variance: a variance as E[x^2] - E[x]^2 loses all its digits."""
    return np.asarray(1 / (8 * limits.eps**0.75) * (1 if rng.random() < 0.5 else -1) + rng.standard_normal(shape))


def _small_scale(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Numbers so small that the epsilon of a normalization decides."""
    return rng.standard_normal(shape) * 2e-3


def _badly_scaled(shape: Shape, limits: Floats, rng: Rng) -> Array:
    return rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-limits.decades, limits.decades, shape)


def _nan_somewhere(shape: Shape, limits: Floats, rng: Rng) -> Array:
    data = np.asarray(rng.standard_normal(shape))
    data[rng.random(shape) < 0.1] = np.nan
    return _put(data, np.nan, rng)


def _nan_first(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Return data with NaN in the first position, which runtimes treat differently, and in the first slice of the last
    axis."""
    data = np.asarray(rng.standard_normal(shape))
    if data.size and not shape:
        return np.full(shape, np.nan)
    if data.size:
        data.reshape(-1)[0] = np.nan
        data[..., :1] = np.where(rng.random(data[..., :1].shape) < 0.4, np.nan, data[..., :1])
    return data


def _infinities(shape: Shape, limits: Floats, rng: Rng) -> Array:
    data = np.asarray(rng.standard_normal(shape))
    data[rng.random(shape) < 0.1] = np.inf
    data[rng.random(shape) < 0.1] = -np.inf
    return _put(_put(data, np.inf, rng), -np.inf, rng)


def _masked(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """-infinity as masks have it, whole rows too."""
    data = np.asarray(rng.standard_normal(shape))
    data[rng.random(shape) < 0.4] = -np.inf
    if data.ndim:
        data[rng.random(data.shape[:-1]) < 0.25] = -np.inf
    return data


def _extremes(shape: Shape, limits: Floats, rng: Rng) -> Array:
    top = limits.largest
    return rng.choice(np.array([top, -top, top / 2, -top / 2, 1.0, 0.0]), shape)


def _denormals(shape: Shape, limits: Floats, rng: Rng) -> Array:
    tiny, least = limits.smallest_normal, limits.smallest
    return rng.choice(np.array([least, -least, 3 * least, tiny, -tiny, tiny * 1.5, 0.0]), shape)


def _ascending(shape: Shape, limits: Floats, rng: Rng) -> Array:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape) / 8 % 64 - 4


def _cancelling(shape: Shape, limits: Floats, rng: Rng) -> Array:
    """Sums along the last axis are 0, so that what is added to them decides."""
    data = np.asarray(rng.standard_normal(shape))
    if shape and data.size:
        turned = -data[..., ::-1]
        data = np.where(np.arange(shape[-1]) < shape[-1] // 2, data, turned)
        data[..., shape[-1] // 2] *= 1 - shape[-1] % 2
    return data


def _put(data: Array, value: float, rng: Rng) -> Array:
    """The value at one place at least."""
    if data.size:
        data.reshape(-1)[rng.integers(data.size)] = value
    return data


#: In this order they are fed; what is plain comes first.
PATTERNS: tuple[Pattern, ...] = (
    Pattern("normal", _normal, _small(-8, 8), is_plain=True),
    Pattern("small integers", _grid, _small(1, 9)),
    Pattern("all equal", _one_value, _one_integer, truth=1.0),
    Pattern("shared largest values", _shared_maximum, _pick(-2, 1, 3)),
    Pattern("near ties", _near_ties, _small(0, 3)),
    Pattern("large", _large, _small(-1000, 1000)),
    Pattern("NaN", _nan_somewhere, _odd, has_nan=True),
    Pattern("infinities", _infinities, _integer_extremes),
    Pattern("signed zeros", _choice([-0.0, 0.0, 1.0, -1.0], [0.4, 0.4, 0.1, 0.1]), _pick(0), truth=0.0),
    Pattern("extremes", _extremes, _integer_extremes),
    Pattern("denormals", _denormals, _powers),
    Pattern("zero rows", _zero_rows, _pick(0, 0, 5, 7)),
    Pattern("large mean", _offset, _small(10_000, 10_020)),
    Pattern("badly scaled", _badly_scaled, _integers_near_overflow),
    Pattern("positive", _positive, _small(1, 9), is_plain=True),
    Pattern("negative", _negative, _small(-9, -1)),
    Pattern("halves", _choice([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]), _odd),
    Pattern("masked", _masked, _small(0, 1), truth=0.2),
    Pattern("NaN first", _nan_first, _odd, has_nan=True),
    Pattern("small scale", _small_scale, _small(0, 5)),
    Pattern("neighbours", _close, _pick(6, 7)),
    Pattern("ascending", _ascending, _integers_near_overflow),
    Pattern("cancelling", _cancelling, _small(1, 100)),
    Pattern("infinities and zeros", _choice([np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0]), _powers),
)

#: Patterns whose indices count from the end as well where that is known to be right.
FROM_THE_END = frozenset({"negative", "halves"})

#: Strings to feed.
WORDS = ("", "a", "b", "a b", "Größe", "0", "-1.5", "NaN", "b")


def fill(pattern: Pattern, kind: str, shape: Shape, rng: Rng, limit: int | None, widest: int | None) -> Array:
    """An input of one dtype: ``kind`` is a NumPy dtype's name, ``bfloat16`` (as f32) or ``string``.

    With ``limit`` integers are 0 to below it; with ``widest`` no integer is larger in magnitude.
    """
    if kind == "string":
        return np.asarray(np.array(WORDS, dtype=object)[rng.integers(0, len(WORDS), shape)], dtype=object)
    if kind == "bool":
        return np.asarray(rng.random(shape) < pattern.truth)
    with np.errstate(all="ignore"):
        if kind in FLOATS:
            numpy = np.float32 if kind == "bfloat16" else np.dtype(kind)
            return np.asarray(np.asarray(pattern.floats(shape, FLOATS[kind], rng)).astype(numpy))
        if kind.startswith("complex"):
            parts = [np.asarray(pattern.floats(shape, FLOATS["float32"], rng)) for _ in range(2)]
            return np.asarray((parts[0] + 1j * parts[1]).astype(kind))
    return _integers(pattern, np.dtype(kind), shape, rng, limit, widest)


def _integers(
    pattern: Pattern, dtype: np.dtype[Any], shape: Shape, rng: Rng, limit: int | None, widest: int | None
) -> Array:
    if limit is not None:
        if limit > 1 and pattern.name == "all equal":
            return np.full(shape, rng.integers(limit), dtype)
        return rng.integers(0, max(limit, 1), shape).astype(dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if widest is not None:  # the lowest number divided by -1 ends the process on x86, so it is never among them
        low, high = max(low + 1 if low else 0, -widest), min(high, widest)
    try:
        data = pattern.integers(shape, low, high, rng)
    except ValueError:  # none of the pattern's values is in range
        data = rng.integers(max(low, -1), min(high, 8) + 1, shape)
    numbers = np.asarray(data, dtype=object)  # numpy before 2 has no integer dtype for u64 beside other numbers
    return np.asarray(np.clip(numbers, low, high)).astype(dtype)
