"""``fuse-softmax``: softmax and its logarithm become the operations that they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import inf, isinf
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Dim, Graph, Node, Operation, Shape, Value, product
from dmlc.ops.binary import ADD, AND, DIV, EQUAL, GREATER, LESS, MAX, MIN, MUL, NOT_EQUAL, OR, SUB
from dmlc.ops.choose import CAST, CLIP, WHERE, ClipAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import ABS, EXP, IS_INF, IS_NAN, LOG, NEG, NOT
from dmlc.ops.move import EXPAND, RESHAPES, TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_SUM, ReduceAttributes, axes_of
from dmlc.ops.rules import reduced_shape
from dmlc.ops.select import HARDMAX
from dmlc.passes.emitted import why_no_gain
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.intervals import Intervals
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.normal_form import quotient_of
from dmlc.passes.patterns import Seen, both_ways, difference_of, made_by, scalar_of, used_outside
from dmlc.passes.rewrite import Miss, RewritePass, Rule, rules_of, used_elsewhere

# --- Reductions as softmax and log-sum-exp use them: put back in the place of their axes, guarded, their logarithm


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
            conditions += _condition_nodes(node.operand("cond"), step)
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


def _condition_nodes(condition: Value, x: Value) -> list[Node]:
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
        axes = axes_of(node)
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


# --- Decomposed softmax and log-softmax

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


def _made(e: Sketch, node: Node, op: Operation, x: Value, axes: tuple[int, ...]) -> Lowered:
    if reason := used_outside(e.taken, node) or why_no_gain(e, node, op, x, axes):
        return reason
    # With the maximum taken out. Without it powers may overflow.
    is_shifted = any(each.op in (REDUCE_MAX, REDUCE_LOG_SUM_EXP) for each in e.taken)
    e.gives, e.promised = (REASSOCIATES, ()) if is_shifted else (RANGE, _finite_powers(x, axes, e.graph))
    return e(op, x, attributes=SoftmaxAttributes(axes=axes))


@simplifies(
    *(DIV, MUL, SUB, ADD),
    fed_by=(EXP, NEG, LOG, REDUCE_LOG_SUM, *RESHAPES, EXPAND, CAST, MAX, WHERE),
    gives=(RANGE, REASSOCIATES),
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
    x, axes = inner.operand("x"), axes_of(inner)
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


@simplifies(SUB, ADD, fed_by=(NEG, *MAKERS_OF_LOG_SUM_EXP), gives=(RANGE, REASSOCIATES))
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
    axes = axes_of(node)
    if parts is None or peak is None or peak.x is not parts[0] or peak.axes != axes:
        return KEEP
    e.taken += peak.nodes
    x = parts[0]
    return Miss("{0} is broadcast", (x.type,), x) if x.shape != node.result.shape else _made(e, node, node.op, x, axes)


# --- Softmax between moves: it runs over the same groups where they stand

_GROUPED = (SOFTMAX, LOG_SOFTMAX, HARDMAX)


def _between(e: Sketch, node: Node, y: Term, *moves: Operation) -> tuple[Node, Node] | None:
    """The softmax or hardmax before the node, and the move before that."""
    middle = e.made_by(y, *_GROUPED)
    first = None if middle is None else e.made_by(middle.operand("x"), *moves)
    return None if middle is None or first is None else (middle, first)


def _grouped(e: Sketch, node: Node, middle: Node, axes: Sequence[int], *, moves_on: bool) -> Term | Miss:
    """The middle operation over ``axes`` of what the first move moves; ``moves_on`` if a move remains."""
    if middle.op is HARDMAX and list(axes) != sorted(axes):
        return Miss("the first maximum is looked for in the order {0} of the axes", (list(axes),))
    x, over = e.taken[1].operand("x"), tuple(sorted(axes))
    reason = used_outside(e.taken, node) or why_no_gain(e, node, middle.op, x, over, more=int(moves_on))
    attributes: Any = middle.attributes
    return reason or e(middle.op, x, attributes=replace(attributes, axes=over))


@simplifies(TRANSPOSE, fed_by=_GROUPED)
def softmax_of_transpose(e: Sketch, node: Node, y: Term) -> Lowered:
    """transpose(softmax(transpose(x))) becomes a softmax (or hardmax) over another axis, and one transpose or none.

    ``exact``: the same groups, each in the same order.
    """
    found = _between(e, node, y, TRANSPOSE)
    if found is None:
        return KEEP
    middle, first = found
    attributes: Any = middle.attributes
    perm = first.attributes_as(TransposeAttributes).perm
    both = [perm[b] for b in node.attributes_as(TransposeAttributes).perm]
    axes, moves_on = [perm[a] for a in attributes.axes], both != list(range(len(both)))
    out = _grouped(e, node, middle, axes, moves_on=moves_on)
    return out if isinstance(out, Miss) else out.transposed(both)


@simplifies(*RESHAPES, fed_by=_GROUPED)
def softmax_of_reshape(e: Sketch, node: Node, y: Term) -> Lowered:
    """reshape(softmax(reshape(x))) becomes a softmax (or hardmax) over axes of x, and one reshape or none.

    ``exact``: the elements keep their order, and the groups are the same.
    """
    found = _between(e, node, y, *RESHAPES)
    if found is None:
        return KEEP
    middle, x = found[0], found[1].operand("x")
    attributes: Any = middle.attributes
    axes = _same_groups(y.shape, attributes.axes, x.shape)
    if axes is None:
        return Miss("the groups of {0} are not axes of {1}", (middle.op.name, x.type))
    out = _grouped(e, node, middle, axes, moves_on=node.result.shape != x.shape)
    return out if isinstance(out, Miss) else out.reshape(node.result.shape)


def _same_groups(shape: Sequence[Dim], axes: tuple[int, ...], other: Sequence[Dim]) -> tuple[int, ...] | None:
    """The fewest neighbouring axes of ``other`` that group its elements as ``axes`` group the elements of ``shape``."""
    if not axes or axes[-1] - axes[0] != len(axes) - 1:
        return None
    before, size = product(shape[: axes[0]]), product(shape[axes[0] : axes[-1] + 1])
    found: tuple[int, ...] | None = None
    for first in range(len(other)):
        for last in range(first + 1, len(other) + 1):
            fits = product(other[:first]) == before and product(other[first:last]) == size
            if fits and (found is None or last - first < len(found)):
                found = tuple(range(first, last))
    return found


_RULES = rules_of(globals())


class FuseSoftmax(RewritePass, frozen=True):
    """Without the maximum taken out, and for the logarithm of a softmax, the class is ``range``."""

    name: ClassVar[str] = "fuse-softmax"
    summary: ClassVar[str] = "Fuse softmax and log-softmax that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return _RULES
