"""The arithmetic normal form of a value: a sum of numbers times atoms with exponents.

An atom is a value, a mean, or another sum under a root or below a line. Means and such sums are named by the forms
of what is in them, so that two spellings of one formula have equal forms. A rule builds the form that it looks for with
the functions of this file, and compares.

Values of equal forms are equal as real numbers: they may differ in rounding and in what overflows (``reassociates``).
Two rules see to it that a value is NaN or infinite only where its form is, whatever zeros and infinities are in it:

* Nothing cancels. A sum of terms with opposite signs, as ``x - x``, and a product of powers with opposite exponents,
  as ``x / x``, or of two roots of one atom stay closed.
* A root opens one factor with the exponent 1 or -1 only: ``sqrt(x * x)`` is not ``x``.

A form says nothing of shapes: a value and the same value broadcast have one form. Axes are counted from the last one,
so that they are the same in both. Who replaces a value compares the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dmlc.ir import Dim, Node, Operation, Value, product
from dmlc.ops.binary import ADD, DIV, MAX, MUL, POW, SUB
from dmlc.ops.choose import CAST, CLIP, ClipAttributes
from dmlc.ops.elementwise import NEG, RECIPROCAL, RELU, SQRT
from dmlc.ops.move import EXPAND
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, ReduceAttributes, axes_of
from dmlc.passes.patterns import Seen, both_ways, made_by, scalar_of

#: Atoms and their exponents.
Product: TypeAlias = "frozenset[tuple[Atom, float]]"
#: Products and the numbers that they are multiplied by.
Form: TypeAlias = "dict[Product, float]"
Name: TypeAlias = "frozenset[tuple[Product, float]]"


class Sum(Struct, frozen=True):
    """A sum under a root or below a line."""

    of: Name


class Mean(Struct, frozen=True):
    """A mean over ``axes``, counted from the last one: -1, -2. If not ``in_place``, it broadcasts along other axes than
    those that it was taken over."""

    of: Name
    axes: tuple[int, ...]
    in_place: bool = True


#: A size is an atom where it is not known.
Atom: TypeAlias = "Value | Dim | Sum | Mean"
ONE: Product = frozenset()
#: Larger forms stay closed: most terms, nodes on the way to a stop, and values in all.
_MOST_TERMS, _MOST_STEPS, _MOST_VALUES = 12, 24, 64


class Closed(ArithmeticError):
    """A result that has no form: the value is an atom."""


def number(c: float) -> Form:
    return {ONE: float(c)}


def atom(a: Atom, exponent: float = 1.0) -> Form:
    return {frozenset(((a, exponent),)): 1.0}


def plus(a: Form, b: Form, sign: float = 1.0) -> Form:
    """``a + b``, or ``a - b`` with the sign -1."""
    out = dict(a)
    for term, c in b.items():
        _add(out, term, sign * c)
    return out


def _add(out: Form, term: Product, c: float) -> None:
    old = out.get(term, 0.0)
    if old * c < 0 or not isfinite(old + c) or len(out) >= _MOST_TERMS:
        raise Closed
    out[term] = old + c


def times(a: Form, b: Form) -> Form:
    out: Form = {}
    for m, c in a.items():
        for n, d in b.items():
            if c * d == 0:
                raise Closed  # 0 times infinity is NaN
            _add(out, _joined(m, n) if m and n else m or n, c * d)
    return out


def _joined(m: Product, n: Product) -> Product:
    powers = dict(m)
    for a, e in n:
        old = powers.get(a)
        if old is not None and not (old * e > 0 and old.is_integer() and e.is_integer()):
            raise Closed
        powers[a] = e + (old or 0.0)
    return frozenset(powers.items())


def power(a: Form, exponent: float) -> Form:
    if exponent in (1, 2, 3):
        return a if exponent == 1 else times(a, power(a, exponent - 1))
    if exponent in (-2, -3):
        return power(power(a, -1.0), -exponent)
    if exponent not in (-1, 0.5, -0.5):
        raise Closed
    if len(a) == 1:
        ((term, c),) = a.items()
        plain = len(term) < 2 and c > 0 and all(e in (1, -1) for _, e in term)
        if exponent == -1 or plain:
            return {frozenset((x, e * exponent) for x, e in term): c**exponent}
    return atom(Sum(name(a)), exponent)


def mean(a: Form, axes: tuple[int, ...], in_place: bool = True) -> Form:
    return atom(Mean(name(a), axes, in_place))


def name(a: Form) -> Name:
    return frozenset(a.items())


def constant(a: Form) -> float | None:
    """The number that the form is."""
    return a[ONE] if a.keys() == {ONE} else None


def equal(a: Form, b: Form, tolerance: float = 1e-6) -> bool:
    return a.keys() == b.keys() and all(abs(a[term] - c) <= tolerance * abs(c) for term, c in b.items())


def quotient(a: Form, b: Form, tolerance: float = 1e-6) -> tuple[Product, float] | None:
    """The product and the number that ``b`` is multiplied by where that gives ``a``."""
    first, d = next(iter(b.items()))
    for term, c in a.items():
        try:
            if first <= term and equal(a, times({term - first: c / d}, b), tolerance):
                return term - first, c / d
        except ArithmeticError:
            continue
    return None


def atoms(a: Form) -> Iterator[tuple[Atom, float]]:
    """All atoms of the form with their exponents, without the atoms inside its means and sums."""
    for term in a:
        yield from term


def bare(value: Value) -> Value:
    """Return the value before casts to a wider float, which change no number."""
    node = made_by(value, CAST)
    while node is not None and _widens(node):
        value = node.operand("x")
        node = made_by(value, CAST)
    return value


def _widens(cast: Node) -> bool:
    before, after = cast.operand("x").type.dtype, cast.result.type.dtype
    return before.is_float and after.is_float and before.bits < after.bits


class Forms:
    """Forms of values in terms of ``stops``, which are atoms. What depends on none of them is an atom, too, unless it
    is a number; ``alone`` refuses it. ``opened`` are the nodes in between, in the order of their operands."""

    def __init__(self, *stops: Value, alone: bool = False) -> None:
        self.alone = alone
        self._stops: set[Value] = {bare(value) for value in stops}
        self._inside: set[Value] = set()
        self.known: dict[Value, Form] = {}
        self.opened: dict[Node, None] = {}

    def of(self, value: Value, steps: int = _MOST_STEPS) -> Form:
        form = self.known.get(value)
        if form is not None:
            return form
        node = value.producer
        plain = value if node is None or node.op is not CAST else bare(value)
        c = None if node is None else scalar_of(value)
        if plain in self._stops:
            self._inside.add(value)
            form = atom(plain)
        elif c is not None:
            form = number(c)
        elif node is not None and node.op in OPENED and steps and len(self.known) <= _MOST_VALUES:
            form = self._opened(node, steps)
        if form is None and self.alone:
            raise Closed
        self.known[value] = out = form or atom(value)
        return out

    def _opened(self, node: Node, steps: int) -> Form | None:
        operands = [v for v in node.operands if v is not None]
        forms = [self.of(v, steps - 1) for v in operands]
        if not node.result.type.dtype.is_float or self._inside.isdisjoint(operands):
            return None
        try:
            form = OPENED[node.op](node, *forms)
        except ArithmeticError:  # closed, or the numbers are too large
            return None
        self._inside.add(node.result)
        self.opened[node] = None
        return form


def base_of(value: Value, exponent: float, seen: Seen) -> Value | None:
    """``x`` where the value is ``x ** exponent`` in any spelling: -0.5 for ``1 / sqrt(x)`` and ``sqrt(1 / x)``."""
    x = value
    for _ in range(2):
        node = made_by(x, POW, SQRT, RECIPROCAL, DIV)
        others = [] if node is None else [v for v in node.operands if v is not None and scalar_of(v) is None]
        if len(others) != 1:
            break
        (x,) = others
        forms = Forms(x)
        if value.shape == x.shape and forms.of(value) == atom(bare(x), exponent):
            seen.extend(forms.opened)
            return x
    return None


def quotient_of(value: Value, seen: Seen) -> tuple[Value, Value] | None:
    """``(a, b)`` where the value is ``a / b`` or ``a * (1 / b)``."""
    node = made_by(value, DIV, MUL)
    if node is None:
        return None
    if node.op is DIV:
        seen.append(node)
        return node.operand("a"), node.operand("b")
    for a, b in both_ways(node):
        mine: Seen = [node]
        below = base_of(b, -1, mine)
        if below is not None:
            seen.extend(mine)
            return a, below
    return None


def _quotient(node: Node, a: Form, b: Form) -> Form:
    return _counted(node, times(a, power(b, -1.0)))


def _counted(node: Node, a: Form) -> Form:
    """The form, with 1 for a factor of a mean that differs from it by the rounding of one over the count."""
    ((term, c), *more) = a.items()
    if not more and [type(x) for x, e in term if e == 1] == [Mean]:
        near = 4 * float(np.finfo(node.result.type.dtype.numpy).eps)
        return {term: 1.0 if abs(c - 1) <= near else c}
    return a


def _power(node: Node, a: Form, b: Form) -> Form:
    exponent = constant(b)
    if exponent is None:
        raise Closed
    return power(a, exponent)


def _cast(node: Node, a: Form) -> Form:
    """A cast between floats, but of no value that it would round: what is made of means alone is computed in f32."""
    if not node.operand("x").type.dtype.is_float or not (_widens(node) or _is_of_means(a)):
        raise Closed
    return a


def _is_of_means(a: Form) -> bool:
    return all(isinstance(x, Mean) or (isinstance(x, Sum) and _is_of_means(dict(x.of))) for x, _ in atoms(a))


def mean_by(node: Node, a: Form) -> Form:
    """Return the mean of ``a`` over the axes of a reduction."""
    axes, rank = axes_of(node), node.operand("x").type.rank
    kept = node.attributes_as(ReduceAttributes).keepdims or axes == tuple(range(len(axes)))
    return mean(a, tuple([axis - rank for axis in axes]), kept)


def _total(node: Node, a: Form) -> Form:
    count = product([node.operand("x").shape[axis] for axis in axes_of(node)])
    return times(mean_by(node, a), number(count) if isinstance(count, int) else atom(count))


def _above_zero(node: Node, *forms: Form) -> Form:
    """A variance that is kept from going below 0."""
    bounded = [form for form in forms if form != number(0)]
    if node.op is CLIP:
        bounds, finite = node.attributes_as(ClipAttributes), float(np.finfo(node.result.type.dtype.numpy).max)
        if bounds.min != 0 or bounds.max not in (None, finite):
            raise Closed
    if len(forms) != (2 if node.op is MAX else 1) or len(bounded) != 1 or not _is_variance(bounded[0]):
        raise Closed
    return bounded[0]


def _is_variance(a: Form) -> bool:
    """Return whether it is the mean of squares less the square of the mean."""
    means = [x for x, e in atoms(a) if isinstance(x, Mean) and e == 2]
    return any(a == plus(mean(power(dict(m.of), 2), m.axes, m.in_place), atom(m, 2.0), -1) for m in means)


#: The forms of results from the forms of operands. No other place knows spellings.
OPENED: dict[Operation, Callable[..., Form]] = {
    ADD: lambda node, a, b: plus(a, b),
    SUB: lambda node, a, b: plus(a, b, -1),
    NEG: lambda node, a: times(number(-1), a),
    MUL: lambda node, a, b: _counted(node, times(a, b)),
    DIV: _quotient,
    POW: _power,
    RECIPROCAL: lambda node, a: power(a, -1.0),
    SQRT: lambda node, a: power(a, 0.5),
    CAST: _cast,
    EXPAND: lambda node, a: a,
    REDUCE_MEAN: mean_by,
    REDUCE_SUM: _total,
    REDUCE_SUM_SQUARE: lambda node, a: _total(node, power(a, 2)),
    RELU: _above_zero,
    CLIP: _above_zero,
    MAX: _above_zero,
}
