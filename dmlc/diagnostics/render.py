"""Diagnostics as text with carets, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, TypedDict
from unicodedata import category, combining, east_asian_width

from dmlc.diagnostics.code import Severity
from dmlc.diagnostics.diagnostic import Diagnostic, Label
from dmlc.diagnostics.fix import FixJson, PlaceJson, fix_json, place_json, sentences

_STYLE = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "advice": "\x1b[1;36m",
    "gutter": "\x1b[1;34m",
    "bold": "\x1b[1m",
    "off": "\x1b[0m",
}
_MAX_LINE = 160
#: The most columns of a help with the command that explains its code; else that is a line below it.
_MAX_HELP = 100


def render(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """One diagnostic as text that ends with a newline.

    Each line with a label in the primary label's source is shown once, in order of the line numbers. Places are
    underlined: ``^`` for the primary place, ``-`` for the others. Marks stand under their characters, wide ones too.
    """
    paint = painter(color)
    out = [paint(diagnostic.heading, diagnostic.severity) + paint(f": {diagnostic.message}", "bold")]
    gutter = 1
    if diagnostic.labels:
        primary = diagnostic.labels[0].span
        shown = [label for label in diagnostic.labels if label.span.source is primary.source]
        gutter = max(len(str(label.span.line)) for label in shown)
        out.append(f"{' ' * gutter}{paint('-->', 'gutter')} {primary}")
        out.append(f"{' ' * gutter} {paint('|', 'gutter')}")
        ordered = sorted(shown, key=lambda item: (item.span.line, item.span.column))
        for _, labels in groupby(ordered, key=lambda item: item.span.line):
            marked = [(label, label is diagnostic.labels[0]) for label in labels]
            out.extend(_line(marked, gutter, paint, diagnostic.severity))
        out.extend(
            f"{' ' * gutter} {paint('=', 'gutter')} note: {label.text} at {label.span}"
            for label in diagnostic.labels
            if label.span.source is not primary.source
        )
    elif diagnostic.file:
        out.append(f"{' ' * gutter}{paint('-->', 'gutter')} {diagnostic.file}")
    out.extend(f"{' ' * gutter} {paint('=', 'gutter')} note: {note}" for note in diagnostic.notes)
    explain = f"see: dmlc explain {diagnostic.code.id}"
    sign, help = f"{' ' * gutter} {paint('=', 'gutter')} ", f"help: {sentences(diagnostic.help, explain)}"
    fits = not diagnostic.help or gutter + len(" = ") + len(help) <= _MAX_HELP
    out += [sign + help] if fits else [f"{sign}help: {diagnostic.help}", sign + explain]
    return "\n".join(out) + "\n"


def painter(color: bool) -> Any:
    """Return a function that colors a text by the name of a style; the text as it is without ``color``."""

    def paint(text: str, style: str) -> str:
        return f"{_STYLE[style]}{text}{_STYLE['off']}" if color else text

    return paint


#: A place in a line: first column and the one behind it, both from 0, and its label; whether it is the primary one.
_Mark: TypeAlias = "tuple[int, int, Label, bool]"


def _line(marked: Sequence[tuple[Label, bool]], gutter: int, paint: Any, severity: str) -> list[str]:
    """A line of the source, and the underlines of its labels. Of a long line the part around the first is shown."""
    span = marked[0][0].span
    text = span.source.line(span.line)
    if len(text) > _MAX_LINE and len(marked) > 1:
        return [row for one in marked for row in _line([one], gutter, paint, severity)]
    marks: list[_Mark] = []
    for label, primary in marked:
        end = label.span.end_column if label.span.end_line == label.span.line else len(text) + 1
        start = min(label.span.column, len(text) + 1)
        marks.append((start - 1, max(start, min(end, len(text) + 1) - 1), label, primary))
    if len(text) > _MAX_LINE:
        first, behind, label, primary = marks[0]
        cut = max(0, first + 1 - _MAX_LINE // 2)
        text = text[cut : cut + _MAX_LINE]
        marks = [(first - cut, max(first - cut + 1, min(behind - cut, len(text))), label, primary)]
    rows = [f"{paint(str(span.line).rjust(gutter), 'gutter')} {paint('|', 'gutter')} {text}".rstrip()]
    left = f"{' ' * gutter} {paint('|', 'gutter')} "
    for row in _rows(marks):
        rows += [left + under for under in _underlines(text, row, paint, severity)]
    return rows


def _rows(marks: Sequence[_Mark]) -> list[list[_Mark]]:
    """The marks in rows in which none covers another."""
    rows: list[list[_Mark]] = []
    for mark in marks:
        row = next((row for row in rows if row[-1][1] < mark[0]), None)
        if row is None:
            rows.append([mark])
        else:
            row.append(mark)
    return rows


def _underlines(text: str, row: Sequence[_Mark], paint: Any, severity: str) -> Iterator[str]:
    """The marks of a row with the words of the last behind them, then the words of the others below their marks."""
    under, place = "", 0
    for first, behind, _, primary in row:
        under += _blanks(text[place:first]) + paint(
            ("^" if primary else "-") * max(1, _width(text[first:behind])), severity if primary else "gutter"
        )
        place = behind
    last = row[-1][2].text
    yield f"{under} {last}" if last else under
    for first, _, label, _ in reversed(row[:-1]):
        if label.text:
            yield _blanks(text[:first]) + label.text


def _blanks(text: str) -> str:
    """Blanks as wide as the text. Tabs are kept, so that the marks stand under their characters in any terminal."""
    return "".join("\t" if c == "\t" else " " * _width(c) for c in text)


def _width(text: str) -> int:
    """The columns that the text takes: wide East Asian characters take two, marks on others none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(c) or category(c) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(c) in "WF") for c in text
    )


def render_all(diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """All diagnostics, with a blank line between."""
    return "\n".join(render(d, color=color) for d in diagnostics)


class DiagnosticJson(TypedDict):
    """A diagnostic in JSON; the first label is the primary place."""

    code: str
    severity: Severity
    message: str
    file: str | None
    labels: list[PlaceJson]
    help: str
    notes: list[str]
    fix: FixJson | None


def to_json(diagnostic: Diagnostic) -> DiagnosticJson:
    """One diagnostic as plain data."""
    return {
        "code": diagnostic.code.id,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": diagnostic.source_name or None,
        "labels": [place_json(label.span, label.text) for label in diagnostic.labels],
        "help": diagnostic.help,
        "notes": list(diagnostic.notes),
        "fix": None if diagnostic.fix is None else fix_json(diagnostic.fix),
    }
