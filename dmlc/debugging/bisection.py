"""Bisection of a model: parts of it are checked until one node is left with which the fault comes in.

A part from the front has no outputs but the values that leave it. So a kernel which fuses several nodes stays whole
inside the part. ``verify --locate`` marks inner values as outputs, which takes such a kernel apart and hides its fault.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from dmlc.api.arguments import check_arguments
from dmlc.debugging.checks import BAD, SKIP, CheckFunction, PartResult
from dmlc.debugging.cuts import CutChoice
from dmlc.debugging.insides import NodeRecord
from dmlc.debugging.search_setup import Report, SearchSetup, prepare
from dmlc.debugging.search_state import SearchState
from dmlc.debugging.source_insides import CompileOptions, SideSource
from dmlc.diagnostics import Diagnostic, fail
from dmlc.diagnostics.catalogue.runs import NOT_VERIFIED as NOTHING_VERIFIED
from dmlc.diagnostics.catalogue.searches import NOT_SHOWN as FAULT_NOT_SHOWN
from dmlc.diagnostics.catalogue.searches import OPEN_RANGE
from dmlc.diagnostics.counted import counted, first_of
from dmlc.ir.answers import Answer, words
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.models import DEFAULT_INPUTS

FOUND, NOT_SHOWN, RANGE = "found", "not shown", "range"
#: A search gives up after this many models that could not be checked.
_MOST_SKIPS = 64


class BisectStep(Answer, frozen=True):
    """A part that was checked: how many nodes it has, the values at its cut, ``good``, ``bad`` or ``skip``."""

    nodes: int
    cut: tuple[str, ...]
    status: str
    details: tuple[str, ...] = ()


class BisectFacts(Answer, frozen=True):
    """The outcome of a bisection.

    ``status`` is ``found``, ``not shown`` (the whole model is right) or ``range`` (skipped models leave several nodes).
    With ``node`` the fault comes in, or goes away if the search is ``from_end``. ``alone`` is True if that node is
    wrong by itself, fed with right values, False if it is right then, None if that was not tried. ``region`` are the
    nodes that are wrong together as far as is known, or those that are left. ``hidden`` are the values inside it that
    were outputs of the part without the fault, or inputs if the search is ``from_end``. ``width`` is the largest number
    of values at a cut: there are at most log2 of ``nodes`` + 2 + ``width`` ``runs``, unless models were skipped.
    """

    status: Annotated[str, words(FOUND, NOT_SHOWN, RANGE)]
    nodes: int
    runs: int
    width: int
    from_end: bool
    message: str
    node: NodeRecord | None = None
    alone: bool | None = None
    region: tuple[NodeRecord, ...] = ()
    hidden: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    steps: tuple[BisectStep, ...] = ()
    seconds: float = 0.0


class BisectResult(BisectFacts, frozen=True, eq=False):
    """The outcome of a bisection; ``feeds`` are the inputs that show the fault."""

    feeds: Feeds | None = None

    def facts(self) -> BisectFacts:
        """Return the outcome without the inputs."""
        return BisectFacts.of(self)

    @property
    def found(self) -> bool:
        return self.status == FOUND

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The error E0565 or E0566 where no node was found."""
        if self.found:
            return ()
        return (Diagnostic(FAULT_NOT_SHOWN if self.status == NOT_SHOWN else OPEN_RANGE, self.message),)

    def to_text(self, *, whole: bool = False) -> str:
        """Lines for people: the answer first, ``last_line`` last; with ``whole`` each part that was checked, too."""
        out = [self.message]
        out += [f"  {detail}" for detail in self.details]
        out += [f"  help: dmlc explain {diagnostic.code.id}" for diagnostic in self.diagnostics]
        if self.node is not None:
            out += self._evidence(self.node)
        elif self.region:
            out += [f"  {node}" for node in self.region]
        end = "to the end" if self.from_end else "from the start"
        for step in self.steps if whole else ():
            part = f"{step.nodes} of {counted(self.nodes, 'node')} {end}"
            out.append(f"  {part}, {counted(len(step.cut), 'value')} at the cut: {step.status}")
        out.append(self.last_line())
        return "\n".join(out) + "\n"

    def _evidence(self, node: NodeRecord) -> list[str]:
        others = ", ".join(str(other) for other in self.region if other != node)
        if self.alone:
            return ["  alone, on the right inputs, the node gives wrong numbers"]
        out = []
        if self.alone is False:
            out.append(
                "  alone, on the right inputs, the node gives right numbers: the fault needs the nodes around it"
            )
        if others:
            out.append(f"  {'wrong together with' if self.alone is False else 'a kernel may join it with'}: {others}")
        if self.hidden:
            how = "inputs" if self.from_end else "outputs"
            known = "" if self.alone is False else "may "  # unknown where the node was not checked alone
            out.append(f"  as {how} these values {known}hide the fault: {', '.join(self.hidden)}")
        return out

    def last_line(self) -> str:
        """``FOUND | Add n | 8 runs | 0.61 s``."""
        region = counted(len(self.region), "node")
        what = {FOUND: "FOUND", NOT_SHOWN: "NOT SHOWN", RANGE: f"RANGE | {region}"}[self.status]
        named = "" if self.node is None else f" | {self.node.operator} {self.node.name}"
        return f"{what}{named} | {counted(self.runs, 'run')} | {self.seconds:.2f} s"


def bisect(
    a: SideSource,
    *,
    backend: str | None = None,
    against: str | SideSource | None = None,
    check: str | CheckFunction | None = None,
    inputs: int | Mapping[str, Any] = DEFAULT_INPUTS,
    seed: int = 0,
    from_end: bool = False,
    state: str | os.PathLike[str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
    progress: Report | None = None,
) -> BisectResult:
    """Find the node with which a fault comes in, by cutting the model in two.

    ``a`` is a source of ``dmlc.compile``; a program is compiled first. Its parts run on ``backend``: ``cpu``, ``dml``,
    ``numpy`` or ``reference``, or two as in ``cpu:reference``, of which the second is ``against``. By default they are
    compiled for ``directml``. They are compared with ``against``: a backend (by default ONNX Runtime's CPU provider
    without optimizations), or another model, whose values of the same names are right. With another model ``a`` runs
    as it is by default. Instead, ``check`` decides: a command with ``{model}`` and ``{inputs}`` in it, or a function of
    the model, its inputs and the expected outputs.

    A part from the start has the values that leave it as outputs. With ``from_end`` the parts reach to the end of the
    model and are fed with values of ``against``. It finds faults that vanish if the end is cut off. ``inputs``
    is the number of made-up inputs, of which the first that shows the fault is used (a ``check`` is given one), or
    arrays by name. ``state`` is a file that keeps the runs. ``rtol`` and ``atol`` are as for ``dmlc.locate``.
    Raises ``DmlcError`` for a source that cannot be read, E0553, E0556, E0563, E0567 and
    E0568.
    """
    check_arguments(from_end=from_end, state=state)
    start = time.perf_counter()
    setup = prepare(
        a, backend, against, check, inputs=inputs, seed=seed, rtol=rtol, atol=atol,
        options=CompileOptions(model, include, limits), progress=progress,
    )  # fmt: skip
    identity = {**setup.identity, "from_end": from_end}
    setup.state = SearchState(None if state is None else Path(state), identity)
    found = bisected(setup, from_end=from_end)
    return replace(found, seconds=time.perf_counter() - start)


def bisected(setup: SearchSetup, *, from_end: bool = False) -> BisectResult:
    """The search itself. Raises ``DmlcError`` as ``bisect`` does."""
    return _Bisection(setup, from_end).result()


# --- the search


class _Bisection:
    def __init__(self, setup: SearchSetup, from_end: bool) -> None:
        self._setup, self._from_end = setup, from_end
        self._graph = setup.graph
        self._everything = frozenset(range(len(self._graph)))
        self._steps: list[BisectStep] = []
        self._width = 1
        self._details: tuple[str, ...] = ()

    @property
    def _limit(self) -> int:
        """The most runs without skipped ones: log2 of the number of nodes + 2 + the width."""
        return math.floor(math.log2(max(len(self._graph), 1)) + 2 + self._width)

    def result(self) -> BisectResult:
        setup, graph = self._setup, self._graph
        if message := setup.not_shown():
            return self._outcome(NOT_SHOWN, message)
        self._details = setup.whole().details
        if not len(graph):
            raise fail(NOTHING_VERIFIED, "the model has no nodes")
        below, above = self._narrowed()
        left = sorted(above - below)
        if len(left) > 1:
            nodes = tuple(map(graph.record, left))
            names = first_of([f"{node.operator} {node.name}" for node in nodes], 10)
            message = f"{len(nodes)} nodes are left, all models between them were skipped: {names}"
            return self._outcome(RANGE, message, region=nodes)
        return self._found(left[0], below, above)

    def _narrowed(self) -> tuple[frozenset[int], frozenset[int]]:
        """Two sets of nodes, each with all that it depends on; the fault comes in between. They differ by one node,
        unless models were skipped."""
        choice = CutChoice(self._graph)
        below: frozenset[int] = frozenset()
        above = self._everything
        refused: set[frozenset[int]] = set()
        while (size := len(above) - len(below)) > 1 and len(refused) < _MOST_SKIPS:
            half = 1 << ((size - 1).bit_length() - 1)
            cut = choice.best(below, above, size - half, half, refused) if size > half else None
            cut = cut or choice.best(below, above, 1, size - 1, refused)
            if cut is None:
                break
            part = self._everything - cut.part if self._from_end else cut.part
            found = self._checked(part)
            if found.status == SKIP:
                refused.add(cut.part)
                continue
            self._width = max(self._width, cut.width)
            if found.status == BAD:
                self._details = found.details
            if (found.status == BAD) is self._from_end:
                below = cut.part
            else:
                above = cut.part
        return below, above

    def _checked(self, part: frozenset[int]) -> PartResult:
        graph = self._graph
        self._setup.progress(f"run {self._setup.runs + 1} of at most {self._limit}, {len(part)} of {len(graph)} nodes")
        found = self._setup.checked_part(part, fed=self._from_end)
        cut = graph.entering(part) if self._from_end else graph.leaving(part)
        self._steps.append(BisectStep(len(part), tuple(cut), found.status, found.details))
        return found

    def _found(self, number: int, below: frozenset[int], above: frozenset[int]) -> BisectResult:
        graph = self._graph
        node = graph.record(number)
        if self._from_end:
            rest = self._everything - above
            hidden = [name for name in graph.makes[number] if any(r in rest for r in graph.readers.get(name, ()))]
            beside = [reader for name in hidden for reader in graph.readers[name]]
        else:
            outputs = set(graph.leaving(above))
            hidden = [name for name in graph.reads[number] if name not in outputs]
            beside = [graph.makers[name] for name in hidden]
        alone, region = self._together(number, self._everything - below if self._from_end else above)
        if alone:
            beside, hidden = [], []
        nodes = sorted(region or {number, *beside})
        where = f"node {number + 1} of {len(graph)}"
        verb = "does not show without" if self._from_end else "comes in with"
        return self._outcome(
            FOUND, f"the fault {verb} {node} ({where})", node=node, alone=alone, hidden=tuple(hidden),
            region=tuple(map(graph.record, nodes)),
        )  # fmt: skip

    def _together(self, number: int, within: Collection[int]) -> tuple[bool | None, set[int]]:
        """Try a node alone, then with nodes near it, with the runs that are left: is it wrong alone, which are wrong.

        The second is empty where it is not known.
        """
        part, alone = {number}, None
        step = 1
        while self._setup.runs < self._limit:
            found = self._setup.checked_part(frozenset(part), fed=True)
            if found.status == BAD:
                return alone is None, part
            if found.status == SKIP and alone is None:
                return None, set()
            alone = False
            wider = set(part)
            for _ in range(step):
                wider |= self._beside(wider) & set(within)
            if wider == part:
                break
            part, step = wider, 2 * step
        return alone, set()

    def _beside(self, part: Collection[int]) -> set[int]:
        """The nodes that make what a part reads; those that read what it makes, if the search is from the end."""
        graph = self._graph
        if self._from_end:
            return {r for number in part for name in graph.makes[number] for r in graph.readers.get(name, ())}
        return {graph.makers[name] for number in part for name in graph.reads[number]}

    def _outcome(self, status: str, message: str, **fields: Any) -> BisectResult:
        fields.setdefault("details", self._details if status != NOT_SHOWN else ())
        return BisectResult(
            status, len(self._graph), self._setup.runs, self._width, self._from_end, message,
            steps=tuple(self._steps), feeds=self._setup.feeds, **fields,
        )  # fmt: skip
