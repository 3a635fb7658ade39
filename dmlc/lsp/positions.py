"""Positions of an editor, and positions of a program's text.

An editor counts lines from 0, ends them also at a lone carriage return, and counts the columns in units of the encoding
that it chose: UTF-16 by default. A span counts lines and characters from 1.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, PositionEncodingKind, Range

from dmlc.diagnostics import Source, Span

_LONE_RETURN = re.compile(r"\r(?=.)", re.DOTALL)
#: The codec that has the units of an encoding, and the bytes of a unit.
_CODECS = {PositionEncodingKind.Utf8: ("utf-8", 1), PositionEncodingKind.Utf16: ("utf-16-le", 2)}


class Text:
    """The text of a document, with positions in the units of ``encoding``."""

    def __init__(self, name: str, text: str, encoding: PositionEncodingKind = PositionEncodingKind.Utf16) -> None:
        self.source = Source(name, text)
        self.encoding = encoding
        #: The editor's lines: line and character, both from 0, where each begins.
        self.starts = [(number, 0) for number in range(len(self.source.lines))]
        if _LONE_RETURN.search(text.replace("\r\n", "\n")):
            self.starts = [
                (number, start)
                for number, line in enumerate(self.source.lines)
                for start in (0, *[found.end() for found in _LONE_RETURN.finditer(line)])
            ]

    def position(self, line: int, column: int) -> Position:
        """Return the editor's position of a line and column that count from 1."""
        place = bisect_right(self.starts, (line - 1, column - 1)) - 1
        number, start = self.starts[place]
        lines = self.source.lines
        before = lines[number][start : column - 1] if number == line - 1 else lines[number][start:]
        return Position(place, self._units(before))

    def range(self, span: Span) -> Range:
        """Return the editor's range of a span."""
        return Range(self.position(span.line, span.column), self.position(span.end_line, span.end_column))

    @property
    def whole(self) -> Range:
        """The range of the whole text."""
        lines = self.source.lines
        return Range(Position(0, 0), self.position(len(lines), len(lines[-1]) + 1))

    def place(self, position: Position) -> tuple[int, int]:
        """Return line and column, both from 1, of an editor's position; the nearest one if there is none."""
        number, start = self.starts[min(position.line, len(self.starts) - 1)]
        return number + 1, start + self._characters(self.source.lines[number][start:], position.character) + 1

    def length(self, text: str) -> int:
        """Return the units of a text of one line."""
        return self._units(text)

    def _units(self, text: str) -> int:
        if text.isascii() or self.encoding not in _CODECS:
            return len(text)
        codec, size = _CODECS[self.encoding]
        return len(text.encode(codec, "surrogatepass")) // size

    def _characters(self, text: str, units: int) -> int:
        if text.isascii() or self.encoding not in _CODECS:
            return min(units, len(text))
        codec, size = _CODECS[self.encoding]
        return len(text.encode(codec, "surrogatepass")[: units * size].decode(codec, "ignore"))
