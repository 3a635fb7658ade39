"""A reduction over axes that a reshape made is one over those it made them of."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Dim, Graph, Node, Shape, Value, product
from dmlc.ops.move import RESHAPE, SQUEEZE, UNSQUEEZE
from dmlc.ops.reduce import REDUCE_MEAN, REDUCTIONS, ReduceAttributes
from dmlc.passes.manager import EXACT, PassContext
from dmlc.passes.reduce_rules.fit import reduce_to
from dmlc.passes.reduce_rules.kinds import order_class
from dmlc.passes.reduce_rules.moves import is_unit
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass

_MOVES = frozenset((RESHAPE, SQUEEZE, UNSQUEEZE))


@dataclass(slots=True, eq=False)
class _ReducedReshapeMatch(Match):
    """``axes`` of what was reshaped; ``same_order`` where nothing but axes of size 1 was added or dropped."""

    axes: tuple[int, ...] | None = None
    same_order: bool = False


class DropFlatten(Rule[_ReducedReshapeMatch]):
    """A reduction of a reshape becomes one over the axes before it: those that were merged, split or moved.

    Sums of floats may be added in another order (``reassociates``), the others are ``exact``.
    """

    name = "drop-flatten-before-reduction"
    roots = REDUCTIONS
    fed_by = (UNSQUEEZE, RESHAPE, SQUEEZE)

    def __init__(self, max_rank: int | None = None) -> None:
        self.max_rank = max_rank

    def match(self, node: Node, graph: Graph) -> _ReducedReshapeMatch | None:
        inner = node.operand(0).producer
        axes = node.attributes_as(ReduceAttributes).axes
        if inner is None or inner.op not in _MOVES:
            return None
        old, new = inner.operand(0).shape, inner.result.shape
        if self.max_rank is not None and len(old) > self.max_rank:
            return None
        if all(is_unit(graph, new[a]) for a in axes):
            return None  # which is not a reduction
        found = segments(graph, old, new)
        if found is None:
            return _ReducedReshapeMatch(node, (inner,))
        same_order = all(len(before) == len(after) == 1 for before, after in found)
        return _ReducedReshapeMatch(node, (inner,), _before(found, axes), same_order)

    def check(self, match: _ReducedReshapeMatch, graph: Graph) -> Miss | None:
        inner = match.consumed[0]
        if match.axes is None:
            types = (inner.operand(0).type, inner.result.type)
            return Miss("the reshape from {0} to {1} does more than regroup axes that are reduced", types)
        x = inner.operand(0)
        means = match.root.op is REDUCE_MEAN and x.type.dtype.is_integer  # which are refused over nothing
        if means and any(graph.dims.promises_empty(x.shape[a]) for a in match.axes):
            return Miss("an axis of {0} may be empty", (x.type,), x)
        return used_elsewhere(inner.result)

    def class_of(self, match: _ReducedReshapeMatch, graph: Graph, context: PassContext) -> str:
        return EXACT if match.same_order else order_class(match.root)

    def build(self, match: _ReducedReshapeMatch, rewriter: Rewriter) -> Sequence[Value]:
        assert match.axes is not None
        root, x = match.root, match.consumed[0].operand(0)
        return [reduce_to(rewriter, root.op, x, ReduceAttributes(axes=match.axes, keepdims=False), root.result.shape)]


Segment = tuple[list[int], list[int]]


def segments(graph: Graph, old: Shape, new: Shape) -> list[Segment] | None:
    """The axes in the shortest runs that hold the same elements before and after; axes of size 1 are in none.

    A run of one axis on both sides is that axis. None where there are no such runs, or no elements.
    """
    if 0 in old:
        return None
    before = [a for a, size in enumerate(old) if not is_unit(graph, size)]
    after = [a for a, size in enumerate(new) if not is_unit(graph, size)]
    # Products of sizes from the left: where both sides have the same one, a run ends. Of polynomials, equal products
    # after equal products mean equal factors between.
    ends = {size: place + 1 for place, size in enumerate(_running([new[a] for a in after]))}
    out: list[Segment] = []
    first = start = 0
    for place, size in enumerate(_running([old[a] for a in before])):
        end = ends.get(size)
        if end is not None:
            out.append((before[first : place + 1], after[start:end]))
            first, start = place + 1, end
    return out if first == len(before) and start == len(after) else None


def _running(sizes: Sequence[Dim]) -> list[Dim]:
    out: list[Dim] = []
    total: Dim = 1
    for size in sizes:
        total = total * size
        out.append(total)
    return out


def _before(found: Sequence[Segment], axes: Sequence[int]) -> tuple[int, ...] | None:
    """The axes before the reshape that are reduced; None where a run is only partly so, or is kept in another form."""
    out: list[int] = []
    for before, after in found:
        if all(a in axes for a in after):
            out.extend(before)
        elif not len(before) == len(after) == 1:
            return None
    return tuple(out)


def axis_groups(old: Shape, new: Shape) -> list[tuple[int, int]] | None:
    """For each new axis the old ones (first, last + 1) that it was made of; None where axes were split or regrouped."""
    out: list[tuple[int, int]] = []
    start = 0
    for index, size in enumerate(new):
        last = len(old) if index == len(new) - 1 else start
        while last < len(old) and product(old[start:last]) != size:
            last += 1
        if last == start and size == 1:
            out.append((start, start))
            continue
        if product(old[start:last]) != size:
            return None
        out.append((start, last))
        start = last
    return out
