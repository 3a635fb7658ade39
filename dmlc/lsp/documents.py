"""Open documents: the text as it is now, the outline of the last text that was read, the facts of the last good one."""

from __future__ import annotations

import asyncio
import threading

from lsprotocol.types import PositionEncodingKind
from msgspec import Struct
from pygls.uris import to_fs_path

from dmlc.diagnostics import DmlcError, Source
from dmlc.lsp.check import KnownModel, Report
from dmlc.lsp.outline import NamedBlock, Occurrence, Outline
from dmlc.lsp.positions import Text
from dmlc.text.syntax.parser import lex


class Window(Struct, frozen=True):
    """The statement around a place: its outline, and the block that it stands in. ``block`` has the names given before.

    The outline may begin a few statements earlier.
    """

    outline: Outline
    block: NamedBlock | None


class Document:
    """A document. Handlers of one server use it, all in one thread; checks run in another one."""

    def __init__(self, uri: str, text: str, version: int | None, encoding: PositionEncodingKind) -> None:
        self.uri = uri
        self.name = to_fs_path(uri) or uri
        self.facts: dict[str, KnownModel] = {}
        self.lenses: dict[str, str] = {}
        self.read: Text = Text(self.name, "", encoding)
        self.outline = Outline(())
        self._encoding = encoding
        self.outlined = asyncio.Event()
        self.change(text, version)

    def change(self, text: str, version: int | None) -> None:
        """Take a new text. Checks of the old one are of no use."""
        self.text = Text(self.name, text, self._encoding)
        self.version = version
        self.report = Report(())
        self.stopped = threading.Event()
        before, self.outlined = self.outlined, asyncio.Event()
        before.set()  # a request that waits for the outline of the old text gets the new one's

    def take_outline(self, text: Text, outline: Outline) -> None:
        """Take the outline of a text, if it is still the text."""
        if text is self.text:
            self.read, self.outline = text, outline
            self.outlined.set()

    def take_report(self, text: Text, report: Report) -> bool:
        """Take the report on a text, if it is still the text: its facts where it is right, those of the last right one
        elsewhere."""
        if text is not self.text:
            return False
        self.report = report
        self.facts |= report.facts
        return True

    async def fresh_outline(self) -> Outline:
        """The outline of the text as it is now, when it is read."""
        while not self.outlined.is_set():
            await self.outlined.wait()
        return self.outline

    @property
    def is_fresh(self) -> bool:
        """True if the outline is about the text as it is now."""
        return self.read is self.text

    # --- places

    def around(self, line: int, column: int, *, to_cursor: bool = False) -> Window:
        """Read the statement around a place, up to the place or to the end of its line, with the names above it."""
        lines = self.text.source.lines
        old = self._old_line(line)
        piece = self.outline.piece_at(old)
        first, block = 1, None
        if piece is not None:
            first_old = self.outline.tokens[piece.start].line
            first, block = max(1, min(self._new_line(first_old), line)), piece.block
            if block is not None and first_old != block.head[0].line:
                names = {name: each for name, each in block.names.items() if each.token.line < first_old}
                block = NamedBlock(block.symbol, block.head, names, block.keywords, block.last_line)
            elif block is not None:
                block = None  # the head is read again
        kept = [*lines[first - 1 : line - 1], lines[line - 1][: column - 1] if to_cursor else lines[line - 1]]
        before = [""] * (first - 1)
        if block is not None and before:
            before[-1] = "{"  # the lines stand in a block
        try:
            lexed = lex(Source(self.name, "\n".join([*before, *kept])))
        except DmlcError:
            return Window(Outline((), (), self.outline.tables.copy(), block), block)
        tokens = [token for token in lexed.tokens if token.line >= first and token.type != "BAD"]
        outline = Outline(tokens, lexed.comments, self.outline.tables.copy(), block)
        return Window(outline, outline.block)

    def name_at(self, line: int, column: int) -> tuple[Occurrence, NamedBlock | None] | None:
        """The name at a place and the block that it stands in, read from the text as it is now."""
        if self.is_fresh:
            piece, found = self.outline.piece_at(line), self.outline.at(line, column)
            return None if found is None else (found, piece.block if piece is not None else None)
        window = self.around(line, column)
        found = window.outline.at(line, column)
        return None if found is None else (found, window.block)

    def _old_line(self, line: int) -> int:
        """The line of the outlined text from which the statement of a line is to be read."""
        old, new = self.read.source.lines, self.text.source.lines
        if old is new:
            return line
        same = self._same_before()
        if line <= same:
            return line
        behind = 0
        while behind < min(len(old), len(new)) - same and old[-1 - behind] == new[-1 - behind]:
            behind += 1
        return line - len(new) + len(old) if line > len(new) - behind else max(same, 1)

    def _same_before(self) -> int:
        """The number of lines at the start that are the same in both texts."""
        pairs = zip(self.read.source.lines, self.text.source.lines, strict=False)
        same = 0
        for old, new in pairs:
            if old != new:
                break
            same += 1
        return same

    def _new_line(self, line: int) -> int:
        """The line that a line of the outlined text, before or behind the change, is now."""
        old, new = self.read.source.lines, self.text.source.lines
        return line if line <= self._same_before() + 1 else line - len(old) + len(new)
