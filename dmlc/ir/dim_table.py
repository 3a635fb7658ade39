"""The bounds of dims, and the relations between sizes that they prove."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from typing import Any

from dmlc.ir.dim import (
    Atom,
    Bound,
    Dim,
    DimExpr,
    FloorDiv,
    Interval,
    Negative,
    _terms,
    dim_names,
    symbol,
)

#: An expression with at most so many ``min`` and ``max`` is looked at case by case.
_MOST_SPLITS = 4
#: So many intervals of such expressions are kept.
_MOST_CASES = 10_000


class DimTable:
    """The declared bounds of the dims, and what can be proved from them. Undeclared dims are ``least`` or more:
    1 in programs of the language, 0 in imported models.

    ``taken`` are names that no new dim gets: those that the inputs have or an imported model declares. ``provided`` are
    the new dims: only a value of the graph provides them, they are 0 or more, and nobody promises results for empty
    axes of theirs. ``zeros`` are differences of sizes that conditions of the graph make equal: run time checks those.
    """

    __slots__ = ("_cases", "_made", "bounds", "least", "provided", "taken", "zeros")

    def __init__(
        self, bounds: Mapping[str, Interval] | None = None, *, least: int = 1, taken: Collection[str] = ()
    ) -> None:
        self.bounds: dict[str, Interval] = dict(bounds or {})
        self.least: int = least
        self.taken: set[str] = set(taken)
        self.provided: set[str] = set()
        self.zeros: frozenset[Dim] = frozenset((0,))
        self._made = 0
        #: Intervals of expressions with ``min`` and ``max``, by the expression and the bounds of its dims.
        self._cases: dict[Any, Interval] = {}

    def new_dim(self) -> Dim:
        """Make a dim ``unknown_N`` that the graph does not have yet, for a size that only one value provides."""
        while True:
            name = f"unknown_{self._made}"
            self._made += 1
            if name not in self.taken and name not in self.bounds:
                self.provided.add(name)
                return symbol(name)

    def without(self, names: Collection[str]) -> DimTable:
        """Copy the table without the bounds of some dims."""
        bounds = {name: interval for name, interval in self.bounds.items() if name not in names}
        out = DimTable(bounds, least=self.least, taken=self.taken)
        out._made = self._made
        out.provided, out.zeros = set(self.provided), self.zeros
        out._cases = self._cases
        return out

    def interval(self, dim: Dim, splits: int = _MOST_SPLITS) -> Interval:
        """The tightest interval that simple interval arithmetic finds, in both cases of each ``min`` and ``max``."""
        if isinstance(dim, int):
            return (dim, dim)
        name = dim.name
        if name is not None:
            return self._atom(name)
        low: Bound = 0
        high: Bound = 0
        for monomial, coefficient in dim.terms:
            span: Interval = (coefficient, coefficient)
            for atom in monomial:
                if isinstance(atom, Negative) and splits:
                    if len({other for other in dim.atoms() if isinstance(other, Negative)}) > splits:
                        return self.interval(dim, 0)
                    key = (dim, splits, tuple([self._atom(name) for name in sorted(dim.names())]))
                    found = self._cases.get(key)
                    if found is None:
                        if len(self._cases) > _MOST_CASES:
                            self._cases.clear()
                        found = self._cases[key] = self._by_cases(dim, atom, splits - 1)
                    return found
                span = _times(span, self._atom(atom))
            low, high = low + span[0], high + span[1]
        return (low, high)

    def _by_cases(self, dim: DimExpr, atom: Negative, splits: int) -> Interval:
        """The interval of what is the expression where ``atom.size`` is below 0, and where it is not."""
        found: list[Interval] = []
        low, high = self.interval(atom.size, splits)
        for value, sign, possible in ((atom.size, -1, low < 0), (0, 1, high >= 0)):
            if possible:
                case, table = _with_atom(dim, atom, value), self._where_positive(atom.size * sign, 1 if value else 0)
                plain = table.interval(case, splits)
                # sign * size is not negative in this case: what is so much less, or more, bounds the expression too
                less = table.interval(case - atom.size * sign, splits)[0]
                more = table.interval(case + atom.size * sign, splits)[1]
                found.append((max(plain[0], less), min(plain[1], more)))
        return (min([low for low, _ in found]), max([high for _, high in found]))

    def _where_positive(self, size: Dim, least: int) -> DimTable:
        """The table where the size is known to be ``least`` or more: with bounds of the only dim in it."""
        terms = _terms(size)
        offset = least - terms.pop((), 0)
        if len(terms) != 1:
            return self
        ((monomial, coefficient),) = terms.items()
        if len(monomial) != 1 or not isinstance(monomial[0], str):
            return self
        name, (low, high) = monomial[0], self._atom(monomial[0])
        out = self.without(())
        if coefficient > 0:
            out.bounds[name] = (max(low, -(-offset // coefficient)), high)
        else:
            out.bounds[name] = (low, min(high, offset // coefficient))
        return out

    def _with_remainders(self, dim: DimExpr) -> Interval:
        """The interval where each ``n // d`` is ``(n - r) / d`` with a remainder r from 0 to d - 1: ``N // 2 <= N``."""
        scale, low, high = 1, 0, 0
        total: Dim = dim
        for monomial, coefficient in dim.terms:
            atom = monomial[0] if len(monomial) == 1 else ""
            if isinstance(atom, FloorDiv) and isinstance(atom.denominator, int) and atom.denominator > 0:
                part = coefficient * scale
                divisor = atom.denominator
                total = (total - DimExpr((((atom,), part),))) * divisor + atom.numerator * part
                scale, low, high = scale * divisor, low * divisor, high * divisor
                low, high = low - max(part, 0) * (divisor - 1), high - min(part, 0) * (divisor - 1)
        bottom, top = self.interval(total)
        return ((bottom + low) / scale, (top + high) / scale)

    def _atom(self, atom: Atom) -> Interval:
        if isinstance(atom, str):
            return self.bounds.get(atom) or (0 if atom in self.provided else self.least, inf)
        if isinstance(atom, Negative):
            low, high = self.interval(atom.size, 0)
            return (min(low, 0), min(high, 0))
        n, d = self.interval(atom.numerator), self.interval(atom.denominator)
        if d[0] <= 0:
            return (-inf, inf)
        corners = [_floor(x, y) for x in n for y in d]
        return (min(corners), max(corners))

    def equal(self, a: Dim, b: Dim) -> bool | None:
        """Compare two sizes: True if ``a == b`` is proved, False if it is disproved, None if neither."""
        difference = a - b
        low, high = self.interval(difference)
        if low == high == 0 or difference in self.zeros:
            return True
        return False if low > 0 or high < 0 else None

    def at_most(self, a: Dim, b: Dim) -> bool | None:
        """Compare two sizes: True if ``a <= b`` is proved, False if it is disproved, None if neither."""
        difference = b - a
        if difference in self.zeros:
            return True
        low, high = self.interval(difference)
        if low < 0 <= high and isinstance(difference, DimExpr):
            low, high = self._with_remainders(difference)
        if low >= 0:
            return True
        return False if high < 0 else None

    def promises_empty(self, dim: Dim) -> bool:
        """Return whether the size may be 0 in a program of the language, which defines the results for empty axes.

        An imported model has no such promise: empty axes give whatever its runtime gives.
        """
        return self.least > 0 and self.interval(dim)[0] <= 0 and self.provided.isdisjoint(dim_names(dim))

    def is_one(self, dim: Dim) -> bool:
        """Return whether the size is proved to be 1."""
        return dim == 1 if isinstance(dim, int) else self.interval(dim) == (1, 1)


def _with_atom(dim: DimExpr, atom: Atom, value: Dim) -> Dim:
    """The expression with the value in the place of the atom."""
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        product: Dim = coefficient
        for part in monomial:
            product = product * (value if part == atom else DimExpr((((part,), 1),)))
        total = total + product
    return total


def _times(a: Interval, b: Interval) -> Interval:
    corners = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return (min(corners), max(corners))


def _floor(x: Bound, y: Bound) -> Bound:
    if x in (inf, -inf):
        return x if y != inf else (0 if x > 0 else -1)
    if y == inf:
        return 0 if x >= 0 else -1
    return int(x) // int(y)
