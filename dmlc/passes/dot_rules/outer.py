"""A sum over products that stretch both factors is a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dmlc.ir import Graph, Node, Shape, Value
from dmlc.ops.binary import MUL
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import RESHAPE, TRANSPOSE, ReshapeAttributes, TransposeAttributes
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


@dataclass(slots=True, eq=False)
class _Found(Match):
    """The axes of the product: ``rows`` only the left factor has, ``columns`` only the right, ``inner`` is summed."""

    left: Value | None = None
    right: Value | None = None
    rows: int = 0
    columns: int = 0
    inner: int = 0
    why_not: Miss | None = None


class MatmulFromSum(Rule[_Found]):
    """reduce_sum(a * b) becomes matmul(a, b) where the product stretches both: it holds rows times columns elements.

    ``reassociates``. A product of two equal shapes stays: summing it reads each factor once too, and a batch of dot
    products is slower as a matmul or Einsum on ONNX Runtime's CPU provider and no fewer dispatches on DirectML.
    """

    name = "matmul-from-sum"
    roots = (REDUCE_SUM,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _Found | None:
        inner = made_by(node.operand(0), MUL)
        axes = node.attributes_as(ReduceAttributes).axes
        if inner is None or inner.operand(0) is inner.operand(1) or not inner.result.type.dtype.is_float or not axes:
            return None
        return _roles(node, inner, axes)

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        return match.why_not or used_elsewhere(match.consumed[0].result)

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        assert match.left is not None and match.right is not None
        product = match.consumed[0].result
        batch = [a for a in range(product.type.rank) if a not in (match.rows, match.columns, match.inner)]
        left = _arranged(rewriter, match.left, product.shape, [*batch, match.rows, match.inner])
        right = _arranged(rewriter, match.right, product.shape, [*batch, match.inner, match.columns])
        made = rewriter.add(MATMUL, [left, right])
        order = [*batch, match.rows, match.columns]
        perm = tuple([order.index(a) for a in sorted(order)])
        if perm != tuple(range(len(perm))):
            made = rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=perm))
        return [_reshaped(rewriter, made, match.root.result.shape)]


def _roles(root: Node, product: Node, axes: tuple[int, ...]) -> _Found:
    rank = product.result.type.rank
    shapes = [_padded(product.operand(i).shape, rank) for i in (0, 1)]
    only = [[a for a in range(rank) if shapes[i][a] != 1 and shapes[1 - i][a] == 1] for i in (0, 1)]
    found = _Found(root, (product,), product.operand(0), product.operand(1), inner=axes[0])
    if len(axes) != 1 or shapes[0][axes[0]] != shapes[1][axes[0]] or shapes[0][axes[0]] == 1:
        found.why_not = Miss("it sums over axes {0}, not over one that both factors have", (list(axes),))
    elif not only[0] or not only[1]:
        found.why_not = Miss("the product is no larger than its factors, {0} and {1}", tuple(map(_text, shapes)))
    else:  # further axes of one factor are a batch, along which the other is stretched
        found.rows, found.columns = only[0][-1], only[1][-1]
    return found


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _arranged(rewriter: Rewriter, value: Value, product: Shape, order: list[int]) -> Value:
    """The factor with the axes of the product in that order; those that are not in it have size 1 and go."""
    rank = len(product)
    kept = sorted(order)
    shape = _padded(value.shape, rank)
    value = _reshaped(rewriter, value, tuple([shape[a] for a in kept]))
    perm = tuple([kept.index(a) for a in order])
    if perm == tuple(range(len(perm))):
        return value
    return rewriter.add(TRANSPOSE, [value], TransposeAttributes(perm=perm))


def _reshaped(rewriter: Rewriter, value: Value, shape: Shape) -> Value:
    return value if value.shape == shape else rewriter.add(RESHAPE, [value], ReshapeAttributes(shape=shape))
