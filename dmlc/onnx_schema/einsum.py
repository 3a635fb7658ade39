"""Equations of Einsum, and the kinds of computation that the DirectML provider makes of them."""

from __future__ import annotations

from msgspec import Struct

#: DirectML's GEMM takes results of up to so many axes.
_MATMUL_AXES = 4


class Equation(Struct, frozen=True):
    """The letters of the operands and of the result of an Einsum without an ellipsis."""

    terms: tuple[str, ...]
    result: str

    @classmethod
    def parse(cls, text: str) -> Equation | None:
        """Return the equation; None for one with an ellipsis, or with a letter twice in a term."""
        left, arrow, right = text.replace(" ", "").partition("->")
        terms = left.split(",")
        if not arrow:
            letters = "".join(terms)
            right = "".join(sorted({letter for letter in letters if letters.count(letter) == 1}))
        if any(not all(map(str.isalpha, term)) or len(set(term)) < len(term) for term in (*terms, right)):
            return None
        return cls(tuple(terms), right)

    @property
    def summed(self) -> str:
        """The letters that the result does not have, in the order of the operands."""
        return "".join(dict.fromkeys(letter for term in self.terms for letter in term if letter not in self.result))

    @property
    def shared(self) -> str:
        """The letters of the result that all operands have: the batch of a matrix product."""
        return "".join(letter for letter in self.result if all(letter in term for term in self.terms))

    def own(self, index: int) -> str:
        """The letters of the result that one operand alone has."""
        others = "".join(term for i, term in enumerate(self.terms) if i != index)
        return "".join(letter for letter in self.terms[index] if letter in self.result and letter not in others)

    @property
    def has_matrices(self) -> bool:
        """True for two operands that both have letters of their own in the result, and a sum."""
        return len(self.terms) == 2 and bool(self.summed and self.own(0) and self.own(1))

    @property
    def is_one_operator(self) -> bool:
        """True if the provider makes one DirectML operator of it: a GEMM, a product, a sum or a transpose.

        Otherwise it makes the product of all letters and a sum of that (onnxruntime, DmlOperatorEinSum.cpp).
        """
        if len(self.terms) != 2 or not self.summed:
            return True
        is_matmul = len(self.summed) == 1 and all(self.summed in term for term in self.terms)
        return is_matmul and self.has_matrices and len(self.result) <= _MATMUL_AXES
