"""``choose-lowering``: of the ways to say an operation, the one that costs least on the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Graph, Node
from dmlc.ir.history import CLASSES
from dmlc.ops.opaque import node_name
from dmlc.passes.choose_lowering import reduce, search
from dmlc.passes.choose_lowering.plan import UNCHANGED, Plan, Sizes, corners, ends, plans_by_root, spanned
from dmlc.passes.choose_lowering.price import Prices
from dmlc.passes.lowering import LoweredNode
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext, Remark
from dmlc.passes.rewrite import Driver, RewritePass, rules_by_root
from dmlc.targets.cost import Work

#: No memory holds a tensor of more elements: such a node is in no model that runs, and its sizes fit no constant.
_MOST_ELEMENTS = 2**48

#: Without times a lowering must be so many times cheaper than the unchanged one by each calibration; one of more nodes
#: than this the second number of times. A node that rewrites made of several was not written: what it replaced may have
#: been cheaper, and a lowering need not win the first number of times.
_WIN, _FEW_NODES, _WIN_OF_MANY = 1.5, 11, 3.0

#: Plans whose parts are brought to their canonical form before the others see them.
FIRST: tuple[Sequence[type[Plan]], ...] = (reduce.LOG_SUM_EXP,)
#: The plans in their order. Nodes that a group makes are offered to the groups that follow: ``max_of_blocks`` asks
#: which searches are made in blocks.
GROUPS: tuple[Sequence[type[Plan]], ...] = (
    (*reduce.BY_TIMES, *search.PLANS),
    (search.max_of_blocks, *reduce.IN_PARTS, *reduce.PLANS),
)


_PLANS = frozenset(plan.name for plan in chain.from_iterable((*FIRST, *GROUPS)))


class ChooseLowering(RewritePass, frozen=True):
    """Nodes for which there are several lowerings become the one that is fastest by its times, or else its estimated
    cost.

    Without times a plan must be much cheaper than the unchanged node by every calibration, and at every end of the
    bounds of open sizes; among several that one is taken whose product of costs is least. A remark keeps all candidates
    with their costs. A plan that ``only_rules`` names is taken wherever it applies, whatever it costs. The class is the
    plan's.
    """

    name: ClassVar[str] = "choose-lowering"
    summary: ClassVar[str] = "Take the lowering that costs least on the target."
    rewrite_class: ClassVar[str] = REASSOCIATES

    groups: tuple[Sequence[type[Plan]], ...] = GROUPS

    def rules(self, context: PassContext) -> Sequence[type[Plan]]:
        chooses = context.target.costs is not None or context.options.tuner is not None
        return [*chain.from_iterable(self.groups)] if context.capabilities.table is not None and chooses else []

    def run(self, graph: Graph, context: PassContext) -> bool:
        weighs_all = context.options.tuner is not None or context.options.only_rules is not None
        allowed = {
            plan for plan in self.rules(context) if context.wants(plan.name) and (weighs_all or plan.is_estimated)
        }
        changed = False
        for group in self.groups:
            index = rules_by_root(tuple([plan for plan in group if plan in allowed]))
            changed |= graph.holds(index) and _Chooser(graph, index, context).run()
        return changed


class _Candidate(Struct, frozen=True):
    """A plan, None for the unchanged node, what it makes, and its cost at each corner of the bounds; or why it is none.

    ``elsewhere`` are its costs by other calibrations, and ``times`` the measured ones. It must be ``need`` times
    cheaper than the unchanged node.
    """

    plan: Plan | None = None
    match: LoweredNode | None = None
    rewrite_class: str = EXACT
    reason: object = None
    costs: tuple[float, ...] = ()
    elsewhere: tuple[float, ...] = ()
    times: tuple[float, ...] = ()
    need: float = 1.0

    @property
    def name(self) -> str:
        return UNCHANGED if self.plan is None else self.plan.name

    @property
    def figures(self) -> tuple[float, ...]:
        """The times where there are some, else the costs."""
        return self.times or (*self.costs, *self.elsewhere)

    @property
    def total(self) -> float:
        return math.prod(self.figures)

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.name}: {self.reason}"
        estimated = f" (estimated {spanned(self.costs)})" if self.times and self.costs else ""
        return f"{self.name} {spanned(self.times or self.costs)}{estimated}"


class _Chooser(Driver):
    """A driver that applies the cheapest of the rules that match, and looks at each node once."""

    def __init__(self, graph: Graph, index: Any, context: PassContext) -> None:
        super().__init__(graph, index, context)
        self.prices = Prices(graph, plans_by_root(chain.from_iterable(GROUPS), context), context.capabilities)
        self.seen: set[Node] = set()
        self.weighed: dict[Any, tuple[list[_Candidate], _Candidate]] = {}

    def _visit(self, node: Node, rules: Sequence[Any]) -> None:
        if node in self.seen or not _has_elements(node):
            return
        self.seen.add(node)
        key = node if any(plan.looks_around for plan in rules) else _kind(node)
        if key not in self.weighed:
            self.weighed[key] = self._weigh(node, rules)
        candidates, best = self.weighed[key]
        several = sum(c.reason is None for c in candidates) > 1 and best.figures
        if several and not (best.plan is None and _is_made(node, rules)):
            self._remark(node, best, candidates)
        if best.plan is not None and best.match is not None:
            match = best.match if best.match.root is node else best.plan.match(node, self.graph)
            assert isinstance(match, LoweredNode)
            self._apply(best.plan, match, best.rewrite_class)

    def _weigh(self, node: Node, plans: Sequence[Plan]) -> tuple[list[_Candidate], _Candidate]:
        """All candidates, and the best of them."""
        places = list(corners(self.graph, node))
        found = [self._candidate(plan, node) for plan in plans]
        candidates = [_Candidate(), *filter(None, found)]
        if any(plan.is_estimated for plan in plans):
            candidates = [self._priced(one, node, places) for one in candidates]
        candidates = self._timed(node, candidates, places, plans) or candidates
        possible = [c for c in candidates if c.reason is None]
        return candidates, _best(possible, forced=self.context.options.only_rules is not None)

    def _candidate(self, plan: Plan, node: Node) -> _Candidate | None:
        if plan.name in node.history.rules and not plan.repeatable:
            return _Candidate(plan, reason="it made this node")
        match = plan.match(node, self.graph)
        if not isinstance(match, LoweredNode):
            return None if match is None else _Candidate(plan, reason=match)
        rewrite_class = plan.class_of(match, self.graph, self.context)
        if rewrite_class in CLASSES and rewrite_class not in self.context.options.allowed:
            return _Candidate(plan, reason=f"it is a rewrite of class {rewrite_class}, which is not allowed here")
        return _Candidate(plan, match, rewrite_class)

    def _priced(self, one: _Candidate, node: Node, places: Sequence[Sizes]) -> _Candidate:
        """The candidate with its costs, if it has any."""
        model, work = self.context.capabilities.costs, list[Sequence[Work]]()
        if model is None or one.reason is not None or (one.plan is not None and not one.plan.is_estimated):
            return one
        for at in places:
            work.append(
                self.prices.of(one.plan, one.match, at) if one.plan and one.match else self.prices.unchanged(node, at)
            )
        costs, *elsewhere = [tuple([each.total(steps) for steps in work]) for each in (model, *model.calibrations)]
        need = _WIN if max(map(model.count, work)) <= _FEW_NODES else _WIN_OF_MANY
        need = need / _WIN if node.history.nodes > 1 and _PLANS.isdisjoint(node.history.rules) else need
        return replace(one, costs=costs, elsewhere=tuple(chain.from_iterable(elsewhere)), need=need)

    def _timed(
        self, node: Node, candidates: Sequence[_Candidate], places: Sequence[Sizes], plans: Sequence[Plan]
    ) -> list[_Candidate]:
        """The candidates with the times that the device takes; none without a device, and for sizes without a bound."""
        possible = {c.name: c.rewrite_class for c in candidates if c.reason is None}
        tuner = self.context.options.tuner
        is_open = any(high == math.inf for _, high in ends(self.graph, node).values())
        if tuner is None or is_open or len(possible) == 1 or _is_made(node, plans):
            return []
        found = [tuner.times([node], possible, at.binding) for at in places]
        if not all(found):
            return []
        out: list[_Candidate] = []
        for one in candidates:
            times = tuple([each[one.name] for each in found if one.name in each])
            if len(times) == len(found):
                out.append(replace(one, times=times, need=max(each["noise"] for each in found)))
            else:
                out.append(replace(one, reason=one.reason or "it makes the same nodes, or no right ones"))
        return out

    def _remark(self, node: Node, best: _Candidate, candidates: Sequence[_Candidate]) -> None:
        def reason() -> str:
            order = sorted(candidates, key=lambda c: (c is not best, c.reason is not None, c.total))
            less = [" (less, but not surely)" * (c.reason is None and c.total < best.total) for c in order]
            return f"{order[0]}, rather than " + "; ".join(map("{}{}".format, order[1:], less[1:]))

        remark = Remark(ChooseLowering.name, reason, node.spans[:1], node_name(node), chosen=True)
        self.context.remarks.append(remark)


def _has_elements(node: Node) -> bool:
    """Return whether its operands have elements, as far as is known, and no more than memory holds."""
    known = [math.prod([d for d in v.shape if isinstance(d, int)]) for v in node.operands if v is not None]
    return all(0 < count <= _MOST_ELEMENTS for count in known)


def _kind(node: Node) -> Any:
    """Return a key of nodes that all plans treat alike: the operation, its types, and its form in an imported model."""
    types = tuple([None if v is None else v.type for v in node.operands])
    form: Any = None
    if node.origin is not None:
        proto = node.origin.proto
        attributes = tuple([a.SerializeToString(deterministic=True) for a in proto.attribute])
        form = (proto.op_type, node.origin.version, attributes, len(proto.input))
    return node.op, node.attributes, types, node.history.rules, node.history.nodes > 1, form


def _is_made(node: Node, plans: Sequence[Plan]) -> bool:
    """Return whether a plan made the node, which therefore stays as it is."""
    return any(plan.name in node.history.rules for plan in plans)


def _best(possible: Sequence[_Candidate], *, forced: bool) -> _Candidate:
    """The cheapest plan that is cheaper everywhere by as much as it must be; without one, the unchanged node."""
    unchanged, *others = possible
    if forced and others:
        return min(others, key=lambda c: c.total)
    return min([unchanged, *[c for c in others if _is_sound(c, unchanged)]], key=lambda c: c.total)


def _is_sound(one: _Candidate, unchanged: _Candidate) -> bool:
    """Return whether the candidate is by so much cheaper as it must be, for every size and by every calibration."""
    return bool(one.figures) and all(
        mine * one.need <= plain for mine, plain in zip(one.figures, unchanged.figures, strict=True)
    )
