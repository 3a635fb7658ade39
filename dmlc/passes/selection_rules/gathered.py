"""The element at the index of the largest one is the largest one."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, IndexAttributes
from dmlc.ops.reduce import ReduceAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, EXTREME_OF, ArgAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import made_by
from dmlc.passes.reduce_rules.moves import reshape_ones
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.passes.selection_rules.goal import Goal
from dmlc.passes.selection_rules.views import name_of, through_index_cast
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _GatheredArgMatch(Match):
    """``search`` is the argmax or argmin."""

    search: Node | None = None


class GatherAtArg(Rule[_GatheredArgMatch]):
    """gather_elements(x) at argmax(x) becomes reduce_max(x), at argmin(x) reduce_min(x).

    Among equal elements it does not matter which is gathered, but for the sign of a zero, which is unspecified. So is
    which value wins where a NaN is among them, but runtimes do choose otherwise there: ``reassociates``, so that
    ``--exact`` keeps the two.
    """

    name = "gather-at-arg"
    roots = (GATHER_ELEMENTS, GATHER)
    rewrite_class = REASSOCIATES

    def __init__(self, goal: Goal) -> None:
        self.goal = goal

    def match(self, node: Node, graph: Graph) -> _GatheredArgMatch | None:
        seen: list[Node] = []
        search = made_by(through_index_cast(node.operand(1), seen), ARGMAX, ARGMIN)
        if search is None:
            return None
        if node.op is GATHER and node.operand(0).type.rank != 1:
            return None
        return _GatheredArgMatch(node, (*seen, search), search)

    def check(self, match: _GatheredArgMatch, graph: Graph) -> Miss | None:
        root, search = match.root, match.search
        assert search is not None
        a, axis = search.attributes_as(ArgAttributes), root.attributes_as(IndexAttributes).axis
        x, other = search.operand(0), root.operand(0)
        if x is not other:
            return Miss("{0} is gathered, and the index is of {1}", (name_of(other), name_of(x)), other)
        if a.axes != (axis,):
            return Miss("the index counts along {0}, and axis {1} is gathered", (list(a.axes), axis), search.result)
        for node in match.consumed:
            miss = used_elsewhere(node.result)
            if miss is not None:
                return miss
        return self.goal.why_no_extreme(EXTREME_OF[search.op], x.type.dtype)

    def build(self, match: _GatheredArgMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, search = match.root, match.search
        assert search is not None
        a = search.attributes_as(ArgAttributes)
        record = ReduceAttributes(axes=a.axes, keepdims=a.keepdims)
        found = rewriter.add(EXTREME_OF[search.op], [search.operand(0)], record)
        return [reshape_ones(rewriter, found, root.result.shape)]
