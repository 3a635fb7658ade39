"""Nodes over matrices whose DirectML operator takes up to 4 axes: the axes before the matrix become one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Dim, Graph, Node, Operation, Value, product
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.node_maker import Maker
from dmlc.passes.patterns import depends_on_batch, opaque_factors
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.targets.directml import LARGEST_BATCH


class MatMulOfMergedBatch(Rule[Match]):
    """A matmul of more than 4 axes, or of too many matrices along an axis, becomes another between reshapes.

    Rows that meet a single matrix become the rows of one product. Otherwise the axes before the matrices become one, or
    two where one would be too large; a batch that broadcasts is expanded.
    """

    name = "merge-matmul-batch"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (MATMUL,)
    repairs: ClassVar[tuple[str, ...]] = ("matmul-rank", "gemm-batch")

    def match(self, node: Node, graph: Graph) -> Match | None:
        rank, batch = (self.capabilities.fault(failure, "MatMul") for failure in self.repairs)
        if rank is None or rank.ranks_over is None or self.capabilities.leaves("MatMul", node.result.type.dtype):
            return None
        shapes = [value.shape for value in (node.operand("a"), node.operand("b"))]
        is_large = batch is not None and any(_is_large(size) for shape in shapes for size in shape[:-2])
        return Match(node) if is_large or max(map(len, shapes)) > rank.ranks_over else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        batch = _batch(match.root)
        fits = _is_single(match.root.operand("b")) or _divided(product(batch)) is not None
        return (
            None if fits else Miss("the number of matrices, {0}, has no two factors of up to 65535", (product(batch),))
        )

    def describe(self, match: Match) -> str:
        return f"matmul of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        a, b, result = root.operand("a"), root.operand("b"), root.result
        left = make.reshape(a, (1, *a.shape)) if a.type.rank == 1 else a
        right = make.reshape(b, (*b.shape, 1)) if b.type.rank == 1 else b
        if _is_single(right):
            rows = make.reshape(left, (product(left.shape[:-1]), left.shape[-1]))
            return [make.reshape(make(MATMUL, rows, make.reshape(right, right.shape[-2:])), result.shape)]
        batch = _batch(root)
        axes = _divided(product(batch))
        assert axes is not None
        left, right = (_matrices(make, value, batch, axes) for value in (left, right))
        return [make.reshape(make(MATMUL, left, right), result.shape)]


def _is_large(size: Dim) -> bool:
    return isinstance(size, int) and size > LARGEST_BATCH


def _is_single(value: Value) -> bool:
    """True for one matrix or vector, whatever the number of its axes."""
    return all(size == 1 for size in value.shape[:-2])


def _batch(node: Node) -> Sequence[Dim]:
    """The sizes before the matrices of the result."""
    vectors = sum(value.type.rank == 1 for value in (node.operand("a"), node.operand("b")))
    return node.result.shape[: node.result.type.rank - 2 + vectors]


def _divided(count: Dim) -> tuple[Dim, ...] | None:
    """The number of matrices as one axis, or as two that DirectML takes; None if there are no such two."""
    if not isinstance(count, int) or count <= LARGEST_BATCH:
        return (count,)
    least = -(-count // LARGEST_BATCH)
    first = next((n for n in range(least, min(math.isqrt(count), LARGEST_BATCH) + 1) if count % n == 0), None)
    return None if first is None else (first, count // first)


def _matrices(make: Maker, value: Value, batch: Sequence[Dim], axes: Sequence[Dim]) -> Value:
    """The matrices along the axes; a single matrix as it is, for it broadcasts."""
    own, matrix = value.shape[:-2], value.shape[-2:]
    if all(size == 1 for size in own):
        return make.reshape(value, matrix)
    if own != tuple(batch):
        value = make(EXPAND, value, attributes=ExpandAttributes(shape=(*batch, 1, 1)))
    return make.reshape(value, (*axes, *matrix))


#: Axes that GEMM takes.
_AXES = 4


class ProductOfMergedBatch(Rule[Match]):
    """An opaque product of matrices, quantized or with a transpose, has its axes before the matrices merged likewise.

    Scales and zero points are of one element, so that they belong to no axis.
    """

    name = "merge-product-batch"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("matmul-rank", "gemm-batch", "fused-matmul-rank", "fused-gemm-batch")

    def match(self, node: Node, graph: Graph) -> Match | None:
        places = opaque_factors(node)
        if not places:
            return None
        values = [node.operands[place] for place in places]
        shapes = [v.shape for v in values if v is not None and v.type.rank > 1]
        if len(shapes) < len(places):
            return None
        is_large = any(_is_large(size) for shape in shapes for size in shape[:-2])
        return Match(node) if is_large or max(map(len, shapes)) > _AXES else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        root = match.root
        miss = depends_on_batch(root)
        if miss is not None:
            return miss
        count = product(root.result.shape[:-2])
        return None if _divided(count) is not None else Miss("{0} matrices have no two factors", (count,))

    def describe(self, match: Match) -> str:
        return f"{match.root.attributes_as(OpaqueAttributes).op_type} of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root, places = Maker(rewriter), match.root, opaque_factors(match.root)
        shape = root.result.shape
        axes = _divided(product(shape[:-2]))
        assert axes is not None
        operands = list(root.operands)
        for place in places:
            operands[place] = _matrices(make, root.operand(place), shape[:-2], axes)
        is_one = all(_is_single(root.operand(place)) for place in places)
        made = shape[-2:] if is_one else (*axes, *shape[-2:])
        record = replace(root.attributes_as(OpaqueAttributes), types=(root.result.type.with_shape(made),))
        return [make.reshape(rewriter.add(OPAQUE, operands, record), shape)]


class TriluOfMergedBatch(Rule[Match]):
    """A Trilu of more than 4 axes becomes one of 3 axes between reshapes."""

    name = "merge-trilu-batch"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("trilu-rank",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        found = self.capabilities.fault(failure, "Trilu") if is_opaque(node, "Trilu") else None
        x = node.operands[0] if node.operands else None
        if found is None or found.ranks_over is None or x is None:
            return None
        return Match(node) if x.type.rank > found.ranks_over else None

    def describe(self, match: Match) -> str:
        return f"Trilu of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x = root.operand(0)
        merged = make.reshape(x, (product(x.shape[:-2]), *x.shape[-2:]))
        record = replace(root.attributes_as(OpaqueAttributes), types=(merged.type,))
        return [make.reshape(rewriter.add(OPAQUE, [merged, *root.operands[1:]], record), x.shape)]


class LrnOfFourAxes(Rule[Match]):
    """An LRN of other than 4 axes becomes one of 4, its spatial axes merged, between reshapes."""

    name = "merge-lrn-axes"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("lrn-rank", "lrn-rank-low")

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not is_opaque(node, "LRN") or self.capabilities.fault(self.repairs[0], "LRN") is None:
            return None
        x = node.operands[0]
        return Match(node) if x is not None and x.type.rank not in (0, 1, 4) else None

    def describe(self, match: Match) -> str:
        return f"LRN of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x = root.operand(0)
        merged = make.reshape(x, (*x.shape[:2], product(x.shape[2:]), 1))
        record = replace(root.attributes_as(OpaqueAttributes), types=(merged.type,))
        return [make.reshape(rewriter.add(OPAQUE, [merged], record), x.shape)]
