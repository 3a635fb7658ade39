"""Choices between integers that are written as products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import bool_
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import NOT
from dmlc.passes.patterns import both_ways, made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _ChoiceMatch(Match, eq=False, kw_only=True):
    """The operands of the ``where``."""

    cond: Value
    true: Value
    false: Value


class ChoiceByProducts(Rule[_ChoiceMatch]):
    """``cast(c) * a + cast(!c) * b`` of integers becomes ``where(c, a, b)``.

    ``exact``. An embedding of Keras counts negative indices from the end so, once tf2onnx has written it.
    """

    name = "choice-by-products"
    roots = (ADD,)
    fed_by = (MUL,)

    def match(self, node: Node, graph: Graph) -> _ChoiceMatch | None:
        first, second = (made_by(value, MUL) for value in node.operands)
        if first is None or second is None or not node.result.type.dtype.is_integer:
            return None
        for left, right in ((first, second), (second, first)):
            for cond, true in _gated(left):
                for other, false in _gated(right):
                    negation = made_by(other, NOT)
                    if negation is not None and negation.operand("x") is cond:
                        return _ChoiceMatch(node, (first, second), cond=cond, true=true, false=false)
        return None

    def check(self, match: _ChoiceMatch, graph: Graph) -> Miss | None:
        if not self.capabilities.takes("Where", match.root.result.type.dtype):
            return Miss("the target has no kernel of Where for {0}", (match.root.result.type.dtype,))
        return next(filter(None, [used_elsewhere(node.result) for node in match.consumed]), None)

    def build(self, match: _ChoiceMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(WHERE, [match.cond, match.true, match.false])]


def _gated(product: Node) -> Iterator[tuple[Value, Value]]:
    """The truth and the number that it lets through, for each factor that is a truth."""
    for gate, number in both_ways(product):
        cast = made_by(gate, CAST)
        if cast is not None and cast.operand("x").type.dtype is bool_:
            yield cast.operand("x"), number
