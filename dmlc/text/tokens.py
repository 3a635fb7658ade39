"""A token: a piece of one line. It is its own place, so that the nodes made of it need no other."""

from __future__ import annotations

from typing import ClassVar

from dmlc.diagnostics import Span
from dmlc.records import dataclass, unguarded


@unguarded
@dataclass(frozen=True, slots=True)
class Token(Span):
    """``type`` is the terminal's name. As a place it equals any other of the same stretch."""

    start_pos: ClassVar[None] = None  # Lark copies both to the end of the text
    end_pos: ClassVar[None] = None
    type: str
    text: str

    @property
    def span(self) -> Span:
        return self

    def as_bad(self) -> Token:
        """The same as a token whose problem is told."""
        return Token(self.source, self.line, self.column, self.end_line, self.end_column, "BAD", self.text)

    def after(self, type: str) -> Token:
        """An empty token right behind this one."""
        return Token(self.source, self.line, self.end_column, self.line, self.end_column, type, "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self._stretch() == (
            other.source,
            other.line,
            other.column,
            other.end_line,
            other.end_column,
        )

    def __hash__(self) -> int:
        return hash(self._stretch())

    def _stretch(self) -> tuple[object, ...]:
        return self.source, self.line, self.column, self.end_line, self.end_column

    def __repr__(self) -> str:
        return f"{self.type}({self.text!r}, {self.line}:{self.column})"
