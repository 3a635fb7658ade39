"""Queries, keys and values as rows of tokens: the layout that ``MultiHeadAttention`` takes, behind those of a model."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Dim, Node, Value
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE, ReshapeAttributes, TransposeAttributes
from dmlc.passes.patterns import both_ways, made_by, scalar_of
from dmlc.passes.rewrite import Rewriter
from dmlc.records import dataclass

VIEWS = frozenset((RESHAPE, SQUEEZE, UNSQUEEZE))
#: From (batch, heads, length, size) to (batch, length, heads, size), and back.
HEADS_LAST = (0, 2, 1, 3)
#: From a transposed key, (batch, heads, size, length), to (batch, length, heads, size).
KEY_HEADS_LAST = (0, 3, 1, 2)
_SAME = (0, 1, 2, 3)
#: Nodes between a product and the projection that its operand comes from.
_MOST_STEPS = 16


@dataclass(slots=True, eq=False)
class Tokens:
    """An operand of attention seen as (batch, length, heads * size).

    ``value`` is that already, or its axes are brought to (batch, length, heads, size) by ``perm``. ``scale`` is the
    product of the numbers that were passed on the way. ``nodes`` are those passed, the last one first.
    """

    value: Value
    perm: tuple[int, ...]
    scale: float
    nodes: tuple[Node, ...]

    @property
    def cost(self) -> int:
        """Operators that the layout takes: a reshape takes none."""
        return int(self.value.type.rank == 4 and self.perm != _SAME)

    def build(self, rewriter: Rewriter, shape: Sequence[Dim]) -> Value:
        value = self.value
        if self.cost:
            value = rewriter.add(TRANSPOSE, [value], TransposeAttributes(perm=self.perm))
        if value.shape == tuple(shape):
            return value
        return rewriter.add(RESHAPE, [value], ReshapeAttributes(shape=tuple(shape)))


def tokens_of(value: Value, perm: tuple[int, ...], shape: Sequence[Dim], *, scales: bool) -> Tokens:
    """See through layout operations, and products with numbers where ``scales``. ``shape`` is that of the tokens."""
    nodes: list[Node] = []
    scale = 1.0
    for _ in range(_MOST_STEPS):
        node = value.producer
        if node is None:
            break
        factor = factor_of(node) if scales else None
        if factor is not None:
            value, number = factor
            scale *= number
        elif value.type.rank == 4 and node.op is TRANSPOSE:
            axes = node.attributes_as(TransposeAttributes).perm
            perm, value = tuple([axes[p] for p in perm]), node.operand(0)
        elif value.type.rank == 4 and (turned := _turned_in_batch(node)):
            nodes += turned[:-1]
            swap = (0, 1, 3, 2)
            perm, value, node = tuple([swap[p] for p in perm]), turned[-1].operand(0), turned[-1]
        elif perm == _SAME and node.op in VIEWS and node.operand(0).shape == tuple(shape):
            value = node.operand(0)
        else:
            break
        nodes.append(node)
    return Tokens(value, perm, scale, tuple(nodes))


def factor_of(node: Node) -> tuple[Value, float] | None:
    """Return ``(x, c)`` if the node is ``x * c`` or ``x / c`` with one number."""
    if node.op not in (MUL, DIV):
        return None
    for x, c in both_ways(node) if node.op is MUL else ((node.operand(0), node.operand(1)),):
        number = scalar_of(c)
        if number is not None and x.shape == node.result.shape and (node.op is MUL or number):
            return x, float(number) if node.op is MUL else 1 / float(number)
    return None


def _turned_in_batch(node: Node) -> tuple[Node, Node, Node] | None:
    """The reshape, transpose and reshape that swap the last two axes with the axes before them merged."""
    if node.op not in VIEWS:
        return None
    turn = made_by(node.operand(0), TRANSPOSE)
    first = None if turn is None else made_by(turn.operand(0), *VIEWS)
    if turn is None or first is None or turn.attributes_as(TransposeAttributes).perm != (0, 2, 1):
        return None
    before, after = first.operand(0).shape, node.result.shape
    if len(before) != 4 or after != (*before[:2], before[3], before[2]) or turn.operand(0).shape[1:] != before[2:]:
        return None
    return node, turn, first
