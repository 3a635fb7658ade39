"""Queries, keys and values as rows of tokens: the layout that ``MultiHeadAttention`` takes, behind those of a model."""

from __future__ import annotations

from msgspec import Struct

from dmlc.ir import Node, Shape, Value, product
from dmlc.ops.move import RESHAPE, RESHAPES, TRANSPOSE, ReshapeAttributes, TransposeAttributes
from dmlc.passes.patterns import scaled_of
from dmlc.passes.rewrite import Rewriter

#: From (batch, heads, length, size) to (batch, length, heads, size), and back.
HEADS_LAST = (0, 2, 1, 3)
#: From a transposed key, (batch, heads, size, length), to (batch, length, heads, size).
KEY_HEADS_LAST = (0, 3, 1, 2)
_SAME = (0, 1, 2, 3)
#: Nodes between a product and the projection that its operand comes from.
_MOST_STEPS = 16


class Tokens(Struct, eq=False):
    """An operand of attention seen as (batch, length, heads * size).

    ``value`` is that already, or, in ``shape``, its axes are brought to (batch, length, heads, size) by ``perm``.
    ``scale`` is the product of the numbers that were passed on the way. ``nodes`` are those passed, the last one first.
    """

    value: Value
    shape: Shape
    perm: tuple[int, ...]
    scale: float
    nodes: tuple[Node, ...]

    @property
    def cost(self) -> int:
        """Operators that the layout takes: a reshape takes none."""
        return int(len(self.shape) == 4 and self.perm != _SAME)

    def build(self, rewriter: Rewriter, shape: Shape) -> Value:
        value = self.value
        if self.cost:
            value = reshaped(rewriter, value, self.shape)
            value = rewriter.add(TRANSPOSE, [value], TransposeAttributes(perm=self.perm))
        return reshaped(rewriter, value, shape)


def reshaped(rewriter: Rewriter, value: Value, shape: Shape) -> Value:
    """The value in a shape; itself where it has it."""
    return value if value.shape == shape else rewriter.add(RESHAPE, [value], ReshapeAttributes(shape=shape))


def tokens_of(value: Value, perm: tuple[int, ...], parts: Shape, shape: Shape, *, scales: bool) -> Tokens:
    """See through layout operations, and products with numbers where ``scales``.

    ``parts`` are batch and heads, the first two axes of the value; they may be one axis. ``shape`` is that of tokens.
    """
    nodes: list[Node] = []
    scale = 1.0
    seen = apart(value.shape, parts)
    for _ in range(_MOST_STEPS):
        node = value.producer
        if node is None:
            break
        scaled = scaled_of(value, in_shape=False) if scales else None
        are_parts = perm[0] == 0 and perm[2] == 1
        if scaled is not None:
            value, scale = scaled.x, scale * scaled.factor
        elif node.op is TRANSPOSE and value.type.rank == 4:
            axes = node.attributes_as(TransposeAttributes).perm
            perm, value = tuple([axes[p] for p in perm]), node.operand("x")
            seen = value.shape
        elif node.op is TRANSPOSE and len(seen) == 4 and node.attributes_as(TransposeAttributes).perm == (0, 2, 1):
            perm, value = tuple([(0, 1, 3, 2)[p] for p in perm]), node.operand("x")
            seen = (*seen[:2], seen[3], seen[2])
        elif perm == _SAME and node.op in RESHAPES and value.type.rank == 4 and node.operand("x").shape == shape:
            value = node.operand("x")
            seen = shape
        elif are_parts and node.op in RESHAPES and len(seen) == 4 and apart(node.operand("x").shape, parts) == seen:
            value = node.operand("x")
        else:
            break
        nodes.append(node)
    return Tokens(value, seen, perm, scale, tuple(nodes))


def apart(shape: Shape, parts: Shape) -> Shape:
    """The shape with batch and heads as two axes, where they may be one; itself where they are not."""
    return (*parts, *shape[1:]) if len(shape) == 3 and shape[0] == product(parts) else shape
