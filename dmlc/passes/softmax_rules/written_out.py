"""Softmax and its logarithm written out: powers over their sum, with the maximum taken out or not."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import ADD, DIV, MAX, MUL, SUB
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import EXP, LOG, NEG
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_MAX, REDUCE_SUM
from dmlc.passes.emitted import NodeCount
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import Seen, difference_of, made_by, quotient_of, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.passes.softmax_rules.views import MatchedReduction, placed, placed_log_of_sum
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _SoftmaxMatch(Match):
    """``x`` is what softmax is taken of; ``why_not`` says what is wrong with the rest of the pattern."""

    x: Value | None = None
    axes: tuple[int, ...] = ()
    shifted: bool = False
    why_not: str = ""


class WrittenOut(Rule[_SoftmaxMatch]):
    """exp(x - m) / sum(exp(x - m)) becomes softmax(x), (x - m) - log(sum(exp(x - m))) becomes log_softmax(x).

    ``reassociates`` with the maximum m taken out. Without it powers may overflow to NaN, which softmax does not:
    ``range``.
    """

    name = "written-out-softmax"
    roots = (DIV, MUL, SUB, ADD)
    fed_by = (EXP, NEG, LOG, REDUCE_LOG_SUM, RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND, CAST, MAX, WHERE)
    rewrite_class = RANGE

    def __init__(self, count: NodeCount) -> None:
        self.count = count

    def match(self, node: Node, graph: Graph) -> _SoftmaxMatch | None:
        return _log_softmax(node) if node.op in (SUB, ADD) else _softmax(node)

    def check(self, match: _SoftmaxMatch, graph: Graph) -> Miss | None:
        if match.why_not:
            return Miss(match.why_not)
        assert match.x is not None
        if match.x.shape != match.root.result.shape:
            return Miss("{0} is broadcast", (match.x.type,), match.x)
        op = _becomes(match.root)
        return used_outside(match.consumed, match.root) or self.count.no_gain(match, op, match.x, match.axes, graph)

    def class_of(self, match: _SoftmaxMatch, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if match.shifted else RANGE

    def build(self, match: _SoftmaxMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(_becomes(match.root), [match.x], SoftmaxAttributes(axes=match.axes))]


def _becomes(root: Node) -> Operation:
    return LOG_SOFTMAX if root.op in (SUB, ADD) else SOFTMAX


def _softmax(node: Node) -> _SoftmaxMatch | None:
    seen: Seen = []
    parts = quotient_of(node.result, seen)
    powers = made_by(parts[0], EXP) if parts is not None else None
    if parts is None or powers is None:
        return None
    below = placed(parts[1], REDUCE_SUM)
    if below is None or made_by(below.x, EXP) is None:
        return None
    seen.extend((*below.nodes, powers))
    if below.x is not parts[0]:
        return _SoftmaxMatch(node, _inside(seen, node), why_not="numerator and denominator are not the same powers")
    return _shifted(node, powers.operand(0), below, seen)


def _log_softmax(node: Node) -> _SoftmaxMatch | None:
    seen: Seen = []
    parts = difference_of(node.result, seen)
    total = placed_log_of_sum(parts[1]) if parts is not None else None
    powers = made_by(total.x, EXP) if total is not None else None
    if parts is None or total is None or powers is None or powers.operand(0) is not parts[0]:
        return None
    seen.extend((*total.nodes, powers))
    return _shifted(node, parts[0], total, seen)


def _shifted(root: Node, inner: Value, total: MatchedReduction, seen: Seen) -> _SoftmaxMatch:
    """The rest of the pattern: what the powers are taken of."""
    mine: Seen = []
    parts = difference_of(inner, mine)
    peak = None if parts is None else placed(parts[1], REDUCE_MAX)
    if parts is None or peak is None or peak.x is not parts[0]:
        return _SoftmaxMatch(root, _inside(seen, root), inner, total.axes, False)
    seen.extend((*mine, *peak.nodes))
    why_not = ""
    if peak.axes != total.axes:
        why_not = f"the maximum is over axes {list(peak.axes)}, the sum over {list(total.axes)}"
    return _SoftmaxMatch(root, _inside(seen, root), parts[0], total.axes, True, why_not)


def _inside(seen: Seen, root: Node) -> tuple[Node, ...]:
    return tuple(dict.fromkeys([node for node in seen if node is not root]))
