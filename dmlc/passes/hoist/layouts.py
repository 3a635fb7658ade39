"""Rules of ``hoist`` for operations that copy elements: concat and expand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Shape, Value, product
from dmlc.ir.dtype import f16
from dmlc.ops.binary import DIV
from dmlc.ops.move import CONCAT, EXPAND, ConcatAttributes, ExpandAttributes
from dmlc.ops.reduce import (
    EXTREMES,
    GOES_ON,
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCTIONS,
    ReduceAttributes,
    Reduction,
)
from dmlc.ops.rules import reduced_shape
from dmlc.passes.choose_lowering.plan import Sizes, Work
from dmlc.passes.fuse_selection.selections import why_no_extreme
from dmlc.passes.hoist.split import Steps, copy_step, join_step, record_costs, reduction_steps, why_dearer
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

#: reduction -> the reduction of each part, whose results are joined.
_EACH: dict[Operation, Reduction] = {
    REDUCE_MEAN: REDUCE_SUM,
    **{op: op for op, total in GOES_ON.items() if isinstance(op, Reduction) and total.join is not None},
}
#: Without a cost model: a copy of so many elements costs more than the nodes that replace it; for each part.
WORTH = 16384


class _ConcatMatch(Match, eq=False, kw_only=True):
    """A reduction of a concat. ``along`` is true if the parts lie along a reduced axis."""

    along: bool


class ReductionOfConcat(Rule[_ConcatMatch]):
    """reduce_sum(concat(a, b)) becomes reduce_sum(a) + reduce_sum(b), or a concat of the two along an axis that stays.

    ``exact`` along an axis that stays and for max and min; joined sums and products reassociate. Only where the parts
    are large: the copy is saved, and nodes are added, which a cost model weighs where the target has one. Not for
    DirectML, where each of these would be a dispatch, nor where nothing is known of the runtime.
    """

    name = "reduction-of-concat"
    roots: ClassVar[tuple[Operation, ...]] = REDUCTIONS

    def match(self, node: Node, graph: Graph) -> _ConcatMatch | None:
        inner = node.operand("x").producer
        if inner is None or inner.op is not CONCAT:
            return None
        axis = inner.attributes_as(ConcatAttributes).axis
        return _ConcatMatch(node, (inner,), along=axis in node.attributes_as(ReduceAttributes).axes)

    def check(self, match: _ConcatMatch, graph: Graph) -> Miss | None:
        root, inner = match.root, match.consumed[0]
        dtype = root.result.type.dtype
        if self.capabilities.emits_nodes and self.capabilities.costs is None:
            return Miss(
                "on {0} more nodes cost more than the copy that they save", (self.capabilities.target.name,), saves=0
            )
        if match.along:
            if root.op not in _EACH:
                return Miss("{0} of parts do not give {0} of the whole", (root.op.name,))
            if root.op is REDUCE_MEAN and not dtype.is_float:
                return Miss("integer means truncate")
            if root.op not in EXTREMES and dtype is f16:
                return Miss("f16 would be rounded between the parts")
            if root.op is REDUCE_MEAN and _count(root) is None:
                return Miss("the number of elements is not known while compiling")
            if dtype.kind == "bool":
                return Miss("any and all of bool are joined by no max and min")
            if root.op in EXTREMES and why_no_extreme(self.capabilities, root.op, dtype) is not None:
                return why_no_extreme(self.capabilities, root.op, dtype)
        return _why_not_alike(match) or used_elsewhere(inner.result) or self._why_not_worth_it(match, graph)

    def _why_not_worth_it(self, match: _ConcatMatch, graph: Graph) -> Miss | None:
        """The reason against it, where the copy is cheap."""
        if self.capabilities.costs is not None:
            return why_dearer(self.context, match, graph, *_forms(match))
        for part in match.consumed[0].operands:
            assert part is not None
            least = graph.dims.interval(product(part.shape))[0]
            if least < WORTH:
                return Miss(
                    "a part may have only {0} elements, whose copy costs less than more nodes", (least,), part, saves=0
                )
        return None

    def class_of(self, match: _ConcatMatch, graph: Graph, context: PassContext) -> str:
        if not match.along or match.root.op in EXTREMES:
            return EXACT
        if match.root.result.type.dtype.is_float:
            return REASSOCIATES
        return EXACT if context.target.wraps_integers else RANGE

    def build(self, match: _ConcatMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, inner = match.root, match.consumed[0]
        record = root.attributes_as(ReduceAttributes)
        record_costs(self.context, self.name, match, rewriter.graph, *_forms(match))
        parts = [v for v in inner.operands if v is not None]
        if not match.along:
            axis = inner.attributes_as(ConcatAttributes).axis
            if not record.keepdims:
                axis -= sum(a < axis for a in record.axes)
            made = [rewriter.add(root.op, [part], record) for part in parts]
            return [rewriter.add(CONCAT, made, replace(inner.attributes_as(ConcatAttributes), axis=axis))]
        each = _EACH[root.op]
        join = each.base.join
        assert join is not None
        total = reduce(lambda a, b: rewriter.add(join, [a, b]), [rewriter.add(each, [p], record) for p in parts])
        if root.op is REDUCE_MEAN:
            count = np.asarray(_count(root), total.type.dtype.numpy)
            total = rewriter.add(DIV, [total, rewriter.constant(count)])
        return [total]


def _forms(match: _ConcatMatch) -> tuple[Steps, Steps]:
    """The copy and its reduction, and the reductions of the parts with what joins them."""
    root, inner = match.root, match.consumed[0]
    whole, axes = inner.result, root.attributes_as(ReduceAttributes).axes
    dtype, parts = whole.type.dtype, [v for v in inner.operands if v is not None]

    def before(sizes: Sizes) -> list[Work]:
        shape = sizes.of(whole)
        return [copy_step(dtype, math.prod(shape)), *reduction_steps(root.op, dtype, shape, axes)]

    def after(sizes: Sizes) -> list[Work]:
        count = math.prod(sizes.of(root.result))
        each = [step for v in parts for step in reduction_steps(root.op, dtype, sizes.of(v), axes)]
        if not match.along:
            return [*each, copy_step(dtype, count)]
        joins = len(parts) - 1 + (root.op is REDUCE_MEAN)
        return [*each, *[join_step(dtype, count)] * joins]

    return before, after


def _why_not_alike(match: _ConcatMatch) -> Miss | None:
    """The reason against joining parts that are, as far as is proved, reduced to other shapes."""
    record = match.root.attributes_as(ReduceAttributes)
    for part in match.consumed[0].operands:
        assert part is not None
        if match.along and reduced_shape(part.shape, record.axes, record.keepdims) != match.root.result.shape:
            return Miss("the parts are not proved to have one shape", (), part)
    return None


def _count(root: Node) -> int | None:
    """Return the number of elements reduced to one, if it is known."""
    count = product([root.operand("x").shape[a] for a in root.attributes_as(ReduceAttributes).axes])
    return count if isinstance(count, int) else None


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
