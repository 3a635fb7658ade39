"""Softmax between a transpose and the one that undoes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import HARDMAX
from dmlc.passes.manager import EXACT
from dmlc.passes.patterns import made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


class SoftmaxOfTranspose(Rule[Match]):
    """transpose(softmax(transpose(x))) that ends where it began becomes a softmax (or hardmax) over another axis.

    ``exact``: the same groups, each in the same order, for the axis is one.
    """

    name = "softmax-of-transpose"
    roots = (TRANSPOSE,)
    rewrite_class = EXACT

    def match(self, node: Node, graph: Graph) -> Match | None:
        middle = made_by(node.operand(0), SOFTMAX, LOG_SOFTMAX, HARDMAX)
        first = made_by(middle.operand(0), TRANSPOSE) if middle is not None else None
        return None if middle is None or first is None else Match(node, (middle, first))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        middle, first = match.consumed
        perm = first.attributes_as(TransposeAttributes).perm
        back = match.root.attributes_as(TransposeAttributes).perm
        attributes: Any = middle.attributes
        if [perm[b] for b in back] != list(range(len(perm))):
            return Miss("the transposes {0} and {1} do not undo each other", (list(perm), list(back)))
        axes = [perm[a] for a in attributes.axes]
        if middle.op is HARDMAX and axes != sorted(axes):
            return Miss("the first maximum is looked for in the order {0} of the axes", (axes,))
        return used_outside(match.consumed, match.root)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        middle, first = match.consumed
        perm = first.attributes_as(TransposeAttributes).perm
        attributes: Any = middle.attributes
        record = dataclasses.replace(attributes, axes=tuple(sorted(perm[a] for a in attributes.axes)))
        return [rewriter.add(middle.op, [first.operand(0)], record)]
