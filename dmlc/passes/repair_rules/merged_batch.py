"""Nodes over matrices whose DirectML operator takes up to 4 axes: the axes before the matrix become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dmlc.ir import FOREIGN, Dim, Graph, Node, Value, product
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.legal_rules.build import Maker
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter


class MatMulOfMergedBatch(RepairRule[Match]):
    """A matmul of more than 4 axes becomes one of 3 axes between reshapes; a batch that broadcasts is expanded."""

    name = "merge-matmul-batch"
    roots = (MATMUL,)
    repairs = ("matmul-rank",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        found = self.support.of_kernel(failure, "MatMul")
        most = max(value.type.rank for value in (node.operand(0), node.operand(1)))
        if found is None or found.ranks_over is None or most <= found.ranks_over:
            return None
        return None if self.support.leaves("MatMul", node.result.type.dtype) else Match(node)

    def describe(self, match: Match) -> str:
        return f"matmul of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        a, b, result = root.operand(0), root.operand(1), root.result
        vectors = (a.type.rank == 1) + (b.type.rank == 1)
        batch = result.shape[: result.type.rank - 2 + vectors]
        left = _matrices(make, make.reshape(a, (1, *a.shape)) if a.type.rank == 1 else a, batch)
        right = _matrices(make, make.reshape(b, (*b.shape, 1)) if b.type.rank == 1 else b, batch)
        return [make.reshape(make(MATMUL, left, right), result.shape)]


def _matrices(make: Maker, value: Value, batch: Sequence[Dim]) -> Value:
    """The matrices along one axis; a single matrix as it is, for it broadcasts."""
    own, matrix = value.shape[:-2], value.shape[-2:]
    if all(size == 1 for size in own):
        return make.reshape(value, matrix)
    if own != tuple(batch):
        value = make(EXPAND, value, attributes=ExpandAttributes(shape=(*batch, 1, 1)))
    return make.reshape(value, (product(batch), *matrix))


class TriluOfMergedBatch(RepairRule[Match]):
    """A Trilu of more than 4 axes becomes one of 3 axes between reshapes."""

    name = "merge-trilu-batch"
    roots = (OPAQUE,)
    repairs = ("trilu-rank",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        found = self.support.of_kernel(failure, "Trilu") if is_opaque(node, "Trilu") else None
        x = node.operands[0] if node.operands else None
        if found is None or found.ranks_over is None or x is None or x.type.dtype is FOREIGN:
            return None
        return Match(node) if x.type.rank > found.ranks_over else None

    def describe(self, match: Match) -> str:
        return f"Trilu of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x = root.operand(0)
        merged = make.reshape(x, (product(x.shape[:-2]), *x.shape[-2:]))
        record = replace(root.attributes_as(OpaqueAttributes), types=(merged.type,))
        return [make.reshape(rewriter.add(OPAQUE, [merged, *root.operands[1:]], record), root.result.shape)]


class LrnOfFourAxes(RepairRule[Match]):
    """An LRN of other than 4 axes becomes one of 4, its spatial axes merged, between reshapes."""

    name = "merge-lrn-axes"
    roots = (OPAQUE,)
    repairs = ("lrn-rank", "lrn-rank-low")

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not is_opaque(node, "LRN") or self.support.of_kernel(self.repairs[0], "LRN") is None:
            return None
        x = node.operands[0]
        return Match(node) if x is not None and x.type.dtype is not FOREIGN and x.type.rank not in (0, 1, 4) else None

    def describe(self, match: Match) -> str:
        return f"LRN of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x = root.operand(0)
        merged = make.reshape(x, (*x.shape[:2], product(x.shape[2:]), 1))
        record = replace(root.attributes_as(OpaqueAttributes), types=(merged.type,))
        return [make.reshape(rewriter.add(OPAQUE, [merged], record), root.result.shape)]
