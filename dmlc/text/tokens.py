"""A token: a piece of one line."""

from __future__ import annotations

from dmlc.diagnostics import Source, Span


class Token:
    """``type`` is the terminal's name, ``end`` the column after the text."""

    __slots__ = ("column", "end", "line", "source", "text", "type")

    def __init__(self, type: str, text: str, source: Source, line: int, column: int) -> None:
        self.type = type
        self.text = text
        self.source = source
        self.line = line
        self.column = column
        self.end = column + len(text)

    @property
    def span(self) -> Span:
        return Span(self.source, self.line, self.column, self.line, self.end)

    def to(self, last: Token) -> Span:
        """From the start of this token to the end of another."""
        return Span(self.source, self.line, self.column, last.line, last.end)

    def __repr__(self) -> str:
        return f"{self.type}({self.text!r}, {self.line}:{self.column})"
