"""The logarithm of a sum of powers of e, with the maximum taken out or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import ADD
from dmlc.ops.elementwise import EXP, LOG
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_SUM, ReduceAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import Seen, both_ways, difference_of, made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


@dataclass(slots=True, eq=False)
class _Found(Match):
    """``x`` is what the logarithm of the sum of powers is taken of, over ``axes``."""

    x: Value | None = None
    axes: tuple[int, ...] = ()
    keepdims: bool = True
    why_not: str = ""


def _log_of_sum(value: Value, seen: Seen) -> tuple[Node, Value] | None:
    """The reduction and its operand where the value is log(reduce_sum(v)), in one operation or two."""
    node = made_by(value, REDUCE_LOG_SUM)
    if node is None:
        outer = made_by(value, LOG)
        node = made_by(outer.operand(0), REDUCE_SUM) if outer is not None else None
        if outer is None or node is None:
            return None
        seen.append(outer)
    seen.append(node)
    return node, node.operand(0)


class LogSumExp(Rule[_Found]):
    """log(reduce_sum(exp(x))) becomes reduce_log_sum_exp(x).

    ``reassociates``: the same function; where exp(x) left its range, the fused one does not.
    """

    name = "log-sum-exp"
    roots = (LOG, REDUCE_LOG_SUM)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _Found | None:
        seen: Seen = []
        found = _log_of_sum(node.result, seen)
        powers = made_by(found[1], EXP) if found is not None else None
        if found is None or powers is None:
            return None
        a = found[0].attributes_as(ReduceAttributes)
        x = powers.operand(0)
        shifted = difference_of(x, [])
        if shifted is not None and made_by(shifted[1], REDUCE_MAX) is not None:
            return None  # the shifted form has a rule of its own
        inside = tuple([n for n in (*seen, powers) if n is not node])
        return _Found(node, inside, x, a.axes, a.keepdims)

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        if not match.axes:
            return Miss("it sums over no axis")
        return used_outside(match.consumed, match.root)

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        record = ReduceAttributes(axes=match.axes, keepdims=match.keepdims)
        return [rewriter.add(REDUCE_LOG_SUM_EXP, [match.x], record)]


class ShiftedLogSumExp(Rule[_Found]):
    """m + log(reduce_sum(exp(x - m))) with m = reduce_max(x) becomes reduce_log_sum_exp(x).

    ``reassociates``. On DirectML, whose own operator does not take the maximum out, the fused operation is written with
    the shift again.
    """

    name = "shifted-log-sum-exp"
    roots = (ADD,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _Found | None:
        for logarithm, peak in both_ways(node):
            seen: Seen = []
            found = _log_of_sum(logarithm, seen)
            powers = made_by(found[1], EXP) if found is not None else None
            parts = difference_of(powers.operand(0), seen) if powers is not None else None
            if found is None or powers is None or parts is None:
                continue
            x, shift = parts
            inner = made_by(shift, REDUCE_MAX)
            if inner is None or inner.operand(0) is not x:
                continue
            seen.append(powers)
            return _describe(node, found[0], inner, peak, x, seen)
        return None

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        if match.why_not:
            return Miss(match.why_not)
        return used_outside(match.consumed, match.root)

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        record = ReduceAttributes(axes=match.axes, keepdims=match.keepdims)
        return [rewriter.add(REDUCE_LOG_SUM_EXP, [match.x], record)]


def _describe(root: Node, total: Node, peak: Node, added: Value, x: Value, seen: Seen) -> _Found:
    """What was found; ``added`` must be the maximum again, with or without its axes as the sum has them."""
    sums, maxima = total.attributes_as(ReduceAttributes), peak.attributes_as(ReduceAttributes)
    inside = [*seen, peak]
    same = added
    if added is not peak.result:
        again = added.producer
        if again is None or again.operands[:1] != (peak.result,) or again.op.name not in ("squeeze", "reshape"):
            again = made_by(added, REDUCE_MAX)
            if again is not None and again.operand(0) is not x:
                again = None
        if again is None:
            return _Found(root, tuple(inside), why_not="what is added back is not the maximum that was taken out")
        inside.append(again)
        same = again.result
    why_not = ""
    if not sums.axes or sums.axes != maxima.axes or not maxima.keepdims:
        why_not = f"the maximum is over axes {list(maxima.axes)}, the sum over {list(sums.axes)}"
    elif same.shape != root.result.shape or total.result.shape != root.result.shape:
        why_not = "the maximum and the logarithm do not have one shape"
    return _Found(root, tuple(inside), x, sums.axes, sums.keepdims, why_not)
