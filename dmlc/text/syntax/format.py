"""The canonical text of a program: the same tokens and comments, one layout."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from dmlc.diagnostics import Source, naming
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.text.syntax.layout import INDENT, statement_lines
from dmlc.text.syntax.lexer import Lexed
from dmlc.text.syntax.parser import lex, parse_tokens
from dmlc.text.syntax.tokens import Token


def format_source(source: Source, limits: Limits = DEFAULTS) -> str:
    """The program in canonical layout, ending in one newline. Raises ``DmlcError`` E01 where it is not a program.

    Comments and single blank lines stay; the syntax tree is the same; formatting twice changes nothing.
    """
    with naming(source.name):
        lexed = lex(source, limits)
        parse_tokens(lexed, limits)
    lines: list[str] = []
    entries = _entries(lexed)
    _separate_blocks(entries)
    for entry in entries:
        if entry.blank_before and lines:
            lines.append("")
        lines += entry.lines()
    return "\n".join(lines) + "\n"


class _Entry(Struct):
    """A statement, a head, a closing brace, or a comment on a line of its own."""

    tokens: list[Token]
    depth: int
    blank_before: bool
    comment: str = ""  # behind it

    @property
    def opens(self) -> bool:
        return self.tokens[-1].type == "LBRACE"

    @property
    def closes(self) -> bool:
        return self.tokens[0].type == "RBRACE"

    @property
    def is_comment(self) -> bool:
        return self.tokens[0].type == "COMMENT"

    def lines(self) -> list[str]:
        if self.is_comment:
            return [INDENT * self.depth + self.tokens[0].text.rstrip()]
        lines = statement_lines(self.tokens, self.depth)
        if self.comment:
            lines[-1] += f"  {self.comment}"
        return lines


def _entries(lexed: Lexed) -> list[_Entry]:
    out: list[_Entry] = []
    current: list[Token] = []
    depth = 0
    last: Token | None = None  # the last token of the last entry

    def finish() -> None:
        nonlocal current, last
        first = current[0]
        opened = bool(out) and out[-1].opens
        is_apart = last is not None and first.line > last.line + 1
        out.append(_Entry(current, depth, is_apart and not opened and first.type != "RBRACE"))
        last, current = current[-1], []

    for token in _merged(lexed):
        if token.type == "COMMENT" and not current:
            if last is not None and last.line == token.line and last.type != "COMMENT" and not out[-1].comment:
                out[-1].comment = token.text.rstrip()
            else:
                current = [token]
                finish()
        elif token.type == "NL":
            if current:
                finish()
        elif token.type == "RBRACE":
            depth -= 1
            current = [token]
            finish()
        else:
            current.append(token)
            if token.type == "LBRACE":
                finish()
                depth += 1
    return out


def _merged(lexed: Lexed) -> Iterator[Token]:
    """Tokens and comments in the order of the text."""
    comments = iter(lexed.comments)
    comment = next(comments, None)
    for token in lexed.tokens:
        while comment is not None and (comment.line, comment.column) < (token.line, token.column):
            yield comment
            comment = next(comments, None)
        yield token
    if comment is not None:
        yield comment
    yield from comments


def _separate_blocks(entries: list[_Entry]) -> None:
    """A blank line before the head of a block (or the comments that stand on it), and after its end."""
    for i, entry in enumerate(entries):
        if i and entries[i - 1].closes:
            entry.blank_before = True
        if entry.opens:
            first = i
            while first and entries[first - 1].is_comment and not entries[first].blank_before:
                first -= 1
            entries[first].blank_before = True
