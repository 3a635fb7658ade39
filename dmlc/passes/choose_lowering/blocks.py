"""Arg searches in two passes over blocks: a reduction finds the block of the winner, a short search its place inside.

A reduction is vectorised where a search is not, so the one big pass is the reduction. Ties stay right: the first block
that holds the max or min holds its first position, the last block its last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from dmlc.ir import Dim, DType, Graph, Node, Operation, product
from dmlc.ir.dtype import i32
from dmlc.ops.select import ARGMAX, ARGMIN, EXTREME_OF
from dmlc.passes.choose_lowering.plan import Cheapest, Lowered, Plan, Sizes, Sketch, Step, Term, Work
from dmlc.passes.choose_lowering.search import (
    arg_of,
    arg_view,
    cast_steps,
    frame_steps,
    gather_step,
    home_of,
    may_be_empty,
    offsets,
    row_of,
    scaled,
    search,
    search_steps,
    small_steps,
)
from dmlc.passes.choose_lowering.view import View, after, divisor_near, in_pieces, spread, without_ones

#: The block of an axis that others lie behind: reductions over more are slowed down by the cache's ways.
_STRIDED_BLOCK = 8
#: Blocks that lie together have the square root of the axis, but so many elements where there are as many blocks.
_ROW, _FEWEST = 64, 8
#: Reshapes that elements gathered from columns need beside arithmetic.
_COLUMN_RESHAPES = 4
#: The work of a search over the segments of a view.
Searching = Callable[[DType, View, Sequence[int]], Sequence[Work]]


class Blocks:
    """A view whose searched segments are those that choose a block, ``outer``, and those within one, ``inner``."""

    __slots__ = ("inner", "outer", "view")

    def __init__(self, view: View, inner: int) -> None:
        self.view: View = view
        self.outer: tuple[int, ...] = view.groups[:-inner]
        self.inner: tuple[int, ...] = view.groups[-inner:]

    @property
    def in_rows(self) -> bool:
        """Return whether a block is contiguous, so that whole rows can be gathered."""
        return self.inner == (len(self.view.sizes) - 1,)

    @property
    def in_columns(self) -> bool:
        """Return whether a block is one segment with others behind it: elements are gathered, one per leading
        position."""
        return len(self.inner) == 1 and not self.in_rows

    @property
    def before(self) -> tuple[int, ...]:
        """The kept segments before the block."""
        return tuple([i for i in self.view.kept if i < self.inner[0]])

    @property
    def length(self) -> int | None:
        """The elements of a block, where that is known."""
        size = product([self.view.sizes[i] for i in self.inner])
        return size if isinstance(size, int) else None


class BlockedArg(Plan):
    """A big argmax or argmin finds the block with the winner by a reduction, then the index in that block."""

    name: ClassVar[str] = "blocked-argmax"
    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, ARGMIN)
    repeatable = True

    def divide(self, view: View) -> Blocks | str:
        """The blocks: what comes after the first searched segment; a lone one is divided. Or why there are none."""
        if len(view.groups) > 1:
            return Blocks(view, len(view.groups) - 1)
        return _split(view, view.groups[0])

    def applies(self, node: Node, graph: Graph) -> str | None:
        blocks = self.divide(arg_view(node))
        if isinstance(blocks, str):
            return blocks
        if self.home(node) is None:
            return f"no reduction of {node.operand('x').type.dtype} is right"
        if blocks.length is None:
            return "the size of a block is not known"
        if len(blocks.inner) == 1 and not all(isinstance(d, int) for d in blocks.view.sizes[1 : blocks.inner[0]]):
            return "the distance from block to block is not known"
        return may_be_empty(self.capabilities, graph, blocks.view.sizes)

    def home(self, node: Node) -> DType | None:
        return home_of(self.capabilities, node.operand("x").type.dtype, node.op, EXTREME_OF[node.op])

    def blocks_of(self, node: Node) -> Blocks:
        blocks = self.divide(arg_view(node))
        assert isinstance(blocks, Blocks)
        return blocks

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        blocks, home, dtype = self.blocks_of(node), self.home(node), node.operand("x").type.dtype
        assert home is not None
        shape = blocks.view.at(sizes)
        first = [*frame_steps(node, blocks.view), *cast_steps(dtype, home, math.prod(shape))]
        known = all(isinstance(blocks.view.sizes[i], int) for i in blocks.view.groups)
        return [*first, *_block_work(home, blocks, shape, self._search_again if known else search_steps)]

    def _search_again(self, dtype: DType, view: View, shape: Sequence[int]) -> Sequence[Work]:
        """A search among blocks, or within one: as it stands, or in blocks again."""
        ways: list[tuple[Work, ...]] = [tuple(search_steps(dtype, view, shape))]
        rest = without_ones(view, shape)
        for kind in PLANS:
            blocks = kind(self.context).divide(rest)
            if isinstance(blocks, Blocks):
                ways.append(tuple(_block_work(dtype, blocks, blocks.view.at(Sizes({})), search_steps)))
        return [Cheapest(tuple(ways))]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        blocks, home = self.blocks_of(node), self.home(node)
        assert home is not None
        x = x.cast(home).reshape(blocks.view.sizes)
        best = extreme_of_blocks(e, EXTREME_OF[node.op], x, blocks)
        block = search(e, node, best, blocks.outer, keep=len(blocks.inner) > 1)
        axes: tuple[int, ...]
        if blocks.in_rows:
            picked, axes = _rows(e, x, blocks, block), (len(blocks.before),)
        elif blocks.in_columns:
            block = block.reshape(_column_shape(blocks))
            picked, axes = _columns(e, x, blocks, block), (1,)
        else:
            picked, axes = _elements(e, x, blocks, block), blocks.inner
        inside = search(e, node, picked, axes, keep=not blocks.in_rows)
        index = scaled(block, product([blocks.view.sizes[i] for i in blocks.inner])) + inside
        return index.reshape(node.result.shape).cast(arg_of(node).dtype)


class FineBlockedArg(BlockedArg):
    """An argmax or argmin over axes that are not adjacent takes blocks along the last of them only."""

    name: ClassVar[str] = "fine-blocked-argmax"

    def divide(self, view: View) -> Blocks | str:
        if len(view.groups) == 1:
            return "the axes are adjacent"
        return _split(view, view.groups[-1])


def _block_work(home: DType, blocks: Blocks, sizes: Sequence[int], searching: Searching) -> list[Work]:
    """The reductions, the search of the block, the gather of its elements and the search among them."""
    out: list[Work] = []
    shape = list(sizes)
    picked = [1 if i in blocks.outer else size for i, size in enumerate(shape)]
    for i in reversed(blocks.inner):
        out.append(reduce_step(home, shape, i))
        shape[i] = 1
    out += searching(home, blocks.view, shape)
    count = math.prod(picked)
    kept = math.prod([picked[i] for i in blocks.view.kept])
    if not blocks.in_rows:
        out.append(Step("Expand", i32, count, count, after(picked, blocks.inner[-1])))
        places = math.prod([sizes[i] for i in blocks.outer])
        out.append(gather_step(home, math.prod(sizes), places, count))
    else:
        out.append(Step("Gather", home, count, count, picked[-1]))
    if len(blocks.inner) == 1:
        out += small_steps(2 * len(blocks.outer), kept)
    if blocks.in_columns:
        out += [Step("Reshape", home)] * _COLUMN_RESHAPES
    return [*out, *searching(home, blocks.view, picked), *small_steps(2, kept)]


def extreme_of_blocks(e: Sketch, op: Operation, x: Term, blocks: Blocks) -> Term:
    """Return the max or min of each block. Segments inside a block keep size 1, so that axes do not shift."""
    for i in reversed(blocks.inner):
        x = e.reduced(op, x, [i], keepdims=len(blocks.inner) > 1)
    return x


def reduce_step(dtype: DType, shape: Sequence[int], segment: int) -> Step:
    """One ReduceMax along one segment."""
    count = math.prod(shape)
    behind = after(shape, segment)
    kernel = spread("ReduceMax", dtype, shape, segment)
    if in_pieces(dtype, shape, segment) and not kernel.endswith("far"):
        kernel = f"{kernel} pieces"
    return Step(kernel, dtype, count, count // max(shape[segment], 1), shape[segment] if behind == 1 else behind)


def _split(view: View, segment: int) -> Blocks | str:
    """The segment divided into blocks, which are the only inner segment."""
    size = view.sizes[segment]
    if not isinstance(size, int):
        return f"{size} is not known, so that it cannot be divided"
    strided, root = segment < len(view.sizes) - 1, math.sqrt(size)
    length = divisor_near(size, min(_STRIDED_BLOCK, root) if strided else max(root, min(_ROW, size / _FEWEST)))
    if length in (1, size):
        return f"{size} cannot be divided"
    return Blocks(view.split(segment, size // length, length), 1)


def _place(e: Sketch, blocks: Blocks, block: Term, behind: int) -> Term:
    """Return the offsets of the selected blocks, in the shape of ``block``, counted in blocks.

    ``block`` indexes the outer segments row-major, and has ``behind`` axes after those before the block.
    """
    sizes, end = blocks.view.sizes, blocks.inner[0]
    strides = [product(sizes[i + 1 : end]) for i in range(end)]
    place = row_of(block, [sizes[i] for i in blocks.outer], [strides[i] for i in blocks.outer])
    kept = [sizes[i] for i in blocks.before]
    own = offsets(e, [*kept, *[1] * behind], [*[strides[i] for i in blocks.before], *[0] * behind], range(len(kept)))
    return place if own is None else place + own


def _rows(e: Sketch, x: Term, blocks: Blocks, block: Term) -> Term:
    """The chosen blocks, gathered as rows: ``block`` has the kept segments as its shape."""
    flat = x.reshape((product(blocks.view.sizes[:-1]), blocks.view.sizes[-1]))
    return e.gather(flat, _place(e, blocks, block, 0), axis=0, batch_axes=0)


def _column_shape(blocks: Blocks) -> tuple[Dim, ...]:
    """The kept segments before the block as one, one for the block, and those behind it as one."""
    sizes, end = blocks.view.sizes, blocks.inner[0]
    return product([sizes[i] for i in blocks.before]), 1, product(sizes[end + 1 :])


def _columns(e: Sketch, x: Term, blocks: Blocks, block: Term) -> Term:
    """The chosen blocks, gathered element by element along all that is before them as one axis."""
    sizes, end = blocks.view.sizes, blocks.inner[0]
    before, _, behind = _column_shape(blocks)
    split = block.reshape([*[sizes[i] for i in blocks.before], 1, behind])
    place = _narrow(_place(e, blocks, split, 2), product(sizes[:end])).reshape((before, 1, behind))
    wide = e.expand(place, shape=(before, sizes[end], behind))
    return e.gather_elements(x.reshape((product(sizes[:end]), sizes[end], behind)), wide, axis=0)


def _narrow(place: Term, places: Dim) -> Term:
    """A place as i32 where that surely holds it: an index for each element of a block is half as much to write."""
    return place.cast(i32) if isinstance(places, int) and places <= i32.highest else place


def _elements(e: Sketch, x: Term, blocks: Blocks, block: Term) -> Term:
    """The chosen blocks of several segments, gathered element by element along the one outer segment."""
    (outer,) = blocks.outer
    sizes = blocks.view.sizes
    shape = (*sizes[:outer], 1, *sizes[outer + 1 :])
    return e.gather_elements(x, e.expand(_narrow(block, sizes[outer]), shape=shape), axis=outer)


PLANS: Sequence[type[BlockedArg]] = (BlockedArg, FineBlockedArg)
