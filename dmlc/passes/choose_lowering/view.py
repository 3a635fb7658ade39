"""An arg search as its plans see it: neighbouring axes of one kind are one segment, axes of size 1 are gone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from dmlc.ir import Dim, DType, Graph, Node, Shape
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


def view_of(graph: Graph | None, node: Node, axes: Sequence[int]) -> View:
    """Return a node's first operand as segments. At least one is reduced, of size 1 if all reduced axes are."""
    units = [d == 1 or (graph is not None and is_unit(graph, d)) for d in node.operand("x").shape]
    return _merged([(d, i in axes) for i, d in enumerate(node.operand("x").shape) if not units[i]])


def without_ones(view: View, shape: Sequence[int]) -> View:
    """The view at known sizes, without the segments that are of size 1 there."""
    return _merged([(size, mine) for size, mine in zip(shape, view.searched, strict=True) if size != 1])


def _merged(segments: Sequence[tuple[Dim, bool]]) -> View:
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


def after(sizes: Sequence[int], segment: int) -> int:
    """Return the number of contiguous elements for each position of the segment."""
    return math.prod(sizes[segment + 1 :])


#: No memory holds as many elements as the square of this; sizes of a broken model may be larger.
_FACTORS = 1 << 20


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


#: Reductions go fastest over multiples of so many elements.
_VECTOR = 8
#: Elements that are whole pages apart fall into the same ways of the cache, which holds fewer than this of them.
_PAGE, _WAYS = 4096, 16
#: Tensors of more bytes than this come from memory.
CACHED = 1 << 24


def in_pieces(dtype: DType, sizes: Sequence[int], segment: int) -> bool:
    """Return whether a tensor exceeds the cache and is read in pieces of less than a page, which defeats
    prefetching."""
    behind = after(sizes, segment) * dtype.numpy.itemsize
    return dtype.numpy.itemsize < behind < _PAGE and math.prod(sizes) * dtype.numpy.itemsize > CACHED


def spread(kernel: str, dtype: DType, sizes: Sequence[int], segment: int) -> str:
    """The row of the cost model for a kernel that goes along one segment."""
    behind = after(sizes, segment)
    if behind == 1:
        return kernel
    if sizes[segment] >= _WAYS and behind * dtype.numpy.itemsize % _PAGE == 0:
        return f"{kernel} far"
    return f"{kernel} deep" if sizes[segment] > _WAYS else f"{kernel} strided"
