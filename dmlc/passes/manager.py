"""Passes, their context, and the manager that runs them in order."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from msgspec import Struct, field

from dmlc.diagnostics import Diagnostic, DmlcError, Span, fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Graph
from dmlc.ir.history import CLASSES
from dmlc.passes.options import Options
from dmlc.targets import Target
from dmlc.targets.capabilities import Capabilities

#: The rewrite classes of the language reference, from the strictest.
EXACT, REASSOCIATES, RANGE = CLASSES


class LedgerEntry(Struct, frozen=True):
    """One applied rewrite: the rule, its class, what it did in a few words, and where the nodes came from.

    ``before`` and ``after`` are the nodes, by their names in an imported model or else their operations.
    """

    rule: str
    rewrite_class: str
    text: str
    spans: tuple[Span, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Remark(Struct, frozen=True, eq=False):
    """A rewrite that did not fire, with the reason; or, if ``chosen``, the lowering that was taken, with all costs.

    ``reason`` is formatted only when read; remarks whose reasons read alike are equal. ``node`` is where the match
    began. ``saves`` is the number of operators that the rewrite would save, if its rule knows it. ``takes`` is the
    number of nodes of a whole match, whose work the new nodes would do. It is 0 where only a part of the pattern is
    there.
    """

    rule: str
    reason: Callable[[], str]
    spans: tuple[Span, ...] = ()
    node: str = ""
    chosen: bool = False
    saves: int | None = None
    takes: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remark):
            return NotImplemented
        return self._stated() == other._stated() and self.reason() == other.reason()

    def __hash__(self) -> int:
        return hash(self._stated())

    def _stated(self) -> tuple[Any, ...]:
        return self.rule, self.spans, self.node, self.chosen, self.saves, self.takes


class PassContext(Struct, dict=True):
    """Shared state of the passes: the target, the opset to emit, the allowed rewrite classes, and the records.

    ``options`` are the options of the compilation; mandatory passes are not rules that they name. ``verify`` checks the
    graph's invariants and each pass's claim after it ran. ``properties`` are those that the passes so far have ensured;
    ``folded_bytes`` counts their folded constants, of all rounds together. ``changes`` counts the runs that changed the
    graph; ``ran`` holds the count after each pass's last run. ``capabilities`` are the target's at the opset.
    ``after_pass`` is called with each pass's name and the graph, to dump its text; ``progress`` with each pass's name
    before it runs.
    """

    target: Target
    opset: int
    options: Options = field(default_factory=Options)
    ledger: list[LedgerEntry] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    timings: list[tuple[str, float, bool]] = field(default_factory=list)
    after_pass: Callable[[str, Graph], None] | None = None
    progress: Callable[[str], None] | None = None
    verify: bool = False
    properties: set[str] = field(default_factory=set)
    folded_bytes: int = 0
    changes: int = 0
    ran: dict[Pass, int] = field(default_factory=dict)

    @cached_property
    def capabilities(self) -> Capabilities:
        return Capabilities(self.target, self.opset)

    def wants(self, rule: str) -> bool:
        """Return whether the user allows the rule (or the pass that is one rule)."""
        skipped, only = self.options.skip_rules, self.options.only_rules
        return rule not in skipped and (only is None or rule in only)

    def record(
        self,
        rule: str,
        rewrite_class: str,
        text: str,
        spans: tuple[Span, ...] = (),
        before: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
    ) -> None:
        self.ledger.append(LedgerEntry(rule, rewrite_class, text, spans, before, after))

    def missed(
        self,
        rule: str,
        reason: Callable[[], str],
        spans: tuple[Span, ...] = (),
        node: str = "",
        *,
        saves: int | None = None,
        takes: int = 0,
    ) -> None:
        self.remarks.append(Remark(rule, reason, spans, node, saves=saves, takes=takes))


class Pass(Struct, frozen=True):
    """A pass is a frozen record; its fields are its options.

    ``requires`` and ``ensures`` name properties of the graph in words (``lowered-hardmax``, ``canonical-reduce``).
    ``rewrite_class`` is the weakest class of what it does; a rewrite of a class that is not allowed does not fire.
    ``optional`` is true for a pass that is one rule by itself, which users may leave out. The graphs inside nodes get
    the pass too where ``inner_graphs`` is true.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    rewrite_class: ClassVar[str] = EXACT
    optional: ClassVar[bool] = False
    inner_graphs: ClassVar[bool] = True
    requires: ClassVar[tuple[str, ...]] = ()
    ensures: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def run(self, graph: Graph, context: PassContext) -> bool:
        """Change the graph in place; whether anything changed. Raises ``DmlcError``."""


class PassManager(Pass, frozen=True):
    """Runs passes in order. It is a pass itself.

    A pass leaves nothing to do for itself, so it runs again only after another one changed the graph.
    Raises I0901 where a pass runs before what it requires or, with ``context.verify``, breaks the graph or claims
    that it changed nothing when it did.
    """

    passes: Sequence[Pass]
    name: ClassVar[str] = "pipeline"
    summary: ClassVar[str] = "Run passes in order."
    inner_graphs: ClassVar[bool] = False

    def run(self, graph: Graph, context: PassContext) -> bool:
        changed = False
        for step in self.passes:
            changed |= _take(step, graph, context)
        return changed


#: A fixed point is given up after so many rounds: two passes that undo each other would go on for ever.
MOST_ROUNDS = 16


class FixedPoint(PassManager, frozen=True):
    """Runs passes in order, again and again, until none of them changes anything.

    A remark stands until its rule fires at its node, or reports it anew.
    With ``context.verify``, raises I0901 where the passes come to no end.
    """

    name: ClassVar[str] = "fixed-point"
    summary: ClassVar[str] = "Run passes until none of them changes anything."

    def run(self, graph: Graph, context: PassContext) -> bool:
        before = context.changes
        remarks: dict[Pass, list[Remark]] = {}
        for _ in range(MOST_ROUNDS):
            changes = context.changes
            for step in self.passes:
                told, fired = len(context.remarks), len(context.ledger)
                _take(step, graph, context)
                new, own = context.remarks[told:], remarks.get(step)
                if own:
                    over = _keys(new) | {(e.rule, name) for e in context.ledger[fired:] for name in e.before[:1]}
                    context.remarks = [*_still_true(context.remarks[:told], own, over), *new]
                if new:
                    remarks[step] = [*(own or ()), *new]
            if context.changes == changes:
                return context.changes > before
        if context.verify:
            raise _bug(f"the passes do not come to an end: {', '.join(step.name for step in self.passes)}")
        return True


def _keys(remarks: Sequence[Remark]) -> set[tuple[str, str]]:
    return {(remark.rule, remark.node) for remark in remarks if not remark.chosen}


def _still_true(remarks: Sequence[Remark], own: Sequence[Remark], over: set[tuple[str, str]]) -> list[Remark]:
    """The remarks but those that a pass made itself in an earlier round and that are over."""
    gone = {id(remark) for remark in own if not remark.chosen and (remark.rule, remark.node) in over}
    return [remark for remark in remarks if id(remark) not in gone]


def _take(step: Pass, graph: Graph, context: PassContext) -> bool:
    """One pass in its turn: whether it changed anything. The passes of a manager are timed one by one."""
    missing = [p for p in step.requires if p not in context.properties]
    if missing:
        raise _bug(f"pass {step.name} runs before what it requires: {', '.join(missing)}")
    if isinstance(step, PassManager):
        return step.run(graph, context)
    if context.ran.get(step) == context.changes:  # a pass leaves nothing to do for itself
        return False
    before = _text(graph) if context.verify else ""
    if context.progress is not None:
        context.progress(step.name)
    start = time.perf_counter()
    did = _run(step, graph, context)
    context.timings.append((step.name, time.perf_counter() - start, did))
    context.properties.update(step.ensures)
    context.changes += did
    context.ran[step] = context.changes
    if context.verify:
        _check(step, graph, before, did)
    if context.after_pass is not None:
        context.after_pass(step.name, graph)
    return did


def _run(step: Pass, graph: Graph, context: PassContext) -> bool:
    """A pass over a graph and the graphs inside its nodes, inner ones first; a manager sees to those itself.

    They get it again where it found out more of what the graph around passes in.
    """
    did = step.inner_graphs and _run_inside(step, graph, context)
    while step.run(graph, context):
        did = True
        inside = [region.graph for node in graph.with_regions for region in node.regions]
        if not any(inner.retyped or inner.outdated for inner in inside) or not _run_inside(step, graph, context):
            break
    return did


def _run_inside(step: Pass, graph: Graph, context: PassContext) -> bool:
    did = False
    for node in list(graph.with_regions):
        for region in node.regions:
            region.graph.reader = graph.reader
            if _run(step, region.graph, context):
                graph.retyped[node] = None  # its results may be known better
                did = True
    return did


def _text(graph: Graph) -> str:
    from dmlc.ir.printer import print_graph  # loaded for ``verify`` alone

    return print_graph(graph)


def _check(step: Pass, graph: Graph, before: str, did: bool) -> None:
    from dmlc.ir.verifier import verify

    try:
        verify(graph)
    except DmlcError as error:
        first = error.diagnostics[0]
        labelled = Diagnostic(first.code, f"after pass {step.name}: {first.message}", first.labels)
        raise DmlcError(labelled, exit_code=3) from None
    if not did and _text(graph) != before:
        raise _bug(f"pass {step.name} says that it changed nothing, and the graph is another")


def _bug(message: str) -> DmlcError:
    return fail(INTERNAL, message, exit_code=3)
