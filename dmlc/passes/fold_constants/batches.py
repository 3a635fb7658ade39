"""Reshapes that merge axes for a matrix product or a transpose, and split them again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dmlc.ir import Dim, Graph, Node, Shape, Value
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import RESHAPE, RESHAPES, TRANSPOSE, ReshapeAttributes, TransposeAttributes
from dmlc.passes.layouts import ones_between
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

#: Axes of a product with a merged batch. With one more, which is what it splits into, targets take it as it is.
_AXES = 3


class _Factor(Struct, frozen=True):
    """``x`` reshaped to ``rows`` and ``columns`` behind the batch, and perhaps ``turned``."""

    x: Value
    rows: Dim
    columns: Dim
    turned: bool
    nodes: tuple[Node, ...]

    def shape(self, batch: Shape) -> Shape:
        return (*batch, self.rows, self.columns)


class _ProductMatch(Match, eq=False, kw_only=True):
    factors: tuple[_Factor, ...]


class MatmulBetweenReshapes(Rule[_ProductMatch]):
    """A product of matrices whose batch is merged before it and split after it is computed with the split batch.

    ``exact``. TensorFlow's einsum merges the batch and the heads of an attention so, and PyTorch's bmm does.
    """

    name = "matmul-between-reshapes"
    roots = RESHAPES
    fed_by = (MATMUL,)

    def match(self, node: Node, graph: Graph) -> _ProductMatch | None:
        inner, want = made_by(node.operand("x"), MATMUL), node.result.shape
        if inner is None or inner.result.shape[1:] != want[2:]:
            return None
        factors = [_factor(value) for value in inner.operands]
        found = tuple([factor for factor in factors if factor is not None])
        if len(found) < len(factors):
            return None
        if any(value is not None and value.shape[0] != inner.result.shape[0] for value in inner.operands):
            return None
        if not all(is_inferred(factor.x.shape, factor.shape(want[:2])) for factor in found):
            return None
        nodes = tuple(dict.fromkeys([inner, *[n for factor in found for n in factor.nodes]]))
        return _ProductMatch(node, nodes, factors=found)

    def check(self, match: _ProductMatch, graph: Graph) -> Miss | None:
        return next(filter(None, [used_elsewhere(node.result) for node in match.consumed]), None)

    def build(self, match: _ProductMatch, rewriter: Rewriter) -> Sequence[Value]:
        batch = match.root.result.shape[:2]
        made = []
        for factor in match.factors:
            shape = factor.shape(batch)
            same = factor.x.shape == shape
            value = factor.x if same else rewriter.add(RESHAPE, [factor.x], ReshapeAttributes(shape=shape))
            turn = TransposeAttributes(perm=(0, 1, 3, 2))
            made.append(rewriter.add(TRANSPOSE, [value], turn) if factor.turned else value)
        return [rewriter.add(MATMUL, made)]


def _factor(value: Value | None) -> _Factor | None:
    """The factor, if it is a reshape to three axes, or the transpose of one."""
    moved = made_by(value, TRANSPOSE)
    if moved is not None:
        if moved.attributes_as(TransposeAttributes).perm != (0, 2, 1):
            return None
        value = moved.operand("x")
    node = made_by(value, *RESHAPES)
    if node is None or len(node.result.shape) != _AXES:
        return None
    nodes = (node,) if moved is None else (moved, node)
    _, rows, columns = node.result.shape
    return _Factor(node.operand("x"), rows, columns, moved is not None, nodes)


def is_inferred(have: Shape, want: Shape) -> bool:
    """True if at most one size of a reshape must be inferred: others would be computed by nodes of their own."""
    return len([d for i, d in enumerate(want) if not isinstance(d, int) and have[i : i + 1] != (d,)]) < 2


class _OnesMatch(Match, eq=False, kw_only=True):
    """``before`` is the shape to transpose, ``perm`` its new order."""

    before: Shape
    perm: tuple[int, ...]


class OnesAroundTranspose(Rule[_OnesMatch]):
    """A reshape adds axes of size 1, a transpose moves them, another takes them out: none of them is made.

    ``exact``. TensorFlow's einsum makes axes for the letters of the other operand.
    """

    name = "ones-around-transpose"
    roots = RESHAPES
    fed_by = (TRANSPOSE,)

    def match(self, node: Node, graph: Graph) -> _OnesMatch | None:
        moved = made_by(node.operand("x"), TRANSPOSE)
        first = None if moved is None else made_by(moved.operand("x"), *RESHAPES)
        ones = None if moved is None else ones_between(graph, moved.result.shape, node.result.shape)
        if moved is None or first is None or ones is None or ones[1]:
            return None
        perm = moved.attributes_as(TransposeAttributes).perm
        gone = {perm[axis] for axis in ones[0]}
        kept = [axis for axis in range(len(perm)) if axis not in gone]
        before = tuple([first.result.shape[axis] for axis in kept])
        if not is_inferred(first.operand("x").shape, before):
            return None
        order = tuple([kept.index(axis) for axis in perm if axis not in gone])
        return _OnesMatch(node, (first, moved), before=before, perm=order)

    def check(self, match: _OnesMatch, graph: Graph) -> Miss | None:
        return next(filter(None, [used_elsewhere(node.result) for node in match.consumed]), None)

    def build(self, match: _OnesMatch, rewriter: Rewriter) -> Sequence[Value]:
        x = match.consumed[0].operand("x")
        flat = rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=match.before))
        return [rewriter.add(TRANSPOSE, [flat], TransposeAttributes(perm=match.perm))]
