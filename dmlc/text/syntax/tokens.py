"""Tokens, and the diagnostics for wrong characters and brackets.

A token is a piece of one line. It is a ``Span`` itself, so that tree nodes need no other object for their place.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar

from dmlc.diagnostics import Diagnostic, DmlcError, Help, Label, Source, Span, proposal, writing
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.limits import Limits


class Token(Span):
    """``type`` is the terminal's name."""

    __slots__ = ("text", "type")
    start_pos: ClassVar[None] = None  # Lark copies both to the end of the text
    end_pos: ClassVar[None] = None

    def __init__(
        self, source: Source, line: int, column: int, end_line: int, end_column: int, type: str, text: str
    ) -> None:
        super().__init__(source, line, column, end_line, end_column)
        self.type: str = type
        self.text: str = text

    @property
    def span(self) -> Span:
        return self

    def as_bad(self) -> Token:
        """The same as a token whose problem is reported."""
        return Token(self.source, self.line, self.column, self.end_line, self.end_column, "BAD", self.text)

    def after(self, type: str) -> Token:
        """An empty token right behind this one."""
        return Token(self.source, self.line, self.end_column, self.line, self.end_column, type, "")

    def __repr__(self) -> str:
        return f"{self.type}({self.text!r}, {self.line}:{self.column})"


_DIGITS = r"[0-9]+(_[0-9]+)*"
_NUMBER = re.compile(
    rf"0[xX][0-9a-fA-F]+(_[0-9a-fA-F]+)*|0|[1-9][0-9]*(_[0-9]+)*"
    rf"|({_DIGITS}\.{_DIGITS}|\.{_DIGITS})([eE][+-]?[0-9]+)?|{_DIGITS}[eE][+-]?[0-9]+"
)
#: Types of the brackets inside a statement.
OPENERS, CLOSERS = ("LPAR", "LSQB"), ("RPAR", "RSQB")
_CLOSER = {"(": ")", "[": "]", "{": "}"}


@lru_cache(maxsize=1024)
def is_number(text: str) -> bool:
    """Check that a token which begins like a number is one."""
    return _NUMBER.fullmatch(text) is not None


def malformed_number(token: Token) -> Diagnostic:
    text = token.text
    help: Help
    if text[:2].lower() in ("0b", "0o"):
        is_whole = re.fullmatch(r"0[bB][01]{1,64}|0[oO][0-7]{1,22}", text)
        help = writing(str(int(text, 0)), safe=True) if is_whole else ""
        help = help or "integers are decimal, or hexadecimal with 0x"
    elif re.fullmatch(r"0[0-9_]+", text):
        help = "an integer does not begin with 0"
        digits = text.lstrip("0_")
        help = proposal(f"{help}: write {digits}", digits) if is_number(digits) else help
    elif "_" in text and not re.search(r"[a-df-zA-DF-Z]", text):
        help = "an underscore is between two digits, as in 1_000"
        mended = re.sub(r"(?<![0-9])_+|_+(?![0-9])", "", re.sub(r"_+", "_", text))
        help = proposal(help, mended, safe=True) if is_number(mended) else help
    elif re.match(r"[0-9]+[a-zA-Z]", text) and not re.match(r"[0-9]+[eE]", text):
        help = "a name does not begin with a digit; a dtype is given by as: 1 as f32"
    else:
        help = "numbers look like 12, 1_000, 0x1f, 0.5 or 1e-6"
    return Diagnostic.of(codes.MALFORMED_NUMBER, f"{short(text)} is not a number", Label(token.span), help=help)


def too_deep(token: Token, depth: int, limits: Limits) -> DmlcError:
    """``token`` opens the first bracket that passes the limit; the deepest is at ``depth``."""
    label, instead = Label(token.span, "one too many"), "give a part of it a name"
    return limits.passed("nesting", "brackets nest", depth, label, instead=instead)


def too_long(token: Token, limits: Limits) -> DmlcError:
    """``token`` is, or holds, a name that passes the limit."""
    text = token.text.strip("`")
    help = "take another name"
    return limits.passed("name_length", f"the name {short(text)} has", len(text), Label(token.span), instead=help)


def never_closed(opened: Token, noticed: Token | None) -> Diagnostic:
    """A bracket that is still open where ``noticed`` stands, or at the end of the file."""
    closer = _CLOSER[opened.text]
    labels, help = [Label(opened.span, "opened here")], f"close it with {closer}"
    if noticed is not None:
        labels.append(Label(noticed.span, f"{closer} was expected before this"))
        if opened.text == "{" and noticed.text.isalpha() and noticed.span.column > 1:
            help += f", or write the {noticed.text} outside: blocks hold no others"
    return Diagnostic(codes.BRACKET, f"{opened.text} is never closed", tuple(labels), help)


def closes_nothing(token: Token) -> Diagnostic:
    help = proposal("take it out, or open the bracket before it", "")
    return Diagnostic.of(codes.BRACKET, f"{token.text} closes nothing", Label(token.span), help=help)


def closes_another(token: Token, opened: Token) -> Diagnostic:
    want = _CLOSER[opened.text]
    labels = (Label(token.span, f"{want} was expected"), Label(opened.span, "opened here"))
    message = f"{token.text} does not close {opened.text}"
    return Diagnostic.of(codes.BRACKET, message, *labels, help=writing(want))


def short(text: str) -> str:
    """A text in a message."""
    return text if len(text) <= 40 else text[:40] + "..."
