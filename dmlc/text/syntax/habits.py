"""Help for what other languages write: where a token does not fit, and what stands before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dmlc.diagnostics import Change, Help, Proposal, Span, proposal, text_of
from dmlc.diagnostics.fix import is_one_operand
from dmlc.text.syntax.tokens import CLOSERS, OPENERS, Token

_DECLARES = ("let", "var", "val", "auto", "set")
_BRANCHES = ("if", "else", "elif")
_LOOPS = ("for", "while")
_NO_IF = "there is no if: write where(cond, a, b)"
#: The signs for the words of Python.
_SIGNS = {"and": "&", "or": "|", "is": "=="}


def habit(start: str, tokens: Sequence[Token], token: Token, before: Token | None) -> Help:
    """The way to write what was meant; empty where no habit explains the token."""
    place = next((i for i, other in enumerate(tokens) if other is token), len(tokens))
    return (
        _statement(start, tokens, place, token)
        or _operator(tokens, place, token, before)
        or _bracket(tokens, place, token, before)
    )


def augmented(start: str, tokens: Sequence[Token], token: Token, behind: Sequence[Token]) -> Help:
    """The help for ``y += x``: a new name, and that name wherever the block reads the old one later."""
    is_one = start == "statement" and len(tokens) > 3 and token is tokens[1] and tokens[2].type == "EQUAL"
    if not is_one or token.type not in ("INFIX", "STAR", "MINUS") or tokens[0].type != "NAME":
        return ""
    old, value = tokens[0], tokens[3:-1] if tokens[-1].type == "NL" else tokens[3:]
    names = {other.text for other in (*tokens, *behind) if other.type == "NAME"}
    base, _, number = old.text.rpartition("_")
    base, first = (base, int(number) + 1) if base and number.isdecimal() else (old.text, 2)
    if base[0] == "`" or not value:
        return f"a name is given once, so there is no {token.text}=: give the result another name"
    new = next(f"{base}_{i}" for i in range(first, first + len(names) + 1) if f"{base}_{i}" not in names)
    text = text_at(value)
    written = f"{new} = {old.text} {token.text} {text if is_one_operand(text) else f'({text})'}"
    changes = [Change(written, old.to(value[-1])), *[Change(new, read) for read in _reads(old.text, behind)]]
    help = f"a name is given once, so there is no {token.text}=: {new} = {old.text} {token.text} ..."
    return Proposal(help, tuple(changes), safe=True)


def _reads(name: str, tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens of a block that mean a value of that name, not an attribute or a method."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.type in OPENERS) - (token.type in CLOSERS)
        is_keyword = depth > 0 and i + 1 < len(tokens) and tokens[i + 1].type == "EQUAL"
        is_method = i > 0 and tokens[i - 1].type == "_DOT"
        if token.type == "NAME" and token.text == name and not is_keyword and not is_method:
            yield token


def _statement(start: str, tokens: Sequence[Token], place: int, token: Token) -> Help:
    texts = [other.text for other in tokens[:place]]
    if start == "dim" and token.type == "EQUAL" and len(texts) == 2:
        return proposal(f"bounds follow in: dim {texts[1]} in 1..64", "in", safe=True)
    if start != "statement" or not texts:
        return ""
    first = texts[0]
    if place == 1 and first in _DECLARES and token.type == "NAME":
        help = f"a name is given without {first}: {token.text} = ..."
        return proposal(help, "", _between(tokens[0], token), safe=True)
    if first in _BRANCHES or any(other.text in _BRANCHES for other in tokens if other.line == token.line):
        return _choice(tokens)
    if first in _LOOPS:
        return "there are no loops: an operation takes the axes that it works along"
    if place == 1 and token.type == "COLON":
        help = f"a name is given by =: {first} = ..."
        behind = tokens[place + 1] if place + 1 < len(tokens) else token
        return proposal(help, "=", token.to(behind), safe=True) if behind.type == "EQUAL" else help
    if place == 1 and token.type == "LPAR":
        return f"a statement is name = value, such as y = {first}(...)"
    return ""


def _choice(tokens: Sequence[Token]) -> Help:
    """The help for ``a if cond else b``, and for a statement that begins with if."""
    words = [i for i, token in enumerate(tokens) if token.type == "NAME" and token.text in ("if", "else")]
    if not words or tokens[words[0]].text != "if" or words[0] == 0:
        return _NO_IF
    middle = words[0]
    other = end_of(tokens, middle + 1, until="else")
    if other is None or tokens[other].text != "else":
        return _NO_IF
    first, last = _start(tokens, middle), end_of(tokens, other + 1)
    if last is None or first == middle or other == middle + 1 or last == other + 1:
        return _NO_IF
    yes, cond, no = tokens[first:middle], tokens[middle + 1 : other], tokens[other + 1 : last]
    written = f"where({text_at(cond)}, {text_at(yes)}, {text_at(no)})"
    return proposal(_NO_IF, written, yes[0].to(no[-1]), safe=True)


def _start(tokens: Sequence[Token], place: int) -> int:
    """The first token of the expression before a place."""
    depth = 0
    for i in range(place - 1, -1, -1):
        kind = tokens[i].type
        depth += (kind in CLOSERS) - (kind in OPENERS)
        if depth < 0 or (depth == 0 and kind in ("_COMMA", "EQUAL", "RETURN")):
            return i + 1
    return 0


def end_of(tokens: Sequence[Token], place: int, until: str = "") -> int | None:
    """The place behind the expression that begins at a place; None if the statement ends in a bracket."""
    depth = 0
    for i in range(place, len(tokens)):
        kind = tokens[i].type
        depth += (kind in OPENERS) - (kind in CLOSERS)
        if depth < 0 or (depth == 0 and (kind in ("_COMMA", "NL") or (until and tokens[i].text == until))):
            return i
    return None


def _operator(tokens: Sequence[Token], place: int, token: Token, before: Token | None) -> Help:
    previous = before.text if before is not None else ""
    word, at = (token, place) if token.text in (*_SIGNS, "not") else (before, place - 1)
    if word is not None and word.text in _SIGNS and word.type == "NAME":
        return _sign(tokens, at, word)
    if word is not None and word.text == "not" and (word is token or token.type in ("NAME", "NUMBER")):
        return _negated(tokens, at, f"write !{'a' if word is token else token.text}")
    if previous in ("&", "|") and token.text == previous and before is not None:
        safe = _binds_alike(tokens, previous)
        return proposal(f"write a {previous} b", previous, before.to(token), safe=safe)
    if previous in ("<", ">") and token.text == previous:
        return f"a shift is written a {'*' if previous == '<' else '//'} 2 ** n"
    if previous == "lambda":
        return "a block is written def f(x) { return ... }"
    return ""


def _sign(tokens: Sequence[Token], at: int, word: Token) -> Help:
    """The help for ``and``, ``or``, ``is`` and ``is not``: comparisons bind tighter than & and | here too."""
    behind = tokens[at + 1] if at + 1 < len(tokens) else None
    if word.text == "is" and behind is not None and behind.text == "not":
        return proposal("write a != b", "!=", word.to(behind), safe=_binds_alike(tokens, "!="))
    sign = _SIGNS[word.text]
    return proposal(f"write a {sign} b", sign, word, safe=_binds_alike(tokens, sign))


def _binds_alike(tokens: Sequence[Token], sign: str) -> bool:
    """True if the sign binds in the statement as the word does that it is written for.

    Python and C bind ``and`` looser than ``|``, ``^`` and comparisons, and ``or`` loosest of all; here ``|`` does.
    Beside an ``and`` an ``or`` waits until that is written otherwise.
    """
    signs: list[str] = []
    for token in tokens:
        if signs and token.text in ("&", "|") and signs[-1] == token.text:
            signs[-1] = "and" if token.text == "&" else "or"  # a doubled sign
        else:
            signs.append(token.text)
    apart = {"&": ("|", "^"), "|": ("and",)}.get(sign, ("&", "|", "^"))
    return not set(apart) & set(signs)


def _negated(tokens: Sequence[Token], at: int, help: str) -> Help:
    """The help for ``not``, which takes a whole comparison: the operand gets parentheses if it is one."""
    last = min(
        [i for i in (end_of(tokens, at + 1, until=word) for word in ("", "and", "or")) if i is not None], default=None
    )
    if last is None or last == at + 1:
        return help
    operand = tokens[at + 1 : last]
    signs = [token for token in operand if token.type in ("INFIX", "STAR", "MINUS", "AS", "PIPE")]
    pattern = f"!({text_at(operand)})" if signs else f"!{text_at(operand)}"
    return proposal(help, pattern, tokens[at].to(operand[-1]), safe=True)


def _bracket(tokens: Sequence[Token], place: int, token: Token, before: Token | None) -> Help:
    earlier = tokens[:place]
    opened: list[int] = []
    for i, other in enumerate(earlier):
        if other.type in OPENERS:
            opened.append(i)
        elif other.type in CLOSERS and opened:
            opened.pop()
    inside = opened[-1] if opened else -1
    is_call = inside > 0 and earlier[inside].type == "LPAR" and earlier[inside - 1].type == "NAME"
    if token.type == "_COMMA" and inside >= 0 and not is_call and earlier[inside].type == "LPAR":
        return _listed(tokens, inside, is_inner=len(opened) > 1)
    if token.type == "COLON" and is_call and before is not None and before.type == "NAME":
        help, behind = f"attributes are given by =: {before.text}=...", tokens[place + 1]
        return proposal(help, "=", _between(token, behind), safe=True) if behind.line == token.line else help
    if "DIM" in (token.type, before.type if before is not None else "") and opened:
        at = place if token.type == "DIM" else place - 1
        return _axis(tokens, at, earlier[inside - 1].text if is_call else "")
    if token.type in ("IF", "NAME") and token.text in _BRANCHES:
        return _choice(tokens)
    return ""


def _listed(tokens: Sequence[Token], opener: int, *, is_inner: bool) -> Help:
    """The help for several values in parentheses."""
    last = end_of(tokens, opener + 1)
    while last is not None and tokens[last].type == "_COMMA":
        last = end_of(tokens, last + 1)
    is_returned = opener > 0 and tokens[opener - 1].type == "RETURN"
    new = ("", "") if is_returned else ("[", "]")
    items = text_at(tokens[opener + 1 : last]) if last is not None and last > opener + 1 else "0, 1"
    help = "results have no parentheses: return a, b" if is_returned else f"a list is written in brackets: [{items}]"
    if last is None or tokens[last].type != "RPAR" or not (is_returned or is_inner):
        return help
    changes = (Change(new[0], tokens[opener].span), Change(new[1], tokens[last].span))
    return Proposal(help, changes, safe=True)


def _axis(tokens: Sequence[Token], at: int, callee: str) -> Help:
    """The help for ``dim=1``, whose name is at a place: the attribute by its name here."""
    from dmlc.ops import OPERATIONS
    from dmlc.ops.attributes import attribute_specs

    names = [spec.name for spec in attribute_specs(OPERATIONS[callee].attributes)] if callee in OPERATIONS else []
    meant = "axis" if "axis" in names and "axes" not in names else "axes"
    last = end_of(tokens, at + 2) if tokens[at + 1 : at + 2] and tokens[at + 1].type == "EQUAL" else None
    given = tokens[at + 2 : last] if last is not None else ()
    value = text_at(given) if given else "1"
    if value.startswith("("):
        value = f"[{value[1:-1]}]"
    help = f"the attribute is called {meant}: {meant}="
    help += value if meant == "axis" or value.startswith("[") else f"[{value}]"
    return proposal(help, f"{meant}={value}", tokens[at].to(given[-1]), safe=True) if given else help


def _between(first: Span, last: Span) -> Span:
    """The span from a token up to another."""
    return Span(first.source, first.line, first.column, last.line, last.column)


def text_at(tokens: Sequence[Token]) -> str:
    return text_of(tokens[0].to(tokens[-1]))
