"""The parser: bytes to source, source to syntax tree, and all mistakes of a program as one error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, takewhile
from typing import Any

from lark import UnexpectedToken

from dmlc.diagnostics import Diagnostic, DmlcError, Label, Source, Span, fail, naming
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir.collector import collector_paused
from dmlc.text.syntax.builder import ModelHead, body_of
from dmlc.text.syntax.grammar import parser_of
from dmlc.text.syntax.lexer import Lexed, Patterns, tokenize
from dmlc.text.syntax.operators import SyntaxProblem
from dmlc.text.syntax.tokens import Token
from dmlc.text.syntax.tree import Program

#: The start symbols of the pieces in which mistakes are looked for one by one, by their first token.
_PIECES = {"DML": "header", "USE": "use", "DIM": "dim", "CONST": "const", "DEF": "def_head", "MODEL": "model_head"}
#: More diagnostics than this are counted, not shown.
MAX_SHOWN = 20
_INSTEAD = 'keep large data in a file: const w: f32[1000] = load("w.npy")'


@collector_paused(begins=True)
def parse(source: Source, limits: Limits = DEFAULTS) -> Program:
    """The syntax tree of a program. Raises ``DmlcError`` with every mistake of its syntax (E01)."""
    with naming(source.name):
        return parse_tokens(lex(source, limits), limits)


def lex(source: Source, limits: Limits = DEFAULTS) -> Lexed:
    """The tokens of a program. Raises ``DmlcError`` E01 where it is too long, nests too deep or holds nothing."""
    _check_size(source, limits)
    lexed = tokenize(source, _patterns(), limits)
    if not lexed.tokens and not lexed.problems:
        raise fail(codes.EMPTY, "the program is empty", help="write a model: model m(x: f32[3]) -> (y) { ... }")
    return lexed


def _check_size(source: Source, limits: Limits) -> None:
    size = sum(map(len, source.lines)) + len(source.lines) - 1
    if size > limits.text_bytes:
        raise limits.passed("text_bytes", f"{source.name} has", size, instead=_INSTEAD)


def parse_tokens(lexed: Lexed, limits: Limits = DEFAULTS) -> Program:
    """The syntax tree of tokens. Raises ``DmlcError``."""
    first: list[Diagnostic] = []
    if not lexed.problems:
        try:
            program: Program = _run("program", lexed.tokens, limits)
            return program
        except SyntaxProblem as problem:
            first = [problem.diagnostic]
    # Statement by statement the same mistake is found again, and the others with it.
    search = _Search(lexed.tokens, limits)
    brackets = [found for found in lexed.problems if _place(found) not in search.ends]
    raise together([*brackets, *search.problems] or first)


def _run(start: str, tokens: Sequence[Token], limits: Limits, behind: Callable[[], Sequence[Token]] = tuple) -> Any:
    """Return what the builder makes of ``tokens``; ``behind`` gives the rest of their block.

    Raises ``SyntaxProblem``.
    """
    try:
        return parser_of(limits).parse(tokens, start=start)
    except UnexpectedToken as error:
        from dmlc.text.syntax.expected import unexpected

        found = error.token if isinstance(error.token, Token) else tokens[-1].after("$END")
        raise SyntaxProblem(unexpected(start, tokens, found, error.accepts, behind)) from None


@cache
def _patterns() -> Patterns:
    return Patterns(parser_of().terminals)


# --- all mistakes


class _Search:
    """Parses the pieces of a program, statement by statement, and keeps what each of them has wrong."""

    def __init__(self, tokens: Sequence[Token], limits: Limits) -> None:
        self.limits = limits
        self.tokens = tokens
        self.place = 0  # number of them that were looked at
        self.problems: list[Diagnostic] = []
        self.block: list[Any] | None = None  # the statements of the block that is open
        self.results: list[str] = []  # the results that its head names
        self.is_whole = False  # all of them were understood
        self.inner = 0  # braces inside the block, where none belong
        self.is_bare = False  # its head has no brace, which is reported
        self.ends: set[tuple[int, int]] = set()  # the places of braces that end such a block
        piece: list[Token] = []
        for self.place, token in enumerate(tokens, 1):
            piece.append(token)
            if token.type in ("NL", "LBRACE"):
                self.piece(piece)
                piece = []
            elif token.type == "RBRACE":
                self.close(token)
                piece = []

    def piece(self, piece: list[Token]) -> None:
        """One statement, or the head of a block."""
        first, opens = piece[0], piece[-1].type == "LBRACE"
        if first.type == "NL":
            return
        start = _PIECES.get(first.type, "statement")
        if self.block is not None and start != "statement" and piece[1].type != "NAME":
            start = "statement"  # a keyword that was meant as a name
        if start != "statement":
            # The block of a head without a brace is taken to follow. The lexer has reported a block that is still open.
            self.block = [] if start in ("def_head", "model_head") else None
            self.is_whole, self.inner, self.is_bare = opens, 0, not opens
        elif self.block is not None and self.is_bare and first.text == "}":
            self.ends.add((first.line, first.column))
            self.block = None
            return
        elif self.block is None:
            self.outside(first, opens)
            return
        elif opens:
            if not self.block and not self.is_whole:  # the rest of a broken head
                return
            self.inner += 1
        is_clear = self.inner <= opens and all(token.type != "BAD" for token in piece)
        result = self.parse(start, piece) if is_clear else None
        if start != "statement":
            self.results = [item.name.text for item in result.results] if isinstance(result, ModelHead) else []
        if start == "statement" and self.block is not None:
            self.block.append(result)
        self.is_whole = self.is_whole and result is not None

    def parse(self, start: str, piece: list[Token]) -> Any:
        try:
            is_shown = start == "statement" and len(self.problems) < MAX_SHOWN
            return _run(start, piece, self.limits, self.rest if is_shown else tuple)
        except SyntaxProblem as problem:
            self.problems.append(problem.diagnostic)
            return None

    def rest(self) -> list[Token]:
        """The tokens of the block behind the statement."""
        return list(takewhile(lambda token: token.type != "RBRACE", islice(self.tokens, self.place, None)))

    def outside(self, first: Token, opens: bool) -> None:
        from dmlc.text.syntax.expected import commented, shown

        if first.type != "BAD":
            message = f"{shown(first)} is outside of a model or def"
            help = commented(first) or "a file holds use, dim, const, def and model"
            self.problems.append(Diagnostic.of(codes.UNEXPECTED, message, Label(first.span), help=help))
        if opens:
            self.block, self.is_whole = [], False

    def close(self, brace: Token) -> None:
        if self.inner:
            self.inner -= 1
            return
        if self.block is not None and self.is_whole:
            try:
                body_of(self.block, brace, self.results)
            except SyntaxProblem as problem:
                self.problems.append(problem.diagnostic)
        self.block = None


# --- bytes


def decode(name: str, data: bytes, limits: Limits = DEFAULTS) -> Source:
    """Return the program in ``data``, the content of the file ``name``.

    The text is UTF-8, with or without a byte order mark. Raises ``DmlcError`` E01 if it is not, or if it is too long.
    """
    with naming(name):
        return _decoded(name, data, limits)


def _decoded(name: str, data: bytes, limits: Limits) -> Source:
    if len(data) > limits.text_bytes:
        raise limits.passed("text_bytes", f"{name} has", len(data), instead=_INSTEAD)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise fail(codes.NOT_TEXT, f"{name} is UTF-16 text", help="save it as UTF-8")
    if b"\0" in data:
        raise fail(codes.NOT_TEXT, f"{name} is not a program but a binary file", help="a program is UTF-8 text")
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8", "replace").split("\n")
        shown = Source(name, error.object.decode("utf-8", "replace"))
        line, column = len(before), len(before[-1]) + 1
        label = Label(Span(shown, line, column, line, column + 1), f"byte 0x{error.object[error.start]:02x}")
        raise fail(codes.NOT_TEXT, f"{name} is not UTF-8 text", label, help="save it as UTF-8") from None


# --- many diagnostics


def together(diagnostics: Iterable[Diagnostic]) -> DmlcError:
    """The error that holds them: sorted, without repetitions, the last shown one telling how many more there are."""
    found = list(diagnostics)
    files = {name: number for number, name in reversed(list(enumerate(d.source_name for d in found)))}
    once: dict[object, Diagnostic] = {}
    for diagnostic in sorted(found, key=lambda d: (files[d.source_name], *_place(d))):
        # A mistake inside a def shows at every call of it; the first report is enough.
        key = (diagnostic.code.id, diagnostic.place) if diagnostic.labels else diagnostic.message
        once.setdefault(key, diagnostic)
    shown = list(once.values())[:MAX_SHOWN]
    rest = len(once) - len(shown)
    if rest:
        note = f"{rest} more {'error is' if rest == 1 else 'errors are'} not shown"
        shown[-1] = replace(shown[-1], notes=(*shown[-1].notes, note))
    return DmlcError(shown)


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    span = diagnostic.span
    return (span.line, span.column) if span else (0, 0)
