"""Help for what other languages write: where a token does not fit, and what stands before it."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.text.syntax.tokens import Token

_DECLARES = ("let", "var", "val", "auto", "set")
_BRANCHES = ("if", "else", "elif")
_LOOPS = ("for", "while")


def habit(start: str, tokens: Sequence[Token], token: Token, before: Token | None) -> str:
    """The way to write what was meant; empty where no habit explains the token."""
    place = next((i for i, other in enumerate(tokens) if other is token), len(tokens))
    earlier = tokens[:place]
    texts = [other.text for other in earlier]
    line = [other.text for other in tokens if other.line == token.line]
    return (
        _statement(start, texts, line, token, before)
        or _operator(texts, token, before)
        or _bracket(earlier, token, before)
    )


def _statement(start: str, texts: Sequence[str], line: Sequence[str], token: Token, before: Token | None) -> str:
    if start == "dim" and token.type == "EQUAL" and len(texts) == 2:
        return f"bounds follow in: dim {texts[1]} in 1..64"
    if start != "statement" or not texts:
        return ""
    first = texts[0]
    if len(texts) == 1 and first in _DECLARES and token.type == "NAME":
        return f"a name is given without {first}: {token.text} = ..."
    if first in _BRANCHES or any(text in _BRANCHES for text in line):
        return "there is no if: write where(cond, a, b)"
    if first in _LOOPS:
        return "there are no loops: an operation takes the axes that it works along"
    if len(texts) == 1 and token.type in ("INFIX", "STAR", "MINUS"):
        return f"a name is given once, so there is no {token.text}=: {first}_2 = {first} {token.text} ..."
    if len(texts) == 1 and token.type == "COLON":
        return f"a name is given by =: {first} = ..."
    if len(texts) == 1 and token.type == "LPAR":
        return f"a statement is name = value, such as y = {first}(...)"
    return ""


def _operator(texts: Sequence[str], token: Token, before: Token | None) -> str:
    words = {"and": "a & b", "or": "a | b", "not": "!a", "is": "a == b"}
    previous = before.text if before is not None else ""
    if token.text in words:
        return f"write {words[token.text]}"
    if previous in ("and", "or", "is"):
        return f"write {words[previous]}"
    if previous == "not" and token.type in ("NAME", "NUMBER"):
        return f"write !{token.text}"
    if previous in ("&", "|") and token.text == previous:
        return f"write a {previous} b"
    if previous == "lambda":
        return "a block is written def f(x) { return ... }"
    return ""


def _bracket(earlier: Sequence[Token], token: Token, before: Token | None) -> str:
    opened: list[int] = []
    for i, other in enumerate(earlier):
        if other.type in ("LPAR", "LSQB"):
            opened.append(i)
        elif other.type in ("RPAR", "RSQB") and opened:
            opened.pop()
    inside = opened[-1] if opened else -1
    is_call = inside > 0 and earlier[inside].type == "LPAR" and earlier[inside - 1].type == "NAME"
    if token.type == "_COMMA" and inside >= 0 and not is_call and earlier[inside].type == "LPAR":
        return "a list is written in brackets: axes=[0, 1]"
    if token.type == "COLON" and is_call and before is not None and before.type == "NAME":
        return f"attributes are given by =: {before.text}=..."
    if "DIM" in (token.type, before.type if before is not None else "") and opened:
        return "the attribute is called axis or axes: axes=[1]"
    if token.type in ("IF", "NAME") and token.text in _BRANCHES:
        return "there is no if: write where(cond, a, b)"
    return ""


def attribute_read(earlier: Sequence[Token]) -> tuple[str, str] | None:
    """The names in ``x.T`` at the end of the tokens; None where something else stands there."""
    if len(earlier) >= 3 and [t.type for t in earlier[-3:]] == ["NAME", "_DOT", "NAME"]:
        return earlier[-3].text, earlier[-1].text
    return None
