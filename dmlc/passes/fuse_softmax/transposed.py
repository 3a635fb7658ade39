"""Softmax between moves: it runs over the same groups where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from dmlc.ir import Dim, Graph, Node, Operation, Value, product
from dmlc.ops.move import RESHAPE, RESHAPES, TRANSPOSE, ReshapeAttributes, TransposeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import HARDMAX
from dmlc.passes.emitted import no_gain
from dmlc.passes.manager import EXACT
from dmlc.passes.patterns import made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

_GROUPED = (SOFTMAX, LOG_SOFTMAX, HARDMAX)


class _BetweenMatch(Match, eq=False, kw_only=True):
    """``axes`` are the middle operation's in terms of the first move's operand."""

    axes: tuple[int, ...]


class _BetweenMoves(Rule[_BetweenMatch]):
    """A softmax or hardmax between two moves; ``consumed`` are the middle one and the first move."""

    rewrite_class = EXACT

    def moves_on(self, match: _BetweenMatch) -> bool:
        """Return whether a layout operation remains."""
        raise NotImplementedError

    def check(self, match: _BetweenMatch, graph: Graph) -> Miss | None:
        middle, first = match.consumed
        if middle.op is HARDMAX and list(match.axes) != sorted(match.axes):
            return Miss("the first maximum is looked for in the order {0} of the axes", (list(match.axes),))
        axes, more = tuple(sorted(match.axes)), int(self.moves_on(match))
        outside = used_outside(match.consumed, match.root)
        return outside or no_gain(self.context, match, middle.op, first.operand("x"), axes, graph, more=more)

    def grouped(self, match: _BetweenMatch, rewriter: Rewriter) -> Value:
        """The middle operation, of what the first move moves."""
        middle, first = match.consumed
        attributes: Any = middle.attributes
        record = replace(attributes, axes=tuple(sorted(match.axes)))
        return rewriter.add(middle.op, [first.operand("x")], record)


class SoftmaxOfTranspose(_BetweenMoves):
    """transpose(softmax(transpose(x))) becomes a softmax (or hardmax) over another axis, and one transpose or none.

    ``exact``: the same groups, each in the same order.
    """

    name = "softmax-of-transpose"
    roots: ClassVar[tuple[Operation, ...]] = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> _BetweenMatch | None:
        middle = made_by(node.operand("x"), *_GROUPED)
        first = made_by(middle.operand("x"), TRANSPOSE) if middle is not None else None
        if middle is None or first is None:
            return None
        attributes: Any = middle.attributes
        perm = first.attributes_as(TransposeAttributes).perm
        return _BetweenMatch(node, (middle, first), axes=tuple([perm[a] for a in attributes.axes]))

    def moves_on(self, match: _BetweenMatch) -> bool:
        return _both(match) != tuple(range(match.root.result.type.rank))

    def build(self, match: _BetweenMatch, rewriter: Rewriter) -> Sequence[Value]:
        out = self.grouped(match, rewriter)
        return (
            [rewriter.add(TRANSPOSE, [out], TransposeAttributes(perm=_both(match)))] if self.moves_on(match) else [out]
        )


def _both(match: _BetweenMatch) -> tuple[int, ...]:
    """The two transposes as one."""
    perm = match.consumed[1].attributes_as(TransposeAttributes).perm
    return tuple([perm[b] for b in match.root.attributes_as(TransposeAttributes).perm])


class SoftmaxOfReshape(_BetweenMoves):
    """reshape(softmax(reshape(x))) becomes a softmax (or hardmax) over axes of x, and one reshape or none.

    ``exact``: the elements keep their order, and the groups are the same.
    """

    name = "softmax-of-reshape"
    roots = RESHAPES

    def match(self, node: Node, graph: Graph) -> _BetweenMatch | Miss | None:
        middle = made_by(node.operand("x"), *_GROUPED)
        first = made_by(middle.operand("x"), *RESHAPES) if middle is not None else None
        if middle is None or first is None:
            return None
        attributes: Any = middle.attributes
        axes = _same_groups(middle.result.shape, attributes.axes, first.operand("x").shape)
        if axes is None:
            return Miss("the groups of {0} are not axes of {1}", (middle.op.name, first.operand("x").type))
        return _BetweenMatch(node, (middle, first), axes=axes)

    def moves_on(self, match: _BetweenMatch) -> bool:
        return match.root.result.shape != match.consumed[1].operand("x").shape

    def build(self, match: _BetweenMatch, rewriter: Rewriter) -> Sequence[Value]:
        out = self.grouped(match, rewriter)
        shape = match.root.result.shape
        return [rewriter.add(RESHAPE, [out], ReshapeAttributes(shape=shape))] if self.moves_on(match) else [out]


def _same_groups(shape: Sequence[Dim], axes: tuple[int, ...], other: Sequence[Dim]) -> tuple[int, ...] | None:
    """The fewest neighbouring axes of ``other`` that group its elements as ``axes`` group the elements of ``shape``."""
    if not axes or axes[-1] - axes[0] != len(axes) - 1:
        return None
    before, size = product(shape[: axes[0]]), product(shape[axes[0] : axes[-1] + 1])
    found: tuple[int, ...] | None = None
    for first in range(len(other)):
        for last in range(first + 1, len(other) + 1):
            fits = product(other[:first]) == before and product(other[first:last]) == size
            if fits and (found is None or last - first < len(found)):
                found = tuple(range(first, last))
    return found
