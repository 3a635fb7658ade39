"""Factors of a product brought into the order of axes that a matrix product wants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Array, Graph, Node, Shape, StoredTensor, Tensor, Value
from dmlc.ops.binary import MUL
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.reduce import ReduceAttributes
from dmlc.passes.patterns import made_by
from dmlc.passes.reduce_rules.moves import is_unit, reshape_ones
from dmlc.passes.rewrite import Rewriter
from dmlc.records import dataclass

#: A larger constant is moved by the model, not here.
_MOST_ELEMENTS = 2**20


@dataclass(frozen=True, slots=True)
class SummedProduct:
    """reduce_sum(a * b): the product's node, both factors' shapes in its rank, the axes that are summed, and for each
    factor those along which only it varies."""

    node: Node
    shapes: tuple[Shape, Shape]
    axes: tuple[int, ...]
    only: tuple[list[int], list[int]]

    def factor(self, index: int) -> Value:
        return self.node.operand(index)

    @property
    def inner(self) -> int | None:
        """The one axis that is summed, where both factors vary along it."""
        if len(self.axes) != 1 or self.shapes[0][self.axes[0]] != self.shapes[1][self.axes[0]]:
            return None
        return None if self.shapes[0][self.axes[0]] == 1 else self.axes[0]

    @property
    def text(self) -> tuple[str, str]:
        first, second = (f"[{', '.join(map(str, shape))}]" for shape in self.shapes)
        return first, second


def summed_product(graph: Graph, root: Node) -> SummedProduct | None:
    """Return the product that a sum reduces, if it has two different float factors."""
    node = made_by(root.operand(0), MUL)
    axes = root.attributes_as(ReduceAttributes).axes
    if node is None or node.operand(0) is node.operand(1) or not node.result.type.dtype.is_float or not axes:
        return None
    rank = node.result.type.rank
    a, b = (_padded(graph, node.operand(i).shape, rank) for i in (0, 1))
    only = [[i for i in range(rank) if one[i] != 1 and other[i] == 1] for one, other in ((a, b), (b, a))]
    return SummedProduct(node, (a, b), axes, (only[0], only[1]))


def _padded(graph: Graph, shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + tuple([1 if is_unit(graph, d) else d for d in shape])


def arranged(rewriter: Rewriter, value: Value, shape: Shape, order: Sequence[int]) -> Value:
    """The factor with those axes of the product, in that order; others have size 1 and go. ``shape`` is the factor's
    in the product's rank."""
    kept = sorted(order)
    value = reshaped(rewriter, value, tuple([shape[a] for a in kept]))
    perm = tuple([kept.index(a) for a in order])
    moving = [p for p in perm if shape[kept[p]] != 1]
    if moving == sorted(moving):  # only axes of size 1 change places
        return reshaped(rewriter, value, tuple([shape[a] for a in order]))
    data = _own(value)
    if data is not None:
        return _constant(rewriter, np.ascontiguousarray(data.array.transpose(perm)), value)
    return rewriter.add(TRANSPOSE, [value], TransposeAttributes(perm=perm))


def reshaped(rewriter: Rewriter, value: Value, shape: Shape) -> Value:
    """The value with other axes of size 1."""
    data = _own(value)
    if data is None or value.shape == shape:
        return reshape_ones(rewriter, value, shape)
    return _constant(rewriter, data.array.reshape([d for d in shape if isinstance(d, int)]), value)


def _own(value: Value) -> Tensor | None:
    """The data of a constant that nothing else uses, so that it may be laid out anew."""
    data = constant_of(value)
    if data is None or len(value.uses) > 1 or data.size > _MOST_ELEMENTS:
        return None
    return None if isinstance(data, StoredTensor) and data.is_apart else data


def _constant(rewriter: Rewriter, array: Array, like: Value) -> Value:
    return rewriter.add(CONSTANT, (), ConstantAttributes(value=Tensor(array, like.type.dtype)))
