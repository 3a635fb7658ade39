"""Softmax between moves: it runs over the same groups where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from dmlc.ir import Dim, Node, Operation, product
from dmlc.ops.move import RESHAPES, TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import HARDMAX
from dmlc.passes.emitted import why_no_gain
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.patterns import used_outside
from dmlc.passes.rewrite import Miss

_GROUPED = (SOFTMAX, LOG_SOFTMAX, HARDMAX)


def _between(e: Sketch, node: Node, y: Term, *moves: Operation) -> tuple[Node, Node] | None:
    """The softmax or hardmax before the node, and the move before that."""
    middle = e.made_by(y, *_GROUPED)
    first = None if middle is None else e.made_by(middle.operand("x"), *moves)
    return None if middle is None or first is None else (middle, first)


def _grouped(e: Sketch, node: Node, middle: Node, axes: Sequence[int], *, moves_on: bool) -> Term | Miss:
    """The middle operation over ``axes`` of what the first move moves; ``moves_on`` if a move remains."""
    if middle.op is HARDMAX and list(axes) != sorted(axes):
        return Miss("the first maximum is looked for in the order {0} of the axes", (list(axes),))
    x, over = e.taken[1].operand("x"), tuple(sorted(axes))
    reason = used_outside(e.taken, node) or why_no_gain(e, node, middle.op, x, over, more=int(moves_on))
    attributes: Any = middle.attributes
    return reason or e(middle.op, x, attributes=replace(attributes, axes=over))


@simplifies(TRANSPOSE, fed_by=_GROUPED)
def softmax_of_transpose(e: Sketch, node: Node, y: Term) -> Lowered:
    """transpose(softmax(transpose(x))) becomes a softmax (or hardmax) over another axis, and one transpose or none.

    ``exact``: the same groups, each in the same order.
    """
    found = _between(e, node, y, TRANSPOSE)
    if found is None:
        return KEEP
    middle, first = found
    attributes: Any = middle.attributes
    perm = first.attributes_as(TransposeAttributes).perm
    both = [perm[b] for b in node.attributes_as(TransposeAttributes).perm]
    axes, moves_on = [perm[a] for a in attributes.axes], both != list(range(len(both)))
    out = _grouped(e, node, middle, axes, moves_on=moves_on)
    return out if isinstance(out, Miss) else out.transposed(both)


@simplifies(*RESHAPES, fed_by=_GROUPED)
def softmax_of_reshape(e: Sketch, node: Node, y: Term) -> Lowered:
    """reshape(softmax(reshape(x))) becomes a softmax (or hardmax) over axes of x, and one reshape or none.

    ``exact``: the elements keep their order, and the groups are the same.
    """
    found = _between(e, node, y, *RESHAPES)
    if found is None:
        return KEEP
    middle, x = found[0], found[1].operand("x")
    attributes: Any = middle.attributes
    axes = _same_groups(y.shape, attributes.axes, x.shape)
    if axes is None:
        return Miss("the groups of {0} are not axes of {1}", (middle.op.name, x.type))
    out = _grouped(e, node, middle, axes, moves_on=node.result.shape != x.shape)
    return out if isinstance(out, Miss) else out.reshape(node.result.shape)


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
