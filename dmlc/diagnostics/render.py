"""Diagnostics as text with carets, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dmlc.diagnostics.diagnostic import Diagnostic, Label

_STYLE = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "advice": "\x1b[1;36m",
    "gutter": "\x1b[1;34m",
    "bold": "\x1b[1m",
    "off": "\x1b[0m",
}
_MAX_LINE = 160


def render(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """One diagnostic as text that ends with a newline.

    The lines of all labels in the primary label's source are shown in order of their number, each
    with its own underline: ``^`` for the primary place, ``-`` for the others.
    """
    paint = _painter(color)
    head = f"{diagnostic.severity}[{diagnostic.code.id}]"
    out = [paint(head, diagnostic.severity) + paint(f": {diagnostic.message}", "bold")]
    gutter = 1
    if diagnostic.labels:
        primary = diagnostic.labels[0].span
        shown = [label for label in diagnostic.labels if label.span.source is primary.source]
        gutter = max(len(str(label.span.line)) for label in shown)
        out.append(f"{' ' * gutter}{paint('-->', 'gutter')} {primary}")
        out.append(f"{' ' * gutter} {paint('|', 'gutter')}")
        for label in sorted(shown, key=lambda item: (item.span.line, item.span.column)):
            out.extend(_snippet(label, label is diagnostic.labels[0], gutter, paint, diagnostic.severity))
        out.extend(
            f"{' ' * gutter} {paint('=', 'gutter')} note: {label.text} at {label.span}"
            for label in diagnostic.labels
            if label.span.source is not primary.source
        )
    elif diagnostic.file:
        out.append(f"{' ' * gutter}{paint('-->', 'gutter')} {diagnostic.file}")
    out.extend(f"{' ' * gutter} {paint('=', 'gutter')} note: {note}" for note in diagnostic.notes)
    explain = f"see: dmlc explain {diagnostic.code.id}"
    way_out = f"{diagnostic.help}; {explain}" if diagnostic.help else explain
    out.append(f"{' ' * gutter} {paint('=', 'gutter')} help: {way_out}")
    return "\n".join(out) + "\n"


def _painter(color: bool) -> Any:
    def paint(text: str, style: str) -> str:
        return f"{_STYLE[style]}{text}{_STYLE['off']}" if color else text

    return paint


def _snippet(label: Label, primary: bool, gutter: int, paint: Any, severity: str) -> list[str]:
    span = label.span
    text = span.source.line(span.line)
    end = span.end_column if span.end_line == span.line else len(text) + 1
    start = min(span.column, len(text) + 1)
    width = max(1, min(end, len(text) + 1) - start)
    if len(text) > _MAX_LINE:  # show the part around the caret only
        cut = max(0, start - _MAX_LINE // 2)
        text, start = text[cut : cut + _MAX_LINE], start - cut
        width = min(width, max(1, len(text) - start + 1))
    # Tabs are kept in the indent, so that the caret stands under its character in any terminal.
    indent = "".join("\t" if c == "\t" else " " for c in text[: start - 1])
    mark = paint(("^" if primary else "-") * width, severity if primary else "gutter")
    under = f"{' ' * gutter} {paint('|', 'gutter')} {indent}{mark}"
    if label.text:
        under += f" {label.text}"
    return [f"{paint(str(span.line).rjust(gutter), 'gutter')} {paint('|', 'gutter')} {text}".rstrip(), under]


def render_all(diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """All diagnostics, with a blank line between."""
    return "\n".join(render(d, color=color) for d in diagnostics)


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as plain data (positions from 1, end columns exclusive)."""

    def place(label: Label) -> dict[str, Any]:
        s = label.span
        return {
            "file": s.source.name,
            "line": s.line,
            "column": s.column,
            "end_line": s.end_line,
            "end_column": s.end_column,
            "text": label.text,
        }

    return {
        "code": diagnostic.code.id,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": diagnostic.source_name or None,
        "labels": [place(label) for label in diagnostic.labels],
        "help": diagnostic.help,
        "notes": list(diagnostic.notes),
    }
