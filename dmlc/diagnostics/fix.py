"""Fixes as data: edits of a source, and helps that propose them.

A help that says what to write is a ``Proposal``: its text and its changes are made together, so that message and fix
cannot differ. ``Diagnostic.of`` turns the changes into edits of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypedDict

from dmlc.diagnostics.source import Source, Span

#: The part of a call that a change is about, as errors of operations name it; a span; None for the primary place.
Part: TypeAlias = "Span | int | str | tuple[str, int] | None"
_MAX_SHOWN = 60
#: A name, a number, a call or a bracket, with signs before it.
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_ONE_OPERAND = re.compile(r"[-!]*(`[^`]*`|[\w.]+)?#*")
#: The text around an expression that needs no parentheses: in a call, in brackets, or as a whole statement.
_BEFORE, _BEHIND = re.compile(r"([(\[,]|(?<![=<>!])=)\s*$"), re.compile(r"\s*([)\],]|\|>)")
_BEGINS, _ENDS = re.compile(r"\s*([\w\s,]+=|return)\s*"), re.compile(r"\s*([#}]|$)")


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a source and the text to put in its place; an empty span is a place to insert at."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that follow the help of a diagnostic.

    ``safe`` is true where the mistake has one reading only, such as a misspelt name with one near candidate.
    ``dmlc check --fix`` makes safe fixes. The spans of the edits do not overlap.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """The text to write for a part of a call or of the source.

    If ``keeps`` is true, ``{}`` in it stands for what is written there now. An ``item`` of a list or call is removed
    with its comma.
    """

    text: str
    at: Part = None
    keeps: bool = False
    item: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """A help text and the changes that do what it says."""

    text: str
    changes: tuple[Change, ...]
    safe: bool = False

    def __str__(self) -> str:
        return self.text

    def with_parts(self, place: Callable[[Change], Span | None]) -> Help:
        """The proposal with spans for the parts of a call; the text alone if one of them has no span of its own."""
        changes = []
        for change in self.changes:
            span = place(change)
            if span is None:
                return self.text
            changes.append(replace(change, at=span))
        return replace(self, changes=tuple(changes))


#: The way out of a mistake: words alone, or words with the changes that they propose.
Help: TypeAlias = "str | Proposal"


def proposal(text: str, new: str, at: Part = None, *, safe: bool = False) -> Proposal:
    """The proposal to write ``new`` in place of one part."""
    return Proposal(text, (Change(new, at),), safe)


def writing(new: str, at: Part = None, *, safe: bool = False) -> Proposal:
    """The proposal ``write NEW``."""
    return proposal(f"write {new}", new, at, safe=safe)


def around(text: str, pattern: str, at: Part = None) -> Proposal:
    """The proposal to write something around a part, such as ``({} as f32)``. It is not safe: a value changes."""
    return Proposal(text, (Change(pattern, at, keeps=True),))


def removing(text: str, at: Part = None, *, safe: bool = False) -> Proposal:
    """The proposal to remove an item of a list or of a call."""
    return Proposal(text, (Change("", at, item=True),), safe)


def sentences(*parts: str) -> str:
    """Parts of a help as one text: a question ends with its mark, other parts with a semicolon."""
    out = ""
    for part in filter(None, parts):
        out += part if not out else f"{'' if out.endswith('?') else ';'} {part}"
    return out


def fix_of(help: Help, primary: Span | None) -> Fix | None:
    """The fix that a help proposes at the primary place; None for words alone, and in Python files: proposals are in
    the words of the language."""
    if not isinstance(help, Proposal):
        return None
    edits = []
    for change in help.changes:
        span = primary if change.at is None else change.at
        if not isinstance(span, Span) or span.source.is_python:
            return None
        span = Span(span.source, span.line, span.column, span.end_line, span.end_column)  # the place alone of a token
        span = _with_comma(span) if change.item else span
        edits.append(Edit(span, _around(change.text, span) if change.keeps else change.text))
    return Fix(_title(edits), tuple(edits), help.safe)


def text_of(span: Span) -> str:
    """The text that a span covers."""
    if span.line == span.end_line:
        return span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    first, last = span.source.line(span.line)[span.column - 1 :], span.source.line(span.end_line)[: span.end_column - 1]
    return "\n".join([first, *[span.source.line(n) for n in range(span.line + 1, span.end_line)], last])


def _with_comma(span: Span) -> Span:
    """The span of an item with the comma before it on its line, else with the one after it."""
    before = span.source.line(span.line)[: span.column - 1].rstrip()
    if before.endswith(","):
        return Span(span.source, span.line, len(before), span.end_line, span.end_column)
    line = span.source.line(span.end_line)
    after = re.match(r"\s*,\s*", line[span.end_column - 1 :])
    return Span(span.source, span.line, span.column, span.end_line, span.end_column + (after.end() if after else 0))


def _around(pattern: str, span: Span) -> str:
    """The text of a span inside a pattern, with the parentheses that a cast needs around itself and inside."""
    text = text_of(span)
    if not pattern.startswith("{} as "):
        return pattern.replace("{}", text)
    return enclosed(pattern.replace("{}", text if is_one_operand(text) else f"({text})"), span)


def enclosed(text: str, span: Span) -> str:
    """An expression to write for a span, in parentheses where a neighbouring operator would bind to a part of it."""
    line, last = span.source.line(span.line), span.source.line(span.end_line)
    before, behind = line[: span.column - 1], last[span.end_column - 1 :]
    is_operand = _BEFORE.search(before) is not None and _BEHIND.match(behind) is not None
    is_whole = _BEGINS.fullmatch(before) is not None and _ENDS.match(behind) is not None
    return text if is_one_operand(text) or is_operand or is_whole else f"({text})"


def is_one_operand(text: str) -> bool:
    """Return true for a name, a number, a call or a bracket, with signs before it: a cast takes all of it."""
    while _BRACKETS.search(text):
        text = _BRACKETS.sub(lambda found: "#" * len(found[0]), text)
    return _ONE_OPERAND.fullmatch(text) is not None


def _title(edits: Sequence[Edit]) -> str:
    """Name each edit: replace `logit` with `logits`."""
    said = list(dict.fromkeys(map(_said, edits)))
    return ", ".join(said[:3]) + (", ..." if len(said) > 3 else "")


def _said(edit: Edit) -> str:
    old, new = _shown(text_of(edit.span)), _shown(edit.text)
    if not old:
        return f"insert `{new}`"
    return f"replace `{old}` with `{new}`" if new else f"remove `{old}`"


def _shown(text: str) -> str:
    line = " ".join(text.split()) if text.strip() else text
    return line if len(line) <= _MAX_SHOWN else line[:_MAX_SHOWN] + "..."


# --- making edits


def edited(source: Source, edits: Sequence[Edit]) -> str:
    """The text of a source with edits made, whose spans must not overlap."""
    lines = source.lines
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text, out, done = "\n".join(lines), [], 0
    line_end = "\r\n" if lines and lines[0].endswith("\r") else "\n"
    for start, end, new in sorted((*_range(edit.span, starts), edit.text) for edit in edits):
        out += [text[done:start], new.replace("\n", line_end)]
        done = end
    return "".join([*out, text[done:]])


def _range(span: Span, starts: Sequence[int]) -> tuple[int, int]:
    return starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1


def overlap(a: Span, b: Span) -> bool:
    """Return true if two spans of one source share a character or begin at the same place."""
    first, second = sorted([(a.line, a.column, a.end_line, a.end_column), (b.line, b.column, b.end_line, b.end_column)])
    return first[:2] == second[:2] or first[2:] > second[:2]


class PlaceJson(TypedDict):
    """A part of a source in JSON; lines and columns count from 1, end columns are exclusive.

    ``text`` are the words about it, or what an edit writes there.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class FixJson(TypedDict):
    """A fix in JSON."""

    title: str
    safe: bool
    edits: list[PlaceJson]


def place_json(span: Span, text: str) -> PlaceJson:
    """A part of a source as plain data."""
    return {
        "file": span.source.name,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "text": text,
    }


def fix_json(fix: Fix) -> FixJson:
    """A fix as plain data."""
    return {"title": fix.title, "safe": fix.safe, "edits": [place_json(edit.span, edit.text) for edit in fix.edits]}
