"""Moves that move nothing, and moves of moves."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
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
