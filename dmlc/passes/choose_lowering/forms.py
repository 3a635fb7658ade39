"""Lowerings of which nothing is estimated: they are chosen by times alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ir.dtype import f16, f32
from dmlc.onnx_schema.einsum import Equation
from dmlc.ops.elementwise import GELU, GeluAttributes
from dmlc.ops.index import GATHER_ELEMENTS, IndexAttributes
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.ops.reduce import REDUCE_L1, REDUCE_L2, REDUCE_LOG_SUM_EXP, REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, ArgAttributes, TopKAttributes
from dmlc.passes.choose_lowering.plan import Maker, Plan, Standing
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.node_maker import composed_of
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

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        a, x = node.attributes_as(TopKAttributes), node.operand("x")
        record = ArgAttributes(axes=(a.axis,), ties="first", dtype=a.dtype, keepdims=True)
        index = make(ARGMAX if a.order == "largest" else ARGMIN, x, attributes=record)
        return [make(GATHER_ELEMENTS, x, index, attributes=IndexAttributes(axis=a.axis)), index]


class TopKOfLast(Plan):
    """A top_k along another axis than the last is one along the last axis, between transposes."""

    name: ClassVar[str] = "top-k-of-last"
    roots: ClassVar[tuple[Operation, ...]] = (TOP_K,)

    def applies(self, node: Node, graph: Graph) -> str | None:
        is_last = node.attributes_as(TopKAttributes).axis == node.operand("x").type.rank - 1
        return "it is along the last axis" if is_last else None

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        a, x = node.attributes_as(TopKAttributes), node.operand("x")
        last = x.type.rank - 1
        swap = TransposeAttributes(perm=tuple([{a.axis: last, last: a.axis}.get(i, i) for i in range(last + 1)]))
        record = TopKAttributes(k=a.k, axis=last, order=a.order, dtype=a.dtype)
        found = make.rewriter.add_node(TOP_K, [make(TRANSPOSE, x, attributes=swap)], record)
        return [make(TRANSPOSE, value, attributes=swap) for value in found.results]


class GeluInParts(Plan):
    """A gelu becomes erf or sigmoid, with the operations around it."""

    name: ClassVar[str] = "gelu-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = (GELU,)
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        return None

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        return [composed_of(make, GELU, node.operand("x"), node.attributes_as(GeluAttributes))]


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

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        equation, operands = self._equation(node), [node.operand(0), node.operand(1)]
        assert equation is not None
        sizes = letter_sizes(equation, operands)
        assert not isinstance(sizes, Miss)
        return [product_of_letters(make, operands, equation, sizes)]


class ReduceInF32(Plan):
    """A sum, mean or norm of f16 is computed in f32, and rounded once."""

    name: ClassVar[str] = "reduce-in-f32"
    roots: ClassVar[tuple[Operation, ...]] = _SUMS
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        dtype = node.operand("x").type.dtype
        is_half = dtype is f16 and self.capabilities.compute_dtype(node.op, dtype) is f16
        return None if is_half else "it is not computed in f16"

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        wide = make(node.op, make.cast(node.operand("x"), f32), attributes=node.attributes)
        return [make.cast(wide, f16)]


PLANS: Sequence[type[Plan]] = (FormAsItStands, TopKByArgmax, TopKOfLast, GeluInParts, EinsumByProduct, ReduceInF32)
