"""An operand as the plans see it: neighbouring axes of one kind are one segment, axes of size 1 are gone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from dmlc.ir import Dim, Graph, Node, Shape
from dmlc.passes.choose_lowering.plan import Sizes
from dmlc.passes.layouts import is_unit


class View(Struct, frozen=True):
    """``sizes`` of the segments and which are ``searched``; both kinds alternate, until a segment is split."""

    sizes: Shape
    searched: tuple[bool, ...]

    @property
    def groups(self) -> tuple[int, ...]:
        """The searched segments."""
        return tuple([i for i, searched in enumerate(self.searched) if searched])

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple([i for i, searched in enumerate(self.searched) if not searched])

    @property
    def kind(self) -> str:
        """The segments as letters: ``KR`` where the last axes are searched."""
        return "".join(["KR"[searched] for searched in self.searched])

    def split(self, segment: int, outer: int, inner: int) -> View:
        """The segment as two."""
        sizes = (*self.sizes[:segment], outer, inner, *self.sizes[segment + 1 :])
        return View(sizes, (*self.searched[: segment + 1], *self.searched[segment:]))

    def at(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple([sizes(d) for d in self.sizes])


def view_of(graph: Graph, node: Node, axes: Sequence[int]) -> View:
    """Return a node's first operand as segments. At least one is reduced, of size 1 if all reduced axes are."""
    shape = node.operand("x").shape
    return merged([(d, i in axes) for i, d in enumerate(shape) if not is_unit(graph, d)])


def merged(segments: Sequence[tuple[Dim, bool]]) -> View:
    """Neighbours of one kind as one; at least one is searched."""
    sizes: list[Dim] = []
    searched: list[bool] = []
    for size, mine in segments:
        if searched and searched[-1] == mine:
            sizes[-1] = sizes[-1] * size
        else:
            sizes.append(size)
            searched.append(mine)
    if True not in searched:
        sizes.append(1)
        searched.append(True)
    return View(tuple(sizes), tuple(searched))


#: No memory holds as many elements as the square of this; sizes of a broken model may be larger.
_FACTORS = 1 << 20
#: Reductions go fastest over multiples of so many elements.
_VECTOR = 8


@lru_cache(maxsize=256)
def _divisors(size: int) -> tuple[int, ...]:
    """Return the divisors up to a bound and their quotients; 1 if there are none."""
    lows = [low for low in range(1, min(math.isqrt(size), _FACTORS) + 1) if size % low == 0]
    return tuple([one for low in lows for one in (low, size // low)]) or (1,)


def divisor_near(size: int, wanted: float) -> int:
    """The divisor of a size that is nearest to what is wanted, as a ratio: one of 8 if such a one is near enough."""
    found = _divisors(size)
    even = [one for one in found if one % _VECTOR == 0 and wanted / _VECTOR < one < wanted * _VECTOR]
    return min(even or found, key=lambda one: abs(math.log(one / wanted)))
