"""Matrix products with more around them: Gemm and Einsum."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Dim, Node
from dmlc.onnx_schema.einsum import Equation
from dmlc.passes.decompose.decomposition import decomposes, given
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered
from dmlc.passes.repair.einsum import letter_sizes, product_of_letters
from dmlc.passes.rewrite import Miss


@decomposes("Gemm")
def decompose_gemm(e: Sketch, node: Node, a: Term, b: Term, c: Term | None = None) -> Lowered:
    """A Gemm becomes a matrix product, with transposes and factors, and the third operand is added."""
    a, b = (
        e.transpose(value, perm=(1, 0)) if given(node, flag, 0) else value
        for value, flag in ((a, "transA"), (b, "transB"))
    )
    out = _times(e.matmul(a, b), given(node, "alpha", 1.0))
    return out if c is None else out + _times(c, given(node, "beta", 1.0))


def _times(value: Term, factor: float) -> Term:
    return value if factor == 1 else value * factor


@decomposes("Einsum")
def decompose_einsum(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """An Einsum becomes matrix products and elementwise products of two operands at a time, sums and transposes."""
    text = str(given(node, "equation", ""))
    equation = Equation.parse(text)
    if equation is None:
        return Miss("its equation {0} has an ellipsis or a letter twice in a term", (text,))
    sizes = letter_sizes(equation, operands)
    if isinstance(sizes, Miss):
        return sizes
    value, term = operands[0], equation.terms[0]
    for index in range(1, len(operands)):
        later = set("".join((*equation.terms[index + 1 :], equation.result)))
        other = equation.terms[index]
        kept = "".join(letter for letter in dict.fromkeys(term + other) if letter in later)
        step = Equation((term, other), kept)
        value, term = _pair(e, [value, operands[index]], step, sizes), kept
    return _summed(e, value, term, equation.result)


def _pair(e: Sketch, operands: Sequence[Term], step: Equation, sizes: dict[str, Dim]) -> Term:
    """One product of two operands: of matrices where a letter of both is summed, else element by element."""
    if any(letter in step.terms[0] and letter in step.terms[1] for letter in step.summed):
        return product_of_letters(e, operands, step, sizes)
    letters = "".join(dict.fromkeys("".join(step.terms)))
    wide = []
    for value, term in zip(operands, step.terms, strict=True):
        own = "".join(letter for letter in letters if letter in term)
        shape = tuple([sizes[letter] if letter in term else 1 for letter in letters])
        wide.append(value.transposed([term.index(letter) for letter in own]).reshape(shape))
    return _summed(e, wide[0] * wide[1], letters, step.result)


def _summed(e: Sketch, value: Term, term: str, wanted: str) -> Term:
    """The sum over the letters that are not wanted, with axes in the order of the letters that are."""
    axes = [axis for axis, letter in enumerate(term) if letter not in wanted]
    if axes:
        value = e.sum(value, axes, keepdims=False)
    kept = [letter for letter in term if letter in wanted]
    return value.transposed([kept.index(letter) for letter in wanted])
