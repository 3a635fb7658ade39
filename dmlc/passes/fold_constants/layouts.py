"""Layout operations that cancel, join, or pass by elementwise operations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from operator import mul
from typing import ClassVar

import numpy as np

from dmlc.ir import Array, Dim, DimExpr, Graph, Node, Operation, OpError, Shape, Tensor, Value, dim_names
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import WHERE
from dmlc.ops.index import FULL, FullAttributes, full_value
from dmlc.ops.move import (
    CONCAT,
    EXPAND,
    PAD,
    RESHAPE,
    RESHAPES,
    SLICE,
    SPLIT,
    SQUEEZE,
    TILE,
    TRANSPOSE,
    UNSQUEEZE,
    AxesAttributes,
    PadAttributes,
    ReshapeAttributes,
    SliceAttributes,
    SplitAttributes,
    TransposeAttributes,
)
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.passes.layouts import is_unit, ones_between, plainest
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class StandStill(Rule[Match]):
    """A move that moves nothing becomes its operand: a transpose in the same order, a slice of all, and the like."""

    name = "move-nothing"
    roots: ClassVar[tuple[Operation, ...]] = (
        TRANSPOSE,
        RESHAPE,
        SQUEEZE,
        UNSQUEEZE,
        EXPAND,
        CONCAT,
        SPLIT,
        SLICE,
        PAD,
        TILE,
    )

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if _stands_still(node) else None

    def describe(self, match: Match) -> str:
        return f"{match.root.op.name} that moves nothing"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [match.root.operand(0)]


def _stands_still(node: Node) -> bool:
    if node.op is TRANSPOSE:
        perm = node.attributes_as(TransposeAttributes).perm
        return perm == tuple(range(len(perm)))
    if len(node.results) != 1 or node.result.type != node.operand(0).type:
        return False
    if node.op is SLICE:
        return all(step == 1 for _, _, _, step in node.attributes_as(SliceAttributes).rows())
    if node.op is PAD:
        return not any(node.attributes_as(PadAttributes).pads)
    return True


class SplitOffNothing(Rule[Match]):
    """A split of which one part is the whole operand becomes it; the other parts are empty."""

    name = "split-off-nothing"
    roots: ClassVar[tuple[Operation, ...]] = (SPLIT,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        axis, whole = node.attributes_as(SplitAttributes).axis, node.operand("x").type
        parts = [value for value in node.results if value.shape[axis] != 0]
        empty = [value for value in node.results if value.shape[axis] == 0 and value.uses]
        stays = len(parts) == 1 and parts[0].type == whole
        return Match(node) if stays and all(isinstance(d, int) for v in empty for d in v.shape) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.root.operand("x")
        return [x if v.type == x.type or not v.uses else _empty(v, rewriter) for v in root.results]


def _empty(value: Value, rewriter: Rewriter) -> Value:
    return rewriter.constant(np.zeros([int(str(size)) for size in value.shape], value.type.dtype.numpy))


class ChainMatch(Match, eq=False, kw_only=True):
    """``back`` is set where the last shape is the first value's."""

    back: bool


class ReshapeChain(Rule[ChainMatch]):
    """A reshape, squeeze or unsqueeze of one becomes a single one, or nothing at all."""

    name = "reshape-chain"
    roots = RESHAPES

    def match(self, node: Node, graph: Graph) -> ChainMatch | None:
        inner = node.operand("x").producer
        if inner is None or inner.op not in RESHAPES:
            return None
        if inner.operand("x").type == node.result.type:
            return ChainMatch(node, (inner,), back=True)
        if inner.op is node.op is SQUEEZE or RESHAPE in (inner.op, node.op):
            return ChainMatch(node, (inner,), back=False)
        # Squeezes and unsqueezes of symbolic shapes are plainer than a reshape, so they become one of their own.
        ones = ones_between(graph, inner.operand("x").shape, node.result.shape)
        return None if ones is None or all(ones) else ChainMatch(node, (inner,), back=False)

    def build(self, match: ChainMatch, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        x, root = inner.operand("x"), match.root
        if match.back:
            return [x]
        if root.op is inner.op is SQUEEZE:
            first = inner.attributes_as(AxesAttributes).axes
            left = [a for a in range(x.type.rank) if a not in first]
            both = sorted({*first, *(left[a] for a in root.attributes_as(AxesAttributes).axes)})
            return [rewriter.add(SQUEEZE, [x], AxesAttributes(axes=tuple(both)))]
        if RESHAPE not in (root.op, inner.op):
            return [rewriter.with_ones(x, root.result.shape)]
        shape = plainest(rewriter.graph, x.shape, root.result.shape)
        return [x if shape == x.shape else rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=shape))]


class TransposeChain(Rule[Match]):
    """A transpose of a transpose becomes one, or nothing."""

    name = "transpose-chain"
    roots: ClassVar[tuple[Operation, ...]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand("x").producer
        return Match(node, (inner,)) if inner is not None and inner.op is TRANSPOSE else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        first = inner.attributes_as(TransposeAttributes).perm
        perm = tuple([first[a] for a in match.root.attributes_as(TransposeAttributes).perm])
        x = inner.operand("x")
        if perm == tuple(range(len(perm))):
            return [x]
        return [rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=perm))]


class TransposeOfOnes(Rule[Match]):
    """A transpose next to a reshape becomes a reshape where it only moves axes of size 1."""

    name = "transpose-of-ones"
    roots: ClassVar[tuple[Operation, ...]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        x = node.operand("x")
        kept = [axis for axis in node.attributes_as(TransposeAttributes).perm if x.shape[axis] != 1]
        if kept != sorted(kept):
            return None
        maker, users = x.producer, node.result.users
        before = maker is not None and maker.op in RESHAPES
        after = bool(users) and all(user.op in RESHAPES for user in users)
        if not before and not after:
            return None
        have = maker.operand("x").shape if before and maker is not None else x.shape
        want = users[0].result.shape if after and len(users) == 1 else node.result.shape
        computed = [d for i, d in enumerate(want) if not isinstance(d, int) and have[i : i + 1] != (d,)]
        return Match(node) if len(computed) < 2 else None  # a reshape infers one size

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        return [rewriter.add(RESHAPE, [root.operand("x")], ReshapeAttributes(shape=root.result.shape))]


class _BlocksMatch(Match, eq=False, kw_only=True):
    """``perm`` is the order of the axes before both reshapes."""

    perm: tuple[int, ...]


class TransposeOfBlocks(Rule[_BlocksMatch]):
    """A transpose between a reshape and one that undoes its merges and splits becomes one of the axes before them.

    ``exact``. It moves the axes of each merge or split together. PyTorch's attention transposes its keys so.
    """

    name = "transpose-between-reshapes"
    roots = RESHAPES
    fed_by: ClassVar[Collection[Operation]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> _BlocksMatch | None:
        moved = made_by(node.operand("x"), TRANSPOSE)
        before = None if moved is None else made_by(moved.operand("x"), *RESHAPES)
        if moved is None or before is None or before.operand("x").type.rank != node.result.type.rank:
            return None
        perm = _order_before(graph, before, moved, node.result.shape)
        return None if perm is None else _BlocksMatch(node, (before, moved), perm=perm)

    def check(self, match: _BlocksMatch, graph: Graph) -> Miss | None:
        limit = self.capabilities.target.max_rank
        if limit is not None and len(match.perm) > limit:
            return Miss("it would move {0} axes, more than {1}", (len(match.perm), limit))
        return used_elsewhere(match.consumed[1].result)

    def build(self, match: _BlocksMatch, rewriter: Rewriter) -> Sequence[Value]:
        x = match.consumed[0].operand("x")
        return [rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=match.perm))]


def _order_before(graph: Graph, before: Node, moved: Node, target: Shape) -> tuple[int, ...] | None:
    """The order of the axes of the reshape's operand that gives ``target`` and the same elements, if there is one."""
    have, middle = before.operand("x").shape, moved.operand("x").shape
    axes = [a for a, size in enumerate(have) if not is_unit(graph, size)]
    between = [a for a, size in enumerate(middle) if not is_unit(graph, size)]
    perm = [between.index(a) for a in moved.attributes_as(TransposeAttributes).perm if a in between]
    order = order_of_blocks([have[a] for a in axes], [middle[a] for a in between], perm)
    if order is None or [have[axes[i]] for i in order] != [d for d in target if not is_unit(graph, d)]:
        return None
    moving = iter([axes[i] for i in order])
    ones = iter([a for a in range(len(have)) if a not in axes])
    return tuple([next(ones if is_unit(graph, size) else moving) for size in target])


def order_of_blocks(have: Sequence[Dim], middle: Sequence[Dim], perm: Sequence[int]) -> list[int] | None:
    """The axes of ``have`` as ``perm`` moves those of ``middle``, which merge and split them; None if it parts them."""
    places = {total: place for place, total in enumerate(accumulate(have, mul, initial=1))}
    blocks: dict[int, tuple[range, range]] = {}
    start = first = 0
    for axis, total in enumerate(accumulate(middle, mul)):
        end = places.get(total)
        if end is not None:
            blocks[first] = (range(start, end), range(first, axis + 1))
            start, first = end, axis + 1
    order: list[int] = []
    place = 0
    while place < len(perm):
        found = blocks.get(perm[place])
        if found is None or list(perm[place : place + len(found[1])]) != list(found[1]):
            return None
        order += found[0]
        place += len(found[1])
    return order


class SliceChain(Rule[Match]):
    """A slice of a slice becomes one slice, where no other operation needs the first."""

    name = "slice-chain"
    roots: ClassVar[tuple[Operation, ...]] = (SLICE,)
    fed_by: ClassVar[Collection[Operation]] = (SLICE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand("x").producer
        if inner is None or inner.op is not SLICE or any(user.op is not SLICE for user in inner.result.users):
            return None
        return Match(node, (inner,)) if _joined_rows(node, inner) is not None else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        rows = _joined_rows(match.root, inner)
        assert rows is not None
        axes, starts, ends, steps = zip(*rows, strict=True)
        record = SliceAttributes(starts=starts, ends=ends, axes=axes, steps=steps)
        return [rewriter.add(SLICE, [inner.operand("x")], record)]


_Row = tuple[int, Dim, Dim, int]


def _joined_rows(node: Node, inner: Node) -> list[_Row] | None:
    """The rows of both slices at once; None where the rows of one axis cannot be joined."""
    rows = {row[0]: row for row in inner.attributes_as(SliceAttributes).rows()}
    for row in node.attributes_as(SliceAttributes).rows():
        axis = row[0]
        if axis not in rows:
            rows[axis] = row
            continue
        size = inner.operand("x").shape[axis]
        found = range(size) if isinstance(size, int) else None
        for _, start, end, step in (rows[axis], row):
            if found is None or not isinstance(start, int) or not isinstance(end, int) or step < 0:
                return None
            found = found[start:end:step]
        if not found:
            return None
        rows[axis] = (axis, found.start, found.stop, found.step)
    return list(rows.values())


#: Operands of a concat times the places that take them over, at most.
_MOST_PARTS = 256


class ConcatChain(Rule[Match]):
    """A concat of a concat along the same axis becomes one concat, where only such concats need the first."""

    name = "concat-chain"
    roots: ClassVar[tuple[Operation, ...]] = (CONCAT,)
    fed_by: ClassVar[Collection[Operation]] = (CONCAT,)

    def match(self, node: Node, graph: Graph) -> Match | Miss | None:
        makers = [made_by(value, CONCAT) for value in node.operands]
        found = [maker for maker in makers if maker is not None and maker.attributes == node.attributes]
        taken = tuple([maker for maker in dict.fromkeys(found) if _is_taken_over(maker)])
        return Match(node, taken) if taken else used_elsewhere(found[0].result) if found else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        inner = {node.result: node.operands for node in match.consumed}
        parts = [part for value in root.operands if value is not None for part in inner.get(value, (value,))]
        return [rewriter.add(CONCAT, parts, root.attributes)]


def _is_taken_over(node: Node) -> bool:
    """True if each user of the concat is one along the same axis."""
    if len(node.operands) * len(node.result.uses) > _MOST_PARTS:
        return False
    return all(user.op is CONCAT and user.attributes == node.attributes for user in node.result.users)


class _ExpandMatch(Match, eq=False, kw_only=True):
    index: int


class DropExpand(Rule[_ExpandMatch]):
    """The expand of an operand that the operation broadcasts anyway goes away.

    ``exact``. Only where the result keeps its shape without it; the expand stays for others that use it.
    """

    name = "drop-expand"
    roots: ClassVar[tuple[Operation, ...]] = (*BINARY, WHERE)
    fed_by: ClassVar[Collection[Operation]] = (EXPAND,)

    def match(self, node: Node, graph: Graph) -> _ExpandMatch | None:
        for index, value in enumerate(node.operands):
            producer = None if value is None else value.producer
            if producer is not None and producer.op is EXPAND and _stands_without(node, index, producer, graph):
                return _ExpandMatch(node, (producer,), index=index)
        return None

    def build(self, match: _ExpandMatch, rewriter: Rewriter) -> Sequence[Value]:
        node = match.root
        operands = list(node.operands)
        operands[match.index] = match.consumed[0].operand("x")
        return rewriter.add_node(node.op, operands, node.attributes).results


def _stands_without(node: Node, index: int, expand: Node, graph: Graph) -> bool:
    operands = list(node.operands)
    operands[index] = expand.operand("x")
    try:
        types, _ = graph.infer(node.op, operands, node.attributes)
    except OpError:
        return False
    return types[0] == node.result.type


class _FillMatch(Match, eq=False, kw_only=True):
    """``number`` is every element of the operand ``index``."""

    index: int
    number: Array


class DropFill(Rule[_FillMatch]):
    """A tensor filled with one number becomes that number where the other operand has the result's shape.

    ``exact``. The operation broadcasts it; zeros or ones of a computed shape are such tensors. Sizes that depend on
    data stay: two of them may become one only later, and the output would not be a fixed point.
    """

    name = "drop-fill"
    roots: ClassVar[tuple[Operation, ...]] = (*BINARY, WHERE)
    fed_by: ClassVar[Collection[Operation]] = (FULL, OPAQUE)

    def match(self, node: Node, graph: Graph) -> _FillMatch | None:
        values = node.operands
        if any(dim_names(size) & graph.dims.provided for size in node.result.shape):
            return None
        for index, value in enumerate(values):
            producer = None if value is None else value.producer
            number = None if producer is None else _filled(producer)
            if producer is None or number is None:
                continue
            if any(v is not None and v is not value and v.shape == node.result.shape for v in values):
                return _FillMatch(node, (producer,), index=index, number=number)
        return None

    def build(self, match: _FillMatch, rewriter: Rewriter) -> Sequence[Value]:
        node = match.root
        operands = list(node.operands)
        dtype = match.consumed[0].result.type.dtype
        operands[match.index] = rewriter.constant(match.number, dtype)
        return rewriter.add_node(node.op, operands, node.attributes).results


def _filled(node: Node) -> Array | None:
    """The number that a node fills a tensor with; None for other nodes."""
    if node.op is FULL:
        a = node.attributes_as(FullAttributes)
        return None if isinstance(a.value, DimExpr) else full_value(a)
    if not is_opaque(node, "ConstantOfShape"):
        return None
    value = attribute_of(node, "value")
    if value is None:
        return np.zeros((), np.float32)
    filled: Array | None = value.array.reshape(-1)[:1].reshape(()) if isinstance(value, Tensor) else None
    return filled
