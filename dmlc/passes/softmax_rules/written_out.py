"""Softmax and its logarithm written out: powers over their sum, with the maximum taken out or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import DIV, MAX, MUL, SUB
from dmlc.ops.elementwise import EXP, LOG
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, AxesAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_MAX, REDUCE_SUM, ReduceAttributes
from dmlc.ops.rules import reduced_shape
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import (
    Seen,
    both_ways,
    difference_of,
    made_by,
    quotient_of,
    scalar_of,
    used_outside,
)
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

#: Moves between a reduction and the operand that it is combined with again.
_MOVES = (RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND)


@dataclass(slots=True, eq=False)
class _Found(Match):
    """``x`` is what softmax is taken of; ``why_not`` says what is wrong with the rest of the pattern."""

    x: Value | None = None
    axes: tuple[int, ...] = ()
    shifted: bool = False
    why_not: str = ""


class WrittenOut(Rule[_Found]):
    """exp(x - m) / sum(exp(x - m)) becomes softmax(x), (x - m) - log(sum(exp(x - m))) becomes log_softmax(x).

    ``reassociates`` with the maximum m taken out. Without it powers may overflow to NaN, which softmax does not:
    ``range``.
    """

    name = "written-out-softmax"
    roots = (DIV, MUL, SUB)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> _Found | None:
        if not node.result.type.dtype.is_float:
            return None
        return _log_softmax(node, graph) if node.op is SUB else _softmax(node, graph)

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        if match.why_not:
            return Miss(match.why_not)
        assert match.x is not None
        if match.x.shape != match.root.result.shape:
            return Miss("{0} is stretched", (match.x.type,), match.x)
        return used_outside(match.consumed, match.root)

    def class_of(self, match: _Found, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if match.shifted else RANGE

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        op = LOG_SOFTMAX if match.root.op is SUB else SOFTMAX
        return [rewriter.add(op, [match.x], AxesAttributes(axes=match.axes))]


def _softmax(node: Node, graph: Graph) -> _Found | None:
    seen: Seen = []
    parts = quotient_of(node.result, seen)
    if parts is None:
        return None
    powers, below = made_by(parts[0], EXP), _reduction(parts[1], node.result, seen, (REDUCE_SUM,))
    if powers is None or below is None or made_by(below.operand(0), EXP) is None:
        return None
    seen.append(powers)
    if below.operand(0) is not parts[0]:
        return _Found(node, tuple(_inside(seen, node)), why_not="numerator and denominator are not the same powers")
    return _shifted(node, powers.operand(0), below, seen)


def _log_softmax(node: Node, graph: Graph) -> _Found | None:
    seen: Seen = []
    total = _reduction(node.operand(1), node.result, seen, (REDUCE_LOG_SUM, LOG))
    if total is not None and total.op is LOG:
        total = _reduction(total.operand(0), node.result, seen, (REDUCE_SUM,))
    powers = made_by(total.operand(0), EXP) if total is not None else None
    if total is None or powers is None:
        return None
    seen.append(powers)
    if powers.operand(0) is not node.operand(0):
        return None
    return _shifted(node, node.operand(0), total, seen)


def _shifted(root: Node, inner: Value, total: Node, seen: Seen) -> _Found:
    """The rest of the pattern: what the powers are taken of, and over which axes."""
    axes = total.attributes_as(ReduceAttributes).axes
    parts = difference_of(inner, seen)
    peak = None if parts is None else _reduction(parts[1], inner, seen, (REDUCE_MAX,))
    if parts is None or peak is None or peak.operand(0) is not parts[0]:
        if parts is not None:
            seen.pop()  # the difference is what softmax is taken of
        why_not = "" if axes else "it sums over no axis"
        return _Found(root, tuple(_inside(seen, root)), inner, axes, False, why_not)
    other = peak.attributes_as(ReduceAttributes).axes
    why_not = "" if axes and other == axes else f"the maximum is over axes {list(other)}, the sum over {list(axes)}"
    return _Found(root, tuple(_inside(seen, root)), parts[0], axes, True, why_not)


def _inside(seen: Seen, root: Node) -> list[Node]:
    return list(dict.fromkeys([node for node in seen if node is not root]))


def _reduction(value: Value, whole: Value, seen: Seen, ops: tuple[object, ...]) -> Node | None:
    """The reduction that the value is, through moves that put its axes back and a maximum with -inf.

    The value must stand at the place of each reduced axis: its shape is that of the reduction with its axes kept, or
    it is stretched to the shape of ``whole``.
    """
    mine: Seen = []
    node = value.producer
    while node is not None and node.op not in ops:
        if node.op in _MOVES:
            step = node.operand(0)
        else:
            beside = _beside_lowest(node)
            if beside is None:
                return None
            step = beside
        mine.append(node)
        node = step.producer
    if node is None or not (_back_in_place(node, mine, value, whole) if mine else _stands_in_place(node)):
        return None
    seen.extend((*mine, node))
    return node


def _stands_in_place(node: Node) -> bool:
    """Whether the reduced axes are kept, or all are gone: else the result stretches along others of the same size."""
    a = node.attributes
    if not isinstance(a, ReduceAttributes):
        return True
    return not node.result.shape or node.result.shape == reduced_shape(node.operand(0).shape, a.axes, True)


def _beside_lowest(node: Node) -> Value | None:
    """``x`` of max(-inf, x), which does nothing."""
    if node.op is not MAX:
        return None
    for x, other in both_ways(node):
        if scalar_of(other) == -inf and x.shape == node.result.shape:
            return x
    return None


def _back_in_place(reduction: Node, moves: Sequence[Node], value: Value, whole: Value) -> bool:
    a = reduction.attributes
    if not isinstance(a, ReduceAttributes):
        return all(node.op is EXPAND or node.op is MAX for node in moves)
    kept = reduced_shape(reduction.operand(0).shape, a.axes, True)
    shape = reduction.result.shape
    for node in reversed(moves):
        result = node.result.shape
        if node.op is MAX or (node.op is EXPAND and shape == kept and result == whole.shape):
            shape = result if node.op is MAX else kept
        elif node.op in (RESHAPE, SQUEEZE, UNSQUEEZE) and result in (kept, reduction.result.shape):
            shape = result
        else:
            return False
    return shape == kept
