"""A transpose before a reduction goes into its axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.reduce import MERGES, REDUCE_MEAN, REDUCTIONS, ReduceAttributes
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.manager import PassContext
from dmlc.passes.reduce_rules.fit import reduce_to
from dmlc.passes.reduce_rules.kinds import order_class
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass

_SELECTIONS = (ARGMAX, ARGMIN)


@dataclass(slots=True, eq=False)
class _ReducedTransposeMatch(Match):
    """``axes`` of the transpose's operand in the order of the reduction, ``kept`` the others in the result's order."""

    axes: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


class DropTranspose(Rule[_ReducedTransposeMatch]):
    """A reduction (or argmax, argmin) of a transpose becomes one over the axes before it, where the others keep order.

    Sums of floats may be added in another order (``reassociates``); max, min and selections are ``exact``, for an index
    over several axes counts them in the order that they have.
    """

    name = "drop-transpose-before-reduction"
    roots = (*REDUCTIONS, ARGMAX, ARGMIN)
    fed_by = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> _ReducedTransposeMatch | None:
        inner = node.operand(0).producer
        if inner is None or inner.op is not TRANSPOSE:
            return None
        attributes: Any = node.attributes
        perm = inner.attributes_as(TransposeAttributes).perm
        if not attributes.axes:
            return None
        axes = tuple([perm[a] for a in attributes.axes])
        kept = tuple([p for i, p in enumerate(perm) if i not in attributes.axes])
        return _ReducedTransposeMatch(node, (inner,), axes, kept)

    def check(self, match: _ReducedTransposeMatch, graph: Graph) -> Miss | None:
        shape = match.consumed[0].operand(0).shape
        moving = [a for a in match.kept if shape[a] != 1]
        if moving != sorted(moving):
            return Miss("the kept axes come out permuted, as {0}: a transpose must remain", (list(match.kept),))
        if match.root.op in _SELECTIONS and list(match.axes) != sorted(match.axes):
            return Miss("the index counts the axes in the order {0}", (list(match.axes),))
        return used_elsewhere(match.consumed[0].result)

    def class_of(self, match: _ReducedTransposeMatch, graph: Graph, context: PassContext) -> str:
        return order_class(match.root)

    def build(self, match: _ReducedTransposeMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        attributes: Any = root.attributes
        x = match.consumed[0].operand(0)
        record = dataclasses.replace(attributes, axes=tuple(sorted(match.axes)))
        return [reduce_to(rewriter, root.op, x, record, root.result.shape)]


class SinkTranspose(Rule[Match]):
    """A transpose between two reductions that merge goes after both, where the axes that stay come out permuted.

    Sums of floats may be added in another order (``reassociates``), the others are ``exact``.
    """

    name = "sink-transpose-between-reductions"
    roots = REDUCTIONS
    fed_by = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand(0).producer
        if inner is None or inner.op is not TRANSPOSE or not node.attributes_as(ReduceAttributes).axes:
            return None
        below = inner.operand(0).producer
        return Match(node, (inner,)) if below is not None and (node.op, below.op) in MERGES else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        between = match.consumed[0]
        if match.root.op is REDUCE_MEAN and match.root.result.type.dtype.is_integer:
            return Miss("integer means truncate, so the mean of means may differ from the mean")
        return used_elsewhere(between.result) or used_elsewhere(between.operand(0))

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return order_class(match.root)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, between = match.root, match.consumed[0]
        attributes = root.attributes_as(ReduceAttributes)
        perm = between.attributes_as(TransposeAttributes).perm
        axes = tuple(sorted([perm[a] for a in attributes.axes]))
        record = dataclasses.replace(attributes, axes=axes)
        made = rewriter.add(root.op, [between.operand(0)], record)
        if attributes.keepdims:
            return [rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=perm))]
        left = [a for a in range(len(perm)) if a not in axes]
        kept = tuple([left.index(p) for p in perm if p not in axes])
        return [rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=kept))]
