"""``top_k`` with k = 1 is a reduction or an arg reduction; DirectML's TopK issues a dispatch for each row."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value, product
from dmlc.ops.index import GATHER_ELEMENTS, IndexAttributes
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, ArgAttributes, TopKAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.reduce_rules.moves import is_unit
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.passes.selection_rules.goal import Goal
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _TopOneMatch(Match):
    """A top_k with k = 1, with its used results. ``extreme`` is true if a reduction computes the values."""

    values: bool = False
    indices: bool = False
    extreme: bool = False


class TopOne(Rule[_TopOneMatch]):
    """top_k with k=1 becomes argmax or reduce_max, or both as argmax and gather_elements (argmin, reduce_min).

    Where both results are used two nodes stand for one, so only where top_k is a dispatch per row, of several rows.
    There the values are gathered: so they are those at the indices with a NaN too. The lowest index of equal elements
    wins in all of them, and the sign of a zero maximum is unspecified. So is which value wins where a NaN is among
    them, but runtimes do choose otherwise there: ``reassociates``, so that ``--exact`` keeps the top_k.
    """

    name = "top-one"
    roots = (TOP_K,)
    rewrite_class = REASSOCIATES

    def __init__(self, goal: Goal) -> None:
        self.goal = goal

    def match(self, node: Node, graph: Graph) -> _TopOneMatch | None:
        values, indices = (bool(r.uses) for r in node.results)
        if node.attributes_as(TopKAttributes).k != 1 or not (values or indices):
            return None
        extreme = not indices and self._why_no_extreme(node) is None
        return _TopOneMatch(node, values=values, indices=indices, extreme=extreme)

    def check(self, match: _TopOneMatch, graph: Graph) -> Miss | None:
        if match.extreme or not match.values:
            return None
        x, axis = match.root.operand(0), match.root.attributes_as(TopKAttributes).axis
        if not self.goal.has_dispatches:
            reason = self._why_no_extreme(match.root) if not match.indices else None
            return reason or Miss("values and indices are both used: argmax and gather_elements are two nodes for one")
        if is_unit(graph, product([d for i, d in enumerate(x.shape) if i != axis])):
            return Miss("values and indices of a single row are both used: top_k dispatches no more than two nodes")
        return None

    def _why_no_extreme(self, node: Node) -> Miss | None:
        largest = node.attributes_as(TopKAttributes).order == "largest"
        return self.goal.why_no_extreme(REDUCE_MAX if largest else REDUCE_MIN, node.operand(0).type.dtype)

    def describe(self, match: _TopOneMatch) -> str:
        return "top_k with k=1"

    def build(self, match: _TopOneMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        a, x = root.attributes_as(TopKAttributes), root.operand(0)
        values, indices = root.results
        largest = a.order == "largest"
        if match.extreme:
            record = ReduceAttributes(axes=(a.axis,), keepdims=True)
            return [rewriter.add(REDUCE_MAX if largest else REDUCE_MIN, [x], record), indices]
        search = ArgAttributes(axes=(a.axis,), ties="first", dtype=a.dtype, keepdims=True)
        found = rewriter.add(ARGMAX if largest else ARGMIN, [x], search)
        if match.values:
            values = rewriter.add(GATHER_ELEMENTS, [x, found], IndexAttributes(axis=a.axis))
        return [values, found]
