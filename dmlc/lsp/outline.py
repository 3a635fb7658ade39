"""Names of a program: each with its role, and the thing that it stands for.

An outline is read from tokens, not from the syntax tree, so that a program with mistakes has one. Its rules are those
of ``dmlc.text.elaborate``: a statement sees the names given above it, a type and an attribute mean the dim of a name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct, field

from dmlc.ir import DTYPE_BY_NAME
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import AttributeSpec, DTypeKind, WordKind, attribute_specs
from dmlc.ops.size_of import SIZE
from dmlc.text.elaborate.scope import LITERALS, WORDS
from dmlc.text.syntax.tokens import CLOSERS, OPENERS, Token

#: Calls that are not operations, each with its form: they are known while compiling.
OTHER_CALLS = {SIZE: "size(x, *, axis)", "load": 'load("w.npy") or load("w.npz", "key")'}


class Role(Enum):
    """The use of a name: how an editor shows it."""

    MODEL = "model"
    DEF = "def"
    OPERATION = "operation"
    ONNX = "ONNX operator"
    INPUT = "input"
    RESULT = "result"
    PARAMETER = "parameter"
    VALUE = "value"
    CONST = "const"
    DIM = "dim"
    ATTRIBUTE = "attribute"
    DTYPE = "dtype"
    WORD = "word"
    LITERAL = "literal"
    USED = "used name"
    UNKNOWN = "unknown name"


class Symbol(Struct, eq=False):
    """A thing with a name: where it is declared, in which block (None for the file)."""

    name: str
    role: Role
    token: Token
    block: NamedBlock | None = None


class NamedBlock(Struct, eq=False):
    """A model or def: its head, and the names that its statements see. ``keywords`` are parameters after ``*``."""

    symbol: Symbol
    head: Sequence[Token]
    names: dict[str, Symbol] = field(default_factory=dict)
    keywords: set[str] = field(default_factory=set)
    last_line: int = 0

    @property
    def is_model(self) -> bool:
        return self.symbol.role is Role.MODEL


class Occurrence(NamedTuple):
    """A name in the text. ``callee`` is the called name where it is an attribute."""

    token: Token
    role: Role
    symbol: Symbol | None = None
    callee: str = ""


class Opened(NamedTuple):
    """A bracket that is open: its token, the name that is called, and the attribute whose value is being written.

    ``commas`` counts those in the bracket itself; ``is_call`` is false for brackets inside an argument.
    """

    token: Token
    callee: str = ""
    keyword: str = ""
    commas: int = 0
    is_call: bool = False


class Piece(NamedTuple):
    """A statement or a head: its tokens from ``start`` to before ``end``, and the block that it stands in."""

    start: int
    end: int
    block: NamedBlock | None


class FileTables(Struct):
    """The things of a file that all its blocks see."""

    models: dict[str, Symbol] = field(default_factory=dict)
    consts: dict[str, Symbol] = field(default_factory=dict)
    dims: dict[str, Symbol] = field(default_factory=dict)
    callables: dict[str, Symbol] = field(default_factory=dict)
    blocks: dict[str, NamedBlock] = field(default_factory=dict)  # defs alone

    def copy(self) -> FileTables:
        return FileTables(*[dict(getattr(self, name)) for name in self.__struct_fields__])


class Outline:
    """The outline of ``tokens``; those of a part of a file are read with the ``tables`` of the file and the names of
    the ``block`` around them."""

    def __init__(
        self, tokens: Sequence[Token], comments: Sequence[Token] = (), tables: FileTables | None = None,
        block: NamedBlock | None = None,
    ) -> None:  # fmt: skip
        self.tokens = tokens
        self.comments = comments
        self.tables = tables or FileTables()
        self.occurrences: list[Occurrence] = []
        self.pieces: list[Piece] = []
        self.blocks: list[NamedBlock] = []
        self.open: list[Opened] = []  # the brackets that are open at the end of the last expression
        self.block = block
        starts = list(_pieces(tokens))
        for start, end in starts:
            self._declare(start, end)
        for start, end in starts:
            self._piece(start, end)
        self.occurrences.sort(key=lambda found: (found.token.line, found.token.column))

    # --- reading

    def at(self, line: int, column: int) -> Occurrence | None:
        """The name at a place, or that ends there."""
        found = self.occurrences[: bisect_right(self.occurrences, (line, column), key=_start)][-2:]
        fits = [each for each in found if each.token.line == line and each.token.end_column >= column]
        return fits[-1] if fits else None

    def of(self, symbol: Symbol) -> list[Occurrence]:
        """All names that stand for a thing, in the order of the text."""
        return [found for found in self.occurrences if found.symbol is symbol]

    def piece_at(self, line: int) -> Piece | None:
        """The last statement or head that begins on a line or before it."""
        place = bisect_right(self.pieces, line, key=lambda piece: self.tokens[piece.start].line)
        return self.pieces[place - 1] if place else None

    # --- declarations

    def _add(self, token: Token, role: Role, symbol: Symbol | None = None, callee: str = "") -> None:
        self.occurrences.append(Occurrence(token, role, symbol, callee))

    def _symbol(self, token: Token, role: Role, *tables: dict[str, Symbol], block: NamedBlock | None = None) -> Symbol:
        """The thing that a token declares; of two with one name the first."""
        symbol = Symbol(name_of(token), role, token, block)
        for table in tables:
            symbol = table.setdefault(symbol.name, symbol)
        self._add(token, role, symbol)
        return symbol

    def _declare(self, start: int, end: int) -> None:
        """Note the things that a piece declares for the whole file."""
        tokens, tables, kind = self.tokens, self.tables, self.tokens[start].type
        if kind == "USE":
            self._use(start + 1, end)
        elif start + 1 >= end or tokens[start + 1].type != "NAME":
            return
        elif kind == "DIM":
            self._symbol(tokens[start + 1], Role.DIM, tables.dims)
        elif kind == "CONST":
            self._symbol(tokens[start + 1], Role.CONST, tables.consts)
        elif kind == "DEF":
            self._def(start, end)
        elif kind == "MODEL":
            for i in range(start + 2, end - 2):
                if tokens[i].type == "COLON" and tokens[i + 2].type == "LSQB":
                    self._sizes(i + 3, end)

    def _sizes(self, start: int, end: int) -> None:
        """Note the dims of an input's type that no line declares."""
        for token in self.tokens[start:end]:
            if token.type == "RSQB":
                return
            if token.type == "NAME" and name_of(token) not in self.tables.dims:
                self.tables.dims[name_of(token)] = Symbol(name_of(token), Role.DIM, token)

    def _use(self, start: int, end: int) -> None:
        tables = self.tables
        for i in range(start, end):
            token, before, behind = self.tokens[i], self.tokens[i - 1].type, self.tokens[min(i + 1, end - 1)].type
            if token.type != "NAME" or before not in ("USE", "_COMMA", "AS"):
                continue
            if behind == "AS":
                self._add(token, Role.USED)  # its name in the other file
            else:
                self._symbol(token, Role.USED, tables.callables, tables.consts)

    def _def(self, start: int, end: int) -> None:
        tokens = self.tokens[start:end]
        block = NamedBlock(self._symbol(tokens[1], Role.DEF, self.tables.callables), tokens)
        self.tables.blocks.setdefault(block.symbol.name, block)
        depth, is_keyword = 0, False
        for before, token in pairwise(tokens[1:]):
            depth += (token.type in OPENERS) - (token.type in CLOSERS)
            if token.type == "STAR" and depth == 1 and before.type in ("LPAR", "_COMMA"):
                is_keyword = True
            elif token.type == "NAME" and depth == 1 and before.type in ("LPAR", "_COMMA"):
                symbol = self._symbol(token, Role.PARAMETER, block.names, block=block)
                if is_keyword:
                    block.keywords.add(symbol.name)

    # --- statements

    def _piece(self, start: int, end: int) -> None:
        tokens, kind = self.tokens, self.tokens[start].type
        if kind == "RBRACE":
            if self.block is not None:
                self.block.last_line = tokens[start].line
            self.block = None
            return
        self.open = []
        is_named = start + 1 < end and tokens[start + 1].type == "NAME"
        if kind in ("DEF", "MODEL") and is_named:
            self._block(start, end)
        self.pieces.append(Piece(start, end, self.block))
        if kind == "MODEL" and is_named:
            self._model(start, end)
        elif kind == "DEF" and is_named:
            self._defaults(start, end)
        elif kind in ("DIM", "CONST"):
            self._typed(start + 2, end)
        elif kind == "RETURN":
            self._expression(start + 1, end)
        elif kind != "USE":
            self._assign(start, end)

    def _block(self, start: int, end: int) -> None:
        token = self.tokens[start + 1]
        block = self.tables.blocks.get(name_of(token)) if self.tokens[start].type == "DEF" else None
        if block is None:
            role = Role.MODEL if self.tokens[start].type == "MODEL" else Role.DEF
            tables = [self.tables.models] if role is Role.MODEL else []
            block = NamedBlock(self._symbol(token, role, *tables), self.tokens[start:end])
        block.last_line = self.tokens[end - 1].line
        self.block = block
        self.blocks.append(block)

    def _assign(self, start: int, end: int) -> None:
        tokens, targets, i = self.tokens, [], start
        while i < end and tokens[i].type in ("NAME", "_COMMA"):
            targets += [tokens[i]] if tokens[i].type == "NAME" else []
            i += 1
        if i >= end or tokens[i].type != "EQUAL" or self.block is None:
            self._expression(start, end)
            return
        self._expression(i + 1, end)
        for token in targets:
            if token.text != "_":
                self._symbol(token, Role.VALUE, self.block.names, block=self.block)

    def _model(self, start: int, end: int) -> None:
        """The inputs and results of a model, and their types."""
        tokens, role, depth, first = self.tokens, Role.INPUT, 0, start + 2
        assert self.block is not None
        results: dict[str, Symbol] = {}
        for i in range(start + 2, end):
            kind = tokens[i].type
            depth += (kind in OPENERS) - (kind in CLOSERS)
            if kind == "ARROW":
                role = Role.RESULT
            elif kind == "NAME" and depth == 1 and tokens[i - 1].type in ("LPAR", "_COMMA"):
                table = self.block.names if role is Role.INPUT else results
                self._symbol(tokens[i], role, table, block=self.block)
                first = i + 1
            elif (kind == "_COMMA" and depth == 1) or (kind in CLOSERS and depth == 0):
                self._typed(first, i)
                first = i + 1
        if first < end and not self.open:
            self._typed(first, end)

    def _defaults(self, start: int, end: int) -> None:
        tokens, depth = self.tokens, 0
        for i in range(start + 2, end):
            depth += (tokens[i].type in OPENERS) - (tokens[i].type in CLOSERS)
            if tokens[i].type == "EQUAL" and depth == 1:
                self._expression(i + 1, _end_of_item(tokens, i + 1, end))

    def _typed(self, start: int, end: int) -> None:
        """A type behind a colon, and the bounds or the value behind it."""
        tokens, i = self.tokens, start
        if i < end and tokens[i].type == "COLON":
            i += 1
            if i < end and tokens[i].type == "NAME":
                self._add(tokens[i], Role.DTYPE)
                i += 1
            if i < end and tokens[i].type == "LSQB":
                stop = next((j for j in range(i, end) if tokens[j].type == "RSQB"), end)
                self._expression(i, min(stop + 1, end), is_type=True)
                i = stop + 1
        if i < end and not self.open:
            self._expression(i, end)

    # --- expressions

    def _expression(self, start: int, end: int, *, is_type: bool = False) -> None:
        tokens = self.tokens
        stack: list[Opened] = []
        for i in range(start, end):
            token, kind = tokens[i], tokens[i].type
            if kind == "NAME":
                if is_type:
                    dim = self.tables.dims.get(name_of(token))
                    self._add(token, Role.DIM if dim else Role.UNKNOWN, dim)
                else:
                    self._name(i, stack[-1] if stack else None)
            elif kind in OPENERS:
                stack.append(self._opened(i, stack[-1] if stack else None))
            elif kind in CLOSERS and stack:
                stack.pop()
            elif kind == "_COMMA" and stack:
                top = stack[-1]
                keyword = "" if top.is_call else top.keyword
                stack[-1] = top._replace(keyword=keyword, commas=top.commas + 1)
            elif kind == "EQUAL" and stack and stack[-1].is_call:
                stack[-1] = stack[-1]._replace(keyword=name_of(tokens[i - 1]))
        self.open = stack

    def _opened(self, i: int, around: Opened | None) -> Opened:
        """A bracket: of a call, or one that belongs to the argument around it."""
        token, before = self.tokens[i], self.tokens[i - 1] if i else None
        if token.type == "LPAR" and before is not None and before.type == "NAME":
            parts, first = [name_of(before)], i - 1
            while first >= 2 and self.tokens[first - 1].type == "_DOT":
                first -= 2
                parts.insert(0, name_of(self.tokens[first]))
            return Opened(token, ".".join(parts), is_call=True)
        is_index = token.type == "LSQB" and before is not None and before.type in ("NAME", *CLOSERS)
        if is_index:
            return Opened(token, keyword="[]")
        return Opened(token, *((around.callee, around.keyword) if around is not None else ()))

    def _name(self, i: int, opened: Opened | None) -> None:
        tokens, token, tables = self.tokens, self.tokens[i], self.tables
        text, before = name_of(token), tokens[i - 1].type if i else ""
        behind = tokens[i + 1].type if i + 1 < len(tokens) else ""
        if before == "_DOT" or (behind == "_DOT" and text == "onnx"):
            self._add(token, Role.ONNX)
        elif behind == "LPAR":
            symbol = tables.callables.get(text)
            known = Role.OPERATION if text in OPERATIONS or text in OTHER_CALLS else Role.UNKNOWN
            self._add(token, symbol.role if symbol else known, symbol)
        elif before == "AS":
            symbol = self.block.names.get(text) if self.block and text not in DTYPE_BY_NAME else None
            self._add(token, symbol.role if symbol else Role.DTYPE, symbol)
        elif behind == "EQUAL" and opened is not None and opened.is_call and before in ("LPAR", "_COMMA"):
            block = tables.blocks.get(opened.callee)
            self._add(token, Role.ATTRIBUTE, block.names.get(text) if block else None, opened.callee)
        else:
            self._add(token, *self._meaning(token, text, opened))

    def _meaning(self, token: Token, text: str, opened: Opened | None) -> tuple[Role, Symbol | None]:
        """The role of a name in an expression, and the thing that it stands for."""
        tables, is_quoted = self.tables, token.text[0] == "`"
        if text in LITERALS and not is_quoted:
            return Role.LITERAL, None
        keyword = opened.keyword if opened is not None else ""
        is_reserved = not is_quoted and (text in WORDS or text in DTYPE_BY_NAME)
        word = Role.DTYPE if text in DTYPE_BY_NAME else Role.WORD
        local = self.block.names.get(text) if self.block else None
        if opened is not None and keyword and takes_word(opened.callee, keyword):
            is_parameter = local is not None and self.block is not None and text in self.block.keywords
            return (Role.PARAMETER, local) if is_parameter and not is_reserved else (word, None)
        if local is not None and not (keyword and text in tables.dims and self.block and self.block.is_model):
            return local.role, local
        for table in (tables.dims, tables.consts) if keyword else (tables.consts, tables.dims):
            if text in table:
                return table[text].role, table[text]
        return (word, None) if is_reserved else (Role.UNKNOWN, None)


def name_of(token: Token) -> str:
    """The name of a token: a quoted one without its backticks."""
    return token.text.strip("`") if token.text[:1] == "`" else token.text


def specs_of(operation: str) -> Mapping[str, AttributeSpec]:
    """The attributes of an operation by name."""
    op = OPERATIONS.get(operation)
    return {spec.name: spec for spec in attribute_specs(op.attributes)} if op is not None else {}


@cache
def words_of(callee: str, keyword: str) -> tuple[str, ...]:
    """The words that an attribute of an operation takes: dtypes too; empty for one that takes none."""
    for spec in specs_of(callee).values():
        if spec.name == keyword and isinstance(spec.kind, (WordKind, DTypeKind)):
            return spec.kind.words if isinstance(spec.kind, WordKind) else tuple([d.name for d in spec.kind.allowed])
        if spec.synonym is not None and spec.synonym.name == keyword:
            return tuple(spec.synonym.words)
    return ()


def takes_word(callee: str, keyword: str) -> bool:
    """Return true for an attribute whose value is a word, even where a value has that name."""
    return bool(words_of(callee, keyword))


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The statements and heads, and each closing brace alone."""
    start = 0
    for i, token in enumerate(tokens):
        if token.type in ("NL", "LBRACE", "RBRACE"):
            if token.type == "RBRACE" and start < i:
                yield start, i
                start = i
            if token.type != "NL" or start < i:
                yield start, i + 1
            start = i + 1
    if start < len(tokens):
        yield start, len(tokens)


def _end_of_item(tokens: Sequence[Token], start: int, end: int) -> int:
    """The place of the comma or bracket that ends an item."""
    depth = 0
    for i in range(start, end):
        depth += (tokens[i].type in OPENERS) - (tokens[i].type in CLOSERS)
        if depth < 0 or (depth == 0 and tokens[i].type == "_COMMA"):
            return i
    return end


def _start(found: Occurrence) -> tuple[int, int]:
    return found.token.line, found.token.column
