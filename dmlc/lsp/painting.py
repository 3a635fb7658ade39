"""Colors and hints inside the text: semantic tokens, inlay hints with types."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from dmlc.lsp.documents import Document
from dmlc.lsp.outline import Outline, Role
from dmlc.lsp.pages import type_of

_Type = lsp.SemanticTokenTypes
_Modifier = lsp.SemanticTokenModifiers
#: The color of each role, and its modifiers.
_COLORS: dict[Role, tuple[_Type, tuple[_Modifier, ...]]] = {
    Role.MODEL: (_Type.Class, ()),
    Role.DEF: (_Type.Function, ()),
    Role.USED: (_Type.Function, ()),
    Role.OPERATION: (_Type.Function, (_Modifier.DefaultLibrary,)),
    Role.ONNX: (_Type.Namespace, ()),
    Role.INPUT: (_Type.Parameter, ()),
    Role.RESULT: (_Type.Property, ()),
    Role.PARAMETER: (_Type.Parameter, ()),
    Role.VALUE: (_Type.Variable, ()),
    Role.CONST: (_Type.Variable, (_Modifier.Readonly,)),
    Role.DIM: (_Type.TypeParameter, ()),
    Role.ATTRIBUTE: (_Type.Property, ()),
    Role.DTYPE: (_Type.Type, (_Modifier.DefaultLibrary,)),
    Role.WORD: (_Type.EnumMember, (_Modifier.DefaultLibrary,)),
    Role.LITERAL: (_Type.Keyword, ()),
}
_SIGNS = {"STRING": _Type.String, "NUMBER": _Type.Number, "COMMENT": _Type.Comment}
_TYPES = list(dict.fromkeys([color for color, _ in _COLORS.values()] + [*_SIGNS.values(), _Type.Keyword]))
_MODIFIERS = [_Modifier.Declaration, _Modifier.Readonly, _Modifier.DefaultLibrary]
LEGEND = lsp.SemanticTokensLegend([each.value for each in _TYPES], [each.value for each in _MODIFIERS])


def semantic_tokens(document: Document, outline: Outline) -> list[int]:
    """The colors of the whole text, five numbers a token, as the protocol has them."""
    painted: list[tuple[int, int, int, int, int]] = []
    roles = {id(found.token): found for found in outline.occurrences}
    for token in (*outline.tokens, *outline.comments):
        found = roles.get(id(token))
        bits: tuple[_Modifier, ...] = ()
        kind = _SIGNS.get(token.type)
        if found is not None and found.role in _COLORS:
            kind, bits = _COLORS[found.role]
            is_declared = found.symbol is not None and found.symbol.token is token
            bits = (*bits, _Modifier.Declaration) if is_declared else bits
        elif token.text.isalpha() and token.type == token.text.upper():
            kind = _Type.Keyword
        if kind is not None:
            place = document.text.position(token.line, token.column)
            mask = sum(1 << _MODIFIERS.index(bit) for bit in bits)
            length = document.text.length(token.text)
            painted.append((place.line, place.character, length, _TYPES.index(kind), mask))
    return _relative(sorted(painted))


def _relative(painted: list[tuple[int, int, int, int, int]]) -> list[int]:
    out: list[int] = []
    last_line = last_start = 0
    for line, start, *rest in painted:
        out += [line - last_line, start - last_start if line == last_line else start, *rest]
        last_line, last_start = line, start
    return out


def inlay_hints(document: Document, outline: Outline, first: int, last: int) -> Iterator[lsp.InlayHint]:
    """The types of the values that statements name, and of results without a type, in some lines."""
    for found in outline.occurrences:
        token, symbol = found.token, found.symbol
        is_named = symbol is not None and symbol.token is token and found.role in (Role.VALUE, Role.RESULT)
        if symbol is None or not is_named or not first <= token.line <= last:
            continue
        behind = token.source.line(token.line)[token.end_column - 1 :].lstrip()
        type = type_of(document, symbol)
        if type and not behind.startswith(":"):
            place = document.text.position(token.end_line, token.end_column)
            yield lsp.InlayHint(place, f": {type}", kind=lsp.InlayHintKind.Type)
