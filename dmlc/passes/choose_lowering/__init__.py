"""``choose-lowering``: of the ways to say an operation, the one that costs least on the target."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation
from dmlc.ir.history import CLASSES
from dmlc.ops.node_name import node_name, title_of
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.choose_lowering import arg, extremes, forms, hardmax, parts, reduce
from dmlc.passes.choose_lowering.plan import Plan, Sizes, Sketch, Standing, corners, ends, spanned
from dmlc.passes.lowering import LoweredNode, lowered
from dmlc.passes.manager import REASSOCIATES, PassContext, Remark
from dmlc.passes.rewrite import Match, RewritePass, Rewriter, Rule, names_after

#: No memory holds a tensor of more elements: such a node is in no model that runs, and its sizes fit no constant.
_MOST_ELEMENTS = 2**48

#: Without times a lowering must be so many times cheaper than the unchanged one by each calibration; one of more nodes
#: than this the second number of times.
_WIN, _FEW_NODES, _WIN_OF_MANY = 1.5, 12, 3.0

#: Plans whose parts are brought to their canonical form before the others see them.
FIRST: tuple[Sequence[type[Plan]], ...] = (parts.LOG_SUM_EXP,)
#: The plans in their order. A group is the plans of one file. Groups run one after another, so that what a plan of one
#: makes is offered to the plans of those that follow.
GROUPS: tuple[Sequence[type[Plan]], ...] = (
    forms.PLANS,
    hardmax.PLANS,
    arg.PLANS,
    extremes.PLANS,
    parts.PLANS,
    reduce.PLANS,
)


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

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [_as_rule(plan) for group in self._groups(context) for plan in group if not issubclass(plan, Standing)]

    def run(self, graph: Graph, context: PassContext) -> bool:
        changed = False
        for group in self._groups(context):
            changed |= _Chooser(graph, [plan(context) for plan in group], context).run()
        return changed

    def _groups(self, context: PassContext) -> Sequence[Sequence[type[Plan]]]:
        chooses = context.target.costs is not None or context.options.tuner is not None
        return self.groups if context.capabilities.table is not None and chooses else ()


def _as_rule(plan: type[Plan]) -> type[Rule[Any]]:
    """The plan as the rule that users name. It is not matched: the pass chooses among the plans."""
    fields = {"name": plan.name, "roots": plan.roots, "rewrite_class": plan.rewrite_class, "__doc__": plan.__doc__}
    rule: type[Rule[Any]] = type(plan.__name__, (Rule,), fields)
    return rule


class _Candidate(Struct, frozen=True):
    """A plan and its cost at each corner of the bounds, or why it is none.

    ``elsewhere`` are its costs by other calibrations, and ``times`` the measured ones. It must be ``need`` times
    cheaper than the unchanged node.
    """

    plan: Plan
    reason: str | None = None
    costs: tuple[float, ...] = ()
    elsewhere: tuple[float, ...] = ()
    times: tuple[float, ...] = ()
    need: float = 1.0

    @property
    def figures(self) -> tuple[float, ...]:
        """The times where there are some, else the costs."""
        return self.times or (*self.costs, *self.elsewhere)

    @property
    def total(self) -> float:
        return math.prod(self.figures)

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.plan.name}: {self.reason}"
        estimated = f" (estimated {spanned(self.costs)})" if self.times and self.costs else ""
        return f"{self.plan.name} {spanned(self.times or self.costs)}{estimated}"


class _Chooser:
    def __init__(self, graph: Graph, plans: Sequence[Plan], context: PassContext) -> None:
        self.graph = graph
        self.context = context
        self.index: dict[Operation, list[Plan]] = {}
        weighs_all = context.options.tuner is not None or context.options.only_rules is not None
        for plan in plans:
            if isinstance(plan, Standing) or ((weighs_all or plan.is_estimated) and context.wants(plan.name)):
                for op in plan.roots:
                    self.index.setdefault(op, []).append(plan)
        self.index = {op: found for op, found in self.index.items() if len(found) > 1}
        self.seen: dict[Any, tuple[list[_Candidate], _Candidate]] = {}

    def run(self) -> bool:
        if not self.index:
            return False
        changed = False
        for node in self.graph.nodes_of(self.index):
            pending = deque([node])
            while pending:
                root = pending.popleft()
                if root.op in self.index and root.graph is self.graph and _has_elements(root):
                    made = self._visit(root)
                    pending.extend(made)
                    changed |= bool(made)
        return changed

    def _visit(self, node: Node) -> list[Node]:
        """Choose for one node; the nodes that came in its place."""
        plans = self.index[node.op]
        if any(plan.looks_around for plan in plans):
            candidates, best = self._weigh(node, plans)
        else:
            kind = _kind(node)
            if kind not in self.seen:
                self.seen[kind] = self._weigh(node, plans)
            candidates, best = self.seen[kind]
        several = sum(c.reason is None for c in candidates) > 1 and best.figures
        if several and not (isinstance(best.plan, Standing) and _is_made(node, plans)):
            self._remark(node, best, candidates)
        return [] if isinstance(best.plan, Standing) else self._apply(node, best)

    def _weigh(self, node: Node, plans: Sequence[Plan]) -> tuple[list[_Candidate], _Candidate]:
        """All candidates, and the best of them."""
        places = list(corners(self.graph, node))
        candidates = [self._candidate(plan, node, places) for plan in plans]
        candidates = self._timed(node, candidates, places) or candidates
        possible = [c for c in candidates if c.reason is None]
        return candidates, _best(possible, forced=self.context.options.only_rules is not None)

    def _timed(self, node: Node, candidates: Sequence[_Candidate], places: Sequence[Sizes]) -> list[_Candidate]:
        """The candidates with the times that the device takes; none without a device, and for sizes without a bound."""
        possible = {c.plan.name: c.plan.class_of(node, self.graph) for c in candidates if c.reason is None}
        tuner = self.context.options.tuner
        is_open = any(high == math.inf for _, high in ends(self.graph, node).values())
        if tuner is None or is_open or len(possible) == 1 or _is_made(node, self.index[node.op]):
            return []
        found = [tuner.times([node], possible, at.binding) for at in places]
        if not all(found):
            return []
        out: list[_Candidate] = []
        for one in candidates:
            times = tuple([each[one.plan.name] for each in found if one.plan.name in each])
            if len(times) == len(found):
                out.append(replace(one, times=times, need=max(each["noise"] for each in found)))
            else:
                out.append(replace(one, reason=one.reason or "it makes the same nodes, or no right ones"))
        return out

    def _candidate(self, plan: Plan, node: Node, corners: Sequence[Sizes]) -> _Candidate:
        if not isinstance(plan, Standing):
            mine = plan.name in node.history.rules and not plan.repeatable
            reason = "it made this node" if mine else plan.applies(node, self.graph)
            rewrite_class = plan.class_of(node, self.graph) if reason is None else ""
            if rewrite_class in CLASSES and rewrite_class not in self.context.options.allowed:
                reason = f"it is a rewrite of class {rewrite_class}, which is not allowed here"
            if reason is not None:
                return _Candidate(plan, reason)
        model = self.context.capabilities.costs
        if model is None or not plan.is_estimated:
            return _Candidate(plan)
        work = [plan.steps(node, at) for at in corners]
        costs, *elsewhere = [[one.total(steps) for steps in work] for one in (model, *model.calibrations)]
        need = _WIN if max(map(model.count, work)) <= _FEW_NODES else _WIN_OF_MANY
        return _Candidate(plan, None, tuple(costs), tuple(chain.from_iterable(elsewhere)), need=need)

    def _apply(self, node: Node, best: _Candidate) -> list[Node]:
        graph, plan = self.graph, best.plan
        name, rewrite_class = node_name(node), plan.class_of(node, graph)
        rewriter = Rewriter(graph, plan.name, Match(node), rewrite_class)
        match = lowered(plan.lower, Sketch(graph, plan.capabilities), node)
        assert isinstance(match, LoweredNode)
        for made, conditions in match.steps:
            rewriter.adopt(made, conditions)
        values = match.values
        for old, new in zip(node.results, values, strict=True):
            graph.replace_all_uses(old, new)
        graph.erase_dead((node,))
        after = names_after(rewriter.made)
        text = f"{title_of(node) if node.op is OPAQUE else node.op.name} of {node.operand(0).type}"
        self.context.record(plan.name, rewrite_class, text, rewriter.spans, (name,), after)
        return rewriter.made

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
    return node.op, node.attributes, types, node.history.rules, form


def _is_made(node: Node, plans: Sequence[Plan]) -> bool:
    """Return whether a plan made the node, which therefore stays as it is."""
    return any(plan.name in node.history.rules for plan in plans)


def _best(possible: Sequence[_Candidate], *, forced: bool) -> _Candidate:
    """The cheapest plan that is cheaper everywhere by as much as it must be; without one, the unchanged node."""
    (standing,) = [c for c in possible if isinstance(c.plan, Standing)]
    others = [c for c in possible if c is not standing]
    if forced and others:
        return min(others, key=lambda c: c.total)
    return min([standing, *[c for c in others if _is_sound(c, standing)]], key=lambda c: c.total)


def _is_sound(one: _Candidate, standing: _Candidate) -> bool:
    """Return whether the candidate is by so much cheaper as it must be, for every size and by every calibration."""
    return bool(one.figures) and all(
        mine * one.need <= plain for mine, plain in zip(one.figures, standing.figures, strict=True)
    )
