"""Operations on numbers that give back their operand.

All are exact but one: ``x + 0.0`` and ``x - -0.0`` of floats make +0 of -0, so that ``x`` in their place is
``reassociates``, and ``--exact`` leaves them as they are. ``x - 0.0`` and ``x + -0.0`` keep every bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from dmlc.ir import DType, Node, Operation, Tensor, Value
from dmlc.ir.dtype import bool_
from dmlc.ops.binary import (
    ADD,
    AND,
    DIV,
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    MAX,
    MIN,
    MUL,
    NOT_EQUAL,
    OR,
    POW,
    SUB,
    XOR,
)
from dmlc.ops.choose import CAST, CLIP, WHERE, CastAttributes
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.elementwise import ABS, CEIL, FLOOR, NEG, NOT, RELU, ROUND, SIGN
from dmlc.ops.index import FULL, FullAttributes
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, ConcatAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.intervals import INF, Interval, Intervals, clip_bounds, of_dtype
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, simplifies, taken_elsewhere
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES
from dmlc.passes.patterns import both_ways, broadcasts, made_by, scalar_of, scaled_of
from dmlc.passes.rewrite import Miss, used_elsewhere

#: A larger constant is not searched for ones or zeros.
_MOST_ELEMENTS = 2**20


#: Operations that make a tensor of one number.
_NUMBERS = (CONSTANT, FULL)


def _changes_nothing(rule: Any, match: LoweredNode) -> str:
    return f"{match.root.op.name} that changes nothing"


@simplifies(MUL, DIV, POW, ADD, SUB, fed_by=_NUMBERS, gives=(EXACT, REASSOCIATES), describe=_changes_nothing)
def neutral_operand(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``x * 1``, ``x / 1``, ``x ** 1``, ``x - 0`` and ``x + 0`` become ``x``.

    ``exact``, but for ``x + 0.0`` and ``x - -0.0`` of floats, which make +0 of -0: these are ``reassociates``.
    """
    neutral = 0 if node.op in (ADD, SUB) else 1
    for x, other in ((a, b), (b, a)) if node.op in (MUL, ADD) else ((a, b),):
        if x.type == node.result.type and _is_all(other.value, neutral):
            if neutral == 0 and x.dtype.is_float and other.data is not None:
                is_kept = bool((np.signbit(other.data.array) == (node.op is ADD)).all())
                e.gives = EXACT if is_kept else REASSOCIATES
            return x
    return KEEP


def _is_all(value: Value, wanted: int) -> bool:
    """Return whether a value is that number alone: a constant, or integers that are filled in."""
    filled = made_by(value, FULL)
    if filled is not None and value.type.dtype.is_integer:
        return filled.attributes_as(FullAttributes).value == wanted
    data = constant_of(value)
    if data is None or not 0 < data.array.size <= _MOST_ELEMENTS:
        return False
    array = data.array
    return array.item(0) == wanted and bool((array == wanted).all())  # the first mostly decides


@simplifies(MUL, fed_by=_NUMBERS)
def product_with_zero(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``x * 0`` of integers becomes 0. ``exact``: of floats it may be NaN."""
    kind = node.result.type
    is_known = kind.dtype.is_integer and kind.is_static and any(_is_all(x.value, 0) for x in (a, b))
    return e.full(shape=kind.shape, value=0, dtype=kind.dtype) if is_known else KEEP


@simplifies(EQUAL, NOT_EQUAL, XOR, AND, OR, fed_by=_NUMBERS)
def known_truth(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """A bool compared or combined with a constant bool becomes the bool itself, its negation, or the constant."""
    for known, value in ((a, b), (b, a)):
        truth = _truth_everywhere(known.value) if known.dtype is bool_ else None
        if truth is None:
            continue
        decides = (node.op is AND and not truth) or (node.op is OR and truth)
        chosen = known if decides else value
        if chosen.type == node.result.type:
            return chosen if decides or node.op in (AND, OR) or truth == (node.op is EQUAL) else ~chosen
    return KEEP


@simplifies(WHERE, fed_by=_NUMBERS)
def known_choice(e: Sketch, node: Node, cond: Term, true: Term, false: Term) -> Lowered:
    """``where`` with a condition that is true everywhere, or false everywhere, becomes the operand that it chooses.

    ``exact``. Only where that operand has the shape of the result, or where an expand to known sizes gives it.
    """
    truth, result = _truth_everywhere(cond.value), node.result
    if truth is None:
        return KEEP
    chosen = true if truth else false
    if chosen.type != result.type and not result.type.is_static:
        return Miss("{0} has another shape than {1}, whose sizes are open", (chosen.value, result), result)
    return chosen if chosen.shape == result.shape else e.expand(chosen, shape=result.shape)


def _truth_everywhere(value: Value) -> bool | None:
    """The truth that all elements are; None where they are not known or differ."""
    data = constant_of(value)
    if data is not None:
        array = data.array
        known = 0 < array.size <= _MOST_ELEMENTS and bool((array == array.flat[0]).all())
        return bool(array.flat[0]) if known else None
    filled = made_by(value, FULL)
    return None if filled is None else bool(filled.attributes_as(FullAttributes).value)


@simplifies(WHERE, fed_by=(NOT,))
def swapped_choice(e: Sketch, node: Node, cond: Term, true: Term, false: Term) -> Lowered:
    """``where(not c, a, b)`` becomes ``where(c, b, a)``. ``exact``."""
    negation = e.made_by(cond, NOT)
    return KEEP if negation is None else e.where(negation.operand("x"), false, true)


@simplifies(ADD, fed_by=(MUL,))
def choice_by_products(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``cast(c) * a + cast(!c) * b`` of integers becomes ``where(c, a, b)``.

    ``exact``. An embedding of Keras counts negative indices from the end so, once tf2onnx has written it.
    """
    first, second, dtype = e.made_by(a, MUL), e.made_by(b, MUL), node.result.type.dtype
    if first is None or second is None or not dtype.is_integer:
        return KEEP
    for left, right in ((first, second), (second, first)):
        for (cond, true), (other, false) in product(_gated(left), _gated(right)):
            negation = made_by(other, NOT)
            if negation is not None and negation.operand("x") is cond:
                if not e.target.takes("Where", dtype):
                    return Miss("the target has no kernel of Where for {0}", (dtype,))
                return used_elsewhere(a.value) or used_elsewhere(b.value) or e.where(cond, true, false)
    return KEEP


def _gated(product: Node) -> Iterator[tuple[Value, Value]]:
    """The truth and the number that it lets through, for each factor that is a truth."""
    for gate, number in both_ways(product):
        cast = made_by(gate, CAST)
        if cast is not None and cast.operand("x").type.dtype is bool_:
            yield cast.operand("x"), number


@simplifies(NOT_EQUAL)
def different_truths(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``a != b`` of truths becomes ``a ^ b``, which is one operator in ONNX where the comparison is two."""
    return a ^ b if a.dtype is bool_ else KEEP


@simplifies(CAST, describe=_changes_nothing)
def cast_to_same(e: Sketch, node: Node, x: Term) -> Lowered:
    """A cast to the dtype that its operand has is removed."""
    return x if x.dtype is node.attributes_as(CastAttributes).to else KEEP


@simplifies(NEG, NOT, fed_by=(NEG, NOT), describe=_changes_nothing)
def double_inverse(e: Sketch, node: Node, x: Term) -> Lowered:
    """``-(-x)`` and ``!!x`` become ``x``."""
    inner = made_by(x.value, node.op)
    return KEEP if inner is None else inner.operand("x")


_ONCE = (ABS, RELU, FLOOR, CEIL, ROUND, SIGN)


@simplifies(*_ONCE, fed_by=_ONCE, describe=_changes_nothing)
def idempotent(e: Sketch, node: Node, x: Term) -> Lowered:
    """``abs(abs(x))`` and the like become ``abs(x)``: the second does nothing."""
    return x if made_by(x.value, node.op) else KEEP


@simplifies(CAST, fed_by=(CAST,))
def cast_chain(e: Sketch, node: Node, x: Term) -> Lowered:
    """``cast(cast(x, to=A), to=B)`` becomes ``cast(x, to=B)`` where A holds every value of x, or where all wraps."""
    inner, to = e.made_by(x, CAST), node.result.type.dtype
    if inner is None:
        return KEEP
    first = e.of(inner.operand("x"))
    if not x.dtype.holds(first.dtype) and not _wraps(first.dtype, x.dtype, to):
        return KEEP
    return first if first.dtype is to else e(CAST, first, attributes=node.attributes)


@simplifies(CAST, fed_by=(FULL,))
def cast_of_fill(e: Sketch, node: Node, x: Term) -> Lowered:
    """A cast of a tensor that is filled with a truth or an integer fills it with the number. ``exact``."""
    filled = made_by(x.value, FULL)
    is_known = filled is not None and isinstance(filled.attributes_as(FullAttributes).value, (bool, int))
    return x.cast(node.result.type.dtype) if is_known and not x.dtype.is_float else KEEP


def _wraps(source: DType, middle: DType, to: DType) -> bool:
    """Integers modulo 2^n: a narrower end does not see the middle, if that is at least as wide."""
    return source.is_integer and middle.is_integer and to.is_integer and to.bits <= middle.bits


_Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
#: A larger constant is not negated: the model would hold it twice where others need it as it was.
_MOST_FACTORS = 1 << 22
#: Users of a factor that are asked whether they are such products too.
_MOST_USERS = 64


class _Signed(Struct, frozen=True):
    """A product of a concat with negated parts and a factor. ``signs`` are those along axis ``axis`` of the factor."""

    concat: Node
    factor: Value
    signs: tuple[int, ...]
    axis: int

    @property
    def parts(self) -> list[Node]:
        """The negations."""
        return [part for operand in self.concat.operands if (part := made_by(operand, NEG)) is not None]

    def numbers(self) -> _Array:
        """The signs as numbers of the factor's dtype, with as many axes behind them as the factor has."""
        shape = (len(self.signs), *[1] * (self.factor.type.rank - 1 - self.axis))
        return np.asarray(self.signs, self.factor.type.dtype.numpy).reshape(shape)


@simplifies(MUL, fed_by=(CONCAT,), describe=lambda rule, match: "the negation of parts of a concat, into the factor")
def sign_into_factor(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``concat(-a, b) * t`` becomes ``concat(a, b) * u``, where u is t with the signs of the parts.

    ``exact``: a product's sign is the product of the signs. Rotary embeddings rotate both query and key by one table.
    So the negation is computed once for all of them, or not at all if the table is a constant.
    """
    found = _signed(node)
    if found is None:
        return KEEP
    concat, factor, tensor = found.concat, e.of(found.factor), constant_of(found.factor)
    e.taken += [concat, *found.parts]
    if reason := taken_elsewhere(e):
        return reason
    if tensor is not None and tensor.size > _MOST_FACTORS:
        return Miss("the constant has {0} elements", (tensor.size,), found.factor)
    if tensor is None and not any(_shares(user, node, found) for user in islice(found.factor.users, _MOST_USERS)):
        return Miss("no other product shares the factor: its signs cost all that it saves", (), found.factor, saves=0)
    parts = [part.operand("x") if (part := made_by(v, NEG)) else v for v in concat.operands]
    joined = e(CONCAT, *parts, attributes=concat.attributes)
    turned = factor * found.numbers() if tensor is None else e.number(tensor.array * found.numbers(), factor.dtype)
    return joined * turned if a.value is concat.result else turned * joined


def _signed(node: Node) -> _Signed | None:
    if not node.result.type.dtype.is_float:
        return None
    for value, factor in both_ways(node):
        concat = made_by(value, CONCAT)
        if concat is None:
            continue
        place = concat.attributes_as(ConcatAttributes).axis
        axis, size = place + factor.type.rank - value.type.rank, value.shape[place]
        if axis < 0 or not isinstance(size, int) or factor.shape[axis] != size:
            continue
        signs = _signs_of(concat, place)
        if signs is not None and min(signs, default=1) < 0:
            return _Signed(concat, factor, signs, axis)
    return None


def _signs_of(concat: Node, axis: int) -> tuple[int, ...] | None:
    """The sign of each place along the axis; None where a part's size is open."""
    out: list[int] = []
    for part in concat.operands:
        size = None if part is None else part.shape[axis]
        if not isinstance(size, int):
            return None
        out += [1 if made_by(part, NEG) is None else -1] * size
    return tuple(out)


def _shares(user: Node, root: Node, found: _Signed) -> bool:
    """Return whether a user of the factor is another such product, or the factor with these signs already."""
    if user is root or user.op is not MUL:
        return False
    other = _signed(user)
    if other is not None:
        alike = other.factor is found.factor and other.signs == found.signs and other.axis == found.axis
        return alike and all(node.result.is_used_once for node in (other.concat, *other.parts))
    return any(
        value is found.factor and (tensor := constant_of(signs)) is not None and _is_same(tensor, found.numbers())
        for value, signs in both_ways(user)
    )


def _is_same(tensor: Tensor, array: _Array) -> bool:
    return tensor.array.shape == array.shape and bool((tensor.array == array).all())


@simplifies(MATMUL, fed_by=(MUL, DIV), gives=REASSOCIATES)
def scales_of_product(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``matmul(a * s, b * t)`` with numbers ``s`` and ``t`` becomes ``matmul(a * (s * t), b)``; quotients count too.

    ``reassociates``. PyTorch scales the queries and the keys of attention by the root of the scale each.
    """
    left, right = scaled_of(a.value), scaled_of(b.value)
    if left is None or right is None:
        return KEEP
    e.taken += [left.node, right.node]
    with np.errstate(all="ignore"):
        scale = np.asarray(left.factor * right.factor).astype(a.dtype.numpy)
    if not np.finfo(scale.dtype).tiny <= abs(scale) < np.inf:
        return Miss("the product of both scales leaves the range of {0}", (a.dtype,))
    return taken_elsewhere(e) or e.matmul(e.of(left.x) * scale, right.x)


# --- Operations that cut nothing off, for what they are given lies within their bounds already, or cut off twice

#: Bounds are f64, which hold no larger integers exactly.
_MOST_EXACT = 2.0**53


def _known(e: Sketch) -> tuple[Intervals, ...]:
    """The bounds without the promised ranges of inputs, then with them. The rule keeps them for its graph."""
    known: tuple[Intervals, ...] = getattr(e.rule, "known", ())
    if not known or known[0].graph is not e.graph:
        promises = (False, True) if e.graph.ranges else (False,)
        known = e.rule.known = tuple([Intervals(e.graph, trusts=trusts, finite=False) for trusts in promises])
    return known


@simplifies(
    *(ABS, RELU, CLIP, MAX, MIN),
    gives=(RANGE, REASSOCIATES, EXACT),
    describe=lambda rule, match: f"{match.root.op.name} that cuts nothing off",
)
def within_bounds(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``abs``, ``relu``, ``clip``, ``max`` and ``min`` that change no element become their operand: ``relu(exp(x))``.

    ``exact`` for integers. ``reassociates`` for floats: -0 stays what it is, and a kernel may round the largest sigmoid
    to more than 1. ``range`` where promised ranges are part of the proof.
    """
    if not e.graph.ranges and any(_is_seldom_bounded(x.value) for x in operands):
        return KEEP
    for known in _known(e):
        for value, (low, high) in _kept(node, known):
            if value.type != node.result.type or constant_of(value) is not None:
                continue  # constants are evaluated, or stay for a NaN
            least, most = known.of(value)
            if low <= least and most <= high:
                e.promised = known.promised(node.result)
                e.gives = RANGE if e.promised else REASSOCIATES if value.type.dtype.is_float else EXACT
                return value
    return KEEP


@simplifies(LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, gives=(RANGE, EXACT))
def decided_comparison(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """A comparison of integers that their bounds decide becomes its truth: ``argmax(x) < 0``.

    ``exact``; ``range`` where promised ranges are part of the proof.
    """
    kind = node.result.type
    for known in _known(e) if a.dtype.is_integer and kind.is_static else ():
        truth = _decided(node.op, known.of(a.value), known.of(b.value))
        if truth is not None:
            e.promised = known.promised(node.result)
            e.gives = RANGE if e.promised else EXACT
            return e.full(shape=kind.shape, value=truth, dtype=kind.dtype)
    return KEEP


def _decided(op: Operation, a: Interval, b: Interval) -> bool | None:
    """The truth of a comparison of all elements of two intervals; None where it is not the same for all."""
    if op in (GREATER, GREATER_EQUAL):
        a, b = b, a
    if op is EQUAL:
        return False if a[1] < b[0] or b[1] < a[0] else None
    if op in (LESS, GREATER):
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    return True if a[1] <= b[0] else False if a[0] > b[1] else None


def _is_seldom_bounded(value: Value) -> bool:
    """True for inputs, sums and quotients of floats: to look at all that they are computed from takes long in large
    models, and seldom finds a bound where no input promises a range."""
    if not value.type.dtype.is_float:
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


@simplifies(
    *(MAX, MIN, CLIP, RELU),
    fed_by=(MAX, MIN, CLIP, RELU),
    gives=(REASSOCIATES, EXACT),
)
def bounds_in_a_row(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``min(max(x, 0), 6)`` becomes ``clip(x, min=0, max=6)``; a relu and a clip are such bounds too.

    ``exact`` for integers, ``reassociates`` for floats: the sign of a zero at a bound of 0 is left open.
    """
    second, dtype = _bounded(node), node.result.type.dtype
    e.gives = REASSOCIATES if dtype.is_float else EXACT
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
