"""Rules of ``hoist`` for operations that copy elements: concat and expand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Shape, Value
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.reduce import (
    REDUCTIONS,
    ReduceAttributes,
)
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _BroadcastMatch(Match, eq=False, kw_only=True):
    """``shape`` is what the operand is broadcast to before: only the reduced axes."""

    shape: Shape


class ReductionBeforeExpand(Rule[_BroadcastMatch]):
    """reduce_sum(expand(x)) becomes expand(reduce_sum(x)), where axes are broadcast that are not reduced.

    ``exact``: equal groups have equal results. An operand that is broadcast along reduced axes stays
    so, and ``reduction-of-expand`` takes that away.
    """

    name = "reduction-before-expand"
    roots: ClassVar[tuple[Operation, ...]] = REDUCTIONS

    def match(self, node: Node, graph: Graph) -> _BroadcastMatch | None:
        inner = node.operand("x").producer
        if inner is None or inner.op is not EXPAND:
            return None
        axes = node.attributes_as(ReduceAttributes).axes
        old, new = inner.operand("x").shape, inner.result.shape
        before = (*[1] * (len(new) - len(old)), *old)
        shape = tuple([size if axis in axes else before[axis] for axis, size in enumerate(new)])
        return None if shape == new else _BroadcastMatch(node, (inner,), shape=shape)

    def check(self, match: _BroadcastMatch, graph: Graph) -> Miss | None:
        inner, axes = match.consumed[0], match.root.attributes_as(ReduceAttributes).axes
        x = inner.operand("x")
        offset = len(match.shape) - x.type.rank
        own = [a for a in axes if a >= offset and x.shape[a - offset] == match.shape[a] != 1]
        if own and any(a not in own and match.shape[a] != 1 for a in axes):
            return Miss("axes {0} are reduced and others broadcast: that would be one node more", (own,))
        return used_elsewhere(inner.result)

    def build(self, match: _BroadcastMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.consumed[0].operand("x")
        record = root.attributes_as(ReduceAttributes)
        offset = len(match.shape) - x.type.rank
        if match.shape[offset:] == x.shape and all(a >= offset for a in record.axes):
            record = replace(record, axes=tuple([a - offset for a in record.axes]))
        elif match.shape != x.shape:
            x = rewriter.add(EXPAND, [x], ExpandAttributes(shape=match.shape))
        reduced = rewriter.add(root.op, [x], record)
        return [rewriter.add(EXPAND, [reduced], ExpandAttributes(shape=root.result.shape))]
