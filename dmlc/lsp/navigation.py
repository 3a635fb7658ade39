"""Definitions, references, renames, symbols and folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from dmlc.diagnostics import DmlcError, Source, Span
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.ir.plain_file import holds_model
from dmlc.lsp.documents import Document
from dmlc.lsp.outline import Outline, Role, Symbol, name_of
from dmlc.lsp.pages import type_of
from dmlc.lsp.positions import Text
from dmlc.text.elaborate.files import Folders, LoadError, read_file
from dmlc.text.elaborate.scope import quoted
from dmlc.text.standard_library import std_blocks, std_path
from dmlc.text.syntax.parser import decode, lex
from dmlc.text.syntax.tokens import Token
from dmlc.text.syntax.transformer import string

_Kind = lsp.SymbolKind
_KINDS = {
    Role.MODEL: _Kind.Class,
    Role.DEF: _Kind.Function,
    Role.CONST: _Kind.Constant,
    Role.DIM: _Kind.TypeParameter,
    Role.INPUT: _Kind.Field,
    Role.RESULT: _Kind.Property,
    Role.USED: _Kind.Module,
}


def definition(
    document: Document, outline: Outline, line: int, column: int, include: Sequence[Path]
) -> list[lsp.Location]:
    """The place where a name is declared: through a ``use`` line, in the file that has it."""
    found = outline.at(line, column)
    if found is None:
        return []
    if found.role is Role.USED:
        name = found.symbol.name if found.symbol is not None else name_of(found.token)
        return _used(document, outline, name, include)
    return [] if found.symbol is None else [lsp.Location(document.uri, document.text.range(found.symbol.token))]


def _used(document: Document, outline: Outline, name: str, include: Sequence[Path]) -> list[lsp.Location]:
    """The place of a def or const in the file of the ``use`` line that brings ``name``."""
    for piece in outline.pieces:
        tokens = outline.tokens[piece.start : piece.end]
        names = [name_of(token) for token in tokens if token.type == "NAME"]
        if tokens[0].type != "USE" or name not in names:
            continue
        there = _name_there(tokens, name)
        file = next((token for token in tokens if token.type in ("STRING", "STD")), None)
        path = None if file is None else _path(document, file, there, include)
        if path is not None:
            return _in_file(document, path, there)
    return []


def _name_there(tokens: Sequence[Token], name: str) -> str:
    """The name in the other file of a name that a ``use`` line brings."""
    for before, word, token in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word.type == "AS" and token.type == "NAME" and name_of(token) == name:
            return name_of(before)
    return name


def _path(document: Document, file: Token, name: str, include: Sequence[Path]) -> Path | None:
    if file.type == "STD":
        return std_path(name) if name in std_blocks() else None
    folders = Folders(Path(document.name).parent, tuple(include))
    try:
        return folders.find(string(file).text, "use")
    except LoadError:
        return None


def _in_file(document: Document, path: Path, name: str) -> list[lsp.Location]:
    try:
        data = read_file(path, path.name, DEFAULTS.text_bytes)
        uri = from_fs_path(str(path)) or ""
        if holds_model(data, path.name):
            return [lsp.Location(uri, lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))]
        lexed = lex(decode(str(path), data))
    except (LoadError, DmlcError):
        return []
    tables = Outline(lexed.tokens).tables
    symbol = tables.callables.get(name) or tables.consts.get(name)
    text = Text(str(path), "\n".join(lexed.source.lines), document.text.encoding)
    return [] if symbol is None else [lsp.Location(uri, text.range(symbol.token))]


# --- references


def references(document: Document, outline: Outline, line: int, column: int, *, declared: bool) -> list[lsp.Range]:
    """All places of this file where the thing is named that stands at a place."""
    found = outline.at(line, column)
    if found is None or found.symbol is None:
        return []
    symbol = found.symbol
    tokens = [each.token for each in outline.of(symbol) if declared or each.token is not symbol.token]
    return [document.text.range(token) for token in tokens]


def renamed(document: Document, outline: Outline, line: int, column: int, name: str) -> list[lsp.TextEdit]:
    """The edits that give a thing another name; a name that is brought from a file gets an alias.

    Raises ``ValueError`` for a text that cannot be a name, and for a name that a visible thing has.
    """
    found = outline.at(line, column)
    if found is None or found.symbol is None:
        return []
    bare = name[1:-1] if name[:1] == "`" == name[-1:] and len(name) > 2 else name
    new = quoted(bare)
    try:
        kinds = [token.type for token in lex(Source("name", new)).tokens]
    except DmlcError:
        kinds = []
    if kinds != ["NAME", "NL"]:
        raise ValueError(f"{name} is not a name")
    _check_is_free(outline, found.symbol, bare)
    edits = []
    for each in outline.of(found.symbol):
        is_declared = each.token is found.symbol.token and found.symbol.role is Role.USED
        has_alias = is_declared and _token_before(outline, each.token) == "AS"
        text = f"{each.token.text} as {new}" if is_declared and not has_alias else new
        edits.append(lsp.TextEdit(document.text.range(each.token), text))
    return edits


def _token_before(outline: Outline, token: Token) -> str:
    place = next(i for i, other in enumerate(outline.tokens) if other is token)
    return outline.tokens[place - 1].type if place else ""


def _check_is_free(outline: Outline, symbol: Symbol, name: str) -> None:
    """Raises ``ValueError`` where another thing that is seen beside the symbol has the name."""
    tables = outline.tables
    seen = [table.get(name) for table in (tables.consts, tables.dims, tables.callables, tables.models)]
    blocks = [symbol.block] if symbol.block is not None else outline.blocks
    seen += [block.names.get(name) for block in blocks]
    if any(other is not None and other is not symbol for other in seen):
        raise ValueError(f"{name} names another thing")


# --- the whole document


def symbols(document: Document, outline: Outline) -> list[lsp.DocumentSymbol]:
    """The things that a document declares, values below their models and defs."""
    tables = outline.tables
    loose = [*tables.dims.values(), *tables.consts.values(), *tables.callables.values()]
    loose = [each for each in dict.fromkeys(loose) if each.role is not Role.DEF]
    out = [_symbol(document, each, each.token, ()) for each in loose]
    for block in outline.blocks:
        head = block.head[0]
        names = {
            id(each.symbol): each.symbol for each in outline.occurrences if each.symbol and each.symbol.block is block
        }
        inner = [_symbol(document, each, each.token, ()) for each in names.values()]
        last = Span(head.source, head.line, head.column, block.last_line, len(head.source.line(block.last_line)) + 1)
        out.append(_symbol(document, block.symbol, last, inner))
    return sorted(out, key=lambda each: (each.range.start.line, each.range.start.character))


def _symbol(document: Document, symbol: Symbol, span: Span, inner: Sequence[lsp.DocumentSymbol]) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        name=symbol.name or "_",
        kind=_KINDS.get(symbol.role, _Kind.Variable),
        range=document.text.range(span),
        selection_range=document.text.range(symbol.token),
        detail=type_of(document, symbol) or None,
        children=list(inner),
    )


def folds(outline: Outline) -> Iterator[lsp.FoldingRange]:
    """The blocks, the brackets over several lines, and the comments over several lines."""
    for block in outline.blocks:
        yield from _fold(block.head[0].line, block.last_line - 1)
    waiting: list[Token] = []
    for token in outline.tokens:
        if token.type in ("LPAR", "LSQB"):
            waiting.append(token)
        elif token.type in ("RPAR", "RSQB") and waiting:
            yield from _fold(waiting.pop().line, token.line - 1)
    first = last = -1
    for line in [*[token.line for token in outline.comments], -1]:
        if line != last + 1:
            yield from _fold(first, last, lsp.FoldingRangeKind.Comment)
            first = line
        last = line


def _fold(first: int, last: int, kind: lsp.FoldingRangeKind | None = None) -> Iterator[lsp.FoldingRange]:
    if 0 < first < last:
        yield lsp.FoldingRange(first - 1, last - 1, kind=kind)
