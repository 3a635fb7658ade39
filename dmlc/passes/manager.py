"""What a pass is, what it is given, and the manager that runs passes in order."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from dmlc.diagnostics import Diagnostic, DmlcError, Span, fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Graph
from dmlc.ir.printer import print_graph
from dmlc.ir.verifier import verify
from dmlc.targets import Target

#: The rewrite classes of the language page, from the strictest.
EXACT, REASSOCIATES, RANGE = "exact", "reassociates", "range"
CLASSES: tuple[str, ...] = (EXACT, REASSOCIATES, RANGE)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One applied rewrite: the rule, its class, what it did in a few words, and where the nodes came from."""

    rule: str
    rewrite_class: str
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """A rewrite that did not fire, and why. ``reason`` is formatted only when read."""

    rule: str
    reason: Callable[[], str]
    spans: tuple[Span, ...] = ()


@dataclass(slots=True)
class PassContext:
    """What passes share: the target, the opset to emit, the allowed rewrite classes, and the records they leave.

    ``verify`` checks the graph's invariants and each pass's claim after it ran. ``properties`` are what the passes
    that ran have ensured. ``after_pass`` is called with each pass's name and the graph, to dump its text.
    """

    target: Target
    opset: int
    allowed: frozenset[str] = frozenset((EXACT, REASSOCIATES))
    ledger: list[LedgerEntry] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    timings: list[tuple[str, float, bool]] = field(default_factory=list)
    after_pass: Callable[[str, Graph], None] | None = None
    verify: bool = False
    properties: set[str] = field(default_factory=set)

    def record(self, rule: str, rewrite_class: str, text: str, spans: tuple[Span, ...] = ()) -> None:
        self.ledger.append(LedgerEntry(rule, rewrite_class, text, spans))

    def missed(self, rule: str, reason: Callable[[], str], spans: tuple[Span, ...] = ()) -> None:
        self.remarks.append(Remark(rule, reason, spans))


class Pass(ABC):
    """A pass is a frozen dataclass; its fields are its options.

    ``requires`` and ``ensures`` name properties of the graph in words (``lowered-hardmax``, ``canonical-reduce``).
    ``rewrite_class`` is the weakest class of what it does; a rewrite of a class that is not allowed does not fire.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    rewrite_class: ClassVar[str] = EXACT
    requires: ClassVar[tuple[str, ...]] = ()
    ensures: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def run(self, graph: Graph, context: PassContext) -> bool:
        """Change the graph in place; whether anything changed. Raises ``DmlcError``."""


@dataclass(frozen=True)
class PassManager(Pass):
    """Runs passes in order. It is a pass itself.

    Raises I0901 where a pass runs before what it requires or, with ``context.verify``, breaks the graph or claims
    that it changed nothing when it did.
    """

    passes: Sequence[Pass]
    name: ClassVar[str] = "pipeline"
    summary: ClassVar[str] = "Run passes in order."

    def run(self, graph: Graph, context: PassContext) -> bool:
        changed = False
        for step in self.passes:
            missing = [p for p in step.requires if p not in context.properties]
            if missing:
                raise _bug(f"pass {step.name} runs before what it requires: {', '.join(missing)}")
            before = print_graph(graph) if context.verify else ""
            start = time.perf_counter()
            did = step.run(graph, context)
            context.timings.append((step.name, time.perf_counter() - start, did))
            context.properties.update(step.ensures)
            if context.verify:
                _check(step, graph, before, did)
            if context.after_pass is not None:
                context.after_pass(step.name, graph)
            changed |= did
        return changed


def _check(step: Pass, graph: Graph, before: str, did: bool) -> None:
    try:
        verify(graph)
    except DmlcError as error:
        first = error.diagnostics[0]
        labelled = Diagnostic(first.code, f"after pass {step.name}: {first.message}", first.labels)
        raise DmlcError(labelled, exit_code=3) from None
    if not did and print_graph(graph) != before:
        raise _bug(f"pass {step.name} says that it changed nothing, and the graph is another")


def _bug(message: str) -> DmlcError:
    return fail(INTERNAL, message, exit_code=3)
