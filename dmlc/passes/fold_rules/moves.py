"""Moves that move nothing, and moves of moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Dim, Graph, Node, Tensor, Value
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.move import (
    CONCAT,
    EXPAND,
    PAD,
    RESHAPE,
    SLICE,
    SPLIT,
    SQUEEZE,
    TRANSPOSE,
    UNSQUEEZE,
    AxesAttributes,
    PadAttributes,
    ReshapeAttributes,
    SliceAttributes,
    SplitAttributes,
    TransposeAttributes,
)
from dmlc.passes.reduce_rules.moves import ones_between, reshape_ones
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.records import dataclass


class StandStill(Rule[Match]):
    """A move that moves nothing becomes its operand: a transpose in the same order, a slice of all, and the like."""

    name = "move-nothing"
    roots = (TRANSPOSE, RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND, CONCAT, SPLIT, SLICE, PAD)

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
    roots = (SPLIT,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if len(node.results) < 2:
            return None
        axis, whole = node.attributes_as(SplitAttributes).axis, node.operand(0).type
        parts = [value for value in node.results if value.shape[axis] != 0]
        empty = [value for value in node.results if value.shape[axis] == 0 and value.uses]
        stays = len(parts) == 1 and parts[0].type == whole
        return Match(node) if stays and all(isinstance(d, int) for v in empty for d in v.shape) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.root.operand(0)
        return [x if v.type == x.type or not v.uses else _empty(v, rewriter) for v in root.results]


def _empty(value: Value, rewriter: Rewriter) -> Value:
    array = np.zeros([int(str(size)) for size in value.shape], value.type.dtype.numpy)
    return rewriter.add(CONSTANT, (), ConstantAttributes(value=Tensor(array)))


_RESHAPES = frozenset((RESHAPE, SQUEEZE, UNSQUEEZE))


@dataclass(slots=True, eq=False)
class Chain(Match):
    """``back`` is set where the last shape is that of the first value."""

    back: bool = False


class ReshapeChain(Rule[Chain]):
    """A reshape, squeeze or unsqueeze of one becomes a single one, or nothing at all."""

    name = "reshape-chain"
    roots = (RESHAPE, SQUEEZE, UNSQUEEZE)

    def match(self, node: Node, graph: Graph) -> Chain | None:
        inner = node.operand(0).producer
        if inner is None or inner.op not in _RESHAPES:
            return None
        if inner.operand(0).type == node.result.type:
            return Chain(node, (inner,), back=True)
        if inner.op is node.op is SQUEEZE or RESHAPE in (inner.op, node.op):
            return Chain(node, (inner,))
        # Squeezes and unsqueezes of symbolic shapes are plainer than a reshape, so they become one of their own.
        ones = ones_between(graph, inner.operand(0).shape, node.result.shape)
        return None if ones is None or all(ones) else Chain(node, (inner,))

    def build(self, match: Chain, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        x, root = inner.operand(0), match.root
        if match.back:
            return [x]
        if root.op is inner.op is SQUEEZE:
            first = inner.attributes_as(AxesAttributes).axes
            left = [a for a in range(x.type.rank) if a not in first]
            both = sorted({*first, *(left[a] for a in root.attributes_as(AxesAttributes).axes)})
            return [rewriter.add(SQUEEZE, [x], AxesAttributes(axes=tuple(both)))]
        if RESHAPE not in (root.op, inner.op):
            return [reshape_ones(rewriter, x, root.result.shape)]
        return [rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=root.result.shape))]


class TransposeChain(Rule[Match]):
    """A transpose of a transpose becomes one, or nothing."""

    name = "transpose-chain"
    roots = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand(0).producer
        return Match(node, (inner,)) if inner is not None and inner.op is TRANSPOSE else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        first = inner.attributes_as(TransposeAttributes).perm
        perm = tuple([first[a] for a in match.root.attributes_as(TransposeAttributes).perm])
        x = inner.operand(0)
        if perm == tuple(range(len(perm))):
            return [x]
        return [rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=perm))]


class TransposeOfOnes(Rule[Match]):
    """A transpose beside a reshape becomes a reshape where it only moves axes of size 1."""

    name = "transpose-of-ones"
    roots = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        x = node.operand(0)
        kept = [axis for axis in node.attributes_as(TransposeAttributes).perm if x.shape[axis] != 1]
        if kept != sorted(kept):
            return None
        maker, users = x.producer, node.result.users
        before = maker is not None and maker.op in _RESHAPES
        after = bool(users) and all(user.op in _RESHAPES for user in users)
        if not before and not after:
            return None
        have = maker.operand(0).shape if before and maker is not None else x.shape
        want = users[0].result.shape if after and len(users) == 1 else node.result.shape
        computed = [d for i, d in enumerate(want) if not isinstance(d, int) and have[i : i + 1] != (d,)]
        return Match(node) if len(computed) < 2 else None  # a reshape infers one size

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        return [rewriter.add(RESHAPE, [root.operand(0)], ReshapeAttributes(shape=root.result.shape))]


class SliceChain(Rule[Match]):
    """A slice of a slice becomes one slice, where no other operation needs the first."""

    name = "slice-chain"
    roots = (SLICE,)
    fed_by = (SLICE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand(0).producer
        if inner is None or inner.op is not SLICE or any(user.op is not SLICE for user in inner.result.users):
            return None
        return Match(node, (inner,)) if _joined_rows(node, inner) is not None else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        rows = _joined_rows(match.root, inner)
        assert rows is not None
        axes, starts, ends, steps = zip(*rows, strict=True)
        record = SliceAttributes(starts=starts, ends=ends, axes=axes, steps=steps)
        return [rewriter.add(SLICE, [inner.operand(0)], record)]


_Row = tuple[int, Dim, Dim, int]


def _joined_rows(node: Node, inner: Node) -> list[_Row] | None:
    """The rows of both slices at once; None where those of one axis cannot be joined."""
    rows = {row[0]: row for row in inner.attributes_as(SliceAttributes).rows()}
    for row in node.attributes_as(SliceAttributes).rows():
        axis = row[0]
        if axis not in rows:
            rows[axis] = row
            continue
        size = inner.operand(0).shape[axis]
        found = range(size) if isinstance(size, int) else None
        for _, start, end, step in (rows[axis], row):
            if found is None or not isinstance(start, int) or not isinstance(end, int) or step < 0:
                return None
            found = found[start:end:step]
        if not found:
            return None
        rows[axis] = (axis, found.start, found.stop, found.step)
    return list(rows.values())
