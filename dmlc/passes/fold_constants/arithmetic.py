"""Operations on numbers that give back their operand.

All are exact but one: ``x + 0.0`` and ``x - -0.0`` of floats make +0 of -0, so that ``x`` in their place is
``reassociates``, and ``--exact`` leaves them as they are. ``x - 0.0`` and ``x + -0.0`` keep every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import bool_
from dmlc.ops.binary import ADD, AND, DIV, EQUAL, MUL, NOT_EQUAL, OR, POW, SUB, XOR
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.elementwise import ABS, CEIL, FLOOR, NEG, NOT, RELU, ROUND, SIGN
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.records import dataclass

#: A larger constant is not searched for ones or zeros.
_MOST_ELEMENTS = 4096


@dataclass(slots=True, eq=False)
class Replaced(Match):
    """The value that stands for the root's result already."""

    value: Value | None = None


class _Replace(Rule[Replaced]):
    def describe(self, match: Replaced) -> str:
        return f"{match.root.op.name} that changes nothing"

    def build(self, match: Replaced, rewriter: Rewriter) -> Sequence[Value]:
        assert match.value is not None
        return [match.value]


class NeutralOperand(_Replace):
    """``x * 1``, ``x / 1``, ``x ** 1``, ``x - 0`` and ``x + 0`` become ``x``.

    ``exact``, but for ``x + 0.0`` and ``x - -0.0`` of floats, which make +0 of -0: these are ``reassociates``.
    """

    name = "neutral-operand"
    roots = (MUL, DIV, POW, ADD, SUB)
    fed_by = (CONSTANT,)

    def match(self, node: Node, graph: Graph) -> Replaced | None:
        left, right = node.operand(0), node.operand(1)
        if _is_neutral(node.op, right) and left.type == node.result.type:
            return Replaced(node, value=left)
        if node.op in _COMMUTATIVE and _is_neutral(node.op, left) and right.type == node.result.type:
            return Replaced(node, value=right)
        return None

    def class_of(self, match: Replaced, graph: Graph, context: PassContext) -> str:
        op, value = match.root.op, match.value
        if op not in (ADD, SUB) or not match.root.result.type.dtype.is_float:
            return EXACT
        other = match.root.operand(1) if value is match.root.operand(0) else match.root.operand(0)
        data = constant_of(other)
        assert data is not None
        return EXACT if bool((np.signbit(data.array) == (op is ADD)).all()) else REASSOCIATES


_COMMUTATIVE = frozenset((MUL, ADD))


def _is_neutral(op: Operation, value: Value) -> bool:
    data = constant_of(value)
    if data is None or not 0 < data.array.size <= _MOST_ELEMENTS:
        return False
    array, wanted = data.array, 0 if op is ADD or op is SUB else 1
    return array.item(0) == wanted and bool((array == wanted).all())  # the first mostly tells


class KnownTruth(Rule[Match]):
    """A comparison or connective of truths with a constant becomes the truth, its negation, or the constant."""

    name = "known-truth"
    roots = (EQUAL, NOT_EQUAL, XOR, AND, OR)
    fed_by = (CONSTANT,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if _truth(node) is not None else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        found = _truth(match.root)
        assert found is not None
        value, is_kept = found
        return [value if is_kept else rewriter.add(NOT, [value])]


def _truth(node: Node) -> tuple[Value, bool] | None:
    """The value that the node gives, and whether as it is or negated."""
    for known, value in (node.operands, reversed(node.operands)):
        data = constant_of(known)
        if known is None or value is None or data is None or known.type.dtype is not bool_:
            continue
        if not 0 < data.array.size <= _MOST_ELEMENTS or not (data.array == data.array.flat[0]).all():
            continue
        truth = bool(data.array.flat[0])
        decides = (node.op is AND and not truth) or (node.op is OR and truth)
        chosen = known if decides else value
        if chosen.type == node.result.type:
            return chosen, decides or node.op in (AND, OR) or truth == (node.op is EQUAL)
    return None


class DifferentTruths(Rule[Match]):
    """``a != b`` of truths becomes ``a ^ b``, which is one operator in ONNX where the comparison is two."""

    name = "different-truths"
    roots = (NOT_EQUAL,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if node.operand(0).type.dtype is bool_ else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(XOR, [match.root.operand(0), match.root.operand(1)])]


class SameCast(_Replace):
    """A cast to the dtype that is there becomes its operand."""

    name = "cast-to-same"
    roots = (CAST,)

    def match(self, node: Node, graph: Graph) -> Replaced | None:
        x = node.operand(0)
        return Replaced(node, value=x) if x.type.dtype is node.attributes_as(CastAttributes).to else None


class Inverse(_Replace):
    """``-(-x)`` and ``!!x`` become ``x``."""

    name = "double-inverse"
    roots = (NEG, NOT)
    fed_by = (NEG, NOT)

    def match(self, node: Node, graph: Graph) -> Replaced | None:
        inner = node.operand(0).producer
        return Replaced(node, value=inner.operand(0)) if inner is not None and inner.op is node.op else None


class Idempotent(_Replace):
    """``abs(abs(x))`` and the like become ``abs(x)``: the second does nothing."""

    name = "idempotent"
    roots = (ABS, RELU, FLOOR, CEIL, ROUND, SIGN)
    fed_by = (ABS, RELU, FLOOR, CEIL, ROUND, SIGN)

    def match(self, node: Node, graph: Graph) -> Replaced | None:
        inner = node.operand(0).producer
        return Replaced(node, value=inner.result) if inner is not None and inner.op is node.op else None


class CastChain(Rule[Match]):
    """``cast(cast(x, to=A), to=B)`` becomes ``cast(x, to=B)`` where A holds every value of x, or where all wraps."""

    name = "cast-chain"
    roots = (CAST,)
    fed_by = (CAST,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand(0).producer
        if inner is None or inner.op is not CAST:
            return None
        source, middle, to = inner.operand(0).type.dtype, inner.result.type.dtype, node.result.type.dtype
        return Match(node, (inner,)) if _holds(source, middle) or _wraps(source, middle, to) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        record: Any = match.root.attributes
        x = inner.operand(0)
        return [x if x.type.dtype is record.to else rewriter.add(CAST, [x], record)]


_MANTISSA = {16: 11, 32: 24, 64: 53}


def _holds(source: DType, middle: DType) -> bool:
    """Return whether ``middle`` can hold every value of ``source``."""
    if source.kind == "bool":
        return True
    if source.is_float:
        return middle.is_float and middle.bits >= source.bits
    if middle.is_float:
        return _MANTISSA[middle.bits] >= source.bits - (source.kind == "int")
    return int(middle.lowest) <= int(source.lowest) and int(source.highest) <= int(middle.highest)


def _wraps(source: DType, middle: DType, to: DType) -> bool:
    """Integers modulo 2^n: a narrower end does not see the middle, if that is at least as wide."""
    return source.is_integer and middle.is_integer and to.is_integer and to.bits <= middle.bits
