"""argmax and argmin in two passes: a reduction finds the block of the winner, a short search its place inside.

A reduction is vectorised where a search is not, so the one big pass is the reduction. Ties stay right: the first block
that holds the max or min holds its first position, the last block its last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dmlc.ir import Dim, DType, Node, Operation, Value, product
from dmlc.ir.dtype import f16, f32, f64, i32, i64
from dmlc.ops.move import RESHAPE
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttributes, axes_of
from dmlc.ops.select import ARGMAX, ARGMIN, EXTREME_OF, HARDMAX, ArgAttributes
from dmlc.passes.choose_lowering.plan import Plan, View, divisor_near, plan, view_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered
from dmlc.passes.rewrite import Miss
from dmlc.targets.needed_kernels import VALUE_FLOAT_FIRST

#: More numbers than this are counted at run time rather than written into the model.
MOST_WRITTEN = 4096
#: The block of an axis that others lie behind: reductions over more are slowed down by the cache's ways.
_STRIDED_BLOCK = 8
#: Blocks that lie together have the square root of the axis, but so many elements where there are as many blocks.
_ROW, _FEWEST = 64, 8


def _home(e: Sketch, dtype: DType, *ops: Operation) -> DType | None:
    """The first type that holds the values in the same order and for which all operations have a kernel."""
    homes = (dtype, *VALUE_FLOAT_FIRST.get(dtype, ()))
    return next((home for home in homes if all(e.target.has_kernel(op, home) for op in ops)), None)


def may_be_empty(e: Sketch, sizes: Sequence[Dim]) -> Miss | None:
    """The reason against reshapes below opset 14, which cannot say a size of 0."""
    if e.target.opset >= 14 or all(e.graph.dims.interval(d)[0] > 0 for d in sizes):
        return None
    return Miss("reshapes of sizes that may be 0 need opset 14")


def _search(e: Sketch, node: Node, x: Term, axes: Sequence[int], *, keep: bool = True) -> Term:
    """The same search along some axes, with an index of i64."""
    ties = node.attributes_as(ArgAttributes).ties
    return e(node.op, x, attributes=ArgAttributes(axes=tuple(axes), ties=ties, dtype=i64, keepdims=keep))


def _scaled(index: Term, factor: Dim) -> Term:
    return index if factor == 1 else index * factor


def _joined(node: Node, block: Term, inside: Term, length: Dim) -> Term:
    """The index of a place inside a block."""
    index = _scaled(block, length) + inside
    return index.reshape(node.result.shape).cast(node.attributes_as(ArgAttributes).dtype)


# --- places


def _along(e: Sketch, size: Dim, stride: Dim, place: int, rank: int) -> Term:
    """0, stride, 2*stride and so on along one axis of so many."""
    shape = [size if i == place else 1 for i in range(rank)]
    if isinstance(size, int) and isinstance(stride, int) and size <= MOST_WRITTEN:
        return e.number(np.arange(size).reshape([int(str(d)) for d in shape]) * stride, i64)
    return _scaled(e.iota(length=size, dtype=i64), stride).reshape(shape)


def offsets(e: Sketch, sizes: Sequence[Dim], strides: Sequence[Dim], places: Sequence[int]) -> Term | None:
    """The sum over some axes of index times stride, broadcast over the others; None over no axes."""
    total: Term | None = None
    known = [s for i in places if isinstance(s := sizes[i], int)]
    if len(known) == len(places) and math.prod(known) <= MOST_WRITTEN and places:
        array = np.zeros([1] * len(sizes), np.int64)
        for i in places:
            step, size = strides[i], sizes[i]
            assert isinstance(step, int) and isinstance(size, int)
            array = array + (np.arange(size) * step).reshape([size if k == i else 1 for k in range(len(sizes))])
        return e.number(array, i64)
    for i in places:
        part = _along(e, sizes[i], strides[i], i, len(sizes))
        total = part if total is None else total + part
    return total


def row_of(block: Term, sizes: Sequence[Dim], strides: Sequence[Dim]) -> Term:
    """The place that a flat index over some axes stands for, when each axis has a stride of its own.

    The index of axis j is ``q[j] - q[j-1]*size[j]`` for the quotients q, so that the sum needs one product for each.
    """
    total = _scaled(block, strides[-1])
    tail: Dim = 1
    for j in range(len(sizes) - 2, -1, -1):
        tail = tail * sizes[j + 1]
        factor = strides[j] - sizes[j + 1] * strides[j + 1]
        if factor != 0:
            total = total + _scaled(block if tail == 1 else block / tail, factor)
    return total


# --- blocks


class Blocks:
    """A view whose searched segments are those that choose a block, ``outer``, and those within one, ``inner``."""

    __slots__ = ("inner", "outer", "view")

    def __init__(self, view: View, inner: int) -> None:
        self.view: View = view
        self.outer: tuple[int, ...] = view.groups[:-inner]
        self.inner: tuple[int, ...] = view.groups[-inner:]

    @property
    def before(self) -> tuple[int, ...]:
        """The kept segments before the block."""
        return tuple([i for i in self.view.kept if i < self.inner[0]])

    @property
    def length(self) -> Dim:
        """The elements of a block."""
        return product([self.view.sizes[i] for i in self.inner])

    def extremes(self, e: Sketch, op: Operation, x: Term) -> Term:
        """Return the max or min of each block. Segments inside a block keep size 1, so that axes do not shift."""
        for i in reversed(self.inner):
            x = e.reduced(op, x, [i], keepdims=len(self.inner) > 1)
        return x


def _divided(view: View, *, fine: bool) -> Blocks | Miss:
    """The blocks: what comes after the first searched segment; a lone one is divided, and the last one if ``fine``."""
    if len(view.groups) > 1 and not fine:
        return Blocks(view, len(view.groups) - 1)
    if fine and len(view.groups) == 1:
        return Miss("the axes are adjacent")
    segment = view.groups[-1]
    size = view.sizes[segment]
    if not isinstance(size, int):
        return Miss("{0} is not known, so that it cannot be divided", (size,))
    strided, root = segment < len(view.sizes) - 1, math.sqrt(size)
    length = divisor_near(size, min(_STRIDED_BLOCK, root) if strided else max(root, min(_ROW, size / _FEWEST)))
    if length in (1, size):
        return Miss("{0} cannot be divided", (size,))
    return Blocks(view.split(segment, size // length, length), 1)


def _blocked(e: Sketch, node: Node, x: Term, *, fine: bool) -> Lowered:
    blocks = _divided(view_of(e.graph, node, node.attributes_as(ArgAttributes).axes), fine=fine)
    home = _home(e, x.dtype, node.op, EXTREME_OF[node.op])
    if isinstance(blocks, Miss):
        return blocks
    if home is None:
        return Miss("no reduction of {0} is right", (x.dtype,))
    sizes, inner = blocks.view.sizes, blocks.inner
    if not isinstance(blocks.length, int):
        return Miss("the size of a block is not known")
    if len(inner) == 1 and not all(isinstance(d, int) for d in sizes[1 : inner[0]]):
        return Miss("the distance from block to block is not known")
    if reason := may_be_empty(e, sizes):
        return reason
    x = x.cast(home).reshape(sizes)
    best = blocks.extremes(e, EXTREME_OF[node.op], x)
    block = _search(e, node, best, blocks.outer, keep=len(inner) > 1)
    axes: tuple[int, ...]
    in_rows = inner == (len(sizes) - 1,)  # a block is contiguous
    if in_rows:
        picked, axes = _rows(e, x, blocks, block), (len(blocks.before),)
    elif len(inner) == 1:
        block = block.reshape(_column_shape(blocks))
        picked, axes = _columns(e, x, blocks, block), (1,)
    else:
        picked, axes = _elements(e, x, blocks, block), inner
    return _joined(node, block, _search(e, node, picked, axes, keep=not in_rows), blocks.length)


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


# --- the plans


@plan(ARGMAX, ARGMIN, repeatable=True)
def blocked_argmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """A big argmax or argmin finds the block with the winner by a reduction, then the index in that block."""
    return _blocked(e, node, x, fine=False)


@plan(ARGMAX, ARGMIN, repeatable=True)
def fine_blocked_argmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """An argmax or argmin over axes that are not adjacent takes blocks along the last of them only."""
    return _blocked(e, node, x, fine=True)


@plan(ARGMAX, ARGMIN)
def inner_first_argmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """An argmax or argmin over axes that are not adjacent reduces the inner ones first, then their winners."""
    view, home = view_of(e.graph, node, node.attributes_as(ArgAttributes).axes), _home(e, x.dtype, node.op)
    outer, *inner = view.groups
    length = product([view.sizes[i] for i in inner])
    if not inner:
        return Miss("the axes are adjacent")
    if not isinstance(length, int):
        return Miss("the sizes of the inner axes are not known")
    if home is None:
        return Miss("winners of {0} cannot be compared", (x.dtype,))
    if reason := may_be_empty(e, view.sizes):
        return reason
    x = x.cast(home).reshape(view.sizes)
    reduces = len(inner) > 1 or e.target.has_kernel(EXTREME_OF[node.op], home)
    inside = _search(e, node, x, inner, keep=not reduces)
    best = x
    if reduces:
        for i in reversed(inner):
            best = e.reduced(EXTREME_OF[node.op], best, [i], keepdims=False)
    else:
        best = e.gather_elements(x, inside, axis=inner[0])
    block = _search(e, node, best, [outer])
    return _joined(node, block, e.gather_elements(inside, block, axis=outer), length)


@plan(REDUCE_MAX, REDUCE_MIN, looks_around=True)
def max_of_blocks(e: Sketch, node: Node, x: Term) -> Lowered:
    """A maximum over the axes of a blocked argmax becomes the maximum of its blocks' maxima."""
    view = view_of(e.graph, node, axes_of(node))
    for blocks in (_divided(view, fine=False), _divided(view, fine=True)):
        if isinstance(blocks, Blocks) and any(_reduces(user, node, blocks) for user in _users(x.value, blocks)):
            # The reductions that the argmax has made are made again, and found to be the same by ``cse``.
            best = blocks.extremes(e, node.op, x.reshape(blocks.view.sizes))
            for i in reversed(blocks.outer):
                best = e.reduced(node.op, best, [i])
            return best.reshape(node.result.shape)
    return Miss("no argmax over the same axes is made in blocks")


def _users(x: Value, blocks: Blocks) -> list[Node]:
    """The users of the operand in the shape of the blocks."""
    if x.shape == blocks.view.sizes:
        return x.users
    views = [user.result for user in x.users if user.op is RESHAPE and user.result.shape == blocks.view.sizes]
    return [user for view in views for user in view.users]


def _reduces(user: Node, node: Node, blocks: Blocks) -> bool:
    """Return whether the user is the reduction over the blocks that a lowered argmax or argmin made."""
    made = any(one.name in user.history.rules for one in (blocked_argmax, fine_blocked_argmax))
    record = ReduceAttributes(axes=blocks.inner[-1:], keepdims=len(blocks.inner) > 1)
    return made and user.op is node.op and user.attributes == record


# --- hardmax: from the index of the winner, without a transpose, or the target's own over axes brought together


@plan(HARDMAX)
def hardmax_by_places(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax becomes an argmax whose index is compared with each place."""
    axes = axes_of(node)
    places = product([x.shape[a] for a in axes])
    if isinstance(places, int) and places > i32.highest:
        return Miss("{0} places are more than i32 counts", (places,))
    if reason := may_be_empty(e, x.shape):
        return reason
    index = e.argmax(x, axes=axes, ties="first", dtype=i32, keepdims=True)
    hot = e.equal(index, _places(e, [size if i in axes else 1 for i, size in enumerate(x.shape)]))
    if x.dtype is f16:
        hot = hot.cast(f32)  # the cast of bool to f16 is many times slower
    return hot.cast(x.dtype)


def _places(e: Sketch, shape: Sequence[Dim]) -> Term:
    """0, 1, 2 and so on in that shape."""
    length = product(shape)
    if isinstance(length, int) and length <= MOST_WRITTEN:
        return e.number(np.arange(length).reshape([int(str(d)) for d in shape]), i32)
    return e.iota(length=length, dtype=i32).reshape(shape)


@plan(HARDMAX)
def hardmax_by_scatter(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax becomes zeros into which a one is put at each index of an argmax."""
    axes = axes_of(node)
    if not all(isinstance(d, int) for d in x.shape):
        return Miss("the zeros to put ones into are not of a known size")
    index = e.argmax(x, axes=axes, ties="first", dtype=i64, keepdims=True)
    shape, axis = x.shape, axes[0]
    if len(axes) > 1:  # places in the flat tensor, from the places along the axes and the places of the groups
        strides = [product(shape[i + 1 :]) for i in range(len(shape))]
        place = row_of(index, [shape[a] for a in axes], [strides[a] for a in axes])
        own = offsets(e, shape, strides, [i for i in range(len(shape)) if i not in axes])
        place = place if own is None else place + own
        index, shape, axis = place.reshape((product(place.shape),)), (product(shape),), 0
    zeros, ones = e.full(shape=shape, value=0, dtype=x.dtype), e.full(shape=index.shape, value=1, dtype=x.dtype)
    return e.scatter_elements(zeros, index, ones, axis=axis).reshape(x.shape)


@plan(HARDMAX)
def hardmax_merged(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax over several axes becomes the target's own over one, brought together by transposes if they must."""
    axes = axes_of(node)
    if len(axes) == 1 or x.dtype is f64:
        return Miss("there is one axis" if len(axes) == 1 else "there is no kernel of f64")
    if reason := may_be_empty(e, x.shape):
        return reason
    perm = (*[i for i in range(x.rank) if i not in axes], *axes)
    moved = x.transposed(perm)
    kept, length = moved.shape[: -len(axes)], product(moved.shape[-len(axes) :])
    hot = e.hardmax(moved.reshape((*kept, length)), axes=(len(kept),))
    return hot.reshape(moved.shape).transposed([perm.index(i) for i in range(len(perm))])


PLANS: tuple[type[Plan], ...] = (
    hardmax_by_places,
    hardmax_by_scatter,
    hardmax_merged,
    blocked_argmax,
    fine_blocked_argmax,
    inner_first_argmax,
)
