"""A growing function does not move the largest element, but may make others equal to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dmlc.ir import Graph, Node, Value
from dmlc.ops.elementwise import EXP, LOG, SIGMOID, SQRT, TANH
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import ARGMAX, ARGMIN, ArgAttributes
from dmlc.passes.manager import RANGE
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

_GROWING = (EXP, LOG, SIGMOID, SQRT, TANH, SOFTMAX, LOG_SOFTMAX)


class DropMonotone(Rule[Match]):
    """argmax(softmax(x)) becomes argmax(x), and so for exp, log, sigmoid, sqrt, tanh and log_softmax.

    ``range``: rounding, saturation and NaN make ties where x has none, and the index moves.
    """

    name = "drop-monotone-before-selection"
    roots = (ARGMAX, ARGMIN)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), *_GROWING)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        (inner,) = match.consumed
        attributes: Any = inner.attributes
        wanted = match.root.attributes_as(ArgAttributes).axes
        if inner.op in (SOFTMAX, LOG_SOFTMAX) and not set(wanted) <= set(attributes.axes):
            return Miss("{0} is over axes {1}, {2} over {3}", (
                inner.op.name, list(attributes.axes), match.root.op.name, list(wanted)))  # fmt: skip
        return used_elsewhere(inner.result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(match.root.op, [match.consumed[0].operand(0)], match.root.attributes)]
