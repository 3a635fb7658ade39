"""A monotone elementwise function commutes with max and min."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import f16
from dmlc.ops.binary import ADD, DIV, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CAST, CLIP
from dmlc.ops.elementwise import NEG, SOFTSIGN, UNARY
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.reduce import (
    DUALS,
    EXTREMES,
    REDUCTIONS,
    ReduceAttributes,
)
from dmlc.passes.fuse_selection.selections import name_of, why_no_extreme, why_order_may_not_turn
from dmlc.passes.hoist.split import (
    PAIRS,
    SplitMatch,
    again,
    reduced,
    split_one,
    split_two,
    why_not_hoisted,
)
from dmlc.passes.intervals import Intervals
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import may_be_empty
from dmlc.passes.rewrite import Miss, Rewriter, Rule

#: They choose one of two numbers, or round a rising function to the nearest: never falling, bit for bit.
_RISING = frozenset((*(op for op in UNARY if op.rises and op.rounding == "exact"), CLIP, MIN, MAX, CAST))
#: Rising functions whose kernels approximate them: neighbours may come out in the wrong order by a rounding.
_APPROXIMATED = frozenset(op for op in UNARY if op.rises and op.rounding != "exact")
#: Operations that make a NaN of a number below 0.
_OF_POSITIVE = frozenset(op for op in UNARY if op.domain_from == 0)
#: Their results are 0 or more.
_POSITIVE = frozenset((
    *(op for op in UNARY if op.bounds[0] >= 0), SOFTMAX,
    *(op for op in REDUCTIONS if op.before in ("abs", "square") and op.after != "log"),
))  # fmt: skip


class RisingAfterExtreme(Rule[SplitMatch]):
    """reduce_max(relu(x)) becomes relu(reduce_max(x)), and so on for what never falls or never rises.

    ``exact`` for relu, clip, floor, ceil, round, sign, neg, casts that keep the order, and min and max with a number.
    It is ``exact`` for sums and products with numbers of one sign too. If f as computed never falls, f(max(x)) is
    max(f(x)) bit for bit. Rounding keeps a function that never falls so. Kernels approximate exp, log, tanh and the
    like: ``reassociates``. A NaN that the function makes reaches the maximum in one form alone. So log, sqrt and
    softsign are of class ``range``. A falling function turns the maximum into a minimum. Integers may wrap and keep
    their sums and products. The language says nothing of NaN, of the sign of a zero, and of a cast float that no
    integer holds. Not where nothing may be reduced.
    """

    name = "rising-after-extreme"
    roots = EXTREMES

    def match(self, node: Node, graph: Graph) -> SplitMatch | None:
        inner = node.operand("x").producer
        if inner is None:
            return None
        if inner.op in PAIRS:
            return split_two(node, inner, graph)
        return split_one(node, inner) if inner.op in _RISING or inner.op in _APPROXIMATED or inner.op is NEG else None

    def check(self, match: SplitMatch, graph: Graph) -> Miss | None:
        if may_be_empty(graph, match.root.operand("x"), match.root.attributes_as(ReduceAttributes).axes):
            return Miss("the maximum or minimum of no elements is not a {0} of anything", (match.node.op.name,))
        return self._why_not_ordered(match, graph) or why_not_hoisted(match)

    def _why_not_ordered(self, match: SplitMatch, graph: Graph) -> Miss | None:
        op, x = match.node.op, match.operand
        if op is CAST:
            return self._why_not_cast(match.root.op, x.type.dtype, match.node.result.type.dtype)
        if op is NEG:
            return why_order_may_not_turn(x, graph)
        if op in (ADD, SUB, MUL, DIV) and not x.type.dtype.is_float:
            return Miss("{0} of integers may wrap", (op.name,))
        if op is MUL or op is DIV:
            match.sign = _promised_sign(match, graph)
            return None if match.sign else _why_no_factor(match)
        return None

    def _why_not_cast(self, op: Operation, source: DType, to: DType) -> Miss | None:
        if not _keeps_order(source, to):
            return Miss("a cast from {0} to {1} does not keep the order", (source, to))
        if not self.capabilities.takes("ReduceMax", source):
            return Miss("{0} has no ReduceMax of {1}", (self.capabilities.target.name, source))
        if source is f16 and not self.capabilities.emits_nodes:
            return Miss("NumPy compares f16 one by one, slower than it casts them")
        return why_no_extreme(self.capabilities, op, source)

    def class_of(self, match: SplitMatch, graph: Graph, context: PassContext) -> str:
        if match.node.op in _OF_POSITIVE and not _is_never_negative(match.operand):
            return RANGE
        if match.node.op is SOFTSIGN or match.sign:
            return RANGE
        return REASSOCIATES if match.node.op in _APPROXIMATED else EXACT

    def relies_on(self, match: SplitMatch, graph: Graph) -> tuple[str, ...]:
        known = Intervals(graph)
        if match.sign:
            assert match.fixed is not None
            return known.promised(match.fixed)
        promised = known.promised_of(match.operand)
        if promised is None:
            return ()
        holds = np.isfinite(promised).all() if match.node.op is SOFTSIGN else promised[0] >= 0
        return known.promised(match.operand) if holds else ()

    def build(self, match: SplitMatch, rewriter: Rewriter) -> Sequence[Value]:
        op = match.root.op
        return [again(match, rewriter, reduced(match, rewriter, DUALS[op] if _falls(match) else op))]


def _is_never_negative(value: Value) -> bool:
    node = value.producer
    if node is None:
        return False
    return node.op in _POSITIVE or (node.op is MUL and node.operand("a") is node.operand("b"))


def _promised_sign(match: SplitMatch, graph: Graph) -> int:
    """The sign of a factor or divisor that promised ranges give; 0 where they give none.

    A factor may be 0: what is not finite beside it gives a NaN, of which the maximum is unspecified. A divisor of 0
    may have either sign.
    """
    fixed, op = match.fixed, match.node.op
    if fixed is None or match.number is not None or (op is DIV and not match.first):
        return 0
    promised = Intervals(graph).promised_of(fixed)
    if promised is None:
        return 0
    low, high = promised
    if low > 0 or (low == 0 and op is MUL):
        return 1
    return -1 if high < 0 or (high == 0 and op is MUL) else 0


def _falls(match: SplitMatch) -> bool:
    op = match.node.op
    if match.sign:
        return match.sign < 0
    if op is MUL or op is DIV:
        numbers = match.number
        return numbers is not None and bool((numbers < 0).any())
    return op is NEG or (op is SUB and not match.first)


def _why_no_factor(match: SplitMatch) -> Miss | None:
    """The reason why multiplying with ``fixed``, or dividing by it, may neither keep nor turn the order."""
    assert match.fixed is not None
    numbers, name = match.number, name_of(match.fixed)
    if numbers is None:
        return Miss("the sign of {0} is not known", (name,), match.fixed)
    if match.node.op is DIV and not match.first:
        return Miss("a number divided by {0} neither rises nor falls", (name_of(match.operand),), match.operand)
    if not np.isfinite(numbers).all() or not ((numbers > 0).all() or (numbers < 0).all()):
        return Miss("the factors are not all positive, or all negative, and finite", (), match.fixed)
    return None


def _keeps_order(source: DType, to: DType) -> bool:
    """Return whether a cast keeps the order of numbers; out of range, only wrapping integers may break it.

    Floats round to the nearest or toward zero. Floats outside the range of an integer give an unspecified result.
    """
    if to.kind == "bool":
        return source.kind in ("bool", "uint")
    if source.kind == "bool" or source.is_float or to.is_float:
        return True
    return int(to.lowest) <= int(source.lowest) and int(source.highest) <= int(to.highest)
