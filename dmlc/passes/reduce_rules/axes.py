"""Rules about one reduction's axes: their order, and those of size 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import MUL
from dmlc.ops.move import SQUEEZE, AxesAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.reduce import REDUCE_SUM_SQUARE, REDUCTIONS, ReduceAttributes, reduction_of
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.reduce_rules.kinds import elementwise_class, order_class
from dmlc.passes.reduce_rules.moves import is_unit
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.records import dataclass

#: Operations that treat several axes together.
OVER_AXES = (*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX)


@dataclass(slots=True, eq=False)
class AxesMatch(Match):
    """The axes that the operation shall have."""

    axes: tuple[int, ...] = ()


def with_axes(match: AxesMatch, rewriter: Rewriter) -> Sequence[Value]:
    """The root again, over other axes."""
    attributes: Any = match.root.attributes
    record = dataclasses.replace(attributes, axes=match.axes)
    return rewriter.add_node(match.root.op, match.root.operands, record).results


class SortAxes(Rule[AxesMatch]):
    """Axes become non-negative, sorted and unique (calls make them so; hand-made graphs may not)."""

    name = "sort-axes"
    roots = (*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX)

    def match(self, node: Node, graph: Graph) -> AxesMatch | None:
        attributes: Any = node.attributes
        axes: tuple[int, ...] = attributes.axes
        rank = node.operand(0).type.rank
        if len(axes) < 2 and (not axes or axes[0] >= 0):
            return None
        ordered = tuple(sorted({a + rank if a < 0 else a for a in axes}))
        return None if ordered == axes else AxesMatch(node, axes=ordered)

    def build(self, match: AxesMatch, rewriter: Rewriter) -> Sequence[Value]:
        return with_axes(match, rewriter)


class DropUnitAxes(Rule[AxesMatch]):
    """Axes of size 1 leave the list, but never the last one.

    With ``keepdims=false`` they stay: taking one out of the list would cost a squeeze. Kernels choose by the list how
    they go over the elements, so that sums of floats are added up in another order: ``reassociates``.
    """

    name = "drop-unit-axes"
    roots = (*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX)

    def class_of(self, match: AxesMatch, graph: Graph, context: PassContext) -> str:
        return order_class(match.root) if match.root.op in REDUCTIONS else EXACT

    def match(self, node: Node, graph: Graph) -> AxesMatch | None:
        attributes: Any = node.attributes
        axes: tuple[int, ...] = attributes.axes
        if len(axes) < 2 or not getattr(attributes, "keepdims", True):
            return None
        shape = node.operand(0).shape
        kept = tuple([a for a in axes if not is_unit(graph, shape[a])])
        return AxesMatch(node, axes=kept) if kept and len(kept) < len(axes) else None

    def build(self, match: AxesMatch, rewriter: Rewriter) -> Sequence[Value]:
        return with_axes(match, rewriter)


class DropEmptyReduction(Rule[Match]):
    """A reduction over no axes, or only over axes of size 1, becomes its elementwise part, if it has one."""

    name = "drop-empty-reduction"
    roots = REDUCTIONS

    def match(self, node: Node, graph: Graph) -> Match | None:
        shape = node.operand(0).shape
        axes = node.attributes_as(ReduceAttributes).axes
        for axis in axes:
            if not is_unit(graph, shape[axis]):
                return None
        return Match(node)

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return elementwise_class(reduction_of(match.root))

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        attributes = root.attributes_as(ReduceAttributes)
        value = root.operand(0)
        alone = reduction_of(root).alone
        if root.op is REDUCE_SUM_SQUARE:
            value = rewriter.add(MUL, [value, value])
        elif alone is not None and value.type.dtype.kind != "uint":  # an unsigned number is its own magnitude
            value = rewriter.add(alone, [value])
        if attributes.axes and not attributes.keepdims:
            value = rewriter.add(SQUEEZE, [value], AxesAttributes(axes=attributes.axes))
        return [value]
