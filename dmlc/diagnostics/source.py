"""Source locations: sources and spans.

A span stores line and column numbers, not offsets, because every producer (the lexer, a Python frame) already has them
and most spans are never shown.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence


class Source:
    """A text that spans point into. The text of a Python file is read only when a message shows it.

    Sources are equal if they have the same name and text; sources of Python files if they have the same name.
    """

    __slots__ = ("_lines", "name")

    def __init__(self, name: str, text: str | None) -> None:
        self.name: str = name
        self._lines: list[str] | None = None if text is None else text.split("\n")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.name == other.name and self._lines == other._lines

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Source {self.name}>"

    @classmethod
    def python(cls, filename: str) -> Source:
        """A Python file, whose lines come from ``linecache``."""
        return cls(filename, None)

    @property
    def is_python(self) -> bool:
        """Return whether the source is a Python file."""
        return self._lines is None

    @property
    def lines(self) -> Sequence[str]:
        """All lines without their newlines; a carriage return is kept."""
        if self._lines is None:
            return [line.rstrip("\n") for line in linecache.getlines(self.name)]
        return self._lines

    def line(self, number: int) -> str:
        """Line ``number`` (from 1) without its newline; empty where there is none."""
        if self._lines is None:
            return linecache.getline(self.name, number).rstrip("\n")
        if 1 <= number <= len(self._lines):
            return self._lines[number - 1].rstrip("\r")
        return ""


class Span:
    """A range of a source. Lines and columns count from 1; the end column is exclusive.

    Spans are equal if they are the same range of equal sources.
    """

    __slots__ = ("column", "end_column", "end_line", "line", "source")

    def __init__(self, source: Source, line: int, column: int, end_line: int, end_column: int) -> None:
        self.source: Source = source
        self.line: int = line
        self.column: int = column
        self.end_line: int = end_line
        self.end_column: int = end_column

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self.range == other.range

    def __hash__(self) -> int:
        return hash((self.line, self.column, self.end_line, self.end_column))  # a few sources at most have one range

    def __repr__(self) -> str:
        return f"<Span {self} to {self.end_line}:{self.end_column}>"

    @property
    def range(self) -> tuple[Source, int, int, int, int]:
        """The parts."""
        return self.source, self.line, self.column, self.end_line, self.end_column

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of ``other``."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)

    @property
    def place(self) -> str:
        """``head.dml:12:5``, as written into files: the file's name without its folder, and in a Python file no column,
        which ``python -X no_debug_ranges`` does not report. So the bytes depend neither on where a program lies nor on
        how Python was started. A name that is not UTF-8 has escapes."""
        name = self.source.name.replace("\\", "/").rpartition("/")[2].encode("utf-8", "backslashreplace").decode()
        return f"{name}:{self.line}" if self.source.is_python else f"{name}:{self.line}:{self.column}"

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
