"""The parser: bytes to source, source to syntax tree, and all mistakes of a program as one error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice, takewhile
from typing import Any

from lark import UnexpectedToken

from dmlc.diagnostics import Diagnostic, DmlcError, Help, Label, Source, Span, fail, naming, proposal, text_of
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir.collector import collector_paused
from dmlc.text.deep import deep
from dmlc.text.stopping import checkpoint
from dmlc.text.syntax.expected import commented, shown, unexpected
from dmlc.text.syntax.grammar import parser_of
from dmlc.text.syntax.lexer import Lexed, Patterns, tokenize
from dmlc.text.syntax.tokens import Token
from dmlc.text.syntax.transformer import SyntaxProblem
from dmlc.text.syntax.tree import Assign, Const, Item, Model, Program, Return, Use

#: The start symbols of the pieces of a program, by their first token.
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
    size = sum(map(len, source.lines)) + len(source.lines) - 1
    if size > limits.text_bytes:
        raise limits.passed("text_bytes", f"{source.name} has", size, instead=_INSTEAD)
    lexed = tokenize(source, _patterns(), limits)
    if not lexed.tokens and not lexed.problems:
        raise fail(codes.EMPTY, "the program is empty", help="write a model: model m(x: f32[3]) -> (y) { ... }")
    return lexed


@deep()
def parse_tokens(lexed: Lexed, limits: Limits = DEFAULTS) -> Program:
    """The syntax tree of tokens. Raises ``DmlcError`` with every mistake."""
    reader = _StatementReader(lexed, limits)
    reader.read()
    problems = [problem for problem in lexed.problems if _place(problem) not in reader.ends] + reader.problems
    if problems:
        raise together(problems)
    return Program(tuple(reader.items))


@cache
def _patterns() -> Patterns:
    return Patterns(parser_of().terminals)


class _OpenBlock:
    """A def or model that is open. ``make`` gives it its body; None where its head is wrong."""

    def __init__(self, make: Any, *, is_bare: bool = False) -> None:
        self.make = make
        self.is_bare = is_bare  # its head has no brace, which is reported
        self.statements: list[Any] = []
        self.is_whole: bool = make is not None and not is_bare  # all of it was understood
        self.inner = 0  # braces inside, where none belong


class _StatementReader:
    """Parses a program statement by statement, and keeps what each of them has wrong."""

    def __init__(self, lexed: Lexed, limits: Limits) -> None:
        self.lexed = lexed
        self.limits = limits
        self.parser = parser_of(limits)
        self.items: list[Item] = []
        self.problems: list[Diagnostic] = []
        self.block: _OpenBlock | None = None
        self.place = 0  # number of tokens that were looked at
        self.first: Span | None = None  # the name of the first const, def or model
        self.ends: set[tuple[int, int]] = set()  # the places of braces that end a block without an opening brace

    def read(self) -> None:
        piece: list[Token] = []
        for token in self.lexed.tokens:
            self.place += 1
            piece.append(token)
            if token.type in ("NL", "LBRACE"):
                self.piece(piece)
                piece = []
            elif token.type == "RBRACE":
                self.close(token)
                piece = [token]

    def piece(self, piece: list[Token]) -> None:
        """One statement, or the head of a block."""
        if piece[0].type == "RBRACE":
            if piece[1].type in _PIECES:  # an item behind a block, on its last line
                self.parse("end", piece)
            del piece[0]
        first, opens = piece[0], piece[-1].type == "LBRACE"
        if first.type == "NL":
            return
        start = _PIECES.get(first.type, "statement")
        block = self.block
        if block is not None and start != "statement" and (piece[1].type != "NAME" or not self.lexed.problems):
            start = "statement"  # a keyword that was meant as a name, or an item behind a brace
        if start != "statement":
            self.item(start, piece, opens=opens)
        elif block is not None and block.is_bare and first.text == "}":
            self.ends.add((first.line, first.column))
            self.block = None
        elif block is None:
            self.outside(first, opens=opens)
        elif not (opens and not block.statements and not block.is_whole):  # else the rest of a broken head
            block.inner += opens
            result = self.parse(start, piece) if block.inner <= opens else None
            block.statements.append(result)
            block.is_whole = block.is_whole and result is not None

    def item(self, start: str, piece: list[Token], *, opens: bool) -> None:
        """A line outside of all blocks, or the head of a block. The block of a head without a brace is taken to follow.

        The lexer has reported a block that is still open.
        """
        result = self.parse(start, piece)
        self.block = _OpenBlock(result, is_bare=not opens) if start in ("def_head", "model_head") else None
        if isinstance(result, Use) and self.first is not None:
            labels = (Label(result.span), Label(self.first, "this comes first"))
            message, help = "write use lines before the first const, def and model", "put it at the top of the file"
            self.problems.append(Diagnostic(codes.UNEXPECTED, message, labels, help))
        if self.block is None and result is not None:
            self.items.append(result)
        if isinstance(result, (Const, partial)):
            self.first = self.first or (result.name if isinstance(result, Const) else result.args[0]).span

    def parse(self, start: str, piece: list[Token]) -> Any:
        """The node of a piece; None after a mistake."""
        checkpoint()
        if self.lexed.problems and any(token.type == "BAD" for token in piece):
            return None
        try:
            return self.parser.parse(piece, start=start)
        except SyntaxProblem as problem:
            self.problems.append(problem.diagnostic)
        except UnexpectedToken as error:
            found = error.token if isinstance(error.token, Token) else piece[-1].after("$END")
            is_shown = start == "statement" and len(self.problems) < MAX_SHOWN
            behind = self.rest() if is_shown else []
            self.problems.append(unexpected(start, piece, found, error.accepts, behind))
        return None

    def rest(self) -> list[Token]:
        """The tokens of the block behind the statement."""
        return list(takewhile(lambda token: token.type != "RBRACE", islice(self.lexed.tokens, self.place, None)))

    def outside(self, first: Token, *, opens: bool) -> None:
        if first.type != "BAD":
            message = f"{shown(first)} is outside of a model or def"
            help = commented(first) or "a file holds use, dim, const, def and model"
            self.problems.append(Diagnostic.of(codes.UNEXPECTED, message, Label(first), help=help))
        if opens:
            self.block = _OpenBlock(None)

    def close(self, brace: Token) -> None:
        """The end of a block, or of braces inside where none belong."""
        block = self.block
        if block is not None and block.inner:
            block.inner -= 1
            return
        self.block = None
        if block is not None and block.is_whole:
            results = block.make.args[2] if block.make.func is Model else ()
            try:
                body, result = _body_of(block.statements, brace, [result.name.text for result in results])
                self.items.append(block.make(body=body, result=result))
            except SyntaxProblem as problem:
                self.problems.append(problem.diagnostic)


def _body_of(statements: Sequence[Any], closing: Token, results: Sequence[str]) -> tuple[tuple[Assign, ...], Return]:
    """A block's statements and its only ``return``, which is the last. Raises ``SyntaxProblem``.

    ``results`` are the results that the head of a model names.
    """
    for i, statement in enumerate(statements, 1):
        if isinstance(statement, Return):
            if i == len(statements):
                return tuple(statements[:-1]), statement
            after = statements[i]
            what = "a second return" if isinstance(after, Return) else "a statement after return"
            labels = (Label(after.span, "never reached"), Label(statement.span, "the block ends here"))
            raise SyntaxProblem(Diagnostic(codes.RETURN, what, labels, "return once, at the end"))
    help = _with_return(statements, closing, results)
    raise SyntaxProblem(Diagnostic.of(codes.RETURN, "this block returns nothing", Label(closing), help=help))


def _with_return(statements: Sequence[Assign], closing: Token, results: Sequence[str]) -> Help:
    """The proposal to return what the head names, if the block gives all of it a value."""
    given = {target.text: text_of(target.span) for statement in statements for target in statement.targets}
    before = closing.source.line(closing.line)[: closing.column - 1]
    if results and set(results) <= set(given) and not before.strip():
        first = statements[0].targets[0].span
        indent = first.source.line(first.line)[: first.column - 1]
        if not indent.strip():
            written = f"return {', '.join([given[name] for name in results])}"
            start = Span(closing.source, closing.line, 1, closing.line, 1)
            return proposal(f"end the block with its results: {written}", f"{indent}{written}\n", start, safe=True)
    return "end the block with return and its results"


# --- bytes


def decode(name: str, data: bytes, limits: Limits = DEFAULTS) -> Source:
    """Return the program in ``data``, the content of the file ``name``.

    The text is UTF-8, with or without a byte order mark. Raises ``DmlcError`` E01 if it is not, or if it is too long.
    """
    with naming(name):
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
