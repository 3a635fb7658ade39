"""Transposes that go behind an operation: one is left of two."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Shape, Value
from dmlc.ops.binary import BINARY
from dmlc.ops.move import (
    CONCAT,
    RESHAPE,
    RESHAPES,
    SLICE,
    TRANSPOSE,
    ConcatAttributes,
    ReshapeAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from dmlc.passes.fold_constants.layouts import order_of_blocks
from dmlc.passes.layouts import is_unit
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, consumed_elsewhere


class _TurnedMatch(Match, eq=False, kw_only=True):
    """``perm`` is the order of the axes of the one transpose that stays."""

    perm: tuple[int, ...]


class TransposesTogether(Rule[_TurnedMatch]):
    """add(transpose(a), transpose(b)) in one order becomes transpose(add(a, b)); so do the parts of a concat.

    ``exact``. Other operands are single numbers.
    """

    name = "transposes-together"
    roots: ClassVar[tuple[Operation, ...]] = (*BINARY, CONCAT)
    fed_by: ClassVar[Collection[Operation]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> _TurnedMatch | None:
        moved = [made_by(value, TRANSPOSE) for value in node.operands if not _is_number(node, value)]
        found = tuple(dict.fromkeys([each for each in moved if each is not None]))
        orders = {each.attributes_as(TransposeAttributes).perm for each in found}
        if len(found) < 2 or None in moved or len(orders) != 1:
            return None
        return _TurnedMatch(node, found, perm=orders.pop())

    def check(self, match: _TurnedMatch, graph: Graph) -> Miss | None:
        return consumed_elsewhere(match)

    def build(self, match: _TurnedMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, record = match.root, match.root.attributes
        if isinstance(record, ConcatAttributes):
            record = replace(record, axis=match.perm[record.axis])
        before = {each.result: each.operand("x") for each in match.consumed}
        made = rewriter.add(root.op, [None if v is None else before.get(v, v) for v in root.operands], record)
        return [rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=match.perm))]


def _is_number(node: Node, value: Value | None) -> bool:
    return value is None or (node.op is not CONCAT and not value.shape)


class TransposesAroundSlice(Rule[_TurnedMatch]):
    """A slice between two transposes is cut before both, which become one.

    ``exact``.
    """

    name = "transposes-around-slice"
    roots: ClassVar[tuple[Operation, ...]] = (TRANSPOSE,)
    fed_by: ClassVar[Collection[Operation]] = (SLICE,)

    def match(self, node: Node, graph: Graph) -> _TurnedMatch | None:
        cut = made_by(node.operand("x"), SLICE)
        first = None if cut is None else made_by(cut.operand("x"), TRANSPOSE)
        if cut is None or first is None:
            return None
        perm = first.attributes_as(TransposeAttributes).perm
        order = tuple([perm[axis] for axis in node.attributes_as(TransposeAttributes).perm])
        return _TurnedMatch(node, (cut, first), perm=order)

    def check(self, match: _TurnedMatch, graph: Graph) -> Miss | None:
        return consumed_elsewhere(match)

    def build(self, match: _TurnedMatch, rewriter: Rewriter) -> Sequence[Value]:
        cut, first = match.consumed
        perm, record = first.attributes_as(TransposeAttributes).perm, cut.attributes_as(SliceAttributes)
        axes = tuple([perm[axis] for axis, *_ in record.rows()])
        made = rewriter.add(SLICE, [first.operand("x")], replace(record, axes=axes))
        return [rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=match.perm))]


class _ReshapedMatch(Match, eq=False, kw_only=True):
    """The operand becomes ``shape``, then its axes get the order ``perm``; None where they stay."""

    shape: Shape
    perm: tuple[int, ...] | None


class TransposesAroundReshape(Rule[_ReshapedMatch]):
    """A reshape between two transposes that splits or merges axes, each by itself, comes before both.

    ``exact``. One transpose is left, or none. A map of rows that are pixels is the same map where both move channels.
    """

    name = "transposes-around-reshape"
    roots: ClassVar[tuple[Operation, ...]] = (TRANSPOSE,)
    fed_by: ClassVar[Collection[Operation]] = RESHAPES

    def match(self, node: Node, graph: Graph) -> _ReshapedMatch | None:
        between = made_by(node.operand("x"), *RESHAPES)
        first = None if between is None else made_by(between.operand("x"), TRANSPOSE)
        if between is None or first is None:
            return None
        middle, last, out = first.result.shape, between.result.shape, node.result.shape
        if 0 in last or sum(not isinstance(size, int) for size in last) > 1:  # a reshape infers one size
            return None
        x, old = first.operand("x"), first.attributes_as(TransposeAttributes).perm
        before = [axis for axis in old if not is_unit(graph, x.shape[axis])]
        back = sorted(range(len(before)), key=before.__getitem__)
        moved = [axis for axis, size in enumerate(last) if not is_unit(graph, size)]
        order = order_of_blocks([last[a] for a in moved], [d for d in middle if not is_unit(graph, d)], back)
        if order is None:
            return None
        here = [moved[i] for i in order]  # the axes of the reshape's result, in the order of the operand
        final = [axis for axis in node.attributes_as(TransposeAttributes).perm if axis in moved]
        if final == here:
            return _ReshapedMatch(node, (between, first), shape=out, perm=None)
        ones = [axis for axis, size in enumerate(out) if is_unit(graph, size)]
        shape = (*[1] * len(ones), *[last[axis] for axis in here])
        places = iter(final)
        perm = tuple([ones.index(a) if a in ones else len(ones) + here.index(next(places)) for a in range(len(out))])
        return _ReshapedMatch(node, (between, first), shape=shape, perm=perm)

    def check(self, match: _ReshapedMatch, graph: Graph) -> Miss | None:
        return consumed_elsewhere(match)

    def build(self, match: _ReshapedMatch, rewriter: Rewriter) -> Sequence[Value]:
        x = match.consumed[1].operand("x")
        y = rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=match.shape))
        return [y if match.perm is None else rewriter.add(TRANSPOSE, [y], TransposeAttributes(perm=match.perm))]
