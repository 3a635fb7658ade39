"""Sizes: integers, and symbolic integer expressions in canonical form.

A symbolic expression is a polynomial with integer coefficients over atoms. An atom is a dim name, a floor division that
leaves a remainder, or a size cut off at 0. Equal expressions have equal forms, up to the inside of such an atom. So
``N + N`` equals ``2 * N``, and a static size is always a plain ``int``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, overload

from msgspec import Struct

from dmlc.ir.size_number import Arithmetic, SizeNumber

#: A size of more terms, or of a longer text, is not written in programs.
_MOST_TERMS = 100
_LONGEST_TEXT = 800
#: Divisions one after another are made one by a number below this.
_LARGEST_DIVISOR = 1 << 31
Bound: TypeAlias = int | float  # an integer, or plus or minus infinity
Interval: TypeAlias = tuple[Bound, Bound]


class FloorDiv(Struct, frozen=True):
    """``numerator // denominator`` where it is not known to be exact."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"{_factor(self.numerator)} // {_factor(self.denominator)}"


class Negative(Struct, frozen=True):
    """``min(size, 0)`` where the sign of the size is not known: ``min(N, 5)`` is ``5 + min(N - 5, 0)``."""

    size: DimExpr

    def __str__(self) -> str:
        return f"min({self.size}, 0)"


Atom: TypeAlias = str | FloorDiv | Negative
Monomial: TypeAlias = tuple[Atom, ...]  # sorted by text; () is the constant term


class DimExpr(Arithmetic):
    """A symbolic size. Immutable and hashable; operators build canonical results, ``int`` where static.

    ``+ - * //`` with integers and sizes give sizes; other operators and fractions give a ``SizeNumber``.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms: tuple[tuple[Monomial, int], ...] = terms
        self._hash = hash(terms)

    def __reduce__(self) -> tuple[Any, ...]:
        return DimExpr, (self.terms,)  # hashes differ from process to process

    def __eq__(self, other: object) -> bool:
        return self.terms == other.terms if isinstance(other, DimExpr) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    @overload
    def __add__(self, other: Dim) -> Dim: ...

    @overload
    def __add__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (int, DimExpr)):
            return super().__add__(other)
        return _combine(_terms(self), _terms(other), 1)

    @overload
    def __radd__(self, other: Dim) -> Dim: ...

    @overload
    def __radd__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other) if isinstance(other, (int, DimExpr)) else super().__radd__(other)

    @overload
    def __sub__(self, other: Dim) -> Dim: ...

    @overload
    def __sub__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, (int, DimExpr)):
            return super().__sub__(other)
        return _combine(_terms(self), _terms(other), -1)

    @overload
    def __rsub__(self, other: Dim) -> Dim: ...

    @overload
    def __rsub__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __rsub__(self, other: Any) -> Any:
        if not isinstance(other, int):
            return super().__rsub__(other)
        return _combine(_terms(other), _terms(self), -1)

    @overload
    def __mul__(self, other: Dim) -> Dim: ...

    @overload
    def __mul__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (int, DimExpr)):
            return super().__mul__(other)
        if isinstance(other, int) and other:
            return DimExpr(tuple([(monomial, c * other) for monomial, c in self.terms]))
        out: dict[Monomial, int] = {}
        for m1, c1 in _terms(self).items():
            for m2, c2 in _terms(other).items():
                key = tuple(sorted(m1 + m2, key=_atom_key))
                out[key] = out.get(key, 0) + c1 * c2
        return _make(out)

    @overload
    def __rmul__(self, other: Dim) -> Dim: ...

    @overload
    def __rmul__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __rmul__(self, other: Any) -> Any:
        return self.__mul__(other) if isinstance(other, (int, DimExpr)) else super().__rmul__(other)

    @overload
    def __floordiv__(self, other: Dim) -> Dim: ...

    @overload
    def __floordiv__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __floordiv__(self, other: Any) -> Any:
        if not isinstance(other, (int, DimExpr)):
            return super().__floordiv__(other)
        return floordiv(self, other)

    @overload
    def __rfloordiv__(self, other: Dim) -> Dim: ...

    @overload
    def __rfloordiv__(self, other: float | SizeNumber) -> SizeNumber: ...

    def __rfloordiv__(self, other: Any) -> Any:
        if not isinstance(other, int):
            return super().__rfloordiv__(other)
        return floordiv(other, self)

    def __neg__(self) -> Dim:
        return self * -1

    def __str__(self) -> str:
        name = self.name
        if name is not None:
            return name
        clamp = self.as_clamp()
        if clamp is not None:
            return f"{clamp[0]}({clamp[1]}, {clamp[2]})"
        out = ""
        for monomial, coefficient in self.terms:
            factors = [f"({a})" if isinstance(a, FloorDiv) and len(monomial) > 1 else str(a) for a in monomial]
            size = abs(coefficient)
            is_quotient = len(factors) == 1 and isinstance(monomial[0], FloorDiv)
            if is_quotient and (size != 1 or (coefficient < 0 and not out)):
                factors = [f"({factors[0]})"]
            if size != 1 or not factors:
                factors.insert(0, str(size))
            body = " * ".join(factors)
            if out:
                out += f" - {body}" if coefficient < 0 else f" + {body}"
            else:
                out = f"-{body}" if coefficient < 0 else body
        return out

    def __repr__(self) -> str:
        return f"DimExpr({self})"

    @property
    def name(self) -> str | None:
        """The dim's name where the expression is that name alone."""
        if len(self.terms) == 1:
            (monomial, coefficient) = self.terms[0]
            if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], str):
                return monomial[0]
        return None

    @property
    def is_polynomial(self) -> bool:
        """True without floor divisions, ``min`` and ``max``."""
        return all(isinstance(a, str) for monomial, _ in self.terms for a in monomial)

    @property
    def is_long(self) -> bool:
        """True for an expression that is longer than one that a program may write."""
        return len(self.terms) > _MOST_TERMS or len(str(self)) > _LONGEST_TEXT

    @property
    def is_clamped(self) -> bool:
        """True where a ``min`` or ``max`` stands in it, which no program can write."""
        return any(isinstance(atom, Negative) for atom in self.atoms())

    def as_clamp(self) -> tuple[str, Dim, Dim] | None:
        """Return ``("min", a, b)`` or ``("max", a, b)`` for an expression that is one of these; None for another."""
        found = [(m[0], c) for m, c in self.terms if len(m) == 1 and isinstance(m[0], Negative)]
        if len(found) != 1 or abs(found[0][1]) != 1:
            return None
        (atom, sign) = found[0]
        assert isinstance(atom, Negative)
        rest = self - DimExpr((((atom,), sign),))
        pair = (rest + atom.size, rest) if sign == 1 else (rest - atom.size, rest)
        a, b = reversed(pair) if isinstance(pair[0], int) else pair
        return ("min" if sign == 1 else "max"), a, b

    def atoms(self) -> Iterator[Atom]:
        """Yield the atoms of the expression and of those inside it, inner ones first."""
        for monomial, _ in self.terms:
            for atom in monomial:
                inside = (
                    ()
                    if isinstance(atom, str)
                    else (atom.size,)
                    if isinstance(atom, Negative)
                    else (atom.numerator, atom.denominator)
                )
                for part in inside:
                    if isinstance(part, DimExpr):
                        yield from part.atoms()
                yield atom

    def divisors(self) -> list[Dim]:
        """Return the divisors of inexact divisions that may be 0, innermost first. Numbers are left out: none is 0."""
        found = [atom.denominator for atom in self.atoms() if isinstance(atom, FloorDiv)]
        return [divisor for divisor in found if isinstance(divisor, DimExpr)]

    def names(self) -> set[str]:
        """All dim names in it."""
        out: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    out.add(atom)
                elif isinstance(atom, Negative):
                    out |= atom.size.names()
                else:
                    out |= dim_names(atom.numerator) | dim_names(atom.denominator)
        return out


Dim: TypeAlias = int | DimExpr
Shape: TypeAlias = tuple[Dim, ...]


def symbol(name: str) -> DimExpr:
    """The dim of that name."""
    return DimExpr((((name,), 1),))


def dim_names(dim: Dim) -> set[str]:
    return set() if isinstance(dim, int) else dim.names()


def _atom_key(atom: Atom) -> tuple[int, str]:
    return (0, atom) if isinstance(atom, str) else (1, str(atom))


def _monomial_key(monomial: Monomial) -> tuple[int, list[tuple[int, str]]]:
    return (-len(monomial), [_atom_key(a) for a in monomial])


def _terms(dim: Dim) -> dict[Monomial, int]:
    if isinstance(dim, int):
        return {(): dim} if dim else {}
    return dict(dim.terms)


def _combine(a: dict[Monomial, int], b: dict[Monomial, int], sign: int) -> Dim:
    for monomial, coefficient in b.items():
        a[monomial] = a.get(monomial, 0) + sign * coefficient
    return _make(a)


def _make(terms: dict[Monomial, int]) -> Dim:
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return DimExpr(tuple(sorted(kept, key=lambda t: _monomial_key(t[0]))))


def _factor(dim: Dim) -> str:
    simple = isinstance(dim, int) or dim.name is not None or dim.as_clamp() is not None
    return str(dim) if simple else f"({dim})"


def floordiv(a: Dim, b: Dim) -> Dim:
    """``a // b``, divided out where that is exact. Raises ``ZeroDivisionError``."""
    if b == 0:
        raise ZeroDivisionError
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(b, int):
        terms = _terms(a)
        if all(c % b == 0 for m, c in terms.items() if m):  # (2 * n + 1) // 2 is n: half of a batch, rounded up
            return _make({m: c // b for m, c in terms.items()})
        whole = terms.get((), 0) // b
        if whole:  # (n - 1) // 2 becomes (n + 1) // 2 - 1: one form for both, and fewer numerators below 0
            return floordiv(a - whole * b, b) + whole
        multiples = {m: c for m, c in terms.items() if c % b == 0}
        if multiples:  # (4 * n - m) // 4 is n + -m // 4: a length padded to whole windows is known to be their multiple
            return _make({m: c // b for m, c in multiples.items()}) + floordiv(a - _make(multiples), b)
        if b > 0 and isinstance(a, DimExpr) and a.terms[0][1] < 0:  # -n // 4 is -((n + 3) // 4)
            return -floordiv(b - 1 - a, b)
        inner = _quotient_and_number(terms)
        if inner is not None and 0 < b * inner[1] < _LARGEST_DIVISOR:
            # (n // 4 + 1) // 2 is (n + 4) // 8: layers of strides stay short
            return floordiv(inner[0].numerator + inner[1] * inner[2], inner[1] * b)
    elif len(b.terms) == 1:
        monomial, coefficient = b.terms[0]
        quotient = _divide_monomial(_terms(a), monomial, coefficient)
        if quotient is not None:
            return _make(quotient)
    else:
        multiple = _multiple(a, b)
        if multiple is not None:
            return multiple
    return DimExpr((((FloorDiv(a, b),), 1),))


def smaller(a: Dim, b: Dim) -> Dim:
    """The smaller of two sizes: ``min(a, b)``, one of them where their difference is a number.

    A size that several numbers limit is cut once from below and then once from above: ``min(max(N - 3, 0), 5)``.
    """
    for one, other in ((a, b), (b, a)):
        clamp = one.as_clamp() if isinstance(one, DimExpr) else None
        if clamp is not None and isinstance(distance := clamp[2] - other, int):
            if clamp[0] == "min":  # min(min(N, 5), 3) is min(N, 3)
                return smaller(clamp[1], clamp[2] if distance <= 0 else other)
            if distance >= 0:  # min(max(N, 5), 3) is 3
                return other
    return _smaller(a, b)


def larger(a: Dim, b: Dim) -> Dim:
    """The larger of two sizes: ``max(a, b)``, one of them where their difference is a number."""
    for one, other in ((a, b), (b, a)):
        clamp = one.as_clamp() if isinstance(one, DimExpr) else None
        if clamp is not None and isinstance(distance := clamp[2] - other, int):
            if clamp[0] == "max":  # max(max(N, 3), 5) is max(N, 5)
                return larger(clamp[1], clamp[2] if distance >= 0 else other)
            # max(min(N, 5), 3) is min(max(N, 3), 5), and max(min(N, 3), 5) is 5
            return other if distance <= 0 else smaller(larger(clamp[1], other), clamp[2])
    return -_smaller(-a, -b)


def _smaller(a: Dim, b: Dim) -> Dim:
    difference = a - b
    if isinstance(difference, int):
        return a if difference <= 0 else b
    if difference.terms[0][1] < 0:  # one form for min(a, b) and min(b, a)
        difference, b = b - a, a
        assert isinstance(difference, DimExpr)
    return b + DimExpr((((Negative(difference),), 1),))


def _quotient_and_number(terms: dict[Monomial, int]) -> tuple[FloorDiv, int, int] | None:
    """The terms as a floor division by a positive integer, that integer, and an integer that is added; else None."""
    monomials = [m for m in terms if m]
    monomial = monomials[0] if len(monomials) == 1 else ()
    atom = monomial[0] if len(monomial) == 1 else None
    if not isinstance(atom, FloorDiv) or terms[monomial] != 1:
        return None
    divisor = atom.denominator
    return (atom, divisor, terms.get((), 0)) if isinstance(divisor, int) and divisor > 0 else None


def _multiple(a: Dim, b: DimExpr) -> Dim | None:
    """The product of dims and a number by which ``b`` gives ``a``; None where there is none."""
    if isinstance(a, int) or len(a.terms) != len(b.terms):
        return None
    first, (monomial, coefficient) = a.terms[0], b.terms[0]
    quotient = _divide_monomial(dict((first,)), monomial, coefficient)
    found = None if quotient is None else _make(quotient)
    return found if found is not None and found * b == a else None


def _divide_monomial(terms: dict[Monomial, int], monomial: Monomial, coefficient: int) -> dict[Monomial, int] | None:
    out: dict[Monomial, int] = {}
    for m, c in terms.items():
        rest = list(m)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % coefficient:
            return None
        out[tuple(rest)] = c // coefficient
    return out


def substitute(dim: Dim, binding: Mapping[str, Dim]) -> Dim:
    """``dim`` with the names of ``binding`` replaced; ``int`` where all its names are bound to integers."""
    if isinstance(dim, int):
        return dim
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        product: Dim = coefficient
        for atom in monomial:
            if isinstance(atom, str):
                product = product * binding.get(atom, symbol(atom))
            elif isinstance(atom, Negative):
                product = product * smaller(substitute(atom.size, binding), 0)
            else:
                product = product * floordiv(substitute(atom.numerator, binding), substitute(atom.denominator, binding))
        total = total + product
    return total


def product(dims: Iterable[Dim]) -> Dim:
    """The product of sizes; 1 for none."""
    out: Dim = 1
    for d in dims:
        out = out * d
    return out


def summed(dims: Iterable[tuple[Dim, int]]) -> Dim:
    """The sum of sizes, each as often as the number beside it says; 0 for none. The work grows as their terms do."""
    out: dict[Monomial, int] = {}
    for size, count in dims:
        for monomial, coefficient in _terms(size).items():
            out[monomial] = out.get(monomial, 0) + coefficient * count
    return _make(out)


def evaluate(dim: Dim, binding: Mapping[str, int]) -> int:
    """The size under a full binding. Raises ``KeyError`` for a name that is not bound."""
    if isinstance(dim, int):
        return dim
    for name in dim.names():
        if name not in binding:
            raise KeyError(name)
    out = substitute(dim, binding)
    assert isinstance(out, int)
    return out
