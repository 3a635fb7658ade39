"""The canonical text of a program: the same tokens and comments, one layout.

A bracket with commas is opened when it ends in a comma or holds a comment (so the layout of a text that was laid out
stays), and when its line is too long, the widest first. Parentheses around an expression are opened only for a
comment. A pipe that began a line does so again.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from typing import TypeAlias

from msgspec import Struct, field

from dmlc.diagnostics import Source, naming
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.text.syntax.lexer import Lexed
from dmlc.text.syntax.parser import lex, parse_tokens
from dmlc.text.syntax.tokens import CLOSERS, OPENERS, Token

MAX_WIDTH = 100
INDENT = "    "

_ENDS_OPERAND = frozenset({"NAME", "NUMBER", "STRING", "RPAR", "RSQB"})


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
        lines = _Layout(_parts(self.tokens), self.depth).lines()
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

    for token in merge(lexed.tokens, lexed.comments, key=lambda token: (token.line, token.column)):
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


# --- the layout of one statement


class Part(Struct, eq=False):
    """An item of a bracket, or the part of a statement between pipes."""

    nodes: list[Node] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # comments on lines of their own
    inside: list[tuple[str, bool]] = field(default_factory=list)  # comments among the nodes; whether they end a line
    after: str = ""  # a comment at the end of its line
    begins_line: bool = False

    def close(self) -> list[str]:
        """Place the comments among the nodes: before them, but the last that ends a line behind them.

        Gives those below the last node.
        """
        below: list[str] = []
        while self.inside and not self.inside[-1][1]:
            below.insert(0, self.inside.pop()[0])
        if self.inside:
            self.after = self.inside.pop()[0]
        self.before += [text for text, _ in self.inside]
        self.inside = []
        return below


class Bracket(Struct, eq=False):
    opener: Token
    closer: Token
    is_list: bool  # its items are parted by commas
    parts: list[Part] = field(default_factory=list)
    after_opener: str = ""
    before_closer: list[str] = field(default_factory=list)
    ends_in_comma: bool = False

    @property
    def must_open(self) -> bool:
        return bool(
            (self.ends_in_comma and self.is_list)
            or self.after_opener
            or self.before_closer
            or any(part.before or part.after for part in self.parts)
        )

    @property
    def inside(self) -> str:
        """The type of its opener if its items are parted by commas; else empty."""
        return self.opener.type if self.is_list else ""

    @property
    def is_plain(self) -> bool:
        """True if all items are numbers and names: they fill lines instead of taking one line each."""
        nodes = [node for part in self.parts for node in part.nodes]
        are_tokens = all(isinstance(node, Token) and node.type not in ("EQUAL", "COLON") for node in nodes)
        is_commented = any(part.before or part.after for part in self.parts)
        return self.opener.type == "LSQB" and len(self.parts) > 1 and are_tokens and not is_commented


Node: TypeAlias = Token | Bracket


def _parts(tokens: Sequence[Token]) -> list[Part]:
    """The parts of a statement between its pipes; each but the first begins with its pipe."""
    stack: list[tuple[Bracket, Part]] = []
    part = Part()
    out, before = [part], tokens[0]
    for token in tokens:
        is_apart = token.line > before.line
        if token.type == "COMMENT":
            _place_comment(token.text.rstrip(), part, stack[-1][0] if stack else None, before, is_apart=is_apart)
            continue
        if token.type in OPENERS:
            bracket = Bracket(token, token, token.type == "LSQB" or before.type in ("NAME", "ARROW"))
            part.nodes.append(bracket)
            stack.append((bracket, part))
            part = Part()
        elif token.type in CLOSERS:
            bracket, outside = stack.pop()
            bracket.closer, bracket.ends_in_comma = token, before.type == "_COMMA"
            bracket.before_closer = part.close()
            if part.nodes:
                bracket.parts.append(part)
            else:
                bracket.before_closer = part.before
            part = outside
        elif token.type == "_COMMA" and stack:
            below = part.close()
            stack[-1][0].parts.append(part)
            part = Part(before=below)
        elif token.type == "PIPE" and not stack:
            part = Part([token], part.close(), begins_line=is_apart)
            out.append(part)
        else:
            part.nodes.append(token)
        before = token
    part.close()
    return out


def _place_comment(text: str, part: Part, bracket: Bracket | None, before: Token, *, is_apart: bool) -> None:
    """Keep a comment with the part or bracket in which it is; ``is_apart`` if nothing else is on its line."""
    if part.nodes:
        part.inside.append((text, not is_apart))
    elif bracket is None or is_apart or part.before:
        part.before.append(text)
    elif before is bracket.opener:
        bracket.after_opener = bracket.after_opener or text
    elif bracket.parts and not bracket.parts[-1].after:
        bracket.parts[-1].after = text
    else:
        part.before.append(text)


# --- the tree to lines


class _Layout:
    def __init__(self, parts: list[Part], depth: int) -> None:
        self.parts = parts
        self.depth = depth
        self.is_broken = any(part.begins_line or part.before or part.after for part in parts)
        self.opened: set[int] = set()
        self.candidates: list[tuple[int, int, Bracket]] = []  # line, width, bracket

    def lines(self) -> list[str]:
        """The lines, none longer than the width where that can be helped."""
        self.write()
        while self.improve():
            self.write()
        return [line.rstrip() + self.comments.get(number, "") for number, line in enumerate(self.out)]

    def improve(self) -> bool:
        """Break the pipes or open a bracket of the first line that is too long and can be helped."""
        for number, line in enumerate(self.out):
            if len(line.rstrip()) <= MAX_WIDTH:
                continue
            if not self.is_broken and len(self.parts) > 1:
                self.is_broken = True
                return True
            here = [(width, bracket) for at, width, bracket in self.candidates if at == number]
            if here:
                self.opened.add(id(max(here, key=lambda pair: pair[0])[1]))
                return True
        return False

    def write(self) -> None:
        self.out = [INDENT * self.depth]
        self.comments: dict[int, str] = {}  # behind lines
        self.candidates = []
        before: Token | None = None
        for i, part in enumerate(self.parts):
            if i and self.is_broken:
                self.newlines(self.depth + 1, [*part.before, ""])
                before = None
            before = self.nodes(part.nodes, self.depth + (1 if i and self.is_broken else 0), before, inside="")
            self.comment(part.after)

    def newlines(self, depth: int, texts: Sequence[str]) -> None:
        self.out += [INDENT * depth + text for text in texts]

    def comment(self, text: str) -> None:
        if text:
            self.comments[len(self.out) - 1] = f"  {text}"

    def nodes(self, nodes: Sequence[Node], depth: int, before: Token | None, *, inside: str) -> Token | None:
        """Write nodes, ``inside`` a bracket with commas of that type; gives the last token."""
        is_sign = False
        for node in nodes:
            token = node.opener if isinstance(node, Bracket) else node
            if not is_sign:
                self.out[-1] += _gap(before, token, inside)
            is_sign = token.type == "BANG" or (
                token.type == "MINUS" and (before is None or before.type not in _ENDS_OPERAND)
            )
            if isinstance(node, Bracket):
                self.bracket(node, depth)
                before = node.closer
            else:
                self.out[-1] += node.text
                before = node
        return before

    def bracket(self, bracket: Bracket, depth: int) -> None:
        if bracket.must_open or id(bracket) in self.opened:
            self.open_bracket(bracket, depth)
            return
        start, line = len(self.out[-1]), len(self.out) - 1
        known = len(self.candidates)
        self.out[-1] += bracket.opener.text
        for i, part in enumerate(bracket.parts):
            self.out[-1] += ", " if i else ""
            self.nodes(part.nodes, depth, None, inside=bracket.inside)
        self.out[-1] += bracket.closer.text
        if bracket.is_list and bracket.parts:
            del self.candidates[known:]
            self.candidates.append((line, len(self.out[-1]) - start, bracket))

    def open_bracket(self, bracket: Bracket, depth: int) -> None:
        self.out[-1] += bracket.opener.text
        self.comment(bracket.after_opener)
        if bracket.is_plain:
            self.fill(bracket, depth + 1)
        else:
            for part in bracket.parts:
                self.newlines(depth + 1, [*part.before, ""])
                self.nodes(part.nodes, depth + 1, None, inside=bracket.inside)
                self.out[-1] += "," if bracket.is_list else ""
                self.comment(part.after)
        self.newlines(depth + 1, bracket.before_closer)
        self.newlines(depth, [bracket.closer.text])

    def fill(self, bracket: Bracket, depth: int) -> None:
        """Plain items, as many on a line as fit."""
        self.newlines(depth, [""])
        for i, part in enumerate(bracket.parts):
            line, self.out[-1] = self.out[-1], " " if i else ""
            self.nodes(part.nodes, 0, None, inside=bracket.inside)
            text, self.out[-1] = f"{self.out[-1]},", line
            if i and len(line) + len(text) > MAX_WIDTH:
                self.newlines(depth, [text[1:]])
            else:
                self.out[-1] += text


def _gap(before: Token | None, token: Token, inside: str) -> str:
    """The blank between two tokens, or none."""
    if before is None or token.type in ("_COMMA", "COLON", "_DOT", "RANGE") or before.type in ("_DOT", "RANGE"):
        return ""
    if token.type in OPENERS and before.type == "NAME":
        return ""
    if token.type == "LSQB" and before.type in CLOSERS:  # an index
        return ""
    if inside == "LSQB" and before.type == "COLON":  # a slice
        return ""
    if inside and "EQUAL" in (token.type, before.type):
        return ""
    return " "
