"""Operands without an element, for which no DirectML operator is made: the provider leaves the result unwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import Dim, DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import bool_
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.constant import CONSTANT
from dmlc.ops.index import FULL, IOTA, SCATTER_ELEMENTS, FullAttributes, is_written
from dmlc.ops.literals import attribute_array
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, PAD, ConcatAttributes, PadAttributes
from dmlc.ops.opaque import OPAQUE
from dmlc.ops.reduce import (
    REDUCTIONS,
    ReduceAttributes,
    reduction_of,
)
from dmlc.passes.rewrite import Match, Rewriter, Rule


def _is_empty(value: Value) -> bool:
    return 0 in value.shape


def _full(rewriter: Rewriter, shape: Sequence[Dim], value: float | int | bool, dtype: DType) -> Value:
    if is_written(shape):
        data = np.broadcast_to(attribute_array(value, dtype, "value"), shape)  # type: ignore[arg-type]
        return rewriter.constant(data)
    return rewriter.add(FULL, (), FullAttributes(shape=tuple(shape), value=value, dtype=dtype))


class EmptyRule(Rule[Match]):
    """A rule for what an empty operand leaves to compute."""

    optional = False

    repairs: ClassVar[tuple[str, ...]] = ("empty",)


class NothingToCompute(EmptyRule):
    """A node whose results are all empty becomes tensors of no element, so that nothing is asked of the provider."""

    name = "nothing-to-compute"
    roots: ClassVar[tuple[Operation, ...]] = (
        *[op for op in ALL_OPERATIONS if op not in (CONSTANT, FULL, IOTA)],
        OPAQUE,
    )

    def match(self, node: Node, graph: Graph) -> Match | None:
        for value in node.results:
            if not _is_empty(value) or not value.type.is_static:
                return None
        return Match(node)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [_full(rewriter, v.shape, 0, v.type.dtype) for v in match.root.results]


class ReductionOfNothing(EmptyRule):
    """A reduction over an axis of no element becomes its identity.

    The sum is 0, the product 1, the largest the lowest of the type, the mean NaN, as the language says.
    """

    name = "reduction-of-nothing"
    roots: ClassVar[tuple[Operation, ...]] = REDUCTIONS

    def match(self, node: Node, graph: Graph) -> Match | None:
        x, axes = node.operand("x"), node.attributes_as(ReduceAttributes).axes
        return Match(node) if any(x.shape[axis] == 0 for axis in axes) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, dtype = match.root, match.root.result.type.dtype
        value = reduction_of(root).of_nothing(dtype)
        return [_full(rewriter, root.result.shape, bool(value) if dtype is bool_ else value, dtype)]


class ProductOfNothing(EmptyRule):
    """A matrix product over an axis of no element becomes zeros."""

    name = "product-of-nothing"
    roots: ClassVar[tuple[Operation, ...]] = (MATMUL,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if node.operand("a").shape[-1] == 0 else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        result = match.root.result
        return [_full(rewriter, result.shape, 0, result.type.dtype)]


class ConcatOfSome(EmptyRule):
    """A concat leaves out operands that have no element."""

    name = "concat-of-some"
    roots: ClassVar[tuple[Operation, ...]] = (CONCAT,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        axis = node.attributes_as(ConcatAttributes).axis
        empty = [v is not None and v.shape[axis] == 0 for v in node.operands]
        return Match(node) if any(empty) and not all(empty) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, axis = match.root, match.root.attributes_as(ConcatAttributes).axis
        left = [v for v in root.operands if v is not None and v.shape[axis] != 0]
        return [left[0] if len(left) == 1 else rewriter.add(CONCAT, left, root.attributes)]


class PadOfNothing(EmptyRule):
    """A pad of a tensor that has no element is the value that it is padded with, everywhere."""

    name = "pad-of-nothing"
    roots: ClassVar[tuple[Operation, ...]] = (PAD,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if _is_empty(node.operand("x")) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        return [_full(rewriter, root.result.shape, root.attributes_as(PadAttributes).value, root.result.type.dtype)]


class ScatterOfNothing(EmptyRule):
    """A scatter of no updates is what it would have changed."""

    name = "scatter-of-nothing"
    roots: ClassVar[tuple[Operation, ...]] = (SCATTER_ELEMENTS,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if _is_empty(node.operand("updates")) else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [match.root.operand("x")]
