"""Parts of a tensor that are joined again along another axis."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import (
    CONCAT,
    RESHAPE,
    RESHAPES,
    SLICE,
    TRANSPOSE,
    ConcatAttributes,
    ReshapeAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from dmlc.passes.fold_constants.batches import is_inferred
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _PartsMatch(Match, eq=False, kw_only=True):
    """``x`` transposed by ``perm`` has the elements of the concat in their order."""

    x: Value
    perm: tuple[int, ...]


class ConcatOfPlaces(Rule[_PartsMatch]):
    """A concat of all places along an axis, each without that axis, becomes a transpose and a reshape.

    ``exact``. tf2onnx joins the directions of a recurrent layer so.
    """

    name = "concat-of-places"
    roots = (CONCAT,)
    fed_by = RESHAPES

    def match(self, node: Node, graph: Graph) -> _PartsMatch | None:
        moved = [made_by(value, *RESHAPES) for value in node.operands]
        cuts = [None if each is None else made_by(each.operand("x"), SLICE) for each in moved]
        found = [each for each in (*cuts, *moved) if each is not None]
        if len(found) < 2 * len(node.operands):
            return None
        x, count = found[0].operand("x"), len(node.operands)
        axis = next((row[0] for row in found[0].attributes_as(SliceAttributes).rows()), 0)
        if x.shape[axis] != count or any(cut.operand("x") is not x for cut in found[:count]):
            return None
        wanted = [((axis, place, place + 1, 1),) for place in range(count)]
        if [tuple(_plain(cut, count)) for cut in found[:count]] != wanted:
            return None
        rest = tuple([a for a in range(x.type.rank) if a != axis])
        joined = node.attributes_as(ConcatAttributes).axis
        if any(each.result.shape != tuple([x.shape[a] for a in rest]) for each in found[count:]):
            return None
        perm = (*rest[:joined], axis, *rest[joined:])
        if not is_inferred(tuple([x.shape[a] for a in perm]), node.result.shape):
            return None
        return _PartsMatch(node, tuple(found), x=x, perm=perm)

    def check(self, match: _PartsMatch, graph: Graph) -> Miss | None:
        return next(filter(None, [used_elsewhere(node.result) for node in match.consumed]), None)

    def build(self, match: _PartsMatch, rewriter: Rewriter) -> Sequence[Value]:
        moved = rewriter.add(TRANSPOSE, [match.x], TransposeAttributes(perm=match.perm))
        return [rewriter.add(RESHAPE, [moved], ReshapeAttributes(shape=match.root.result.shape))]


def _plain(cut: Node, count: int) -> list[tuple[object, ...]]:
    """The rows of a slice, with the place of one that counts from the end, and the end where it is left open."""
    out: list[tuple[object, ...]] = []
    for axis, start, end, step in cut.attributes_as(SliceAttributes).rows():
        if not isinstance(start, int) or not isinstance(end, int):
            return []
        chosen = range(count)[start:end:step]
        out.append((axis, chosen.start, chosen.stop, chosen.step))
    return out
