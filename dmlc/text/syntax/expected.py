"""Messages of syntax errors: the token found, the tokens expected, and help with common slips."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dmlc.diagnostics import Change, Diagnostic, Help, Label, Proposal, proposal, writing
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.text.syntax.foreign import foreign
from dmlc.text.syntax.tokens import Token

_OPERATORS = {"INFIX", "STAR", "MINUS", "PIPE", "AS"}
_VALUES = {"NAME", "NUMBER", "STRING", "LPAR", "LSQB", "MINUS", "BANG"}
_SHOWN = {
    "NAME": "a name", "NUMBER": "a number", "STRING": "a string", "NL": "the end of the line",
    "$END": "the end of the file", "ARROW": '"->"', "RANGE": '".."', "EQUAL": '"="', "COLON": '":"',
    "_COMMA": '","', "_DOT": '"."', "STAR": '"*"', "LPAR": '"("', "RPAR": '")"', "LSQB": '"["', "RSQB": '"]"',
    "ELLIPSIS": '"..."', "LBRACE": '"{"', "RBRACE": '"}"', "PIPE": '"|>"', "MINUS": '"-"',
    "BANG": '"!"', "INFIX": "an operator",
}  # fmt: skip
#: Signs that begin comments in other languages.
COMMENT_SIGNS = ("//", "/", "--", "-")
_KEYWORDS = ("DIM", "IN", "CONST", "DEF", "MODEL", "RETURN", "AS")


def shown(token: Token) -> str:
    """A token in a message."""
    if token.type in ("NL", "$END"):
        return _SHOWN[token.type]
    text = token.text if len(token.text) <= 40 else token.text[:40] + "..."
    return text if text[0].isalnum() or text[0] in '_`"' else f'"{text}"'


def unexpected(
    start: str, tokens: Sequence[Token], token: Token, accepts: set[str], behind: Sequence[Token] = ()
) -> Diagnostic:
    """The diagnostic for a token of ``start`` that cannot stand where it stands; ``accepts`` are terminals that can.

    ``behind`` is the rest of the block.
    """
    place = next((i for i, other in enumerate(tokens) if other is token), len(tokens))
    before = tokens[place - 1] if place else None
    if start == "dim" and before is not None:
        bounds = _bounds(token, before, accepts)
        if bounds is not None:
            return bounds
    message = f"expected {_list(accepts)}, found {shown(token)}"
    help = foreign(start, tokens, place, token, accepts, behind) or _help(start, tokens, place, token, accepts)
    return Diagnostic.of(codes.UNEXPECTED, message, Label(token.span, "here"), help=help)


def _list(accepts: set[str]) -> str:
    names = set(accepts)
    out = []
    if {"NAME", "NUMBER", "LSQB"} <= names:
        out.append("a value")
        names -= _VALUES
    if {"INFIX", "PIPE"} <= names:
        out.append("an operator")
        names -= _OPERATORS | {"LPAR", "LSQB", "_DOT"}
    out += sorted((_SHOWN.get(n, n.lower()) for n in names), key=lambda text: (text[0] == '"', text))
    return out[0] if len(out) == 1 else f"{', '.join(out[:-1])} or {out[-1]}" if out else "nothing"


def commented(token: Token) -> Help:
    """The help for a sign that begins comments elsewhere; empty for other tokens."""
    if token.text not in COMMENT_SIGNS:
        return ""
    help = "a comment begins with #"
    return proposal(help, "#", safe=True) if token.text == "//" else help


def _use_help(token: Token, accepts: set[str]) -> Help:
    if accepts == {"STD", "STRING"} and token.type == "NAME":
        written = f'"{token.text}.dml"'
        return proposal(f"the name of a file is in quotes: from {written}", written)
    return 'write use a, b as c from "file.dml", or use a from std'


def _bounds(token: Token, before: Token, accepts: set[str]) -> Diagnostic | None:
    """A ``dim`` line with a bound left out."""
    help: Help
    if before.type == "RANGE" and token.type == "NL":
        message, help = "the upper bound is missing", "a dim without bounds is 1 or more; write both, such as 1..64"
    elif before.type == "IN" and token.type == "RANGE":
        message, help = "the lower bound is missing", "write both bounds, such as 1..64"
    elif "RANGE" in accepts and token.type == "NL":
        message, help = "a dim needs two bounds", "write lo..hi, such as 1..64"
        if before.text.isdecimal():
            help = writing(f"1..{before.text}", before)
    else:
        return None
    return Diagnostic.of(codes.OPEN_RANGE, message, Label(token.span, "here"), help=help)


def _quoted(keyword: Token) -> Help:
    written = f"`{keyword.text}`"
    return proposal(f"{keyword.text} is a keyword; as a name it is quoted: {written}", written, keyword)


def _returned(end: Token) -> str:
    """The help for a lone ``return``: the names that the statement before it gives."""
    lines = reversed(end.source.lines[: end.line - 1])
    given = next((found[1] for line in lines if (found := re.match(r"\s*([\w`][\w`, ]*?)\s*=", line))), "")
    return f"write the results behind it: return {given}" if given else "write the results behind it"


def _help(start: str, tokens: Sequence[Token], place: int, token: Token, accepts: set[str]) -> Help:
    before = tokens[place - 1] if place else None
    kind, previous = token.type, before.type if before else ""
    after = tokens[place + 1].type if place + 1 < len(tokens) else ""
    if kind == "_DOT" and before and before.text.isdecimal() and after != "NAME":
        return proposal(f"digits are on both sides of the point: {before.text}.0", ".0", safe=True)
    if previous == "RETURN" and kind == "NL":
        return _returned(token)
    if kind in _KEYWORDS and "NAME" in accepts:
        return _quoted(token)
    if previous in _KEYWORDS and kind == "EQUAL":
        return _quoted(before) if before else ""
    if start == "use":
        return _use_help(token, accepts)
    if start in ("model_head", "def_head"):
        if kind == "NL" and accepts == {"LBRACE"}:
            return "put { at the end of this line"
        if kind == "COLON" and "LBRACE" in accepts:
            return "a block is in braces: { return ... }"
        if accepts == {"NAME"} and kind == "LPAR":
            return f"it needs a name: {previous.lower()} name(...)"
        if accepts == {"RANGE"}:
            return "a range has two bounds: in 0.0..1.0"
    if start == "dim" and accepts == {"IN"}:
        return f"bounds follow in: dim {before.text if before else 'N'} in 1..64"
    if kind == "EQUAL" and "INFIX" in accepts:
        return proposal("== compares; a name is given at the start of a line: name = value", "==")
    if "ARROW" in accepts:
        return "a model names its results after its inputs: -> (y)"
    if previous == "ARROW" and "LPAR" in accepts:
        last = tokens[-2] if tokens[-1].type in ("LBRACE", "NL") else tokens[-1]
        change = Change("({})", token.span.to(last.span), keeps=True)
        return Proposal("the results are in parentheses: -> (y)", (change,), safe=True)
    if accepts == {"LSQB"}:
        return "a type has its sizes in brackets; a scalar is f32[]"
    if accepts == {"COLON"} and start == "model_head":
        return f"each input has a type, such as {before.text if before else 'x'}: f32[N, 3]"
    if start == "statement" and accepts <= {"EQUAL", "_COMMA"}:
        return "a statement is name = value, or return ..."
    if before is None and commented(token):
        return commented(token)
    if accepts == {"COLON"} and start == "const":
        return "a const has a type, such as const w: f32[4] = ..."
    if kind == "ARROW" and start == "def_head":
        return "a def does not name its results: its block returns them"
    if kind == "COLON" and start == "def_head":
        return "the parameters of a def have no types: it takes any dtype and shape"
    if kind == "_COMMA" and "NL" in accepts:
        return "one value follows =; several names take the results of one call"
    if kind == "LBRACE" and "NL" in accepts:
        return "only model and def have a block"
    if kind == "LSQB" and "INFIX" in accepts:
        return "an index follows a name, a call or a bracket: (x as f32)[0]"
    if kind in ("NAME", "NUMBER") and "_COMMA" in accepts:
        return proposal("a comma may be missing", ",", before.after("_COMMA").span) if before else ""
    if kind in ("NAME", "NUMBER") and "NL" in accepts:
        return "one statement a line"
    return ""
