"""Fixes of a program's text: the edits that its diagnostics carry, made until nothing is left to make."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dmlc.api.arguments import check_arguments
from dmlc.api.sources import Choice, choice_of, load
from dmlc.diagnostics import Diagnostic, DmlcError, Fix, Source, fail
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE
from dmlc.diagnostics.fix import Edit, edited, overlap
from dmlc.diagnostics.limits import Limits

#: A program takes a few: a mended statement shows the mistakes that it hid. Each round reads the text again.
_MOST_ROUNDS = 100
#: The opset at which carried operators are read by default.
_OPSET = 21


@dataclass(frozen=True)
class MadeFix:
    """A fix that was made: the code of its diagnostic, and its edits in the text as it was then."""

    code: str
    place: str
    fix: Fix


@dataclass(frozen=True)
class FixedText:
    """A program's text with fixes made, and the diagnostics of reading it that are left, errors first."""

    text: str
    made: tuple[MadeFix, ...]
    diagnostics: tuple[Diagnostic, ...]


def fix(
    source: Source,
    *,
    unsafe: bool = False,
    model: str | None = None,
    opset: int | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
) -> FixedText:
    """Fix the mistakes of a program that have a fix, until a round makes none, or 100 rounds are over.

    Only safe fixes are made, with ``unsafe`` all of them. Nothing is compiled or written; files that the program uses
    stay as they are. ``model``, ``opset``, ``include`` and ``limits`` are those of ``compile``. Raises ``DmlcError``
    E0556 (exit code 2) for a source that is not a ``dmlc.Source``.
    """
    if not isinstance(source, Source) or source.is_python:
        help = "write: dmlc.fix(dmlc.Source(text, name='m.dml'))"
        raise fail(UNKNOWN_CHOICE, "the text of a program is fixed", help=help, exit_code=2)
    check_arguments(unsafe=unsafe, opset=opset)
    reading = _ReadingOptions(choice_of(model, include), _OPSET if opset is None else opset, Limits.of(limits))
    made: list[MadeFix] = []
    seen: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        text = "\n".join(source.lines)
        found = reading.diagnostics(source)
        chosen = list(_chosen(source, found, unsafe=unsafe))
        if not chosen or text in seen:
            return FixedText(text, tuple(made), tuple(found))
        seen.add(text)
        made += chosen
        source = Source(source.name, edited(source, [edit for one in chosen for edit in one.fix.edits]))
    return FixedText("\n".join(source.lines), tuple(made), tuple(reading.diagnostics(source)))


@dataclass(frozen=True)
class _ReadingOptions:
    """The options of reading a program's text."""

    choice: Choice
    opset: int
    limits: Limits

    def diagnostics(self, source: Source) -> Sequence[Diagnostic]:
        """The mistakes of a program, or the advice about it."""
        from dmlc.text import LibraryError

        try:
            return load(source, self.choice, self.opset, self.limits).advice
        except LibraryError:
            return ()
        except DmlcError as error:
            return error.diagnostics


def _chosen(source: Source, found: Iterable[Diagnostic], *, unsafe: bool) -> Iterable[MadeFix]:
    """The fixes of one round: of the file itself, none touching another. The others may follow in the next round."""
    edits: list[Edit] = []
    for diagnostic in found:
        one = diagnostic.fix
        if one is None or not (one.safe or unsafe):
            continue
        is_here = all(edit.span.source is source for edit in one.edits)
        if is_here and not any(overlap(edit.span, other.span) for edit in one.edits for other in edits):
            edits += one.edits
            yield MadeFix(diagnostic.code.id, diagnostic.place, one)
