"""Messages of syntax errors: the token found, the tokens expected, and help with common slips."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.diagnostics import Diagnostic, Label
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.text.syntax.habits import attribute_read, habit
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
#: How comments begin elsewhere.
COMMENT_SIGNS = ("//", "/", "--", "-")
_KEYWORDS = ("DIM", "IN", "CONST", "DEF", "MODEL", "RETURN", "AS")


def shown(token: Token) -> str:
    """A token in a message."""
    if token.type in ("NL", "$END"):
        return _SHOWN[token.type]
    text = token.text if len(token.text) <= 40 else token.text[:40] + "..."
    return text if text[0].isalnum() or text[0] in '_`"' else f'"{text}"'


def unexpected(start: str, tokens: Sequence[Token], token: Token, accepts: set[str]) -> Diagnostic:
    """The diagnostic for a token of ``start`` that cannot stand where it stands; ``accepts`` are terminals that can."""
    before = _before(tokens, token)
    if start == "dim" and before is not None:
        bounds = _bounds(token, before, accepts)
        if bounds is not None:
            return bounds
    message = f"expected {_list(accepts)}, found {shown(token)}"
    return Diagnostic(
        codes.UNEXPECTED, message, (Label(token.span, "here"),), _help(start, tokens, token, before, accepts)
    )


def _before(tokens: Sequence[Token], token: Token) -> Token | None:
    before = None
    for other in tokens:
        if other is token:
            return before
        before = other
    return before


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


def _use_help(token: Token, accepts: set[str]) -> str:
    if accepts == {"STD", "STRING"} and token.type == "NAME":
        return f'the name of a file stands in quotes: from "{token.text}.dml"'
    return 'write use a, b as c from "file.dml", or use a from std'


def _bounds(token: Token, before: Token, accepts: set[str]) -> Diagnostic | None:
    """A ``dim`` line with a bound left out."""
    if before.type == "RANGE" and token.type == "NL":
        message, help = "the upper bound is missing", "a dim without bounds is 1 or more; write both, such as 1..64"
    elif before.type == "IN" and token.type == "RANGE":
        message, help = "the lower bound is missing", "write both bounds, such as 1..64"
    elif "RANGE" in accepts and token.type == "NL":
        message, help = "a dim needs two bounds", "write lo..hi, such as 1..64"
    else:
        return None
    return Diagnostic(codes.OPEN_RANGE, message, (Label(token.span, "here"),), help)


def _attribute_help(x: str, name: str) -> str:
    from dmlc.ops.habits import attribute_instead

    instead = attribute_instead(name, x)
    return f"{x} has no attributes; write {instead}" if instead else f"{x} has no attributes"


def _help(start: str, tokens: Sequence[Token], token: Token, before: Token | None, accepts: set[str]) -> str:
    kind, previous = token.type, before.type if before else ""
    found = habit(start, tokens, token, before)
    if found:
        return found
    read = attribute_read(tokens[: tokens.index(before) + 1]) if before is not None and "LPAR" in accepts else None
    if read is not None and "_DOT" in accepts:
        return _attribute_help(*read)
    if kind in _KEYWORDS and "NAME" in accepts:
        return f"{token.text} is a keyword; as a name it is quoted: `{token.text}`"
    if previous in _KEYWORDS and kind == "EQUAL":
        return f"{before.text} is a keyword; as a name it is quoted: `{before.text}`" if before else ""
    if start == "use":
        return _use_help(token, accepts)
    if kind == "EQUAL" and "INFIX" in accepts:
        return "== compares; a name is given at the start of a line: name = value"
    if "ARROW" in accepts:
        return "a model names its results after its inputs: -> (y)"
    if previous == "ARROW" and "LPAR" in accepts:
        return "the results stand in parentheses: -> (y)"
    if accepts == {"LSQB"}:
        return "a type has its sizes in brackets; a scalar is f32[]"
    if accepts == {"COLON"} and start == "model_head":
        return "each input has a type, such as x: f32[N, 3]"
    if start == "statement" and accepts <= {"EQUAL", "_COMMA"}:
        return "a statement is name = value, or return ..."
    if before is None and token.text in COMMENT_SIGNS:
        return "a comment begins with #"
    if accepts == {"COLON"} and start == "const":
        return "a const has a type, such as const w: f32[4] = ..."
    if kind == "COLON" and start == "def_head":
        return "the parameters of a def have no types: it takes any dtype and shape"
    if kind == "_COMMA" and "NL" in accepts:
        return "one value stands behind =; several names take the results of one call"
    if kind == "LBRACE" and "NL" in accepts:
        return "only model and def have a block"
    if kind == "LSQB" and "INFIX" in accepts:
        return "an index follows a name, a call or a bracket: (x as f32)[0]"
    if kind in ("NAME", "NUMBER") and "_COMMA" in accepts:
        return "a comma may be missing"
    if kind in ("NAME", "NUMBER") and "NL" in accepts:
        return "one statement a line"
    return ""
