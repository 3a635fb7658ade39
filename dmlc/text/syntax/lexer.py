"""Text to tokens: line by line, with the rule of where a newline ends a statement.

The patterns are the terminals of ``dml.lark``. Mistakes are collected, so that one file shows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from dmlc.diagnostics import Diagnostic, Source
from dmlc.diagnostics.limits import Limits
from dmlc.text.syntax.foreign import stray
from dmlc.text.syntax.tokens import (
    Token,
    closes_another,
    closes_nothing,
    is_number,
    malformed_number,
    never_closed,
    too_deep,
    too_long,
)

_ITEM_STARTS = frozenset({"USE", "DIM", "CONST", "DEF", "MODEL"})
_STATEMENT_STARTS = _ITEM_STARTS | {"RETURN"}
#: Characters that may stand behind the last token of a line.
_BLANKS = " \t\r"
#: The words that are names outside of a use line.
_USE_WORDS = frozenset({"use", "from", "std"})
_OPENED_BY = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}


class Patterns:
    """The terminals of the grammar as one regular expression, and the keywords among them."""

    def __init__(self, terminals: Iterable[Any]) -> None:
        """``terminals`` are the terminals of a ``lark.Lark``."""
        words = {t.pattern.value: t.name for t in terminals if t.pattern.type == "str" and t.pattern.value.isalpha()}
        self.keywords: dict[str, str] = {text: name for text, name in words.items() if text not in _USE_WORDS}
        skipped = {"NL", "BLANK", *words.values()}
        pieces = sorted([t for t in terminals if t.name not in skipped], key=_order)
        # A quote that is never closed takes the rest of the line.
        groups = "|".join([f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in pieces])
        pattern = re.compile(rf"[ \t]*(?:{groups}|(?P<BAD>[\"`].*|.))")
        self.scan: Callable[[str], Iterator[re.Match[str]]] = pattern.finditer
        self.names: dict[int, str] = {number: name for name, number in pattern.groupindex.items()}


def _order(terminal: Any) -> tuple[Any, ...]:
    """Order terminals so that the longer sign is tried first: ``->`` before ``-``, ``==`` before ``=``."""
    is_sign = terminal.pattern.type == "str"
    return -terminal.priority, is_sign, -len(terminal.pattern.value) if is_sign else 0, terminal.name


class Lexed(Struct):
    """The tokens of a source, its comments, and what is wrong.

    A token of type ``BAD`` is one whose problem is reported already; the rest of its statement is of no use.
    """

    source: Source
    tokens: list[Token] = []
    comments: list[Token] = []
    problems: list[Diagnostic] = []


def tokenize(source: Source, patterns: Patterns, limits: Limits) -> Lexed:
    """All tokens. Raises ``DmlcError`` at once where they are too many (E0116), where ``(`` and ``[`` nest too deep
    (E0105), and for a name that is too long (E0442)."""
    lexer = Lexer(source, limits)
    lexer.run(patterns)
    return lexer.out


def _is_named(keyword: Token) -> bool:
    """Check that a name follows a keyword on its line: ``dim n``, but not ``dim = 3``."""
    rest = keyword.source.line(keyword.line)[keyword.end_column - 1 :].lstrip()
    return rest[:1] in ("`", "_") or rest[:1].isalpha()


class Lexer:
    """The lexer at work: ``run`` fills ``out``."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.out: Lexed = Lexed(source)
        self.limits = limits
        self.tokens: list[Token] = self.out.tokens
        self.open: list[Token] = []  # brackets
        self.nesting: int = 0  # number of them that are not braces
        self.bad_line: int = 0
        self.use_line: int = 0  # the last line that began with use, outside of all brackets
        self.is_lost: bool = False  # a quote that is not closed has taken brackets along
        self.special: dict[str, Callable[[Token], Token]] = {
            "NUMBER": self.number,
            "BAD": self.bad,
            "LPAR": self.opener,
            "LSQB": self.opener,
            "LBRACE": self.brace,
            "RPAR": self.closer,
            "RSQB": self.closer,
            "RBRACE": self.closing_brace,
        }

    def run(self, patterns: Patterns) -> None:
        source, tokens, comments = self.out.source, self.tokens, self.out.comments
        scan, names, keywords, special = patterns.scan, patterns.names, patterns.keywords, self.special
        make, add = Token, tokens.append
        lines, limits = source.lines, self.limits
        if sum(map(len, lines)) > limits.tokens:  # a token takes a character or more
            count = sum(m.lastgroup != "COMMENT" for line in lines for m in scan(line.rstrip(_BLANKS)))
            if count > limits.tokens:
                way = "keep data in a .npy file, for load"
                raise limits.passed("tokens", f"{source.name} has", count, instead=way)
        if lines and lines[0].startswith("\ufeff"):
            lines = [" " + lines[0][1:], *lines[1:]]  # a byte order mark
        for number, line in enumerate(lines, 1):
            is_first = True
            for match in scan(line.rstrip(_BLANKS)):
                group: Any = match.lastindex
                kind, text, end = names[group], match[group], match.end() + 1
                if text in keywords and kind == "NAME" and (text != "dml" or not tokens):
                    kind = keywords[text]
                elif text in _USE_WORDS:
                    kind = self.use_word(text, number, is_first=is_first)
                token = make(source, number, end - len(text), number, end, kind, text)
                if kind == "NAME" and (len(text) > limits.name_length or not text.isascii()):
                    token = self.name(token)
                if is_first:
                    if kind == "COMMENT":
                        comments.append(token)
                        continue
                    is_first = False
                    self.newline(token)
                if kind in special:
                    token = special[kind](token)
                elif kind == "COMMENT":
                    comments.append(token)
                    continue
                add(token)
        self.finish()

    def newline(self, token: Token) -> None:
        """End the statement before ``token``, the first of its line, unless the line goes on."""
        if not self.tokens:
            return
        if self.nesting and token.type in _STATEMENT_STARTS:
            self.unclosed(token)
        if token.type in _ITEM_STARTS and not self.nesting and _is_named(token):
            if self.open:
                self.unmatched(never_closed(self.open.pop(), token))
            self.is_lost = False
        if not self.nesting and token.type != "PIPE":
            self.end_statement()

    def end_statement(self) -> None:
        last = self.tokens[-1]
        if last.type not in ("NL", "LBRACE"):
            self.tokens.append(last.after("NL"))

    def finish(self) -> None:
        """The end of the file ends the statement; brackets still open are reported."""
        if not self.tokens:
            return
        end = self.tokens[-1].after("BAD")
        if self.nesting:
            self.unclosed(end)
        if self.open:
            self.unmatched(never_closed(self.open.pop(), None))
        self.end_statement()

    # --- tokens that need a look

    def use_word(self, text: str, line: int, *, is_first: bool) -> str:
        """The type of ``use``, ``from`` or ``std``: a word in a line that begins with use outside of all blocks."""
        if text == "use" and is_first and not self.open:
            self.use_line = line
            return "USE"
        before = self.tokens[-1].type if self.tokens else ""
        if line != self.use_line or text == "use":
            return "NAME"
        if text == "from":
            return "NAME" if before in ("USE", "_COMMA", "AS") else "FROM"
        return "STD" if before == "FROM" else "NAME"

    def name(self, token: Token) -> Token:
        if len(token.text.strip("`")) > self.limits.name_length:
            raise too_long(token, self.limits)
        return token if token.text[0] == "`" or token.text.isidentifier() else self.bad(token)

    def number(self, token: Token) -> Token:
        if is_number(token.text):
            return token
        self.out.problems.append(malformed_number(token))
        return token.as_bad()

    def bad(self, token: Token) -> Token:
        if token.line != self.bad_line:
            self.bad_line = token.line
            self.out.problems.append(stray(token))
            self.is_lost = self.is_lost or token.text[0] in '"`'
        return token.as_bad()

    def closes_nothing(self, token: Token) -> Token:
        if token.line != self.bad_line:
            self.bad_line = token.line
            self.unmatched(closes_nothing(token))
        return token.as_bad()

    def unmatched(self, problem: Diagnostic) -> None:
        """Brackets that do not match, unless some of them were not seen."""
        if not self.is_lost:
            self.out.problems.append(problem)

    def opener(self, token: Token) -> Token:
        self.open.append(token)
        self.nesting += 1
        if self.nesting > self.limits.nesting:
            raise too_deep(token, self.depth_from(token), self.limits)
        return token

    def depth_from(self, token: Token) -> int:
        """Return how deep brackets nest from a token on, brackets in strings and comments included."""
        deepest, depth = self.nesting, self.nesting - 1
        lines = token.source.lines
        for line in (lines[token.line - 1][token.column - 1 :], *lines[token.line :]):
            for sign in re.findall(r"[()\[\]]", line):
                depth += 1 if sign in "([" else -1
                deepest = max(deepest, depth)
        return deepest

    def brace(self, token: Token) -> Token:
        if self.nesting:
            self.unclosed(token)
        self.open.append(token)
        return token

    def closer(self, token: Token) -> Token:
        if not self.nesting:
            return self.closes_nothing(token)
        opened = self.open.pop()
        self.nesting -= 1
        if opened.type == _OPENED_BY[token.type]:
            return token
        self.unmatched(closes_another(token, opened))
        return token.as_bad()

    def closing_brace(self, token: Token) -> Token:
        if self.nesting:
            self.unclosed(token)
        if not self.open:
            return self.closes_nothing(token)
        self.open.pop()
        self.end_statement()
        return token

    def unclosed(self, token: Token) -> None:
        """``token`` shows that the innermost ``(`` or ``[`` is never closed."""
        self.unmatched(never_closed(self.open[-1], token))
        while self.nesting:
            self.open.pop()
            self.nesting -= 1
        self.tokens.append(self.tokens[-1].after("BAD"))
