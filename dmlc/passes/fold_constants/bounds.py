"""Operations that cut nothing off, for what they are given lies within their bounds already, or cut off twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import ADD, DIV, EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, MAX, MIN, SUB
from dmlc.ops.choose import CLIP
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import ABS, NEG, RELU
from dmlc.ops.index import FULL, FullAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.intervals import INF, Interval, Intervals, clip_bounds, of_dtype
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, simplifies
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import both_ways, broadcasts, scalar_of
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

#: Bounds are f64, which hold no larger integers exactly.
_MOST_EXACT = 2.0**53


class ProvenMatch(Match, eq=False, kw_only=True):
    """``promised`` are the inputs whose ranges the proof needs."""

    promised: tuple[str, ...]


class BoundedMatch(ProvenMatch, eq=False, kw_only=True):
    """The operand that is the result."""

    value: Value


class _ByIntervals:
    """A rule that needs intervals: first without the promised ranges of inputs, then with them."""

    _known: tuple[Intervals, ...] = ()

    def known(self, graph: Graph) -> tuple[Intervals, ...]:
        if not self._known or self._known[0].graph is not graph:
            promises = (False, True) if graph.ranges else (False,)
            self._known = tuple([Intervals(graph, trusts=trusts, finite=False) for trusts in promises])
        return self._known

    def relies_on(self, match: ProvenMatch, graph: Graph) -> tuple[str, ...]:
        return match.promised


class WithinBounds(_ByIntervals, Rule[BoundedMatch]):
    """``abs``, ``relu``, ``clip``, ``max`` and ``min`` that change no element become their operand: ``relu(exp(x))``.

    ``exact`` for integers. ``reassociates`` for floats: -0 stays what it is, and a kernel may round the largest sigmoid
    to more than 1. ``range`` where promised ranges are part of the proof.
    """

    name = "within-bounds"
    roots: ClassVar[tuple[Operation, ...]] = (ABS, RELU, CLIP, MAX, MIN)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> BoundedMatch | None:
        if not graph.ranges and any(_is_seldom_bounded(value) for value in node.operands):
            return None
        for known in self.known(graph):
            for value, (low, high) in _kept(node, known):
                if value.type != node.result.type or constant_of(value) is not None:
                    continue  # constants are evaluated, or stay for a NaN
                least, most = known.of(value)
                if low <= least and most <= high:
                    return BoundedMatch(node, value=value, promised=known.promised(node.result))
        return None

    def describe(self, match: BoundedMatch) -> str:
        return f"{match.root.op.name} that cuts nothing off"

    def class_of(self, match: BoundedMatch, graph: Graph, context: PassContext) -> str:
        if match.promised:
            return RANGE
        return REASSOCIATES if match.value.type.dtype.is_float else EXACT

    def build(self, match: BoundedMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [match.value]


class _DecidedMatch(ProvenMatch, eq=False, kw_only=True):
    """The truth that every element of the result is."""

    truth: bool


class DecidedComparison(_ByIntervals, Rule[_DecidedMatch]):
    """A comparison of integers that their bounds decide becomes its truth: ``argmax(x) < 0``.

    ``exact``; ``range`` where promised ranges are part of the proof.
    """

    name = "decided-comparison"
    roots: ClassVar[tuple[Operation, ...]] = (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> _DecidedMatch | None:
        a, b = node.operand("a"), node.operand("b")
        if not a.type.dtype.is_integer or not node.result.type.is_static:
            return None
        for known in self.known(graph):
            truth = _decided(node.op, known.of(a), known.of(b))
            if truth is not None:
                return _DecidedMatch(node, truth=truth, promised=known.promised(node.result))
        return None

    def class_of(self, match: _DecidedMatch, graph: Graph, context: PassContext) -> str:
        return RANGE if match.promised else EXACT

    def build(self, match: _DecidedMatch, rewriter: Rewriter) -> Sequence[Value]:
        kind = match.root.result.type
        return [rewriter.add(FULL, [], FullAttributes(shape=kind.shape, value=match.truth, dtype=kind.dtype))]


def _decided(op: Operation, a: Interval, b: Interval) -> bool | None:
    """The truth of a comparison of all elements of two intervals; None where it is not the same for all."""
    if op in (GREATER, GREATER_EQUAL):
        a, b = b, a
    if op is EQUAL:
        return False if a[1] < b[0] or b[1] < a[0] else None
    if op in (LESS, GREATER):
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    return True if a[1] <= b[0] else False if a[0] > b[1] else None


def _is_seldom_bounded(value: Value | None) -> bool:
    """True for inputs, sums and quotients of floats: to look at all that they are computed from takes long in large
    models, and seldom finds a bound where no input promises a range."""
    if value is None or not value.type.dtype.is_float:
        return False
    return value.producer is None or value.producer.op in (ADD, SUB, DIV, NEG)


def _kept(node: Node, known: Intervals) -> Iterator[tuple[Value, Interval]]:
    """The operands that the result may be, each with the bounds within which it is."""
    if node.op is CLIP:
        yield node.operand("x"), clip_bounds(node)
    elif node.op in (ABS, RELU):
        yield node.operand("x"), (0.0, INF)
    else:
        a, b, dtype = node.operand("a"), node.operand("b"), node.result.type.dtype
        for one, other in ((a, b), (b, a)):
            low, high = known.of(other)
            if dtype.is_float and low == high and abs(low) == of_dtype(dtype)[1]:
                continue  # a log-sum-exp is written out with such a bound, and would be again
            yield one, (high, INF) if node.op is MAX else (-INF, low)


def _class_of_bounds(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    return REASSOCIATES if match.root.result.type.dtype.is_float else EXACT


@simplifies(
    *(MAX, MIN, CLIP, RELU),
    fed_by=(MAX, MIN, CLIP, RELU),
    rewrite_class=REASSOCIATES,
    class_of=_class_of_bounds,
)
def bounds_in_a_row(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``min(max(x, 0), 6)`` becomes ``clip(x, min=0, max=6)``; a relu and a clip are such bounds too.

    ``exact`` for integers, ``reassociates`` for floats: the sign of a zero at a bound of 0 is left open.
    """
    second, dtype = _bounded(node), node.result.type.dtype
    inner = None if second is None else second[0].producer
    first = None if inner is None else _bounded(inner)
    if second is None or first is None or inner is None:
        return KEEP
    (x, (low, high)), (_, (least, most)) = first, second
    bounds = (min(max(low, least), most), min(max(high, least), most))
    limit = of_dtype(dtype)[1] if dtype.is_float else _MOST_EXACT  # a log-sum-exp is kept from infinity so
    if low > high or least > most or max(map(abs, bounds)) >= limit:
        return KEEP
    e.taken.append(inner)
    if not e.target.has_kernel(CLIP, dtype):
        return Miss("the target has no kernel of Clip for {0}", (dtype,))
    kind = float if dtype.is_float else int
    return used_elsewhere(inner.result) or e.clip(x, min=kind(bounds[0]), max=kind(bounds[1]))


def _bounded(node: Node) -> tuple[Value, Interval] | None:
    """The operand that a node keeps within bounds, and these; None if it does something else."""
    if node.op is CLIP:
        return node.operand("x"), clip_bounds(node)
    if node.op is RELU:
        return node.operand("x"), (0.0, INF)
    if node.op is not MAX and node.op is not MIN:
        return None
    for x, other in both_ways(node):
        number = scalar_of(other)
        if number is not None and scalar_of(x) is None and not broadcasts(other, x) and number == number:
            return x, (number, INF) if node.op is MAX else (-INF, number)
    return None
