"""Lowerings of which nothing is estimated: they are chosen by times alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation
from dmlc.ir.dtype import f16, f32
from dmlc.onnx_schema.einsum import Equation
from dmlc.ops.elementwise import GELU
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.ops.reduce import REDUCE_L1, REDUCE_L2, REDUCE_LOG_SUM_EXP, REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.ops.select import TOP_K, TopKAttributes
from dmlc.passes.choose_lowering.plan import Lowered, Plan, Sketch, Standing, Term
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.repair.einsum import letter_sizes, product_of_letters
from dmlc.passes.rewrite import Miss

_SUMS: tuple[Operation, ...] = (
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_SUM_SQUARE,
    REDUCE_LOG_SUM_EXP,
)


class FormAsItStands(Standing):
    """The node, whatever it costs."""

    roots: ClassVar[tuple[Operation, ...]] = (TOP_K, GELU, OPAQUE, *_SUMS)


class TopKByArgmax(Plan):
    """The one largest or smallest element is found by an argmax or argmin, and gathered."""

    name: ClassVar[str] = "top-k-by-argmax"
    roots: ClassVar[tuple[Operation, ...]] = (TOP_K,)

    def applies(self, node: Node, graph: Graph) -> str | None:
        if self.capabilities.has_provider:
            return "top-k-by-search does it"
        return None if node.attributes_as(TopKAttributes).k == 1 else "more than one element is wanted"

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        a = node.attributes_as(TopKAttributes)
        find = e.argmax if a.order == "largest" else e.argmin
        index = find(x, axes=(a.axis,), ties="first", dtype=a.dtype, keepdims=True)
        return [e.gather_elements(x, index, axis=a.axis), index]


class TopKOfLast(Plan):
    """A top_k along another axis than the last is one along the last axis, between transposes."""

    name: ClassVar[str] = "top-k-of-last"
    roots: ClassVar[tuple[Operation, ...]] = (TOP_K,)

    def applies(self, node: Node, graph: Graph) -> str | None:
        is_last = node.attributes_as(TopKAttributes).axis == node.operand("x").type.rank - 1
        return "it is along the last axis" if is_last else None

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        a, last = node.attributes_as(TopKAttributes), x.rank - 1
        perm = tuple([{a.axis: last, last: a.axis}.get(i, i) for i in range(last + 1)])
        found = e.results(TOP_K, e.transpose(x, perm=perm), attributes=replace(a, axis=last))
        return [e.transpose(value, perm=perm) for value in found]


class GeluInParts(Plan):
    """A gelu becomes erf or sigmoid, with the operations around it."""

    name: ClassVar[str] = "gelu-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = (GELU,)
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        return None

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        return e.composed(GELU, x, node.attributes)


class EinsumByProduct(Plan):
    """An Einsum of two operands is a matmul between transposes and reshapes."""

    name: ClassVar[str] = "einsum-by-product"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        equation = self._equation(node)
        if equation is None or len(equation.terms) != 2 or not equation.summed:
            return "it is not a product of two operands"
        sizes = letter_sizes(equation, [node.operand(0), node.operand(1)])
        return str(sizes) if isinstance(sizes, Miss) else None

    def _equation(self, node: Node) -> Equation | None:
        return Equation.parse(str(attribute_of(node, "equation", ""))) if is_opaque(node, "Einsum") else None

    def lower(self, e: Sketch, node: Node, *operands: Term) -> Lowered:
        equation = self._equation(node)
        assert equation is not None
        sizes = letter_sizes(equation, operands)
        return sizes if isinstance(sizes, Miss) else product_of_letters(e, operands, equation, sizes)


class ReduceInF32(Plan):
    """A sum, mean or norm of f16 is computed in f32, and rounded once."""

    name: ClassVar[str] = "reduce-in-f32"
    roots: ClassVar[tuple[Operation, ...]] = _SUMS
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        dtype = node.operand("x").type.dtype
        is_half = dtype is f16 and self.capabilities.compute_dtype(node.op, dtype) is f16
        return None if is_half else "it is not computed in f16"

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        return e.again(node, x.cast(f32))[0].cast(f16)


PLANS: Sequence[type[Plan]] = (FormAsItStands, TopKByArgmax, TopKOfLast, GeluInParts, EinsumByProduct, ReduceInF32)
