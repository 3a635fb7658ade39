"""Completion and signature help: the words that may stand at the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from lsprotocol import types as lsp

from dmlc.ir import DTYPE_BY_NAME
from dmlc.lsp.documents import Document, Window
from dmlc.lsp.outline import OTHER_CALLS, Opened, Role, Symbol, specs_of, words_of
from dmlc.lsp.pages import attribute_line, def_head, onnx_operators, operation_page, type_of
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import FlagKind
from dmlc.ops.pages import describe
from dmlc.ops.size_of import SIZE
from dmlc.text.elaborate.scope import LITERALS, quoted
from dmlc.text.standard_library import std_blocks, std_page

_Kind = lsp.CompletionItemKind
_KINDS = {
    Role.DEF: _Kind.Function,
    Role.USED: _Kind.Function,
    Role.CONST: _Kind.Constant,
    Role.DIM: _Kind.TypeParameter,
    Role.INPUT: _Kind.Field,
}
#: More values of a block are listed as the letters of one are typed.
_MOST_VALUES = 100
#: The lines that begin a file's items, as snippets.
ITEMS = {
    "dim": "dim ${1:N} in ${2:1}..${3:64}",
    "const": "const ${1:w}: ${2:f32}[${3:4}] = $0",
    "def": "def ${1:name}(${2:x}) {\n    return $0\n}",
    "model": "model ${1:name}(\n    ${2:x}: ${3:f32}[${4:N}],\n) -> (${5:y}) {\n    $0\n    return ${5:y}\n}",
    "use": "use ${1:name} from ${2:std}",
}


def completions(document: Document, line: int, column: int) -> lsp.CompletionList:
    """The words that may stand at a place of a document. Of many values the last ones that hold the typed letters."""
    start = column
    text = document.text.source.line(line)
    while start > 1 and (text[start - 2].isalnum() or text[start - 2] in "_`"):
        start -= 1
    if "#" in text[: start - 1] and '"' not in text[: start - 1]:
        return lsp.CompletionList(False, [])
    completer = _Completer(document, document.around(line, start, to_cursor=True), line, text[start - 1 : column - 1])
    items = list(completer.items())
    return lsp.CompletionList(completer.is_cut, items)


class _Completer:
    def __init__(self, document: Document, window: Window, line: int, typed: str) -> None:
        self.document = document
        self.typed = typed.strip("`").lower()
        self.is_cut = False
        self.line = line
        self.window = window
        self.outline = window.outline
        self.tokens = [token for token in self.outline.tokens if token.text]
        piece = self.outline.pieces[-1] if self.outline.pieces else None
        is_done = piece is None or self._is_done()
        self.piece = [] if is_done or piece is None else self.outline.tokens[piece.start : piece.end]
        self.opened = self.outline.open[-1] if self.outline.open and not is_done else None

    def _is_done(self) -> bool:
        """True at the beginning of a statement: behind a brace, or on a new line outside of brackets."""
        last = self.outline.tokens[-1]
        is_new_line = last.type == "NL" and not self.outline.open and last.line != self.line
        return last.type in ("LBRACE", "RBRACE") or is_new_line

    def items(self) -> Iterator[lsp.CompletionItem]:
        before = self.tokens[-1].type if self.tokens else ""
        first = self.piece[0].type if self.piece else ""
        if not self.piece and self.window.block is None:
            yield from _snippets()
        elif not self.piece:
            yield _item("return", _Kind.Keyword)
        elif first == "USE":
            yield from map(_std_item, std_blocks())
        elif before == "_DOT":
            yield from [_item(name, _Kind.Function, doc=doc) for name, doc in onnx_operators().items()]
        elif before == "AS" or (before == "COLON" and first in ("MODEL", "CONST")):
            yield from _dtypes()
        elif first == "MODEL" or self._is_type():
            yield from self._named(self.outline.tables.dims.values())
        elif before == "PIPE":
            yield from self._callables()
        else:
            yield from self._expression(before, self.opened)

    def _is_type(self) -> bool:
        return self.opened is not None and self.piece[0].type == "CONST" and "EQUAL" not in [t.type for t in self.piece]

    def _expression(self, before: str, opened: Opened | None) -> Iterator[lsp.CompletionItem]:
        callee = opened.callee if opened is not None else ""
        if opened is not None and opened.is_call and before in ("LPAR", "_COMMA"):
            yield from self._attributes(callee)
        if opened is not None and opened.keyword and before == "EQUAL":
            spec = specs_of(callee).get(opened.keyword)
            words = words_of(callee, opened.keyword)
            if words or (spec is not None and isinstance(spec.kind, FlagKind)):
                yield from [_item(word, _Kind.EnumMember) for word in words or ("true", "false")]
                return
        tables, block = self.outline.tables, self.window.block
        if block is not None:
            yield from self._named(self._last(block.names))
        yield from self._named(tables.dims.values())
        yield from self._named(each for each in tables.consts.values() if each.name not in tables.callables)
        yield from self._callables()
        yield from [_item(name, _Kind.Keyword) for name in LITERALS]

    def _last(self, names: dict[str, Symbol]) -> Iterable[Symbol]:
        """The values that are given before the statement."""
        line = self.piece[0].line
        given = [each for each in names.values() if each.token.line < line]
        if len(given) <= _MOST_VALUES:
            return given
        self.is_cut = True
        return [each for each in given if self.typed in each.name.lower()][-_MOST_VALUES:]

    def _attributes(self, callee: str) -> Iterator[lsp.CompletionItem]:
        for name in specs_of(callee):
            line = attribute_line(callee, name)
            assert line is not None
            yield _item(f"{name}=", _Kind.Property, detail=line.default or "required", doc=line.doc, rank="0")
        block = self.outline.tables.blocks.get(callee)
        for name in sorted(block.keywords) if block is not None else ():
            yield _item(f"{quoted(name)}=", _Kind.Property, rank="0")

    def _named(self, symbols: Iterable[Symbol]) -> Iterator[lsp.CompletionItem]:
        for symbol in symbols:
            kind = _KINDS.get(symbol.role, _Kind.Variable)
            yield _item(quoted(symbol.name), kind, detail=type_of(self.document, symbol) or symbol.role.value, rank="1")

    def _callables(self) -> Iterator[lsp.CompletionItem]:
        yield from self._named(self.outline.tables.callables.values())
        yield from operations()
        yield _item(SIZE, _Kind.Function, detail=OTHER_CALLS[SIZE], rank="2")


@cache
def operations() -> tuple[lsp.CompletionItem, ...]:
    """The items of all operations; the first call takes a while."""
    pages = [describe(op) for op in OPERATIONS.values()]
    return tuple([_item(page.name, _Kind.Function, detail=page.signature, rank="2") for page in pages])


def with_page(item: lsp.CompletionItem) -> lsp.CompletionItem:
    """The item with the page of its operation: the list of all would be long."""
    if item.kind == _Kind.Function and item.label in OPERATIONS and item.documentation is None:
        page = operation_page(describe(OPERATIONS[item.label]))
        item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, page)
    return item


def _dtypes() -> Iterator[lsp.CompletionItem]:
    return (_item(dtype.name, _Kind.Struct, detail=dtype.long_name) for dtype in DTYPE_BY_NAME.values())


def _std_item(name: str) -> lsp.CompletionItem:
    page = std_page(name)
    return _item(name, _Kind.Function, detail=page.signature, doc=page.summary)


def _snippets() -> Iterator[lsp.CompletionItem]:
    for word, snippet in ITEMS.items():
        yield lsp.CompletionItem(
            word, kind=_Kind.Keyword, insert_text=snippet, insert_text_format=lsp.InsertTextFormat.Snippet
        )


def _item(label: str, kind: _Kind, *, detail: str = "", doc: str = "", rank: str = "3") -> lsp.CompletionItem:
    page = lsp.MarkupContent(lsp.MarkupKind.Markdown, doc) if doc else None
    return lsp.CompletionItem(label, kind=kind, detail=detail or None, documentation=page, sort_text=rank + label)


# --- signature help


def signature_help(document: Document, line: int, column: int) -> lsp.SignatureHelp | None:
    """The call around a place, and its parameter that is being written."""
    outline = document.around(line, column, to_cursor=True).outline
    opened = next((each for each in reversed(outline.open) if each.is_call), None)
    if opened is None:
        return None
    label, doc = _call_form(document, opened.callee)
    if not label:
        return None
    start = label.index("(") + 1
    names = [part.strip() for part in label[start : label.rindex(")")].split(",")]
    names = [name for name in names if name and name != "*"]
    active = _active(names, opened)
    return lsp.SignatureHelp(
        signatures=[
            lsp.SignatureInformation(
                label=label,
                documentation=doc or None,
                parameters=[lsp.ParameterInformation(label=name) for name in names],
            )
        ],
        active_signature=0,
        active_parameter=active,
    )


def _call_form(document: Document, callee: str) -> tuple[str, str]:
    block = document.outline.tables.blocks.get(callee)
    if block is not None:
        return def_head(block).removeprefix("def "), ""
    if callee in document.outline.tables.callables and callee in std_blocks():
        return std_page(callee).signature, std_page(callee).summary
    if callee in OPERATIONS:
        page = describe(OPERATIONS[callee])
        return page.signature.split(" or ")[0], page.summary
    return OTHER_CALLS.get(callee, ""), ""


def _active(names: list[str], opened: Opened) -> int | None:
    """The place of the parameter that is written: by name, or by the number of commas before it."""
    if opened.keyword:
        return next((i for i, name in enumerate(names) if name.partition("=")[0] == opened.keyword), None)
    operands = next((i for i, name in enumerate(names) if "=" in name), len(names))
    return min(opened.commas, max(operands - 1, 0)) if names else None
