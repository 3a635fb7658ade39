"""Help for attributes and methods as other languages write them: ``x.T``, ``np.inf``, ``(x > 0).any()``."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.diagnostics import Change, Help, Proposal, proposal
from dmlc.ops.habits import MODULES, NEW_AXIS, NO_METHODS, attribute_instead, call_instead, phrase_named
from dmlc.text.syntax.habits import end_of, text_at
from dmlc.text.syntax.tokens import CLOSERS, OPENERS, Token

#: Suffixes of the files that a program loads or uses.
_SUFFIXES = frozenset(("npy", "npz", "dml", "onnx"))


def member_help(tokens: Sequence[Token], token: Token, before: Token | None, accepts: set[str]) -> Help:
    """The help for a name behind a point, where ``token`` fits nothing that may follow; empty elsewhere."""
    if before is None:
        return ""
    place = tokens.index(before)
    read = [other.type for other in tokens[max(place - 2, 0) : place + 1]]
    if "LPAR" in accepts and "_DOT" in accepts and read == ["NAME", "_DOT", "NAME"]:
        return _attribute(tokens[place - 2 : place - 1], place, tokens)
    behind = [other.type for other in tokens[place + 2 : place + 4]]
    if token.type != "_DOT" or before.type not in CLOSERS or behind[:1] != ["NAME"]:
        return ""
    owner = _operand(tokens[: place + 1])
    if behind[1:] == ["LPAR"]:
        return _method(owner, place + 2, tokens)
    return _attribute(owner, place + 2, tokens)


def _operand(tokens: Sequence[Token]) -> Sequence[Token]:
    """The call, index or parentheses at the end of the tokens."""
    start = _opened(tokens, len(tokens) - 1)
    while start > 0 and tokens[start - 1].type in CLOSERS:
        start = _opened(tokens, start - 1)
    if start > 0 and tokens[start - 1].type == "NAME":
        start -= 1
    while start >= 2 and tokens[start - 1].type == "_DOT":
        start -= 2
    return tokens[start:]


def _opened(tokens: Sequence[Token], closer: int) -> int:
    """The place of the bracket that another closes."""
    depth = 0
    for i in range(closer, 0, -1):
        depth += (tokens[i].type in CLOSERS) - (tokens[i].type in OPENERS)
        if depth == 0:
            return i
    return 0


def _bare(owner: Sequence[Token]) -> str:
    """The text of an operand between brackets of its own, as an argument of a call."""
    is_parenthesized = owner[0].type == "LPAR" and end_of(owner, 1) == len(owner) - 1 > 1
    return text_at(owner[1:-1]) if is_parenthesized else text_at(owner)


def _method(owner: Sequence[Token], place: int, tokens: Sequence[Token]) -> Help:
    """The help for ``(x > 0).any()``: the call of the operation."""
    operands, keywords = [_bare(owner)], {}
    last: int | None = place + 1
    while last is not None and tokens[last].type not in CLOSERS:
        start = last + 1
        last = end_of(tokens, start)
        argument = tokens[start:last]
        if [other.type for other in argument[:2]] == ["NAME", "EQUAL"] and len(argument) > 2:
            keywords[argument[0].text] = text_at(argument[2:])
        elif argument:
            operands.append(text_at(argument))
    if last is None:
        return ""
    found = call_instead(tokens[place].text, operands, keywords, is_foreign=True)
    if phrase := "" if found.text else phrase_named(tokens[place].text, operands[0]):
        return f"write {phrase}"
    new = f"({found.text})" if " as " in found.text else found.text
    change = Change(new, owner[0].to(tokens[last]))
    return Proposal(f"write {found.help}", (change,), found.is_same) if found.text else NO_METHODS


def _attribute(owner: Sequence[Token], place: int, tokens: Sequence[Token]) -> Help:
    """The help for ``x.T``, ``x.shape[0]`` and ``np.inf``."""
    name, x = tokens[place], text_at(owner)
    if name.text == "newaxis":
        return NEW_AXIS
    if name.text in _SUFFIXES:
        path = f'"{x}.{name.text}"'
        return proposal(f"the name of a file is in quotes: {path}", path, owner[0].to(name), safe=True)
    instead = attribute_instead(name.text, _bare(owner))
    if not instead:
        return f"{x} has no attributes"
    help, span = f"{x} has no attributes; write {instead}", owner[0].to(name)
    if x in MODULES:
        return proposal(f"write {instead}", instead, span, safe=True)
    if name.text == "shape":
        behind = tokens[place + 1 :]
        if [token.type for token in behind[:3]] != ["LSQB", "NUMBER", "RSQB"]:
            return help
        return proposal(help, f"size({_bare(owner)}, axis={behind[1].text})", span.to(behind[2].span), safe=True)
    is_whole = instead.endswith(f"({_bare(owner)})")
    return proposal(help, instead, span, safe=name.text != "mT") if is_whole else help
