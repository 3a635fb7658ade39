"""Proposals for characters that no token begins with: what other languages write there."""

from __future__ import annotations

import re

from dmlc.diagnostics import Change, Help, Proposal, Span, proposal
from dmlc.diagnostics.fix import is_one_operand

#: Quotation marks that open a string elsewhere, and those that close it.
_QUOTES = {"'": "'", "\u2018": "\u2019", "\u201c": "\u201d", "\u201e": "\u201c", "\u00ab": "\u00bb"}
#: The ends of an operand: its brackets are skipped.
_OPENERS, _CLOSERS = "([", ")]"


def proposed(token: Span, help: str) -> Help:
    """The help with the change of the line that it asks for; the help alone where the line does not show it."""
    line, at = token.source.line(token.line), token.column - 1
    sign = line[at]
    if sign == "~":
        return proposal(help, "!", safe=True)
    if sign == ";":
        return _line_end(token, line, help)
    if sign in _QUOTES:
        return _string(token, line, help)
    if sign == "?":
        return _choice(token, line, help)
    return _product(token, line, help) if sign == "@" else help


def _line_end(token: Span, line: str, help: str) -> Help:
    """Take a semicolon away, or put the statement behind it on a line of its own."""
    blanks = re.match(r"[;\s]*", line[token.column - 1 :])
    assert blanks is not None
    rest = line[token.column - 1 + blanks.end() :]
    indent = line[: len(line) - len(line.lstrip())]
    new = "" if not rest else "  " if rest.startswith("#") else "\n" + indent
    if rest.startswith("}"):
        new = "\n"
    return proposal(help, new, _at(token, token.column, token.column + blanks.end()), safe=True)


def _string(token: Span, line: str, help: str) -> Help:
    """Put double quotes around a string that stands in other ones."""
    start = token.column - 1
    end = line.find(_QUOTES[line[start]], start + 1)
    if end < 0 or '"' in line[start:end] or "\\" in line[start:end]:
        return help
    first, last = _at(token, start + 1, start + 2), _at(token, end + 1, end + 2)
    return Proposal(help, (Change('"', first), Change('"', last)), safe=True)


def _product(token: Span, line: str, help: str) -> Help:
    """Write matmul for a product of two operands that stands for itself, or in brackets."""
    at, left, right = _sides(token, line)
    a, b = left.strip().removeprefix("return "), right.strip()
    if not a or not b or "@" in b or not is_one_operand(a) or not is_one_operand(b):
        return help
    span = _at(token, at - len(left) + len(left.rstrip()) - len(a) + 1, at + 2 + len(right.rstrip()))
    product = f"matmul({a}, {b})"
    return Proposal(f"write {product}", (Change(product, span),), safe=True)


def _choice(token: Span, line: str, help: str) -> Help:
    """Write where for ``cond ? a : b`` that stands for itself, or in brackets."""
    at, left, behind = _sides(token, line)
    cond = left.removeprefix("return ")
    colon = _reach(behind, _OPENERS, _CLOSERS, stops=":")
    a, b = behind[:colon].strip(), behind[colon + 1 :].strip()
    if not cond.strip() or not a or not b or "?" in a + b:
        return help
    span = _at(token, at - len(cond.lstrip()) + 1, at + 2 + len(behind.rstrip()))
    return Proposal(help, (Change(f"where({cond.strip()}, {a}, {b})", span),), safe=True)


def _sides(token: Span, line: str) -> tuple[int, str, str]:
    """The position of a sign, and the expressions before and behind it."""
    at = token.column - 1
    start, end = _reach(line[:at][::-1], _CLOSERS, _OPENERS), _reach(line[at + 1 :], _OPENERS, _CLOSERS)
    return at, line[at - start : at], line[at + 1 : at + 1 + end]


def _reach(text: str, openers: str, closers: str, stops: str = ",#") -> int:
    """The length of the text up to a sign at which it stops, a bracket that closes, or a lone equals sign."""
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign in openers) - (sign in closers)
        is_equals = sign == "=" and text[i - 1 : i] not in (*"=<>!",) and text[i + 1 : i + 2] not in (*"=<>!",)
        if depth < 0 or (depth == 0 and (sign in stops or is_equals)):
            return i
    return len(text)


def _at(token: Span, column: int, end: int) -> Span:
    return Span(token.source, token.line, column, token.line, end)
