"""Lines of at most 100 columns, split where ``ruff format`` splits them.

Only what the generator writes is covered. A statement that cannot be split in one of these ways stays one line
with ``# fmt: skip``; that takes names of many dozen letters.
"""

from __future__ import annotations

import unicodedata

from dmlc.codegen.numpy.expr import ATOM, Expr

WIDTH = 100
INDENT = 4


def width(text: str) -> int:
    """The columns that a line takes; wide East Asian signs take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text)


def fits(line: str) -> bool:
    return width(line) <= WIDTH


def layout(before: str, expr: Expr, after: str, indent: int) -> list[str] | None:
    """The lines of ``before expr after``; None where it does not fit and cannot be split."""
    margin = " " * indent
    flat = f"{margin}{before}{expr.text}{after}"
    if fits(flat):
        return [flat]
    if expr.split == "strings":
        last = len(expr.items) - 1
        return [f"{margin}{piece.text}{after if i == last else ''}" for i, (_, piece) in enumerate(expr.items)]
    if expr.split == "infix" and before.endswith("= "):
        return _split_infix(before, expr, after, indent)
    if expr.split not in ("call", "sequence") or not fits(f"{margin}{before}{expr.opening}"):
        # A bare name is what even the formatter leaves too long.
        return [flat] if expr.is_name and not before and expr.level == ATOM else None
    inner = indent + INDENT
    together = " " * inner + ", ".join(prefix + item.text for prefix, item in expr.items)
    if expr.split == "call" and fits(together):
        parts = [together]
    else:
        # The only argument of a call gets no trailing comma; the only item of a list does.
        comma = "," if len(expr.items) > 1 or expr.split == "sequence" else ""
        parts = []
        for prefix, item in expr.items:
            part = layout(prefix, item, comma, inner)
            if part is None:
                return None
            parts += part
    return [f"{margin}{before}{expr.opening}", *parts, f"{margin}{expr.closing}{after}"]


def _split_infix(before: str, expr: Expr, after: str, indent: int) -> list[str] | None:
    """The right side of an assignment in new parentheses."""
    margin, inner = " " * indent, " " * (indent + INDENT)
    together = inner + expr.text
    parts = [together] if fits(together) else [inner + prefix + item.text for prefix, item in expr.items]
    if not all(map(fits, parts)):
        return None
    return [f"{margin}{before}(", *parts, f"{margin}){after}"]


def statement(before: str, expr: Expr, indent: int) -> list[str]:
    """The lines of a statement, whatever it takes."""
    lines = layout(before, expr, "", indent)
    return [f"{' ' * indent}{before}{expr.text}  # fmt: skip"] if lines is None else lines


def definition(function: str, parameters: list[str], result: str, indent: int) -> list[str]:
    """The line of a ``def``, or several where it is long: all parameters on one, or one a line."""
    margin, inner = " " * indent, " " * (indent + INDENT)
    head, tail = f"{margin}def {function}(", f"){result}:"
    flat = head + ", ".join(parameters) + tail
    if fits(flat) or not parameters:
        return [flat]
    together = inner + ", ".join(parameters)
    rows = [together] if fits(together) else [f"{inner}{parameter}," for parameter in parameters]
    return [head, *rows, margin + tail]
