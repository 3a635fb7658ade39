"""The check itself: both sides run on the same inputs, what differs is judged, and everything is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from dmlc.diagnostics.steps import step
from dmlc.ir import Condition, Dim, substitute
from dmlc.runtime.runnable import NoEvidence, NotRunnable, RunFailed
from dmlc.verifying.comparison import DIFFERENT, NO_ERRORS, WITHIN, Comparison, Errors, classes, compare
from dmlc.verifying.inputs import SIZES, Feeds, Interface, NoInputs, elements, pattern_of, shapes
from dmlc.verifying.judge import Judge, Terms
from dmlc.verifying.overrides import find_overrides
from dmlc.verifying.sizes import Binding
from dmlc.verifying.subject import Subject, unlike_names
from dmlc.verifying.tolerance import EXACT, RANGE, REASSOCIATES, Tolerance
from dmlc.verifying.verdict import (
    BEYOND,
    EQUAL,
    NOT_VERIFIED,
    OVERFLOWED,
    RANDOM,
    STATUSES,
    UNSPECIFIED,
    FirstDifference,
    OutputReport,
    Verdict,
)

#: Small inputs of small models are drawn this often.
_DRAWS, _SMALL_NODES, _SMALL_ELEMENTS = 8, 64, 4096
#: Most runs of the original, if it is small and if not, to find other values for its defaults.
_TRIALS, _FEW_TRIALS = 400, 48
#: The runs of both sides on one input.
_Runs: TypeAlias = "tuple[Callable[[], dict[str, Any]], Callable[[], dict[str, Any]]]"
_ORDER = (EXACT, REASSOCIATES, RANGE)
#: Differences on every input that are all of these say nothing about an output.
_EXCUSED = (UNSPECIFIED, OVERFLOWED, BEYOND)
_OPTIMIZED = " with ONNX Runtime's default optimizations"
#: So often the spread explains what they change in an output of the original; more would take many runs each.
_LOOKS = 2
#: The reason of an output that only ONNX Runtime's optimizer makes different.
BY_OPTIMIZER = f"the result differs{_OPTIMIZED}"


@dataclass(slots=True)
class _Tally:
    """Counts, errors and the worst difference found for one output."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    errors: Errors = Errors()
    zeros: int = 0
    found: FirstDifference | None = None

    def report(self, name: str) -> OutputReport:
        counts = tuple((status, self.counts[status]) for status in STATUSES if self.counts[status])
        differs = set(self.counts) != {EXACT}
        errors = self.errors.worst(NO_ERRORS) if differs else self.errors
        return OutputReport(name, counts, errors, tuple(self.reasons.items()), self.found, self.zeros)


@dataclass(slots=True)
class _FeedPlan:
    """Feeds: an interface and sizes that the original runs on, and values for inputs that give shapes or counts,
    accepted by the original at the first of the sizes."""

    interface: Interface
    bindings: list[Binding]
    overrides: list[Feeds] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    #: The only input, where it is given and not drawn.
    given: Feeds | None = None

    def overrides_of(self, place: int, inputs: int) -> list[Feeds]:
        """Candidates fed with the input at this place: all with the first, each with two more."""
        if not place:
            return self.overrides
        turns = {(1 + 2 * i + turn) % inputs: i for i in range(len(self.overrides)) for turn in (0, inputs // 2)}
        return [self.overrides[turns[place]]] if place in turns else []


def verify_sides(
    original: Callable[[], Subject],
    result: Callable[[], Subject],
    *,
    inputs: int,
    seed: int,
    allowed: str | Iterable[str],
    first: int = 0,
    tolerance: Tolerance | None = None,
    until_different: bool = False,
) -> Verdict:
    """The verdict on two sides, which are made here so that one that cannot be made is a verdict too.

    The inputs are numbered from ``first``: what few of them are built of (``inputs.PATTERNS``) follows from that.
    ``tolerance`` replaces each dtype's; the original's own instability then excuses nothing. ``until_different`` ends
    with the first input that shows a difference.
    Raises ``ValueError`` for an unknown class, or where no input is asked for.
    """
    chosen = classes(allowed)
    if inputs < 1:
        raise ValueError(f"at least one input is verified, not {inputs}")
    blank = Verdict(NOT_VERIFIED, tuple([name for name in _ORDER if name in chosen]), seed, inputs)
    try:
        return _verdict(original, result, chosen, blank, first, tolerance, until_different)
    except NoEvidence as error:
        return replace(blank, reason=str(error), diagnostic=error.diagnostic)


def verify_given(
    sides: Callable[[], tuple[Subject, Subject]],
    feeds: Feeds,
    *,
    data: str,
    allowed: str | Iterable[str],
    tolerance: Tolerance | None = None,
) -> Verdict:
    """The verdict on two sides on one input that is given, which ``data`` names. Raises ``ValueError`` for an unknown
    class."""
    chosen = classes(allowed)
    blank = Verdict(NOT_VERIFIED, tuple([name for name in _ORDER if name in chosen]), 0, 1, data=data)
    try:
        plan = _FeedPlan(Interface(()), [], given=feeds)
        return _Verification(*sides(), plan, chosen, blank, 0, tolerance).verdict()
    except NotRunnable as error:
        return replace(blank, reason=f"the original: {error}")
    except NoEvidence as error:
        return replace(blank, reason=str(error), diagnostic=error.diagnostic)


def _verdict(
    original: Callable[[], Subject],
    result: Callable[[], Subject],
    chosen: frozenset[str],
    blank: Verdict,
    first: int,
    tolerance: Tolerance | None,
    until_different: bool,
) -> Verdict:
    """The verdict on two sides. Raises ``NoEvidence`` where neither can be blamed."""
    try:
        left = original()
    except NotRunnable as error:
        return replace(blank, reason=f"the original: {error}")
    try:
        right = result()
    except NotRunnable as error:
        return replace(blank, status=DIFFERENT, reason=f"the result: {error}")
    problem = _interface_problem(left, right)
    if problem:
        return replace(blank, status=DIFFERENT, reason=problem)
    try:
        plan = _plan(left, right, blank.seed)
    except (NoInputs, NotRunnable) as error:
        return replace(blank, reason=str(error))
    return _Verification(left, right, plan, chosen, blank, first, tolerance).verdict(until_different)


def _interface_problem(left: Subject, right: Subject) -> str:
    for what, a, b in (
        ("inputs", left.inputs, right.inputs),
        ("outputs", left.outputs, right.outputs),
    ):
        if a != b:
            return unlike_names(what, a, b)
    types_a, types_b = getattr(left, "types", {}), getattr(right, "types", {})
    for name in left.inputs:
        if name in types_a and name in types_b and types_a[name] != types_b[name]:
            return f"input {name} is {types_a[name]} in the original and {types_b[name]} in the result"
    for name, was in left.composites.items():  # the values of maps come as Python's numbers, whatever their dtype
        if right.composites.get(name, was) != was:
            return f"output {name} is {was} in the original and {right.composites[name]} in the result"
    return _shape_problem(left, right)


def _shape_problem(left: Subject, right: Subject) -> str:
    """The first input of which the ranks, or fixed sizes, are different."""
    try:
        specs, others = [{spec.name: spec for spec in side.interfaces()[0].inputs} for side in (left, right)]
    except NoInputs:
        return ""
    for name, spec in specs.items():
        other = others.get(name)
        if other is None or spec.rank_is_open or other.rank_is_open:
            continue
        pairs = list(zip(spec.shape, other.shape, strict=False))
        fixed = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
        if len(spec.shape) != len(other.shape) or any(a != b for a, b in fixed):
            shapes = [f"[{', '.join(map(str, each.shape))}]" for each in (spec, other)]
            return f"input {name} has the shape {shapes[0]} in the original and {shapes[1]} in the result"
    return ""


# --- sizes that work


def _plan(left: Subject, right: Subject, seed: int) -> _FeedPlan:
    """Sizes, ranks and integers that the original runs on. Raises ``NoInputs`` with its last message."""
    message, is_fixed = "", True
    for interface in left.interfaces():
        narrowed = _narrowed(interface, right)
        for tamed in narrowed.tamed():
            bindings, failures = _working(left, tamed, tamed.bindings(seed), seed, SIZES)
            message = message or (failures[0] if failures else "")
            is_fixed &= all(isinstance(size, int) for spec in tamed.inputs for size in spec.shape)
            if bindings:
                empties = _working(left, tamed, tamed.empty_bindings(bindings[0])[:1], seed, 1)[0]
                return _with_overrides(left, _FeedPlan(tamed, bindings + empties), seed)
    how = "does not run" if is_fixed else "ran with none of the sizes that were tried"
    raise NoInputs(f"the original {how}: {message}")


def _with_overrides(left: Subject, plan: _FeedPlan, seed: int) -> _FeedPlan:
    """Return the plan with other values for the inputs whose default is a shape, axes or a count."""
    feeds = plan.interface.feeds(plan.bindings, 0, seed)

    def differs(a: dict[str, Any], b: dict[str, Any]) -> bool:
        return any(found.status == DIFFERENT for found in compare(a, b, EXACT).values())

    budget = _TRIALS if _is_small(left, feeds) else _FEW_TRIALS
    found = find_overrides(left.defaults(), lambda more: left.run({**feeds, **more}), differs, seed, budget)
    plan.overrides = found.accepted
    if found.missing:
        plan.notes = (f"the original ran with no other value of {', '.join(found.missing)} that was tried",)
    return plan


def _is_small(left: Subject, feeds: Feeds) -> bool:
    return left.size <= _SMALL_NODES and elements(feeds) <= _SMALL_ELEMENTS


def _working(
    left: Subject, interface: Interface, candidates: Iterable[Binding], seed: int, wanted: int
) -> tuple[list[Binding], list[str]]:
    """The first of the sizes that the original runs with, and the messages of the others. Raises ``NoInputs`` where its
    process ended twice before."""
    out: list[Binding] = []
    failures: list[str] = []
    ended = 0
    for binding in candidates:
        try:
            left.run(interface.feeds([binding], 0, seed))
            out.append(binding)
        except RunFailed as error:
            failures.append(str(error))
            ended += error.ended
        if ended == 2 and not out:
            raise NoInputs(f"the original cannot be run: {failures[-1]}")
        if len(out) == wanted or ended == 2:
            break
    return out, failures


def _narrowed(interface: Interface, right: Subject) -> Interface:
    """The interface with the ranks and sizes that are free in the original and fixed in the result (``--bind``,
    ``--shape``)."""
    try:
        others = {spec.name: spec for spec in right.interfaces()[0].inputs}
    except NoInputs:
        return interface
    promised = {name: spec.range for name, spec in others.items() if spec.range is not None}
    if promised:
        ranged = [replace(spec, range=promised.get(spec.name, spec.range)) for spec in interface.inputs]
        interface = replace(interface, inputs=tuple(ranged))
    fixed: dict[str, Dim] = {}
    ranked = {name: spec.shape for name, spec in others.items() if not spec.rank_is_open}
    opened = [replace(s, shape=ranked.get(s.name, s.shape)) if s.rank_is_open else s for s in interface.inputs]
    if tuple(opened) != interface.inputs:
        interface = replace(interface, inputs=tuple(opened))
    for spec in interface.inputs:
        other = others.get(spec.name)
        if other is not None and len(other.shape) == len(spec.shape):
            for size, there in zip(spec.shape, other.shape, strict=True):
                if not isinstance(size, int) and size.name is not None and isinstance(there, int):
                    fixed[size.name] = there
    if not fixed:
        return interface
    specs = []
    for spec in interface.inputs:
        shape = tuple([substitute(size, fixed) for size in spec.shape])
        limit = None if spec.limit is None else substitute(spec.limit, fixed)
        specs.append(replace(spec, shape=shape, limit=limit))
    conditions = tuple(
        Condition(substitute(each.left, fixed), each.relation, substitute(each.right, fixed), each.why)
        for each in interface.conditions
    )
    return replace(interface, inputs=tuple(specs), conditions=conditions)


# --- inputs, one after the other


class _Verification:
    def __init__(
        self,
        left: Subject,
        right: Subject,
        plan: _FeedPlan,
        allowed: frozenset[str],
        blank: Verdict,
        first: int,
        tolerance: Tolerance | None,
    ) -> None:
        self.left, self.right, self.plan, self.blank = left, right, plan, blank
        self.numbers = range(first, first + blank.inputs)
        counts = frozenset(name for override in plan.overrides for name in override)
        self.terms = Terms(allowed, {**left.kinds, **right.kinds}, tolerance, counts)
        # ONNX Runtime's optimizations sum in another order
        self.loose = replace(self.terms, allowed=allowed | {REASSOCIATES})
        self.optimized_note = ""
        self.looks: Counter[str] = Counter()
        self.tallies = {name: _Tally() for name in left.outputs}
        self.skipped: list[tuple[int, str, str]] = []
        self.failures: list[str] = []
        self.case: Feeds | None = None
        self.ran = 0

    def verdict(self, until_different: bool = False) -> Verdict:
        draws = 1
        if self.plan.given is None:
            first = self.plan.interface.feeds(self.plan.bindings, self.numbers[0], self.blank.seed)
            draws = _DRAWS if _is_small(self.left, first) else 1
        for number in self.numbers:
            step(f"input {number - self.numbers[0] + 1} of {len(self.numbers)}")
            self._input(number, draws)
            if until_different and self.case is not None:
                break
        reports = tuple(tally.report(name) for name, tally in self.tallies.items())
        found = replace(self.blank, ran=self.ran, outputs=reports, skipped=tuple(self.skipped), case=self.case)
        notes = (self.optimized_note,) if self.optimized_note else ()
        found = replace(found, notes=(*self.plan.notes, *notes))
        if self.failures or any(report.status == DIFFERENT for report in reports):
            return replace(found, status=DIFFERENT, reason=self.failures[0] if self.failures else "")
        if not self.ran:
            return replace(found, reason=f"the original runs on no input: {self.skipped[0][2]}")
        if reports and all(report.status == RANDOM for report in reports):
            return replace(found, reason="the original gives other numbers every time")
        unseen = [r for r in reports if r.counts and all(status in _EXCUSED for status, _ in r.counts)]
        if unseen:
            why = "; ".join(dict.fromkeys(reason for reason, _ in unseen[0].reasons))
            return replace(found, reason=f"{unseen[0].name} differs on every input, and is comparable on none: {why}")
        exact = all(report.status == EXACT for report in reports)
        return replace(found, status=EQUAL if exact else WITHIN)

    def _draws(self, number: int, draws: int) -> Iterator[Feeds]:
        """The data of an input, then the same with other values for shapes and counts, at sizes that go with them."""
        plan, seed = self.plan, self.blank.seed
        if plan.given is not None:
            yield plan.given
            return
        for draw in range(draws):
            yield plan.interface.feeds(plan.bindings, number, seed, draw)
        for override in plan.overrides_of(number - self.numbers[0], len(self.numbers)):
            yield {**plan.interface.feeds(plan.bindings[:1], number, seed), **override}

    def _run(self, number: int, feeds: Feeds, runs: _Runs, *, optimized: bool) -> dict[str, tuple[str, str]]:
        """The status of each output. Where the original fails, inputs with a default have it. Raises ``RunFailed``.

        ``optimized`` asks for the numbers with ONNX Runtime's default optimizations too.
        """
        optional = {spec.name for spec in self.plan.interface.inputs if spec.optional}
        try:
            return _Case(number, feeds, runs, self).run(optimized=optimized)
        except RunFailed as error:
            if error.ended or optional.isdisjoint(feeds):
                raise
        given = {name: data for name, data in feeds.items() if name not in optional}
        runs = (partial(self.left.run, given), partial(self.right.run, given))
        return _Case(number, given, runs, self).run(optimized=optimized)

    def _input(self, number: int, draws: int) -> None:
        """One input, drawn several times where that costs little; for each output the worst draw counts."""
        worst: dict[str, tuple[str, str]] = {}
        messages, drawn = [], False
        many = list(self._draws(number, draws))
        for feeds, *runs in zip(many, self.left.runs(many), self.right.runs(many), strict=True):
            try:
                found = self._run(number, feeds, (runs[0], runs[1]), optimized=not drawn)
                drawn = True
            except RunFailed as error:
                messages.append(str(error))
                if error.ended:
                    break
                continue
            for name, judged in found.items():
                worst[name] = max(worst.get(name, judged), judged, key=lambda pair: STATUSES.index(pair[0]))
            if all(status == DIFFERENT for status, _ in found.values()):
                break  # it cannot get worse; nothing is found where the result failed
        if messages and not drawn:
            self.skipped.append((number, pattern_of(number).name, messages[0]))
            return
        self.ran += 1
        for name, (status, reason) in worst.items():
            tally = self.tallies.setdefault(name, _Tally())
            tally.counts[status] += 1
            if reason:
                tally.reasons[reason] += 1


class _Case:
    """One draw of an input, and what both make of it."""

    def __init__(self, number: int, feeds: Feeds, runs: _Runs, check: _Verification) -> None:
        self.number, self.feeds, self._check = number, feeds, check
        self.pattern = pattern_of(number).name if check.plan.given is None else "given"
        run_left, self._run_right = runs
        self._results = run_left()
        plain = pattern_of(number).is_plain
        self._judge = Judge(check.left, check.right, feeds, self._results, check.terms, plain=plain)

    def run(self, *, optimized: bool) -> dict[str, tuple[str, str]]:
        """The status of each output and the reason of an excuse. Raises ``RunFailed`` if nothing is compared."""
        check = self._check
        plain = self._result(self._run_right, "")
        if plain is None:
            return {}
        out = {found.name: self._judged(found, plain) for found in self._compared(self._results, plain, check.terms)}
        results = self._result(partial(check.right.run_optimized, self.feeds), _OPTIMIZED) if optimized else None
        if results is None:
            return {} if check.failures else out
        terms = check.loose
        changed = {found.name for found in self._compared(plain, results, terms) if found.status == DIFFERENT}
        judge = self._judge.under(terms, alone=False)
        for found in self._compared(self._results, results, terms) if changed else ():
            if found.name in changed and found.status == DIFFERENT:
                status, reason = judge.judge(found, results.get(found.name))
                self._note(found, status)
                judged = (status, BY_OPTIMIZER if status == DIFFERENT else reason)
                out[found.name] = max(out[found.name], judged, key=lambda pair: STATUSES.index(pair[0]))
        self._look_at_original()
        return out

    def _look_at_original(self) -> None:
        """Note if ONNX Runtime's default optimizations change the numbers of the original."""
        check = self._check
        if check.optimized_note:
            return
        try:
            results = check.left.run_optimized(self.feeds)
        except (RunFailed, NotRunnable) as error:
            check.optimized_note = f"the original fails{_OPTIMIZED}: {error}"
            return
        judge = self._judge.under(check.loose, alone=True)
        for found in self._compared(self._results, results or {}, check.loose) if results is not None else ():
            if found.status != DIFFERENT or check.looks[found.name] == _LOOKS:
                continue
            status, _ = judge.judge(found, (results or {}).get(found.name))
            if status == DIFFERENT:
                check.optimized_note = f"the original gives other numbers in {found.name}{_OPTIMIZED}"
                return
            check.looks[found.name] += status == WITHIN

    def _result(self, run: Callable[[], dict[str, Any] | None], how: str) -> dict[str, Any] | None:
        """Run the result; None if it fails, which is recorded, or if it is not asked."""
        try:
            return run()
        except (RunFailed, NotRunnable) as error:
            self._result_failed(f"{error}{how}")
            return None

    def _compared(self, a: dict[str, Any], b: dict[str, Any], terms: Terms) -> Iterable[Comparison]:
        return compare(a, b, terms.allowed, kinds=terms.kinds, tolerance=terms.tolerance).values()

    def _judged(self, comparison: Comparison, results: dict[str, Any]) -> tuple[str, str]:
        """The status of an output, and its reason."""
        status, reason = comparison.status, ""
        if status == DIFFERENT:
            status, reason = self._judge.judge(comparison, results.get(comparison.name))
        self._note(comparison, status)
        return status, reason

    def _note(self, comparison: Comparison, status: str) -> None:
        tally = self._check.tallies.setdefault(comparison.name, _Tally())
        tally.zeros += comparison.zeros
        if status in (WITHIN, DIFFERENT):
            tally.errors = tally.errors.worst(comparison.errors)
        if status == DIFFERENT and tally.found is None:
            assert comparison.difference is not None
            facts = {"input": self.number, "pattern": self.pattern, "shapes": shapes(self.feeds)}
            tally.found = FirstDifference.of(comparison.difference, **facts)
            self._check.case = self._check.case or self.feeds

    def _result_failed(self, message: str) -> None:
        """The result cannot run on what the original runs on: a difference, unless nothing defines the original.

        Raises ``RunFailed`` in that case.
        """
        check, why = self._check, self._judge.breaks()
        if why:
            raise RunFailed(f"{why}, and the result does not run: {message}")
        check.case = check.case or self.feeds
        check.failures.append(f"the result fails on input {self.number} ({self.pattern}): {message}")
