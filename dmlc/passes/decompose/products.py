"""Matrix products with more around them: Gemm and Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Dim, Node, Operation, Value
from dmlc.onnx_schema.einsum import Equation
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.passes.decompose.decomposition import Decomposition, given, operand
from dmlc.passes.node_maker import Maker
from dmlc.passes.repair.einsum import letter_sizes, product_of_letters, transposed
from dmlc.passes.rewrite import Miss


class DecomposeGemm(Decomposition):
    """A Gemm becomes a matrix product, with transposes and factors, and the third operand is added."""

    name = "decompose-gemm"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    operators: ClassVar[tuple[str, ...]] = ("Gemm",)

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        a, b = (
            make(TRANSPOSE, value, attributes=TransposeAttributes(perm=(1, 0))) if given(node, flag, 0) else value
            for value, flag in ((node.operand(0), "transA"), (node.operand(1), "transB"))
        )
        out = self._times(make, make(MATMUL, a, b), given(node, "alpha", 1.0))
        c = operand(node, 2)
        return [out if c is None else make(ADD, out, self._times(make, c, given(node, "beta", 1.0)))]

    def _times(self, make: Maker, value: Value, factor: float) -> Value:
        return value if factor == 1 else make(MUL, value, make.constant(factor, value.type.dtype))


class DecomposeEinsum(Decomposition):
    """An Einsum becomes matrix products and elementwise products of two operands at a time, sums and transposes."""

    name = "decompose-einsum"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    operators: ClassVar[tuple[str, ...]] = ("Einsum",)

    def why_not(self, node: Node) -> Miss | None:
        text = str(given(node, "equation", ""))
        equation = Equation.parse(text)
        if equation is None:
            return Miss("its equation {0} has an ellipsis or a letter twice in a term", (text,))
        sizes = letter_sizes(equation, [node.operand(i) for i in range(len(node.operands))])
        return sizes if isinstance(sizes, Miss) else None

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        equation = Equation.parse(str(given(node, "equation", "")))
        assert equation is not None
        operands = [node.operand(i) for i in range(len(node.operands))]
        sizes = letter_sizes(equation, operands)
        assert not isinstance(sizes, Miss)
        value, term = operands[0], equation.terms[0]
        for index in range(1, len(operands)):
            later = set("".join((*equation.terms[index + 1 :], equation.result)))
            other = equation.terms[index]
            kept = "".join(letter for letter in dict.fromkeys(term + other) if letter in later)
            step = Equation((term, other), kept)
            value, term = _pair(make, [value, operands[index]], step, sizes), kept
        return [_summed(make, value, term, equation.result)]


def _pair(make: Maker, operands: Sequence[Value], step: Equation, sizes: dict[str, Dim]) -> Value:
    """One product of two operands: of matrices where a letter of both is summed, else element by element."""
    if any(letter in step.terms[0] and letter in step.terms[1] for letter in step.summed):
        return product_of_letters(make, operands, step, sizes)
    letters = "".join(dict.fromkeys("".join(step.terms)))
    wide = []
    for value, term in zip(operands, step.terms, strict=True):
        own = "".join(letter for letter in letters if letter in term)
        shape = tuple([sizes[letter] if letter in term else 1 for letter in letters])
        wide.append(make.reshape(transposed(make, value, term, own), shape))
    return _summed(make, make(MUL, *wide), letters, step.result)


def _summed(make: Maker, value: Value, letters: str, wanted: str) -> Value:
    """The sum over the letters that are not wanted, with axes in the order of those that are."""
    axes = tuple([axis for axis, letter in enumerate(letters) if letter not in wanted])
    if axes:
        value = make(REDUCE_SUM, value, attributes=ReduceAttributes(axes=axes, keepdims=False))
    return transposed(make, value, "".join(letter for letter in letters if letter in wanted), wanted)
