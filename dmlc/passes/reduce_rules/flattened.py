"""A reduction over an axis that a reshape made of several is one over those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dmlc.ir import Graph, Node, Shape, Value, product
from dmlc.ops.move import RESHAPE
from dmlc.ops.reduce import REDUCTIONS, ReduceAttributes
from dmlc.ops.rules import reduced_shape
from dmlc.passes.manager import PassContext
from dmlc.passes.reduce_rules.kinds import order_class
from dmlc.passes.reduce_rules.moves import reshape_ones
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


@dataclass(slots=True, eq=False)
class _Found(Match):
    axes: tuple[int, ...] | None = None


class DropFlatten(Rule[_Found]):
    """A reduction over an axis that a reshape merged of neighbours becomes a multi-axis reduction of what was reshaped.

    Sums of floats may be added in another order (``reassociates``), the others are ``exact``.
    """

    name = "drop-flatten-before-reduction"
    roots = REDUCTIONS

    def __init__(self, max_rank: int | None = None) -> None:
        self.max_rank = max_rank

    def match(self, node: Node, graph: Graph) -> _Found | None:
        inner = node.operand(0).producer
        axes = node.attributes_as(ReduceAttributes).axes
        if inner is None or inner.op is not RESHAPE or not axes:
            return None
        old, new = inner.operand(0).shape, inner.result.shape
        if len(old) <= len(new) or (self.max_rank is not None and len(old) > self.max_rank):
            return None
        groups = axis_groups(old, new)
        return _Found(node, (inner,), None if groups is None else _merged(groups, axes))

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        if match.axes is None:
            types = (inner.operand(0).type, inner.result.type)
            return Miss("the reshape from {0} to {1} does more than merge axes that are reduced", types)
        return used_elsewhere(inner.result)

    def class_of(self, match: _Found, graph: Graph, context: PassContext) -> str:
        return order_class(match.root)

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        assert match.axes is not None
        root, x = match.root, match.consumed[0].operand(0)
        target = root.result.shape
        keepdims = reduced_shape(x.shape, match.axes, True) == target
        made = rewriter.add(root.op, [x], ReduceAttributes(axes=match.axes, keepdims=keepdims))
        return [reshape_ones(rewriter, made, target)]


def axis_groups(old: Shape, new: Shape) -> list[tuple[int, int]] | None:
    """For each new axis the old ones (first, last + 1) that it was made of; None where axes were split or regrouped."""
    out: list[tuple[int, int]] = []
    start = 0
    for index, size in enumerate(new):
        last = len(old) if index == len(new) - 1 else start
        while last < len(old) and product(old[start:last]) != size:
            last += 1
        if last == start and size == 1:
            out.append((start, start))
            continue
        if product(old[start:last]) != size:
            return None
        out.append((start, last))
        start = last
    return out if start == len(old) else None


def _merged(groups: Sequence[tuple[int, int]], axes: Sequence[int]) -> tuple[int, ...] | None:
    """The old axes that are reduced; None where a kept axis was made of several."""
    if any(last - first > 1 for i, (first, last) in enumerate(groups) if i not in axes):
        return None
    return tuple(sorted([old for a in axes for old in range(*groups[a])]))
