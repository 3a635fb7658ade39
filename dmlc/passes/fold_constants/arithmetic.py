"""Operations on numbers that give back their operand.

All are exact but one: ``x + 0.0`` and ``x - -0.0`` of floats make +0 of -0, so that ``x`` in their place is
``reassociates``, and ``--exact`` leaves them as they are. ``x - 0.0`` and ``x + -0.0`` keep every bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dmlc.ir import DType, Graph, Node, Operation, Tensor, Value
from dmlc.ir.dtype import bool_
from dmlc.ops.binary import ADD, AND, DIV, EQUAL, MUL, NOT_EQUAL, OR, POW, SUB, XOR
from dmlc.ops.choose import CAST, WHERE, CastAttributes
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.elementwise import ABS, CEIL, FLOOR, NEG, NOT, RELU, ROUND, SIGN
from dmlc.ops.index import FULL, FullAttributes
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, EXPAND, ConcatAttributes, ExpandAttributes
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.patterns import both_ways, made_by, scaled_of
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, consumed_elsewhere, used_elsewhere

#: A larger constant is not searched for ones or zeros.
_MOST_ELEMENTS = 2**20


class ReplacedMatch(Match, eq=False, kw_only=True):
    """The value that stands for the root's result already."""

    value: Value


class _Replace(Rule[ReplacedMatch]):
    def describe(self, match: ReplacedMatch) -> str:
        return f"{match.root.op.name} that changes nothing"

    def build(self, match: ReplacedMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [match.value]


class NeutralOperand(_Replace):
    """``x * 1``, ``x / 1``, ``x ** 1``, ``x - 0`` and ``x + 0`` become ``x``.

    ``exact``, but for ``x + 0.0`` and ``x - -0.0`` of floats, which make +0 of -0: these are ``reassociates``.
    """

    name = "neutral-operand"
    roots: ClassVar[tuple[Operation, ...]] = (MUL, DIV, POW, ADD, SUB)
    fed_by: ClassVar[Collection[Operation]] = (CONSTANT, FULL)

    def match(self, node: Node, graph: Graph) -> ReplacedMatch | None:
        left, right = node.operand("a"), node.operand("b")
        if _is_neutral(node.op, right) and left.type == node.result.type:
            return ReplacedMatch(node, value=left)
        if node.op in _COMMUTATIVE and _is_neutral(node.op, left) and right.type == node.result.type:
            return ReplacedMatch(node, value=right)
        return None

    def class_of(self, match: ReplacedMatch, graph: Graph, context: PassContext) -> str:
        op, value = match.root.op, match.value
        if op not in (ADD, SUB) or not match.root.result.type.dtype.is_float:
            return EXACT
        other = match.root.operand("b") if value is match.root.operand("a") else match.root.operand("a")
        data = constant_of(other)
        assert data is not None
        return EXACT if bool((np.signbit(data.array) == (op is ADD)).all()) else REASSOCIATES


_COMMUTATIVE = frozenset((MUL, ADD))


def _is_neutral(op: Operation, value: Value) -> bool:
    return _is_all(value, 0 if op is ADD or op is SUB else 1)


def _is_all(value: Value | None, wanted: int) -> bool:
    """Return whether a value is that number alone: a constant, or integers that are filled in."""
    filled = made_by(value, FULL)
    if value is not None and filled is not None and value.type.dtype.is_integer:
        return filled.attributes_as(FullAttributes).value == wanted
    data = constant_of(value)
    if data is None or not 0 < data.array.size <= _MOST_ELEMENTS:
        return False
    array = data.array
    return array.item(0) == wanted and bool((array == wanted).all())  # the first mostly decides


class ProductWithZero(Rule[Match]):
    """``x * 0`` of integers becomes 0. ``exact``: of floats it may be NaN."""

    name = "product-with-zero"
    roots: ClassVar[tuple[Operation, ...]] = (MUL,)
    fed_by: ClassVar[Collection[Operation]] = (CONSTANT, FULL)

    def match(self, node: Node, graph: Graph) -> Match | None:
        is_known = node.result.type.dtype.is_integer and node.result.type.is_static
        return Match(node) if is_known and any(_is_all(value, 0) for value in node.operands) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        kind = match.root.result.type
        return [rewriter.add(FULL, [], FullAttributes(shape=kind.shape, value=0, dtype=kind.dtype))]


class KnownTruth(Rule[Match]):
    """A comparison or connective of truths with a constant becomes the truth, its negation, or the constant."""

    name = "known-truth"
    roots: ClassVar[tuple[Operation, ...]] = (EQUAL, NOT_EQUAL, XOR, AND, OR)
    fed_by: ClassVar[Collection[Operation]] = (CONSTANT, FULL)

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
        if known is None or value is None or known.type.dtype is not bool_:
            continue
        truth = _truth_everywhere(known)
        if truth is None:
            continue
        decides = (node.op is AND and not truth) or (node.op is OR and truth)
        chosen = known if decides else value
        if chosen.type == node.result.type:
            return chosen, decides or node.op in (AND, OR) or truth == (node.op is EQUAL)
    return None


class KnownChoice(Rule[ReplacedMatch]):
    """``where`` with a condition that is true everywhere, or false everywhere, becomes the operand that it chooses.

    ``exact``. Only where that operand has the shape of the result, or where an expand to known sizes gives it.
    """

    name = "known-choice"
    roots: ClassVar[tuple[Operation, ...]] = (WHERE,)
    fed_by: ClassVar[Collection[Operation]] = (CONSTANT, FULL)

    def match(self, node: Node, graph: Graph) -> ReplacedMatch | None:
        truth = _truth_everywhere(node.operand("cond"))
        return None if truth is None else ReplacedMatch(node, value=node.operand(1 if truth else 2))

    def check(self, match: ReplacedMatch, graph: Graph) -> Miss | None:
        result = match.root.result
        if match.value.type == result.type or result.type.is_static:
            return None
        return Miss("{0} has another shape than {1}, whose sizes are open", (match.value, result), result)

    def build(self, match: ReplacedMatch, rewriter: Rewriter) -> Sequence[Value]:
        shape = match.root.result.shape
        if match.value.shape == shape:
            return [match.value]
        return [rewriter.add(EXPAND, [match.value], ExpandAttributes(shape=shape))]


def _truth_everywhere(value: Value) -> bool | None:
    """The truth that all elements are; None where they are not known or differ."""
    data = constant_of(value)
    if data is not None:
        array = data.array
        known = 0 < array.size <= _MOST_ELEMENTS and bool((array == array.flat[0]).all())
        return bool(array.flat[0]) if known else None
    filled = made_by(value, FULL)
    return None if filled is None else bool(filled.attributes_as(FullAttributes).value)


class SwappedChoice(Rule[Match]):
    """``where(not c, a, b)`` becomes ``where(c, b, a)``. ``exact``."""

    name = "swapped-choice"
    roots: ClassVar[tuple[Operation, ...]] = (WHERE,)
    fed_by: ClassVar[Collection[Operation]] = (NOT,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        before = made_by(node.operand("cond"), NOT)
        return None if before is None else Match(node, (before,))

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (before,), (_, true, false) = match.consumed, match.root.operands
        return [rewriter.add(WHERE, [before.operand("x"), false, true])]


class _ChoiceMatch(Match, eq=False, kw_only=True):
    """The operands of the ``where``."""

    cond: Value
    true: Value
    false: Value


class ChoiceByProducts(Rule[_ChoiceMatch]):
    """``cast(c) * a + cast(!c) * b`` of integers becomes ``where(c, a, b)``.

    ``exact``. An embedding of Keras counts negative indices from the end so, once tf2onnx has written it.
    """

    name = "choice-by-products"
    roots: ClassVar[tuple[Operation, ...]] = (ADD,)
    fed_by: ClassVar[Collection[Operation]] = (MUL,)

    def match(self, node: Node, graph: Graph) -> _ChoiceMatch | None:
        first, second = (made_by(value, MUL) for value in node.operands)
        if first is None or second is None or not node.result.type.dtype.is_integer:
            return None
        for left, right in ((first, second), (second, first)):
            for cond, true in _gated(left):
                for other, false in _gated(right):
                    negation = made_by(other, NOT)
                    if negation is not None and negation.operand("x") is cond:
                        return _ChoiceMatch(node, (first, second), cond=cond, true=true, false=false)
        return None

    def check(self, match: _ChoiceMatch, graph: Graph) -> Miss | None:
        if not self.capabilities.takes("Where", match.root.result.type.dtype):
            return Miss("the target has no kernel of Where for {0}", (match.root.result.type.dtype,))
        return consumed_elsewhere(match)

    def build(self, match: _ChoiceMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(WHERE, [match.cond, match.true, match.false])]


def _gated(product: Node) -> Iterator[tuple[Value, Value]]:
    """The truth and the number that it lets through, for each factor that is a truth."""
    for gate, number in both_ways(product):
        cast = made_by(gate, CAST)
        if cast is not None and cast.operand("x").type.dtype is bool_:
            yield cast.operand("x"), number


class DifferentTruths(Rule[Match]):
    """``a != b`` of truths becomes ``a ^ b``, which is one operator in ONNX where the comparison is two."""

    name = "different-truths"
    roots: ClassVar[tuple[Operation, ...]] = (NOT_EQUAL,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if node.operand("a").type.dtype is bool_ else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.add(XOR, [match.root.operand("a"), match.root.operand("b")])]


class SameCast(_Replace):
    """A cast to the dtype that is there becomes its operand."""

    name = "cast-to-same"
    roots: ClassVar[tuple[Operation, ...]] = (CAST,)

    def match(self, node: Node, graph: Graph) -> ReplacedMatch | None:
        x = node.operand("x")
        return ReplacedMatch(node, value=x) if x.type.dtype is node.attributes_as(CastAttributes).to else None


class CastOfFill(Rule[Match]):
    """A cast of a tensor that is filled with a truth or an integer fills it with the number. ``exact``."""

    name = "cast-of-fill"
    roots: ClassVar[tuple[Operation, ...]] = (CAST,)
    fed_by: ClassVar[Collection[Operation]] = (FULL,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        filled = made_by(node.operand("x"), FULL)
        is_known = filled is not None and isinstance(filled.attributes_as(FullAttributes).value, (bool, int))
        return Match(node) if is_known and not node.operand("x").type.dtype.is_float else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [rewriter.cast(match.root.operand("x"), match.root.result.type.dtype)]


class Inverse(_Replace):
    """``-(-x)`` and ``!!x`` become ``x``."""

    name = "double-inverse"
    roots: ClassVar[tuple[Operation, ...]] = (NEG, NOT)
    fed_by: ClassVar[Collection[Operation]] = (NEG, NOT)

    def match(self, node: Node, graph: Graph) -> ReplacedMatch | None:
        inner = node.operand("x").producer
        return ReplacedMatch(node, value=inner.operand("x")) if inner is not None and inner.op is node.op else None


class Idempotent(_Replace):
    """``abs(abs(x))`` and the like become ``abs(x)``: the second does nothing."""

    name = "idempotent"
    roots: ClassVar[tuple[Operation, ...]] = (ABS, RELU, FLOOR, CEIL, ROUND, SIGN)
    fed_by: ClassVar[Collection[Operation]] = (ABS, RELU, FLOOR, CEIL, ROUND, SIGN)

    def match(self, node: Node, graph: Graph) -> ReplacedMatch | None:
        inner = node.operand("x").producer
        return ReplacedMatch(node, value=inner.result) if inner is not None and inner.op is node.op else None


class CastChain(Rule[Match]):
    """``cast(cast(x, to=A), to=B)`` becomes ``cast(x, to=B)`` where A holds every value of x, or where all wraps."""

    name = "cast-chain"
    roots: ClassVar[tuple[Operation, ...]] = (CAST,)
    fed_by: ClassVar[Collection[Operation]] = (CAST,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = node.operand("x").producer
        if inner is None or inner.op is not CAST:
            return None
        source, middle, to = inner.operand("x").type.dtype, inner.result.type.dtype, node.result.type.dtype
        return Match(node, (inner,)) if middle.holds(source) or _wraps(source, middle, to) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        record: Any = match.root.attributes
        x = inner.operand("x")
        return [x if x.type.dtype is record.to else rewriter.add(CAST, [x], record)]


def _wraps(source: DType, middle: DType, to: DType) -> bool:
    """Integers modulo 2^n: a narrower end does not see the middle, if that is at least as wide."""
    return source.is_integer and middle.is_integer and to.is_integer and to.bits <= middle.bits


_Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
#: A larger constant is not negated: the model would hold it twice where others need it as it was.
_MOST_FACTORS = 1 << 22
#: Users of a factor that are asked whether they are such products too.
_MOST_USERS = 64


class _SignMatch(Match, eq=False, kw_only=True):
    """A product of a concat with negated parts and a factor. ``signs`` are those along axis ``axis`` of the factor."""

    concat: Value
    factor: Value
    signs: tuple[int, ...]
    axis: int


class SignIntoFactor(Rule[_SignMatch]):
    """``concat(-a, b) * t`` becomes ``concat(a, b) * u``, where u is t with the signs of the parts.

    ``exact``: a product's sign is the product of the signs. Rotary embeddings rotate both query and key by one table.
    So the negation is computed once for all of them, or not at all if the table is a constant.
    """

    name = "sign-into-factor"
    roots: ClassVar[tuple[Operation, ...]] = (MUL,)
    fed_by: ClassVar[Collection[Operation]] = (CONCAT,)

    def match(self, node: Node, graph: Graph) -> _SignMatch | None:
        return _match(node)

    def check(self, match: _SignMatch, graph: Graph) -> Miss | None:
        for node in match.consumed:
            if (miss := used_elsewhere(node.result)) is not None:
                return miss
        tensor = constant_of(match.factor)
        if tensor is not None:
            if tensor.size > _MOST_FACTORS:
                return Miss("the constant has {0} elements", (tensor.size,), match.factor)
            return None
        if not any(_shares(user, match) for user in islice(match.factor.users, _MOST_USERS)):
            return Miss(
                "no other product shares the factor: its signs cost all that it saves", (), match.factor, saves=0
            )
        return None

    def describe(self, match: _SignMatch) -> str:
        return "the negation of parts of a concat, into the factor"

    def build(self, match: _SignMatch, rewriter: Rewriter) -> Sequence[Value]:
        concat, factor = match.concat, match.factor
        assert concat.producer is not None
        parts = [part.operand("x") if (part := made_by(v, NEG)) else v for v in concat.producer.operands]
        joined = rewriter.add(CONCAT, parts, concat.producer.attributes_as(ConcatAttributes))
        tensor, signs = constant_of(factor), _signs(match, factor)
        if tensor is not None:
            turned = rewriter.constant(tensor.array * signs)
        else:
            turned = rewriter.add(MUL, [factor, rewriter.constant(signs)])
        ours = match.root.operand("a") is concat
        return [rewriter.add(MUL, [joined, turned] if ours else [turned, joined])]


def _match(node: Node) -> _SignMatch | None:
    if not node.result.type.dtype.is_float:
        return None
    for value, factor in both_ways(node):
        concat = made_by(value, CONCAT)
        if concat is None:
            continue
        negated = [part for operand in concat.operands if (part := made_by(operand, NEG)) is not None]
        axis = concat.attributes_as(ConcatAttributes).axis + factor.type.rank - value.type.rank
        size = value.shape[concat.attributes_as(ConcatAttributes).axis]
        if not negated or axis < 0 or not isinstance(size, int) or factor.shape[axis] != size:
            continue
        signs = _signs_of(concat)
        if signs is not None:
            return _SignMatch(
                node, (concat, *dict.fromkeys(negated)), concat=value, factor=factor, signs=signs, axis=axis
            )
    return None


def _signs_of(concat: Node) -> tuple[int, ...] | None:
    """The sign of each place along the axis; None where a part's size is open."""
    axis = concat.attributes_as(ConcatAttributes).axis
    out: list[int] = []
    for part in concat.operands:
        assert part is not None
        size = part.shape[axis]
        if not isinstance(size, int):
            return None
        out += [1 if made_by(part, NEG) is None else -1] * size
    return tuple(out)


def _signs(match: _SignMatch, factor: Value) -> _Array:
    """The signs as numbers of the factor's dtype, with as many axes behind them as the factor has."""
    shape = (len(match.signs), *[1] * (factor.type.rank - 1 - match.axis))
    return np.asarray(match.signs, factor.type.dtype.numpy).reshape(shape)


def _shares(user: Node, match: _SignMatch) -> bool:
    """Return whether a user of the factor is another such product, or the factor with these signs already."""
    if user is match.root or user.op is not MUL:
        return False
    other = _match(user)
    if other is not None:
        alike = other.factor is match.factor and other.signs == match.signs and other.axis == match.axis
        return alike and all(node.result.is_used_once for node in other.consumed)
    return any(
        value is match.factor and (tensor := constant_of(signs)) is not None and _is_same(tensor, _signs(match, value))
        for value, signs in both_ways(user)
    )


def _is_same(tensor: Tensor, array: _Array) -> bool:
    return tensor.array.shape == array.shape and bool((tensor.array == array).all())


class _ScalesMatch(Match, eq=False, kw_only=True):
    """``operands`` are the product's without their scales, ``scale`` is the product of these."""

    operands: tuple[Value, Value]
    scale: np.ndarray[Any, Any]


class ScalesOfProduct(Rule[_ScalesMatch]):
    """``matmul(a * s, b * t)`` with numbers ``s`` and ``t`` becomes ``matmul(a * (s * t), b)``; quotients count too.

    ``reassociates``. PyTorch scales the queries and the keys of attention by the root of the scale each.
    """

    name = "scales-of-product"
    roots: ClassVar[tuple[Operation, ...]] = (MATMUL,)
    fed_by: ClassVar[Collection[Operation]] = (MUL, DIV)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _ScalesMatch | None:
        left, right = scaled_of(node.operand("a")), scaled_of(node.operand("b"))
        if left is None or right is None:
            return None
        with np.errstate(all="ignore"):
            scale = np.asarray(left.factor * right.factor).astype(node.result.type.dtype.numpy)
        return _ScalesMatch(node, (left.node, right.node), operands=(left.x, right.x), scale=scale)

    def check(self, match: _ScalesMatch, graph: Graph) -> Miss | None:
        if not np.finfo(match.scale.dtype).tiny <= abs(match.scale) < np.inf:
            return Miss("the product of both scales leaves the range of {0}", (match.root.result.type.dtype,))
        return used_elsewhere(match.consumed[0].result) or used_elsewhere(match.consumed[1].result)

    def build(self, match: _ScalesMatch, rewriter: Rewriter) -> Sequence[Value]:
        left, right = match.operands
        scaled = rewriter.add(MUL, [left, rewriter.constant(match.scale)])
        return [rewriter.add(MATMUL, [scaled, right])]
