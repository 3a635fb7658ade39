"""A value over its norm."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import ADD, DIV, MAX, MUL, POW
from dmlc.ops.choose import CLIP
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import RECIPROCAL, SQRT
from dmlc.ops.normalize import LP_NORM, LpNormAttributes
from dmlc.ops.reduce import REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, REDUCTIONS, ReduceAttributes
from dmlc.ops.rules import reduced_shape
from dmlc.passes.emitted import NodeCount
from dmlc.passes.manager import RANGE, REASSOCIATES
from dmlc.passes.patterns import Seen, both_ways, inverse_root_of, made_by, reciprocal_of, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.records import dataclass

#: How many elementwise nodes may stand between a reduction and what is divided by it: an epsilon, a root, a bound.
_MOST_STEPS = 4


@dataclass(slots=True, eq=False)
class _NormDivisionMatch(Match):
    """``a`` is divided by ``below``, or by the root of the sum of squares that is ``squares``."""

    a: Value | None = None
    below: Value | None = None
    squares: Node | None = None


class DivideByNorm(Rule[_NormDivisionMatch]):
    """x * (1 / n) becomes x / n, and x * sum_square ** -0.5 becomes x / reduce_l2, where n is made of a reduction.

    ``reassociates``: it rounds once where there were two roundings.
    """

    name = "divide-by-norm"
    roots = (MUL,)
    fed_by = (RECIPROCAL, DIV, POW, SQRT)
    rewrite_class = REASSOCIATES

    def __init__(self, count: NodeCount) -> None:
        self.count = count

    def match(self, node: Node, graph: Graph) -> _NormDivisionMatch | None:
        if not node.result.type.dtype.is_float:
            return None
        for a, b in both_ways(node):
            seen: Seen = []
            squares = made_by(inverse_root_of(b, seen), REDUCE_SUM_SQUARE)
            if squares is not None:
                return _NormDivisionMatch(node, (*seen, squares), a, None, squares)
            seen = []
            below = reciprocal_of(b, seen)
            if below is not None and _is_of_reduction(below):
                return _NormDivisionMatch(node, tuple(seen), a, below)
        return None

    def check(self, match: _NormDivisionMatch, graph: Graph) -> Miss | None:
        assert match.a is not None
        outside = used_outside(match.consumed, match.root)
        if outside is not None:
            return outside
        if match.squares is None:
            return self.count.no_gain(match, DIV, match.a, (), graph)
        x, axes = match.squares.operand(0), match.squares.attributes_as(ReduceAttributes).axes
        if not axes:
            return Miss("it reduces over no axis")
        more = self.count.of(DIV, match.a, (), graph)
        return self.count.no_gain(match, REDUCE_L2, x, axes, graph, more=more)

    def build(self, match: _NormDivisionMatch, rewriter: Rewriter) -> Sequence[Value]:
        below = match.below
        if match.squares is not None:
            below = rewriter.add(REDUCE_L2, [match.squares.operand(0)], match.squares.attributes)
        return [rewriter.add(DIV, [match.a, below])]


def _is_of_reduction(value: Value) -> bool:
    """Return whether the value is a reduction, possibly with a constant added, clipped, or under a root."""
    for _ in range(_MOST_STEPS):
        node = value.producer
        if node is None:
            return False
        if node.op in REDUCTIONS:
            return True
        if node.op in (SQRT, CLIP):
            value = node.operand(0)
        elif node.op in (ADD, MAX):
            value = next((x for x, other in both_ways(node) if constant_of(other) is not None), value)
        else:
            return False
    return False


class NormalizeByNorm(Rule[Match]):
    """x / reduce_l2(x), and x / reduce_l1(x), over one axis become lp_norm(x).

    ``range``: over a group of zeros the division gives NaN, the operator 0.
    """

    name = "normalize-by-norm"
    roots = (DIV,)
    fed_by = (REDUCE_L2, REDUCE_L1)
    rewrite_class = RANGE

    def __init__(self, count: NodeCount) -> None:
        self.count = count

    def match(self, node: Node, graph: Graph) -> Match | None:
        norm = made_by(node.operand(1), REDUCE_L2, REDUCE_L1)
        if norm is None or norm.operand(0) is not node.operand(0) or not node.result.type.dtype.is_float:
            return None
        return Match(node, (norm,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        norm = match.consumed[0]
        x, axes = norm.operand(0), norm.attributes_as(ReduceAttributes).axes
        if len(axes) != 1:
            return Miss("the norm is over axes {0}, and the operator takes one", (list(axes),))
        if norm.result.shape != reduced_shape(x.shape, axes, True):
            return Miss("the norm over axis {0} does not keep it", axes)
        return used_outside(match.consumed, match.root) or self.count.no_gain(match, LP_NORM, x, axes, graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        norm = match.consumed[0]
        (axis,) = norm.attributes_as(ReduceAttributes).axes
        record = LpNormAttributes(axis=axis, p=2 if norm.op is REDUCE_L2 else 1)
        return [rewriter.add(LP_NORM, [norm.operand(0)], record)]
