"""Python expressions as small values: their text, how tightly they bind, and where a long line may be split.

Every text is as ``ruff format`` would write it on one line. Only shapes that the generator needs exist: names,
numbers, calls, methods, infix operators, tuples and lists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias, Union

from msgspec import Struct

# Levels of precedence of an expression, from the loosest.
COMPARE, OR, XOR, AND, SUM, PRODUCT, UNARY, POWER, ATOM = range(9)

_LEVELS = {
    **dict.fromkeys(["==", "!=", "<", "<=", ">", ">="], COMPARE),
    "|": OR,
    "^": XOR,
    "&": AND,
    **dict.fromkeys(["+", "-"], SUM),
    **dict.fromkeys(["*", "/", "//", "%", "@"], PRODUCT),
    "**": POWER,
}
_SIMPLE = re.compile(r"-?[\w.]+(?:e[-+]\d+)?")


class Expr(Struct, frozen=True):
    """``items`` are the parts of a call, a sequence or an infix operation, each with the text before it.

    ``split`` is the way to break a line that is too long. ``call`` and ``sequence`` break inside their brackets
    (``text`` starts with ``opening``), ``infix`` before its operator inside new parentheses. An empty one does not
    break. ``inner`` is a part that may go into a statement of its own; ``around`` is the text before and after it.
    """

    text: str
    level: int = ATOM
    split: str = ""
    opening: str = ""
    items: tuple[Item, ...] = ()
    inner: Expr | None = None
    around: tuple[str, str] = ("", "")
    depth: int = 0

    @property
    def is_name(self) -> bool:
        """A name or a number, with its dots."""
        return _SIMPLE.fullmatch(self.text) is not None

    @property
    def closing(self) -> str:
        return {"(": ")", "[": "]"}[self.opening[-1]]

    def at(self, level: int) -> str:
        """The text where at least ``level`` is needed, in parentheses if it binds less tightly."""
        return self.text if self.level >= level else f"({self.text})"


Item: TypeAlias = tuple[str, Expr]
Argument: TypeAlias = Union[Expr, int, float, bool, str, "Sequence[Argument]", None]


def name(text: str) -> Expr:
    return Expr(text)


def expr(value: Argument) -> Expr:
    """A Python value as an expression; a ``str`` is a string literal without signs that need escapes."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return Expr(f'"{value}"')
    if isinstance(value, Sequence):
        return sequence(value, brackets="()" if isinstance(value, tuple) else "[]")
    text = repr(value)
    return Expr(text, UNARY if text.startswith("-") else ATOM)


def _depth(items: list[Item]) -> int:
    return 1 + max([e.depth for _, e in items], default=0)


def sequence(values: Sequence[Argument], *, brackets: str = "()") -> Expr:
    """A tuple or a list."""
    items = [("", expr(v)) for v in values]
    inner = ", ".join(e.text for _, e in items)
    comma = "," if brackets == "()" and len(items) == 1 else ""
    return Expr(
        f"{brackets[0]}{inner}{comma}{brackets[1]}",
        split="sequence" if items else "",
        opening=brackets[0],
        items=tuple(items),
        depth=_depth(items) - 1,
    )


def call(function: str, *arguments: Argument, **keywords: Argument) -> Expr:
    """``function(arguments, keywords)``; the function is a name with or without dots."""
    items = [("", expr(a)) for a in arguments] + [(f"{k}=", expr(v)) for k, v in keywords.items()]
    inner = ", ".join(prefix + e.text for prefix, e in items)
    return Expr(
        f"{function}({inner})",
        split="call" if items else "",
        opening=f"{function}(",
        items=tuple(items),
        depth=_depth(items),
    )


def method(receiver: Expr, function: str, *arguments: Argument, **keywords: Argument) -> Expr:
    """``receiver.function(arguments, keywords)``."""
    if receiver.is_name and receiver.level == ATOM:
        return call(f"{receiver.text}.{function}", *arguments, **keywords)
    rest = call(f".{function}", *arguments, **keywords).text
    return Expr(receiver.at(ATOM) + rest, inner=receiver, around=("", rest), depth=receiver.depth + 1)


def attribute(owner: Expr, field: str) -> Expr:
    """``owner.field``."""
    if owner.is_name and owner.level == ATOM:
        return Expr(f"{owner.text}.{field}")
    rest = f".{field}"
    return Expr(owner.at(ATOM) + rest, inner=owner, around=("", rest), depth=owner.depth + 1)


def subscript(receiver: Expr, index: str) -> Expr:
    """``receiver[index]``."""
    rest = f"[{index}]"
    return Expr(receiver.at(ATOM) + rest, inner=receiver, around=("", rest), depth=receiver.depth + 1)


def infix(sign: str, left: Expr, right: Expr) -> Expr:
    """``left sign right`` with the parentheses that its meaning needs."""
    level = _LEVELS[sign]
    depth = 1 + max(left.depth, right.depth)
    if sign == "**":
        a, b = left.at(ATOM), right.at(UNARY)
        hugs = left.is_name and left.level == ATOM and right.is_name
        return Expr(f"{a}**{b}" if hugs else f"{a} ** {b}", POWER, depth=depth)
    # Comparisons do not chain, the others group to the left.
    a, b = left.at(level + 1 if level == COMPARE else level), right.at(level + 1)
    text = f"{a} {sign} {b}"
    if left.is_name and right.is_name:
        return Expr(text, level, "infix", items=(("", left), (f"{sign} ", right)), depth=depth)
    if left.is_name:
        return Expr(text, level, inner=right, around=(f"{a} {sign} ", ""), depth=depth)
    return Expr(text, level, inner=left, around=("", f" {sign} {b}"), depth=depth)


_MESSAGE_WIDTH = 76


def message(text: str) -> Expr:
    """A string literal with ``{name}`` filled in; a long one may become several, one under the other.

    ``text`` holds no quotes, backslashes or other braces.
    """
    pieces = [""]
    for word in text.split(" "):
        if pieces[-1] and len(pieces[-1]) + len(word) > _MESSAGE_WIDTH:
            pieces.append("")
        pieces[-1] += f"{word} "
    pieces[-1] = pieces[-1][:-1]
    items = tuple([("", Expr(_string(piece))) for piece in pieces])
    return Expr(_string(text), split="strings" if len(items) > 1 else "", items=items)


def _string(text: str) -> str:
    return f'f"{text}"' if "{" in text else f'"{text}"'


def prefix(sign: str, operand: Expr) -> Expr:
    """``-x`` or ``~x``."""
    return Expr(f"{sign}{operand.at(ATOM)}", UNARY, depth=operand.depth + 1)
