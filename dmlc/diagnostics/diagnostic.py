"""Diagnostics are records: a code, a message, labelled places, a way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dmlc.diagnostics.code import Code, Severity
from dmlc.diagnostics.fix import Fix, Help, fix_of, sentences
from dmlc.diagnostics.paste import pasteable
from dmlc.diagnostics.source import Span


@dataclass(frozen=True, slots=True)
class Label:
    """A place with a few words under its caret."""

    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class OfNodes:
    """Nodes of a model that a diagnostic is about, as (operator, name), and its message about several.

    ``message`` has ``{nodes}`` for their number: ``{nodes} run on the CPU: ...``.
    """

    nodes: tuple[tuple[str, str], ...]
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message. ``labels[0]`` is the primary place; later ones explain it.

    ``strict`` is true where ``--strict`` was given: a warning is an error then. ``file`` is the source of a diagnostic
    without labels: about a file as a whole, or about a node of a model. ``fix`` are the edits that ``help`` proposes;
    None where it proposes none. ``of_nodes`` are the nodes that it is about; None where it is about none.
    """

    code: Code
    message: str
    labels: tuple[Label, ...] = ()
    help: str = ""
    notes: tuple[str, ...] = field(default=())
    strict: bool = False
    file: str = ""
    fix: Fix | None = None
    of_nodes: OfNodes | None = None

    @classmethod
    def of(cls, code: Code, message: str, *labels: Label, help: Help = "") -> Diagnostic:
        """A diagnostic with the fix that its help proposes."""
        fix = fix_of(help, labels[0].span if labels else None)
        return cls(code, message, labels, str(help), fix=fix)

    @property
    def severity(self) -> Severity:
        severity = self.code.severity
        return "error" if self.strict and severity == "warning" else severity

    @property
    def heading(self) -> str:
        """The severity in the words of people, and the code: ``hint[W0621]`` for advice."""
        severity = self.severity
        return f"{'hint' if severity == 'advice' else severity}[{self.code.id}]"

    @property
    def span(self) -> Span | None:
        return self.labels[0].span if self.labels else None

    @property
    def place(self) -> str:
        """``head.dml:12:5``, or the file alone; empty for what stands in no file."""
        return str(self.span) if self.span else self.file

    @property
    def source_name(self) -> str:
        """The name of the file that it stands in; empty for none."""
        return self.span.source.name if self.span else self.file

    def labelled(self, labels: Sequence[Label]) -> Diagnostic:
        """The diagnostic at a place, if it has none; the file that it is about becomes a note."""
        if self.labels or not labels:
            return self
        notes = (*self.notes, f"in {self.file}") if self.file else self.notes
        return replace(self, labels=tuple(labels), notes=notes, file="")

    def in_file(self, name: str) -> Diagnostic:
        """The diagnostic with the file that it is about, unless it has one; commands of its help name the file."""
        if not name or self.file:
            return self
        help = self.help.replace(" SRC ", f" {pasteable([name])} ")
        return replace(self, file="" if self.labels else name, help=help)


def judged(diagnostics: Iterable[Diagnostic], *, strict: bool) -> tuple[Diagnostic, ...]:
    """Diagnostics as they are shown and counted, errors first: with ``strict`` each warning is an error.

    Advice stays advice. This is the one rule of ``strict``, for ``dmlc.compile`` and for each verb.
    """
    found = [replace(d, strict=True) if strict else d for d in diagnostics]
    return tuple(sorted(found, key=lambda d: d.severity != "error"))


def refuses(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return true if one of the diagnostics is an error: if the exit code is 1."""
    return any(d.severity == "error" for d in diagnostics)


class DmlcError(Exception):
    """Error raised for a user's mistake: one or more diagnostics, the first of them an error.

    ``exit_code`` is the command line's: 1 when the answer is no, 2 when the command line's own
    files cannot be opened or written, 3 for a bug of ours.
    """

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic], *, exit_code: int = 1) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        self.exit_code = exit_code
        super().__init__(self.diagnostics[0].message if self.diagnostics else "unknown error")

    def __reduce__(self) -> tuple[Any, ...]:
        return _error, (type(self), self.diagnostics, self.exit_code)

    def __str__(self) -> str:
        from_each = []
        for d in self.diagnostics:
            place = f" ({d.place})" if d.place else ""
            from_each.append(sentences(f"{d.heading}: {d.message}{place}", d.help))
        return "\n".join(from_each)


def _error(kind: type[DmlcError], diagnostics: tuple[Diagnostic, ...], exit_code: int) -> DmlcError:
    return kind(diagnostics, exit_code=exit_code)


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Name the file in every diagnostic that is raised inside and has no place."""
    try:
        yield
    except DmlcError as error:
        error.diagnostics = tuple([d.in_file(file) for d in error.diagnostics])
        raise


def fail(code: Code, message: str, *labels: Label, help: Help = "", exit_code: int = 1) -> DmlcError:
    """Build the error for one diagnostic, ready to be raised."""
    return DmlcError(Diagnostic.of(code, message, *labels, help=help), exit_code=exit_code)
