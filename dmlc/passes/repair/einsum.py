"""Repairs of Einsum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from string import ascii_lowercase
from typing import ClassVar

from dmlc.ir import FOREIGN, Dim, Graph, Node, Operation, Shape, Value, product
from dmlc.onnx_schema.einsum import Equation
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.node_maker import Maker
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

_DOTS = "..."


class _EllipsisMatch(Match, eq=False, kw_only=True):
    """``terms`` are the operands', ``result`` is the result's term, which may be missing."""

    terms: tuple[str, ...]
    result: str | None


class SpellEllipsis(Rule[_EllipsisMatch]):
    """An Einsum's ellipsis becomes letters, where the axes that it means have the same sizes in all operands."""

    name = "spell-ellipsis"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("einsum-ellipsis",)

    def match(self, node: Node, graph: Graph) -> _EllipsisMatch | None:
        (failure,) = self.repairs
        if not is_opaque(node, "Einsum") or self.capabilities.fault(failure, "Einsum") is None:
            return None
        left, arrow, right = str(attribute_of(node, "equation", "")).replace(" ", "").partition("->")
        terms = tuple(left.split(","))
        if _DOTS not in left:
            return None
        return _EllipsisMatch(node, terms=terms, result=right if arrow else None)

    def check(self, match: _EllipsisMatch, graph: Graph) -> Miss | None:
        if any(v is None or v.type.dtype is FOREIGN for v in match.root.operands):
            return Miss("the axes of an operand are not known")
        dotted = _dotted(match)
        if any(sizes != dotted[0] for sizes in dotted):
            return Miss("the axes of the ellipsis differ: {0}", (" and ".join(_text(sizes) for sizes in dotted),))
        if match.result is not None and _DOTS not in match.result:
            return Miss("its result has no ellipsis")
        return None if len(_free(match)) >= len(dotted[0]) else Miss("there are not enough letters")

    def describe(self, match: _EllipsisMatch) -> str:
        return f"Einsum {attribute_of(match.root, 'equation')}"

    def build(self, match: _EllipsisMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, letters = match.root, _free(match)[: len(_dotted(match)[0])]
        result = _implied(match.terms) if match.result is None else match.result
        equation = f"{','.join(match.terms)}->{result}".replace(_DOTS, letters)
        record = OpaqueAttributes(op_type="Einsum", types=(root.result.type,), attributes=(("equation", equation),))
        return [rewriter.add(OPAQUE, root.operands, record)]


def _dotted(match: _EllipsisMatch) -> list[Shape]:
    """The sizes that the ellipsis stands for in each operand that has one."""
    out = []
    for term, value in zip(match.terms, match.root.operands, strict=True):
        before, dots, after = term.partition(_DOTS)
        if dots and value is not None:
            out.append(value.shape[len(before) : value.type.rank - len(after)])
    return out


def _text(sizes: Shape) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _free(match: _EllipsisMatch) -> str:
    """Letters that the equation does not use."""
    used = {*"".join(match.terms), *(match.result or "")}
    return "".join(letter for letter in ascii_lowercase if letter not in used)


def _implied(terms: Sequence[str]) -> str:
    """The result where none is written: the ellipsis, then the letters that stand once, in their order."""
    counts = Counter("".join(terms).replace(".", ""))
    return _DOTS + "".join(sorted(letter for letter, count in counts.items() if count == 1))


class _LetterMatch(Match, eq=False, kw_only=True):
    equation: Equation


class MatMulOfLetters(Rule[_LetterMatch]):
    """An Einsum of two operands becomes a matmul between transposes and reshapes.

    Only if the provider would make the product of all letters, larger than operands and result, or if DirectML has
    too few axes for them.
    """

    name = "matmul-of-letters"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("einsum-product", "einsum-letters")
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _LetterMatch | None:
        if not is_opaque(node, "Einsum"):
            return None
        large, many = (self.capabilities.fault(failure, "Einsum") for failure in self.repairs)
        equation = Equation.parse(str(attribute_of(node, "equation", "")))
        if equation is None or len(equation.terms) != 2 or large is None:
            return None
        has_many = many is not None and len({*"".join(equation.terms)}) > (many.letters_over or 0)
        is_large = equation.has_matrices and not equation.is_one_operator
        return _LetterMatch(node, equation=equation) if has_many or is_large else None

    def check(self, match: _LetterMatch, graph: Graph) -> Miss | None:
        root, equation = match.root, match.equation
        if any(v is None or v.type.dtype is FOREIGN for v in root.operands):
            return Miss("the axes of an operand are not known")
        if self.capabilities.leaves("MatMul", root.result.type.dtype):
            return Miss("the provider has no MatMul of {0}", (root.result.type.dtype.name,))
        sizes = letter_sizes(equation, [root.operand(0), root.operand(1)])
        return sizes if isinstance(sizes, Miss) else None

    def describe(self, match: _LetterMatch) -> str:
        return f"Einsum {attribute_of(match.root, 'equation')}"

    def build(self, match: _LetterMatch, rewriter: Rewriter) -> Sequence[Value]:
        operands = [match.root.operand(0), match.root.operand(1)]
        sizes = letter_sizes(match.equation, operands)
        assert not isinstance(sizes, Miss)
        return [product_of_letters(Maker(rewriter), operands, match.equation, sizes)]


class EinsumOfPairs(Rule[_LetterMatch]):
    """An Einsum of more than two operands becomes Einsums of two, in the order of the fewest products."""

    name = "einsum-of-pairs"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("einsum-operands",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _LetterMatch | None:
        (failure,) = self.repairs
        if not is_opaque(node, "Einsum") or self.capabilities.fault(failure, "Einsum") is None:
            return None
        equation = Equation.parse(str(attribute_of(node, "equation", "")))
        if equation is None or not 2 < len(equation.terms) <= _MOST_OPERANDS:
            return None
        return _LetterMatch(node, equation=equation)

    def check(self, match: _LetterMatch, graph: Graph) -> Miss | None:
        root = match.root
        if any(v is None or v.type.dtype is FOREIGN for v in root.operands):
            return Miss("the axes of an operand are not known")
        if self.capabilities.leaves("Einsum", root.result.type.dtype):
            return Miss("the provider has no Einsum of {0}", (root.result.type.dtype.name,))
        sizes = letter_sizes(match.equation, [v for v in root.operands if v is not None])
        return sizes if isinstance(sizes, Miss) else None

    def describe(self, match: _LetterMatch) -> str:
        return f"Einsum {attribute_of(match.root, 'equation')}"

    def build(self, match: _LetterMatch, rewriter: Rewriter) -> Sequence[Value]:
        values = [v for v in match.root.operands if v is not None]
        sizes = letter_sizes(match.equation, values)
        assert not isinstance(sizes, Miss)
        counts = {letter: size if isinstance(size, int) else _OPEN_SIZE for letter, size in sizes.items()}
        terms = list(match.equation.terms)
        for first, second in _cheapest(match.equation, counts)[1]:
            right, left = terms.pop(second), terms.pop(first)
            b, a = values.pop(second), values.pop(first)
            kept = _kept((left, right), terms, match.equation.result)
            record = OpaqueAttributes(
                op_type="Einsum",
                types=(match.root.result.type.with_shape(tuple([sizes[letter] for letter in kept])),),
                attributes=(("equation", f"{left},{right}->{kept}"),),
            )
            values.append(rewriter.add(OPAQUE, [a, b], record))
            terms.append(kept)
        return values


#: All orders of so many operands are compared; an open size counts as so much.
_MOST_OPERANDS, _OPEN_SIZE = 5, 64


def _cheapest(equation: Equation, counts: Mapping[str, int]) -> tuple[int, list[tuple[int, int]]]:
    """The fewest products of any order of pairs, and that order: the places of the two, whose product comes last."""
    terms = equation.terms
    if len(terms) == 1:
        return 0, []
    found: list[tuple[int, list[tuple[int, int]]]] = []
    for first, second in combinations(range(len(terms)), 2):
        pair = (terms[first], terms[second])
        others = [term for place, term in enumerate(terms) if place not in (first, second)]
        rest = Equation((*others, _kept(pair, others, equation.result)), equation.result)
        cost, order = _cheapest(rest, counts)
        found.append((prod([counts[letter] for letter in {*pair[0], *pair[1]}]) + cost, [(first, second), *order]))
    return min(found)


def _kept(pair: tuple[str, str], others: Sequence[str], result: str) -> str:
    """The letters of the product of two operands: the result's own in its order, else those that are needed later."""
    if not others:
        return result
    later = {*"".join(others), *result}
    return "".join(letter for letter in dict.fromkeys("".join(pair)) if letter in later)


def letter_sizes(equation: Equation, operands: Sequence[Value]) -> dict[str, Dim] | Miss:
    """The size of each letter; the reason where two operands give it two."""
    sizes: dict[str, Dim] = {}
    for term, value in zip(equation.terms, operands, strict=True):
        for letter, size in zip(term, value.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                return Miss("the sizes of {0} differ: {1} and {2}", (letter, sizes[letter], size))
    return sizes


def product_of_letters(make: Maker, operands: Sequence[Value], equation: Equation, sizes: dict[str, Dim]) -> Value:
    """A matrix product of two operands between transposes and reshapes."""
    both = "".join(n for n in equation.summed if all(n in term for term in equation.terms))
    batch, rows, columns = equation.shared, equation.own(0), equation.own(1)
    parts = ((batch, rows, both), (batch, both, columns))
    matrices = [
        _arranged(make, value, term, groups, sizes)
        for value, term, groups in zip(operands, equation.terms, parts, strict=True)
    ]
    out = make(MATMUL, *matrices)
    letters = batch + rows + columns
    out = make.reshape(out, tuple([sizes[letter] for letter in letters]))
    return transposed(make, out, letters, equation.result)


def _arranged(make: Maker, value: Value, term: str, groups: Sequence[str], sizes: dict[str, Dim]) -> Value:
    """The operand as matrices: letters of no group are summed, and a batch without letters is not an axis."""
    kept = "".join(groups)
    summed = tuple([axis for axis, letter in enumerate(term) if letter not in kept])
    if summed:
        value = make(REDUCE_SUM, value, attributes=ReduceAttributes(axes=summed, keepdims=False))
        term = "".join(letter for letter in term if letter in kept)
    value = transposed(make, value, term, kept)
    axes = [product([sizes[letter] for letter in group]) for group in groups]
    return make.reshape(value, tuple(axes if groups[0] else axes[1:]))


def transposed(make: Maker, value: Value, letters: str, wanted: str) -> Value:
    """The value with its axes, which the letters name, in the wanted order."""
    perm = tuple([letters.index(letter) for letter in wanted])
    if perm == tuple(range(len(perm))):
        return value
    return make(TRANSPOSE, value, attributes=TransposeAttributes(perm=perm))
