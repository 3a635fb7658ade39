"""Decomposed softmax and log-softmax."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ops.binary import ADD, DIV, MAX, MUL, SUB
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import EXP, LOG, NEG
from dmlc.ops.move import EXPAND, RESHAPES
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_MAX, REDUCE_SUM
from dmlc.ops.rules import reduced_shape
from dmlc.passes.emitted import no_gain
from dmlc.passes.fuse_softmax.views import (
    MAKERS_OF_LOG_SUM_EXP,
    MatchedReduction,
    log_sum_exp_of,
    placed,
    placed_log_of_sum,
)
from dmlc.passes.intervals import Intervals
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.normal_form import quotient_of
from dmlc.passes.patterns import Seen, difference_of, made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

#: No axis is longer.
_MOST_COUNTED = 2.0**40


class _SoftmaxMatch(Match, eq=False, kw_only=True):
    """``x`` is what softmax is taken of. ``shifted`` is true if the maximum was taken out."""

    x: Value
    axes: tuple[int, ...]
    shifted: bool


class _OfPowers(Rule[_SoftmaxMatch]):
    """Base: rules that are ``reassociates`` with the maximum taken out. Without it powers may overflow: ``range``."""

    def class_of(self, match: _SoftmaxMatch, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if match.shifted else RANGE

    def relies_on(self, match: _SoftmaxMatch, graph: Graph) -> tuple[str, ...]:
        return _finite_powers(match.x, match.axes, graph)

    def build(self, match: _SoftmaxMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(_becomes(match.root), [match.x], SoftmaxAttributes(axes=match.axes))]


class WrittenOut(_OfPowers):
    """exp(x - m) / sum(exp(x - m)) becomes softmax(x), (x - m) - log(sum(exp(x - m))) becomes log_softmax(x).

    ``reassociates`` with the maximum m taken out. Without it powers may overflow to NaN, which softmax does not:
    ``range``.
    """

    name = "written-out-softmax"
    roots: ClassVar[tuple[Operation, ...]] = (DIV, MUL, SUB, ADD)
    fed_by: ClassVar[Collection[Operation]] = (EXP, NEG, LOG, REDUCE_LOG_SUM, *RESHAPES, EXPAND, CAST, MAX, WHERE)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> _SoftmaxMatch | Miss | None:
        return _log_softmax(node) if node.op in (SUB, ADD) else _softmax(node)

    def check(self, match: _SoftmaxMatch, graph: Graph) -> Miss | None:
        if match.x.shape != match.root.result.shape:
            return Miss("{0} is broadcast", (match.x.type,), match.x)
        op = _becomes(match.root)
        return used_outside(match.consumed, match.root) or no_gain(self.context, match, op, match.x, match.axes, graph)


def _finite_powers(x: Value, axes: Sequence[int], graph: Graph) -> tuple[str, ...]:
    """The inputs whose promised ranges show that no power of ``x``, and no sum of them, overflows or becomes 0."""
    known = Intervals(graph)
    promised = known.promised_of(x)
    if promised is None:
        return ()
    count = float(graph.dims.interval(product([x.shape[axis] for axis in axes]))[1])
    limits = np.finfo(x.type.dtype.numpy)
    most, least = float(np.log(float(limits.max))), float(np.log(float(limits.tiny)))
    total = promised[1] + math.log(min(max(count, 1.0), _MOST_COUNTED))
    return known.promised(x) if total < most - 1 and promised[0] > least + 1 else ()


def _becomes(root: Node) -> Operation:
    return LOG_SOFTMAX if root.op in (SUB, ADD) else SOFTMAX


def _softmax(node: Node) -> _SoftmaxMatch | Miss | None:
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
        return Miss("numerator and denominator are not the same powers")
    return _shifted(node, powers.operand("x"), below, seen)


def _log_softmax(node: Node) -> _SoftmaxMatch | Miss | None:
    seen: Seen = []
    parts = difference_of(node.result, seen)
    total = placed_log_of_sum(parts[1]) if parts is not None else None
    powers = made_by(total.x, EXP) if total is not None else None
    if parts is None or total is None or powers is None or powers.operand("x") is not parts[0]:
        return None
    seen.extend((*total.nodes, powers))
    return _shifted(node, parts[0], total, seen)


def _shifted(root: Node, inner: Value, total: MatchedReduction, seen: Seen) -> _SoftmaxMatch | Miss:
    """The rest of the pattern: what the powers are taken of."""
    mine: Seen = []
    parts = difference_of(inner, mine)
    peak = None if parts is None else placed(parts[1], REDUCE_MAX)
    if parts is None or peak is None or peak.x is not parts[0]:
        return _SoftmaxMatch(root, _inside(seen, root), x=inner, axes=total.axes, shifted=False)
    seen.extend((*mine, *peak.nodes))
    if peak.axes != total.axes:
        return Miss("the maximum is over axes {0}, the sum over {1}", (list(peak.axes), list(total.axes)))
    return _SoftmaxMatch(root, _inside(seen, root), x=parts[0], axes=total.axes, shifted=True)


def _inside(seen: Seen, root: Node) -> tuple[Node, ...]:
    return tuple(dict.fromkeys([node for node in seen if node is not root]))


class _OfSoftmax(Rule[Match]):
    """An elementwise function of a softmax; ``consumed`` is the softmax."""

    def check(self, match: Match, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        axes = inner.attributes_as(SoftmaxAttributes).axes
        op = LOG_SOFTMAX if inner.op is SOFTMAX else SOFTMAX
        return used_elsewhere(inner.result) or no_gain(self.context, match, op, inner.operand("x"), axes, graph)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        inner = match.consumed[0]
        op = LOG_SOFTMAX if inner.op is SOFTMAX else SOFTMAX
        return [rewriter.add(op, [inner.operand("x")], inner.attributes)]


class LogOfSoftmax(_OfSoftmax):
    """log(softmax(x)) becomes log_softmax(x).

    ``range``: where softmax underflows to 0 its logarithm is -inf, and the fused operation gives a number.
    """

    name = "log-of-softmax"
    roots: ClassVar[tuple[Operation, ...]] = (LOG,)
    fed_by: ClassVar[Collection[Operation]] = (SOFTMAX,)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand("x"), SOFTMAX)
        return None if inner is None else Match(node, (inner,))


class PowerOfLogSoftmax(_OfSoftmax):
    """exp(log_softmax(x)) becomes softmax(x). ``reassociates``: neither overflows."""

    name = "power-of-log-softmax"
    roots: ClassVar[tuple[Operation, ...]] = (EXP,)
    fed_by: ClassVar[Collection[Operation]] = (LOG_SOFTMAX,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand("x"), LOG_SOFTMAX)
        return None if inner is None else Match(node, (inner,))


class DifferenceFromLogSumExp(_OfPowers):
    """x - reduce_log_sum_exp(x) becomes log_softmax(x), also where the second is written out.

    ``reassociates``; ``range`` where the second is written out without the maximum taken out, for its powers may
    overflow.
    """

    name = "difference-from-log-sum-exp"
    roots: ClassVar[tuple[Operation, ...]] = (SUB, ADD)
    fed_by: ClassVar[Collection[Operation]] = (NEG, *MAKERS_OF_LOG_SUM_EXP)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> _SoftmaxMatch | None:
        seen: Seen = []
        parts = difference_of(node.result, seen)
        found = log_sum_exp_of(parts[1], seen) if parts is not None else None
        if parts is None or found is None or found.x is not parts[0]:
            return None
        inside = tuple(dict.fromkeys([n for n in seen if n is not node]))
        return _SoftmaxMatch(node, inside, x=found.x, axes=found.axes, shifted=found.shifted)

    def check(self, match: _SoftmaxMatch, graph: Graph) -> Miss | None:
        parts = difference_of(match.root.result, [])
        assert parts is not None
        if parts[1].shape != reduced_shape(match.x.shape, match.axes, True):
            return Miss("the logarithm of the sum does not keep its axes")
        outside = used_outside(match.consumed, match.root)
        return outside or no_gain(self.context, match, LOG_SOFTMAX, match.x, match.axes, graph)


class _ShiftedMatch(Match, eq=False, kw_only=True):
    x: Value


class ShiftBeforeSoftmax(Rule[_ShiftedMatch]):
    """softmax(x - m) becomes softmax(x), and log_softmax alike, where m is the maximum over its axes.

    ``reassociates``: softmax takes the maximum out by itself, and in f16 need not round the difference.
    """

    name = "shift-before-softmax"
    roots: ClassVar[tuple[Operation, ...]] = (SOFTMAX, LOG_SOFTMAX)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _ShiftedMatch | None:
        seen: Seen = []
        parts = difference_of(node.operand("x"), seen)
        peak = placed(parts[1], REDUCE_MAX) if parts is not None else None
        axes: Any = node.attributes_as(SoftmaxAttributes).axes
        if parts is None or peak is None or peak.x is not parts[0] or peak.axes != axes:
            return None
        return _ShiftedMatch(node, (*seen, *peak.nodes), x=parts[0])

    def check(self, match: _ShiftedMatch, graph: Graph) -> Miss | None:
        if match.x.shape != match.root.result.shape:
            return Miss("{0} is broadcast", (match.x.type,), match.x)
        axes = match.root.attributes_as(SoftmaxAttributes).axes
        outside = used_outside(match.consumed, match.root)
        return outside or no_gain(self.context, match, match.root.op, match.x, axes, graph)

    def build(self, match: _ShiftedMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(match.root.op, [match.x], match.root.attributes)]
