"""Repairs of Einsum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from string import ascii_lowercase

from dmlc.ir import FOREIGN, Dim, Node, Shape, TensorType, Value, product
from dmlc.onnx_schema.einsum import Equation
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.expressions import Formulas, Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Miss

_DOTS = "..."
_UNKNOWN = Miss("the axes of an operand are not known")


def _are_known(operands: Sequence[Term | None]) -> bool:
    return all(x is not None and x.dtype is not FOREIGN for x in operands)


def _equation(node: Node) -> str:
    return str(attribute_of(node, "equation", ""))


def _einsum(e: Sketch, equation: str, result: TensorType, *operands: Term) -> Term:
    record = OpaqueAttributes(op_type="Einsum", types=(result,), attributes=(("equation", equation),))
    return e(OPAQUE, *operands, attributes=record)


def _dotted(terms: Sequence[str], operands: Sequence[Term]) -> list[Shape]:
    """The sizes that the ellipsis stands for in each operand that has one."""
    out = []
    for term, value in zip(terms, operands, strict=True):
        before, dots, after = term.partition(_DOTS)
        if dots:
            out.append(value.shape[len(before) : value.rank - len(after)])
    return out


def _text(sizes: Shape) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _implied(terms: Sequence[str]) -> str:
    """The result where none is written: the ellipsis, then the letters that occur once, in their order."""
    counts = Counter("".join(terms).replace(".", ""))
    return _DOTS + "".join(sorted(letter for letter, count in counts.items() if count == 1))


@lowers(onnx=("Einsum",), optional=True, repairs=("einsum-operands",), gives=REASSOCIATES)
def einsum_of_pairs(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """An Einsum of more than two operands becomes Einsums of two, in the order of the fewest products."""
    equation = Equation.parse(_equation(node))
    if equation is None or not 2 < len(equation.terms) <= _MOST_OPERANDS:
        return KEEP
    if e.target.fault("einsum-operands", "Einsum") is None:
        return KEEP
    if not _are_known(operands):
        return _UNKNOWN
    result = node.result.type
    if e.target.leaves("Einsum", result.dtype):
        return Miss("the provider has no Einsum of {0}", (result.dtype.name,))
    sizes = letter_sizes(equation, operands)
    if isinstance(sizes, Miss):
        return sizes
    counts = {letter: size if isinstance(size, int) else _OPEN_SIZE for letter, size in sizes.items()}
    terms, values = list(equation.terms), list(operands)
    for first, second in _cheapest(equation, counts)[1]:
        right, left = terms.pop(second), terms.pop(first)
        b, a = values.pop(second), values.pop(first)
        kept = _kept((left, right), terms, equation.result)
        type = result.with_shape(tuple([sizes[letter] for letter in kept]))
        values.append(_einsum(e, f"{left},{right}->{kept}", type, a, b))
        terms.append(kept)
    return values


@lowers(onnx=("Einsum",), optional=True, repairs=("einsum-product", "einsum-letters"), gives=REASSOCIATES)
def matmul_of_letters(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """An Einsum of two operands becomes a matmul between transposes and reshapes.

    Only if the provider would make the product of all letters, larger than operands and result, or if DirectML has
    too few axes for them.
    """
    equation = Equation.parse(_equation(node))
    if equation is None or len(equation.terms) != 2 or e.target.fault("einsum-product", "Einsum") is None:
        return KEEP
    many = e.target.fault("einsum-letters", "Einsum")
    has_many = many is not None and len({*"".join(equation.terms)}) > (many.letters_over or 0)
    if not has_many and (not equation.has_matrices or equation.is_one_operator):
        return KEEP
    if not _are_known(operands):
        return _UNKNOWN
    if e.target.leaves("MatMul", node.result.type.dtype):
        return Miss("the provider has no MatMul of {0}", (node.result.type.dtype.name,))
    sizes = letter_sizes(equation, operands)
    return sizes if isinstance(sizes, Miss) else product_of_letters(e, operands, equation, sizes)


@lowers(onnx=("Einsum",), optional=True, repairs=("einsum-ellipsis",))
def spell_ellipsis(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """An Einsum's ellipsis becomes letters, where the axes that it means have the same sizes in all operands."""
    left, arrow, right = _equation(node).replace(" ", "").partition("->")
    if _DOTS not in left or e.target.fault("einsum-ellipsis", "Einsum") is None:
        return KEEP
    if not _are_known(operands):
        return _UNKNOWN
    terms = left.split(",")
    dotted = _dotted(terms, operands)
    if any(sizes != dotted[0] for sizes in dotted):
        return Miss("the axes of the ellipsis differ: {0}", (" and ".join(map(_text, dotted)),))
    if arrow and _DOTS not in right:
        return Miss("its result has no ellipsis")
    letters = "".join(letter for letter in ascii_lowercase if letter not in left + right)
    if len(letters) < len(dotted[0]):
        return Miss("there are not enough letters")
    equation = f"{left}->{right if arrow else _implied(terms)}".replace(_DOTS, letters[: len(dotted[0])])
    return _einsum(e, equation, node.result.type, *operands)


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


def letter_sizes(equation: Equation, operands: Sequence[Term | Value]) -> dict[str, Dim] | Miss:
    """The size of each letter; the reason where two operands give it two."""
    sizes: dict[str, Dim] = {}
    for term, value in zip(equation.terms, operands, strict=True):
        for letter, size in zip(term, value.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                return Miss("the sizes of {0} differ: {1} and {2}", (letter, sizes[letter], size))
    return sizes


def product_of_letters(e: Formulas, operands: Sequence[Term], equation: Equation, sizes: dict[str, Dim]) -> Term:
    """A matrix product of two operands between transposes and reshapes."""
    both = "".join(n for n in equation.summed if all(n in term for term in equation.terms))
    batch, rows, columns = equation.shared, equation.own(0), equation.own(1)
    parts = ((batch, rows, both), (batch, both, columns))
    left, right = (
        _arranged(e, value, term, groups, sizes)
        for value, term, groups in zip(operands, equation.terms, parts, strict=True)
    )
    letters = batch + rows + columns
    out = e.matmul(left, right).reshape([sizes[letter] for letter in letters])
    return out.transposed([letters.index(letter) for letter in equation.result])


def _arranged(e: Formulas, value: Term, term: str, groups: Sequence[str], sizes: dict[str, Dim]) -> Term:
    """The operand as matrices: letters of no group are summed, and a batch without letters is not an axis."""
    kept = "".join(groups)
    summed = [axis for axis, letter in enumerate(term) if letter not in kept]
    if summed:
        value = e.sum(value, summed, keepdims=False)
        term = "".join(letter for letter in term if letter in kept)
    axes = [product([sizes[letter] for letter in group]) for group in groups]
    return value.transposed([term.index(letter) for letter in kept]).reshape(axes if groups[0] else axes[1:])
