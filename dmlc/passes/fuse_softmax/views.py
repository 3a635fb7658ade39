"""Reductions as softmax and log-sum-exp use them: put back in the place of their axes, guarded, their logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isinf

import numpy as np
from msgspec import Struct

from dmlc.ir import Node, Operation, Shape, Value
from dmlc.ops.binary import ADD, AND, EQUAL, GREATER, LESS, MAX, MIN, NOT_EQUAL, OR
from dmlc.ops.choose import CAST, CLIP, WHERE, ClipAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import ABS, EXP, IS_INF, IS_NAN, LOG, NOT
from dmlc.ops.move import EXPAND, RESHAPES
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_SUM, ReduceAttributes
from dmlc.ops.rules import reduced_shape
from dmlc.passes.patterns import Seen, both_ways, difference_of, made_by, scalar_of


class MatchedReduction(Struct, frozen=True):
    """A reduction that was looked for: ``x`` is what it is of, before a cast to a wider float. ``conditions`` are the
    nodes that ask whether its results are finite."""

    node: Node
    x: Value
    axes: tuple[int, ...]
    path: tuple[Node, ...]
    conditions: tuple[Node, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All that was looked through, and the reduction."""
        return (*self.path, self.node, *self.conditions)

    @property
    def kept(self) -> Shape:
        """The shape with the axes kept."""
        return reduced_shape(self.x.shape, self.axes, True)


def reduction_below(value: Value, *ops: Operation, through: Sequence[Operation] = ()) -> MatchedReduction | None:
    """The reduction that has the elements of the value, in their order.

    Looked through are moves that keep the order, casts between floats, guards that change no finite number, an expand
    (the caller asks where it leads), and ``through``. ``path`` are these nodes, the last first.
    """
    path: list[Node] = []
    conditions: list[Node] = []
    node = value.producer
    while node is not None and node.op not in ops:
        step = _step(node, through)
        if step is None:
            return None
        path.append(node)
        if node.op is WHERE:
            conditions += _between(node.operand("cond"), step)
        node = step.producer
    if node is None:
        return None
    a, x = node.attributes_as(ReduceAttributes), node.operand("x")
    casts = sum(n.op is CAST for n in path)
    wide = made_by(x, CAST) if casts else None
    if wide is not None and _widens(wide):
        path.append(wide)
        x = wide.operand("x")
        casts -= 1
    if not a.axes or casts or x.type.dtype is not value.type.dtype:
        return None  # a cast to a narrower type on the way rounds
    return MatchedReduction(node, x, a.axes, tuple(path), tuple(conditions))


def _widens(cast: Node) -> bool:
    return cast.operand("x").type.dtype.bits <= cast.result.type.dtype.bits


def _step(node: Node, through: Sequence[Operation]) -> Value | None:
    if node.op in RESHAPES or node.op is EXPAND or node.op in through:
        return node.operand("x")
    if node.op is CAST:
        x = node.operand("x")
        return x if x.type.dtype.is_float else None
    return _guarded(node)


def _guarded(node: Node) -> Value | None:
    """``x`` of a clip to all finite numbers, and of where(isfinite(x), x, 0): what they are for every finite x, but for
    new axes of size 1."""
    if node.op in (MAX, MIN):
        for x, other in both_ways(node):
            bound = scalar_of(other)
            if bound is not None and _bounds_nothing(bound if node.op is MAX else -bound, x):
                return x
    if node.op is CLIP:
        a, x = node.attributes_as(ClipAttributes), node.operand("x")
        low, high = (-inf if a.min is None else a.min, inf if a.max is None else a.max)
        return x if _bounds_nothing(low, x) and _bounds_nothing(-high, x) else None
    if node.op is WHERE:
        condition, yes, no = node.operand("cond"), node.operand("a"), node.operand("b")
        for x, other, picked in ((yes, no, True), (no, yes, False)):
            if scalar_of(other) is not None and x.shape == node.result.shape and _if_finite(condition, x) is picked:
                return x
    return None


def _bounds_nothing(low: float, x: Value) -> bool:
    """Return whether no finite number of the dtype of ``x`` is below ``low``."""
    dtype = x.type.dtype
    return dtype.is_float and low <= float(np.finfo(dtype.numpy).min)


def _between(condition: Value, x: Value) -> list[Node]:
    """The nodes that make a condition of ``x``."""
    out: dict[Node, None] = {}
    pending = [condition]
    while pending:
        value = pending.pop()
        node = value.producer
        if value is x or node is None or node in out or constant_of(value) is not None:
            continue
        out[node] = None
        pending.extend([v for v in node.operands if v is not None])
    return list(out)


def _if_finite(condition: Value, x: Value, depth: int = 6) -> bool | None:
    """Return the value of a condition for every finite ``x``; None if it is not known."""
    node = condition.producer
    if node is None or not depth:
        return None
    if node.op in (IS_INF, IS_NAN):
        return False if _is_or_abs(node.operand("x"), x) else None
    if node.op is NOT:
        inner = _if_finite(node.operand("x"), x, depth - 1)
        return None if inner is None else not inner
    if node.op in (AND, OR):
        sides = [_if_finite(v, x, depth - 1) for v in (node.operand("a"), node.operand("b"))]
        decisive = node.op is OR
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive
    return _compared(node, x)


def _compared(node: Node, x: Value) -> bool | None:
    """A comparison of a finite ``x``, or its magnitude, with an infinity."""
    if node.op not in (EQUAL, NOT_EQUAL, LESS, GREATER):
        return None
    a, b = node.operand("a"), node.operand("b")
    for left, right, upward in ((a, b, node.op is LESS), (b, a, node.op is GREATER)):
        bound = scalar_of(right)
        if bound is None or not isinf(bound) or not _is_or_abs(left, x):
            continue
        return node.op is NOT_EQUAL if node.op in (EQUAL, NOT_EQUAL) else upward is (bound > 0)
    return None


def _is_or_abs(value: Value, x: Value) -> bool:
    inner = made_by(value, ABS)
    return (value if inner is None else inner.operand("x")) is x


def is_in_place(found: MatchedReduction, value: Value) -> bool:
    """Return whether the value has each result of the reduction at its axes: kept there, or broadcast from there."""
    broadcast = made_by(value, EXPAND)
    return (value if broadcast is None else broadcast.operand("x")).shape == found.kept


def placed(value: Value, *ops: Operation) -> MatchedReduction | None:
    """The reduction that the value is, where it stands at the place of its axes."""
    found = reduction_below(value, *ops)
    return found if found is not None and is_in_place(found, value) else None


def placed_log_of_sum(value: Value) -> MatchedReduction | None:
    """The sum whose logarithm the value is, at the place of its axes."""
    found = _log_of_sum(value)
    return found if found is not None and is_in_place(found, value) else None


def _log_of_sum(value: Value) -> MatchedReduction | None:
    found = reduction_below(value, REDUCE_SUM, REDUCE_LOG_SUM, through=(LOG,))
    if found is None:
        return None
    logarithms = sum(node.op is LOG for node in found.path)
    return found if logarithms == (found.node.op is REDUCE_SUM) else None


class LogSumExpParts(Struct, frozen=True):
    """log(sum(exp(x))) over ``axes``, in one operation or written out; with the maximum taken out or not."""

    x: Value
    axes: tuple[int, ...]
    shifted: bool


#: Makers of an operand by which a log-sum-exp is known.
MAKERS_OF_LOG_SUM_EXP = (ADD, REDUCE_LOG_SUM_EXP, LOG, REDUCE_LOG_SUM, *RESHAPES, EXPAND, CAST, MAX, WHERE)


def log_sum_exp_of(value: Value, seen: Seen) -> LogSumExpParts | None:
    """The log-sum-exp that has the elements of the value, in their order."""
    mine: Seen = []
    node = value.producer
    while node is not None and node.op in RESHAPES:
        mine.append(node)
        node = node.operand("x").producer
    if node is None:
        return None
    out = _shifted(node, mine) if node.op is ADD else _plain(node.result, mine) if len(node.results) == 1 else None
    if out is not None:
        seen.extend(mine)
    return out


def _plain(value: Value, seen: Seen) -> LogSumExpParts | None:
    node = made_by(value, REDUCE_LOG_SUM_EXP)
    if node is not None:
        axes = node.attributes_as(ReduceAttributes).axes
        seen.append(node)
        return LogSumExpParts(node.operand("x"), axes, True) if axes else None
    total = _log_of_sum(value)
    powers = made_by(total.x, EXP) if total is not None else None
    if total is None or powers is None or _broadcasts(total):
        return None
    seen.extend((*total.nodes, powers))
    return LogSumExpParts(powers.operand("x"), total.axes, False)


def _broadcasts(found: MatchedReduction) -> bool:
    return any(node.op is EXPAND for node in found.path)


def _shifted(node: Node, seen: Seen) -> LogSumExpParts | None:
    """m + log(sum(exp(x - m))): what is added back is the maximum that was taken out."""
    for logarithm, added in both_ways(node):
        mine: Seen = [node]
        inner = _plain(logarithm, mine)
        parts = difference_of(inner.x, mine) if inner is not None else None
        again = reduction_below(added, REDUCE_MAX)
        if inner is None or parts is None or again is None:
            continue
        x = parts[0]
        peak = placed(parts[1], REDUCE_MAX)
        if peak is None or _broadcasts(again):
            continue
        if not (peak.x is again.x is x and peak.axes == again.axes == inner.axes):
            continue
        if logarithm.shape == added.shape == node.result.shape:
            seen.extend((*mine, *peak.nodes, *again.nodes))
            return LogSumExpParts(x, inner.axes, True)
    return None
