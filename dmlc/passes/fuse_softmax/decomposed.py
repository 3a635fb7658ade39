"""Decomposed softmax and log-softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ops.binary import ADD, DIV, MAX, MUL, SUB
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import EXP, LOG, NEG
from dmlc.ops.move import EXPAND, RESHAPES
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_SUM
from dmlc.ops.rules import reduced_shape
from dmlc.passes.emitted import why_no_gain
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fuse_softmax.views import (
    MAKERS_OF_LOG_SUM_EXP,
    MatchedReduction,
    log_sum_exp_of,
    placed,
    placed_log_of_sum,
)
from dmlc.passes.intervals import Intervals
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, simplifies
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.normal_form import quotient_of
from dmlc.passes.patterns import Seen, difference_of, made_by, used_outside
from dmlc.passes.rewrite import Miss, used_elsewhere

#: No axis is longer.
_MOST_COUNTED = 2.0**40


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


def _promises(rule: Any, match: LoweredNode, graph: Graph) -> tuple[str, ...]:
    node = match.values[0].producer
    assert node is not None
    return _finite_powers(node.operand("x"), node.attributes_as(SoftmaxAttributes).axes, graph)


def _class(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    """With the maximum taken out. Without it powers may overflow: ``range``."""
    is_shifted = any(node.op in (REDUCE_MAX, REDUCE_LOG_SUM_EXP) for node in match.consumed)
    return REASSOCIATES if is_shifted else RANGE


_OF_POWERS: dict[str, Any] = {"rewrite_class": RANGE, "class_of": _class, "relies_on": _promises}


def _made(e: Sketch, node: Node, op: Operation, x: Value, axes: tuple[int, ...]) -> Lowered:
    reason = used_outside(e.taken, node) or why_no_gain(e, node, op, x, axes)
    return reason or e(op, x, attributes=SoftmaxAttributes(axes=axes))


@simplifies(
    *(DIV, MUL, SUB, ADD),
    fed_by=(EXP, NEG, LOG, REDUCE_LOG_SUM, *RESHAPES, EXPAND, CAST, MAX, WHERE),
    **_OF_POWERS,
)
def written_out_softmax(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """exp(x - m) / sum(exp(x - m)) becomes softmax(x), (x - m) - log(sum(exp(x - m))) becomes log_softmax(x).

    ``reassociates`` with the maximum m taken out. Without it powers may overflow to NaN, which softmax does not:
    ``range``.
    """
    is_log = node.op in (SUB, ADD)
    seen: Seen = []
    parts = difference_of(node.result, seen) if is_log else quotient_of(node.result, seen)
    if parts is None or ((powers := made_by(parts[0], EXP)) is None and not is_log):
        return KEEP
    total = placed_log_of_sum(parts[1]) if is_log else placed(parts[1], REDUCE_SUM)
    below = None if total is None else made_by(total.x, EXP)
    if total is None or below is None or (is_log and below.operand("x") is not parts[0]):
        return KEEP
    e.taken += [n for n in (*seen, *total.nodes, powers or below) if n is not node]
    if not is_log and total.x is not parts[0]:
        return Miss("numerator and denominator are not the same powers")
    x, reason = _unshifted(e, below.operand("x"), total)
    if reason is None and x.shape != node.result.shape:
        reason = Miss("{0} is broadcast", (x.type,), x)
    return reason or _made(e, node, LOG_SOFTMAX if is_log else SOFTMAX, x, total.axes)


def _unshifted(e: Sketch, inner: Value, total: MatchedReduction) -> tuple[Value, Miss | None]:
    """The rest of the pattern: what the powers are taken of, without the maximum that was taken out."""
    mine: Seen = []
    parts = difference_of(inner, mine)
    peak = None if parts is None else placed(parts[1], REDUCE_MAX)
    if parts is None or peak is None or peak.x is not parts[0]:
        return inner, None
    e.taken += [*mine, *peak.nodes]
    if peak.axes != total.axes:
        return inner, Miss("the maximum is over axes {0}, the sum over {1}", (list(peak.axes), list(total.axes)))
    return parts[0], None


def _of_softmax(e: Sketch, node: Node, inner: Node | None, op: Operation) -> Lowered:
    if inner is None:
        return KEEP
    x, axes = inner.operand("x"), inner.attributes_as(SoftmaxAttributes).axes
    reason = used_elsewhere(inner.result) or why_no_gain(e, node, op, x, axes)
    return reason or e(op, x, attributes=inner.attributes)


@simplifies(LOG, fed_by=(SOFTMAX,), gives=RANGE)
def log_of_softmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """log(softmax(x)) becomes log_softmax(x).

    ``range``: where softmax underflows to 0 its logarithm is -inf, and the fused operation gives a number.
    """
    return _of_softmax(e, node, e.made_by(x, SOFTMAX), LOG_SOFTMAX)


@simplifies(EXP, fed_by=(LOG_SOFTMAX,), gives=REASSOCIATES)
def power_of_log_softmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """exp(log_softmax(x)) becomes softmax(x). ``reassociates``: neither overflows."""
    return _of_softmax(e, node, e.made_by(x, LOG_SOFTMAX), SOFTMAX)


@simplifies(SUB, ADD, fed_by=(NEG, *MAKERS_OF_LOG_SUM_EXP), **_OF_POWERS)
def difference_from_log_sum_exp(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """x - reduce_log_sum_exp(x) becomes log_softmax(x), also where the second is written out.

    ``reassociates``; ``range`` where the second is written out without the maximum taken out, for its powers may
    overflow.
    """
    seen: Seen = []
    parts = difference_of(node.result, seen)
    found = log_sum_exp_of(parts[1], seen) if parts is not None else None
    if parts is None or found is None or found.x is not parts[0]:
        return KEEP
    e.taken += [n for n in seen if n is not node]
    if parts[1].shape != reduced_shape(found.x.shape, found.axes, True):
        return Miss("the logarithm of the sum does not keep its axes")
    return _made(e, node, LOG_SOFTMAX, found.x, found.axes)


@simplifies(SOFTMAX, LOG_SOFTMAX, gives=REASSOCIATES)
def shift_before_softmax(e: Sketch, node: Node, shifted: Term) -> Lowered:
    """softmax(x - m) becomes softmax(x), and log_softmax alike, where m is the maximum over its axes.

    ``reassociates``: softmax takes the maximum out by itself, and in f16 need not round the difference.
    """
    parts = difference_of(shifted.value, e.taken)
    peak = placed(parts[1], REDUCE_MAX) if parts is not None else None
    axes = node.attributes_as(SoftmaxAttributes).axes
    if parts is None or peak is None or peak.x is not parts[0] or peak.axes != axes:
        return KEEP
    e.taken += peak.nodes
    x = parts[0]
    return Miss("{0} is broadcast", (x.type,), x) if x.shape != node.result.shape else _made(e, node, node.op, x, axes)
