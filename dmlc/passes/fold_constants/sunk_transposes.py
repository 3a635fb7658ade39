"""Transposes that go behind an operation: one is left of two."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import BINARY
from dmlc.ops.move import (
    CONCAT,
    RESHAPES,
    SLICE,
    TRANSPOSE,
    ConcatAttributes,
    SliceAttributes,
    TransposeAttributes,
)
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


class OnesOfTranspose(Rule[_TurnedMatch]):
    """A reshape of a transpose that moves axes of size 1 alone becomes part of the transpose.

    ``exact``. tf2onnx turns convolutions of one axis so.
    """

    name = "ones-of-transpose"
    roots = RESHAPES
    fed_by: ClassVar[Collection[Operation]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> _TurnedMatch | None:
        moved = made_by(node.operand("x"), TRANSPOSE)
        if moved is None or moved.operand("x").type.rank != node.result.type.rank:
            return None
        x, (have, want) = moved.operand("x"), (moved.result.shape, node.result.shape)
        if [size for size in have if not is_unit(graph, size)] != [size for size in want if not is_unit(graph, size)]:
            return None
        perm = moved.attributes_as(TransposeAttributes).perm
        moving = iter([axis for axis in perm if not is_unit(graph, x.shape[axis])])
        ones = iter([axis for axis, size in enumerate(x.shape) if is_unit(graph, size)])
        order = tuple([next(ones if is_unit(graph, size) else moving) for size in want])
        return _TurnedMatch(node, (moved,), perm=order)

    def check(self, match: _TurnedMatch, graph: Graph) -> Miss | None:
        return consumed_elsewhere(match)

    def build(self, match: _TurnedMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(TRANSPOSE, [match.consumed[0].operand("x")], TransposeAttributes(perm=match.perm))]


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
        perm = first.attributes_as(TransposeAttributes).perm
        record = cut.attributes_as(SliceAttributes)
        rows = sorted([(perm[axis], start, end, step) for axis, start, end, step in record.rows()])
        axes, starts, ends, steps = zip(*rows, strict=True)
        record = SliceAttributes(starts=starts, ends=ends, axes=axes, steps=steps)
        made = rewriter.add(SLICE, [first.operand("x")], record)
        return [rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=match.perm))]
