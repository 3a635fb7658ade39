"""Results of a verification: records, as JSON, as text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from msgspec import UNSET, UnsetType

from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.catalogue.runs import NOT_VERIFIED as NO_EVIDENCE
from dmlc.diagnostics.catalogue.runs import RESULTS_DIFFER
from dmlc.diagnostics.shown import Rows, Shown
from dmlc.ir.answers import Answer, JsonRecord, Real
from dmlc.ir.history import RewriteClass
from dmlc.verifying.comparison import DIFFERENT, SAME, WITHIN, Difference, Errors
from dmlc.verifying.inputs import Feeds

#: Differences that are reported and are not failures, from the mildest: results that nothing defines, results that
#: differ because partial results left the dtype's range, results beyond a precondition that the user allowed.
UNSPECIFIED, OVERFLOWED, BEYOND, RANDOM = "unspecified", "overflowed", "beyond the precondition", "not deterministic"
STATUSES = (SAME, WITHIN, UNSPECIFIED, OVERFLOWED, RANDOM, BEYOND, DIFFERENT)

#: Statuses in the words of the text form.
_WORDS = {SAME: "identical", WITHIN: "same up to rounding", UNSPECIFIED: "not defined"}

#: The verdict of an output for which both sides never ran on one input.
NOT_COMPARED = "not compared"

EQUAL, NOT_VERIFIED = "equal", "not verified"
#: The answer by status.
ANSWERS = {EQUAL: "same", WITHIN: "same", DIFFERENT: "different", NOT_VERIFIED: "not comparable"}


class FirstDifference(Difference, frozen=True, kw_only=True):
    """The first difference of an output: the number of the input, how it looks, and its shapes."""

    input: int
    pattern: str
    shapes: dict[str, list[int]]


class LargestError(Answer, frozen=True, rename={"scaled": "relative_to_largest"}):
    """The largest errors of an output over all elements that are finite numbers."""

    absolute: Real | None
    relative: Real | None
    scaled: Real | None
    ulp: Real | None


class ComparedOutput(Answer, frozen=True):
    """One output over all inputs: how many inputs got each status, and why differences were excused."""

    name: str
    status: str
    inputs: dict[str, int]
    largest_error: LargestError
    signal_to_noise: Real | None
    cosine: Real | None
    zeros_of_another_sign: int
    reasons: dict[str, int]
    first_difference: FirstDifference | UnsetType = UNSET


class InputCounts(Answer, frozen=True):
    """The number of inputs that were asked for, that both models ran on, and that the original cannot run on."""

    asked: int
    ran: int
    skipped: int


class SkippedInput(Answer, frozen=True):
    """An input that the original itself cannot run on."""

    input: int
    pattern: str
    message: str


class VerdictFacts(Answer, frozen=True, rename={"answer": "verdict"}):
    """The result of a comparison of two models; ``code`` names what to install where ONNX Runtime is missing."""

    answer: Literal["same", "different", "not comparable"]
    status: Literal["equal", "within", "different", "not verified"]
    ok: bool
    allowed: tuple[RewriteClass, ...]
    seed: int
    inputs: InputCounts
    reason: str
    code: str | None
    outputs: list[ComparedOutput]
    skipped: list[SkippedInput]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputReport(JsonRecord):
    """One output over all inputs: how many got each status, the largest errors of those within the class or different,
    why differences were excused, and the first that was not."""

    name: str
    counts: tuple[tuple[str, int], ...]
    errors: Errors = Errors()
    reasons: tuple[tuple[str, int], ...] = ()
    found: FirstDifference | None = None
    zeros: int = 0

    @property
    def status(self) -> str:
        """The worst status of any input; ``not compared`` where the result ran on none."""
        return max((status for status, _ in self.counts), key=STATUSES.index, default=NOT_COMPARED)

    def facts(self) -> ComparedOutput:
        """Return the report with a difference only where there is one."""
        errors = self.errors
        return ComparedOutput(
            self.name, self.status, dict(self.counts), LargestError.of(errors), errors.noise, errors.cosine,
            self.zeros, dict(self.reasons), self.found or UNSET,
        )  # fmt: skip

    def largest(self) -> str:
        """The largest difference and the output in words; empty if nothing differs by a number."""
        number, bracket, scaled = self.amount().partition(" (")
        return f"{number} in {self.name}{bracket}{scaled}" if number else ""

    def amount(self) -> str:
        """The largest difference, and its part of the largest value; empty if nothing differs by a number."""
        errors = self.errors
        if not errors.absolute:
            return ""
        scaled = f" ({errors.scaled:.1g} of its largest value)" if errors.scaled else ""
        return f"{errors.absolute:.2g}{scaled}"

    def lines(self) -> list[str]:
        """The output in the text form; its first line starts with the name."""
        parts = [f"{_WORDS.get(status, status)} on {_times(count, 'input')}" for status, count in self.counts]
        out, errors = [f"{self.name}: {', '.join(parts) or NOT_COMPARED}"], self.errors
        if errors.absolute:
            scaled = f", {errors.scaled:.3g} of the largest value" if errors.scaled else ""
            relative = f", relative {errors.relative:.3g}" if errors.relative else ""
            ulp = f", {errors.ulp:.3g} units in the last place" if errors.ulp else ""
            out.append(f"    largest difference {errors.absolute:.3g}{scaled}{relative}{ulp}")
        if self.found is not None:
            found = self.found
            sizes = ", ".join(f"{name} {size}" for name, size in found.shapes.items())
            out.append(f"    input {found.input} ({found.pattern}; {sizes}): {found}")
        out += [f"    {reason} ({_times(count, 'input')})" for reason, count in self.reasons]
        if self.zeros:
            out.append(f"    {_times(self.zeros, 'zero')} of another sign, which are equal")
        return out


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(JsonRecord, Shown):
    """The result of a verification. It is ``ok`` where something was compared and nothing is different.

    ``status`` is ``equal`` (bit for bit, on every input), ``within`` (the allowed classes), ``different`` or
    ``not verified``. ``reason`` says why where no output does. ``diagnostic`` says what to install where ONNX Runtime
    is missing or broken (E0560). ``skipped`` are the inputs that the original itself cannot run on: number, pattern,
    message. ``case`` is the input of the first difference.
    """

    status: str
    allowed: tuple[str, ...]
    seed: int
    inputs: int
    ran: int = 0
    outputs: tuple[OutputReport, ...] = ()
    skipped: tuple[tuple[int, str, str], ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    diagnostic: Diagnostic | None = None
    case: Feeds | None = field(default=None, compare=False, repr=False)
    #: The data that both sides ran on, where it was given and not drawn.
    data: str = ""

    @property
    def ok(self) -> bool:
        return self.status in (EQUAL, WITHIN)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The error that the verdict is: none where it is ``ok``, else ``diagnostic``, E0562 or E0563."""
        if self.ok:
            return ()
        code = RESULTS_DIFFER if self.status == DIFFERENT else NO_EVIDENCE
        return (self.diagnostic or Diagnostic(code, self.headline()),)

    def facts(self) -> VerdictFacts:
        """Return the verdict without the data that it was reached on."""
        return VerdictFacts.of(
            self,
            inputs=InputCounts(self.inputs, self.ran, len(self.skipped)),
            code=None if self.diagnostic is None else self.diagnostic.code.id,
            outputs=[output.facts() for output in self.outputs],
            skipped=[SkippedInput(*each) for each in self.skipped],
        )

    @property
    def answer(self) -> str:
        """``same``, ``different`` or ``not comparable``."""
        return ANSWERS[self.status]

    def to_text(self, *, whole: bool = False) -> str:
        """Lines for people: the first one is the answer. ``whole`` has a line for each output."""
        out = [self.headline()]
        shown = self.outputs if whole or not self.ok else [each for each in self.outputs if each.reasons or each.zeros]
        out += [f"  {line}" for output in shown for line in output.lines()]
        for message, count in Counter(message for _, _, message in self.skipped).items():
            out.append(f"  skipped {_times(count, 'input')}, the original fails or is not defined: {message}")
        out += [f"  note: {note}" for note in self.notes]
        out += [f"  help: {help}" for d in self.diagnostics for help in (d.help, f"dmlc explain {d.code.id}") if help]
        return "\n".join(out) + "\n"

    def to_rows(self) -> Rows:
        """Return the outputs: how many inputs got which status, and the largest difference."""
        found = [
            (output.name, ", ".join(f"{status} on {count}" for status, count in output.counts), output.amount())
            for output in self.outputs
        ]
        return [("output", "result", "largest difference"), *found]

    def headline(self) -> str:
        """The answer in one line."""
        ran = f"on {self.data}" if self.data else f"on {_times(self.ran, 'input')}"
        if self.status == NOT_VERIFIED:
            return f"not comparable: {self.reason}"
        if self.status == EQUAL:
            return f"same {ran}: every number is equal"
        worst = max(self.outputs, key=lambda output: output.errors.scaled or 0.0, default=None)
        largest = "" if worst is None else worst.largest()
        if self.status == WITHIN:
            return f"same {ran}: {'largest difference ' + largest if largest else 'equal numbers'}; rounding may differ"
        parts = [
            f"{output.name} on {dict(output.counts)[DIFFERENT]} of {_times(self.ran, 'input')}"
            for output in self.outputs
            if output.status == DIFFERENT
        ]
        if self.data:
            names = [output.name for output in self.outputs if output.status == DIFFERENT]
            return f"different: {'; '.join(filter(None, [self.reason, ', '.join(names)]))} on {self.data}"
        seed = f", seed {self.seed}" if parts else ""
        return f"different: {'; '.join(filter(None, [self.reason, *parts]))}{seed}"


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
