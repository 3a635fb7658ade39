"""Lark's transformer: makes a node of the syntax tree when a rule of the grammar is complete."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from dmlc.diagnostics import Code, Diagnostic, Help, Label, Span, proposal, removing, text_of
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.limits import Limits
from dmlc.text.syntax import tree
from dmlc.text.syntax.tokens import Token

Pieces: TypeAlias = list[Any]

#: The language reference's table of operators, weakest first.
_LEVELS = ("|>", "|", "^", "&", "== != < <= > >=", "+ -", "* / // %", "as", "prefix", "**")
_LEVEL = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs.split()}
_PIPE, _COMPARE, _PREFIX, _POWER = (_LEVEL[sign] for sign in ("|>", "==", "prefix", "**"))
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class SyntaxProblem(Exception):
    """A mistake that the grammar alone does not see, found while a statement is built."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Subscript(NamedTuple):
    """The items of one bracket of an index."""

    items: tuple[tree.Expr | tree.Slice | tree.Ellipsis, ...]
    span: Span


def name(token: Token) -> tree.Name:
    text = token.text
    return tree.Name(text[1:-1], True, token) if text[0] == "`" else tree.Name(text, False, token)


def number(token: Token) -> tree.Number:
    return tree.Number(token.text, token)


def string(token: Token) -> tree.String:
    """A string without its quotes and escapes. Raises ``SyntaxProblem`` for an unknown escape."""

    def meant(escape: re.Match[str]) -> str:
        if escape[1] not in _ESCAPES:
            help = "a backslash is written \\\\; in the paths of load, write /"
            raise _problem(token, f"{escape[0]} is not an escape", help, code=codes.ESCAPE)
        return _ESCAPES[escape[1]]

    return tree.String(re.sub(r"\\(.)", meant, token.text[1:-1]), token)


class Transformer:
    """One method for each terminal and rule of ``dml.lark`` that makes a node. It keeps nothing between calls.

    A mistake that the grammar does not see raises ``SyntaxProblem``.
    """

    NAME, NUMBER, STRING = staticmethod(name), staticmethod(number), staticmethod(string)

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def header(self, p: Pieces) -> tree.Header:
        version: tree.Number = p[1]
        if version.text != "1":
            help = proposal("this dmlc reads version 1: write dml 1", "1")
            message = f"language version {version.text} is not known"
            raise _problem(version.span, message, help, code=codes.VERSION)
        return tree.Header(version, p[0].to(version.span))

    def use(self, p: Pieces) -> tree.Use:
        file = p[-2]
        return tree.Use(tuple(p[1:-3]), file if isinstance(file, tree.String) else None, p[0].to(file.span))

    def used(self, p: Pieces) -> tree.Used:
        return tree.Used(p[0], p[2] if len(p) > 1 else None)

    def dim(self, p: Pieces) -> tree.Dim:
        return tree.Dim(p[1], p[3], p[5], p[0].to(p[6]))

    def const(self, p: Pieces) -> tree.Const:
        return tree.Const(p[1], p[3], p[5], p[0].to(p[6]))

    def type(self, p: Pieces) -> tree.Type:
        return tree.Type(p[0], tuple(p[2:-1]), p[0].span.to(p[-1]))

    # --- def and model

    def default(self, p: Pieces) -> tree.Parameter:
        return tree.Parameter(p[0], p[2])

    def def_head(self, p: Pieces) -> partial[tree.Def]:
        """Makes the def when its body and result are known."""
        stars = [i for i, piece in enumerate(p) if isinstance(piece, Token) and piece.type == "STAR"]
        first = stars[0] if stars else len(p) - 2
        for piece in p[3:first]:
            if isinstance(piece, tree.Parameter):
                help = f"put a * before it: *, {piece.name.text}=..."
                raise _problem(piece.name.span, "only parameters after * have defaults", help)
        if len(stars) > 1:
            raise _problem(p[stars[1]], "a second *", "one * parts operands from what is known while compiling")
        if stars and first == len(p) - 3:
            raise _problem(p[first], "no parameter follows *", "take the * out, or name a parameter after it")
        keywords = [x if isinstance(x, tree.Parameter) else tree.Parameter(x, None) for x in p[first + 1 : -2]]
        return partial(tree.Def, p[1], tuple(p[3:first]), tuple(keywords), span=p[0].to(p[-2]))

    def inputs(self, p: Pieces) -> Pieces:
        return p[1:-1]

    def results(self, p: Pieces) -> Pieces:
        if len(p) == 2:
            raise _problem(p[0].to(p[1]), "a model has at least one result", "name it: -> (y)")
        return p[1:-1]

    def input(self, p: Pieces) -> tree.Input:
        return tree.Input(p[0], p[2], (p[4], p[6]) if len(p) > 3 else None)

    def result(self, p: Pieces) -> tree.Result:
        return tree.Result(p[0], p[2] if len(p) > 1 else None)

    def model_head(self, p: Pieces) -> partial[tree.Model]:
        """Makes the model when its body and result are known."""
        return partial(tree.Model, p[1], tuple(p[2]), tuple(p[4]), span=p[0].to(p[1].span))

    # --- statements

    def assign(self, p: Pieces) -> tree.Assign:
        return tree.Assign(tuple(p[:-3]), p[-2], p[0].span.to(p[-2].span))

    def returned(self, p: Pieces) -> tree.Return:
        return tree.Return(tuple(p[1:-1]), p[0].to(p[-2].span))

    # --- expressions

    def chain(self, p: Pieces) -> tree.Expr:
        return p[0] if len(p) == 1 else _climb(p[::-1], 0, self._limits)

    def paren(self, p: Pieces) -> tree.Paren:
        return tree.Paren(p[1], p[0].to(p[2]))

    def list(self, p: Pieces) -> tree.ListOf:
        return tree.ListOf(tuple(p[1:-1]), p[0].to(p[-1]))

    def index(self, p: Pieces) -> tree.Index:
        return tree.Index(p[0], tuple([part.items for part in p[1:]]), p[0].span.to(p[-1].span))

    def subscript(self, p: Pieces) -> Subscript:
        span = p[0].to(p[-1])
        if len(p) == 2:
            raise _problem(span, "an index is empty", "write an integer, a slice such as 1:4, or ... for all axes")
        return Subscript(tuple([tree.Ellipsis(x) if isinstance(x, Token) else x for x in p[1:-1]]), span)

    def slice(self, p: Pieces) -> tree.Slice:
        parts: list[tree.Expr | None] = [None]
        for piece in p:
            if isinstance(piece, Token):
                parts.append(None)
            else:
                parts[-1] = piece
        return tree.Slice(parts[0], parts[1], parts[2] if len(parts) == 3 else None, p[0].span.to(p[-1].span))

    def keyword(self, p: Pieces) -> tree.Keyword:
        return tree.Keyword(p[0], p[2])

    def call(self, p: Pieces) -> tree.Call:
        opener = next(i for i, piece in enumerate(p) if piece.__class__ is Token)
        operands: list[tree.Expr] = []
        keywords: dict[str, tree.Keyword] = {}
        for piece in p[opener + 1 : -1]:
            if piece.__class__ is not tree.Keyword:
                if keywords:
                    raise _after_keyword(p[opener - 1].text, piece, list(keywords.values()))
                operands.append(piece)
            elif piece.name.text in keywords:
                raise _given_twice(piece, keywords[piece.name.text])
            else:
                keywords[piece.name.text] = piece
        return tree.Call(tuple(p[:opener]), tuple(operands), tuple(keywords.values()), p[0].span.to(p[-1]))


# --- operators


def _climb(rest: Pieces, weakest: int, limits: Limits, depth: int = 0) -> tree.Expr:
    """The tree of the operands and operators in ``rest``, the first of them last, down to the ``weakest`` level.

    Operators of one level become one node. ``depth`` is the number of signs and powers around.
    """
    piece = rest.pop()
    left: tree.Expr = piece
    if isinstance(piece, Token):
        sign = _counted(piece, depth + 1, rest, limits)
        operand = _climb(rest, _PREFIX, limits, depth + 1)
        left = tree.Prefix(sign.text, operand, sign.to(operand.span))
    while rest and (level := _LEVEL[rest[-1].text]) >= weakest:
        joined: list[tuple[Token, tree.Expr]] = []
        while rest and _LEVEL[rest[-1].text] == level:
            sign, is_power = rest.pop(), level == _POWER
            if is_power:
                _counted(sign, depth + 1, rest, limits)
            joined.append((sign, _climb(rest, level + (not is_power), limits, depth + is_power)))
        left = _infix(level, left, joined)
    return left


def _counted(sign: Token, depth: int, rest: Pieces, limits: Limits) -> Token:
    """A sign or power at a depth, if that many may nest. The number in the message counts all that follow."""
    if depth > limits.nesting:
        have = depth + sum(isinstance(piece, Token) and piece.text in ("-", "!", "**") for piece in rest)
        label, instead = Label(sign, "one too many"), "give a part of it a name"
        error = limits.passed("nesting", "signs and powers nest", have, label, instead=instead)
        raise SyntaxProblem(error.diagnostics[0])
    return sign


def _infix(level: int, first: tree.Expr, rest: Sequence[tuple[Token, tree.Expr]]) -> tree.Infix:
    if level == _PIPE:
        for sign, right in rest:
            _check_piped(sign, right)
    span = first.span.to(rest[-1][1].span)
    for _, right in rest if level == _LEVEL["as"] else ():
        if isinstance(right, tree.Infix):  # the power of a dtype
            name, end = right.first.span, right.span
            power = text_of(Span(name.source, name.end_line, name.end_column, end.end_line, end.end_column))
            written = f"({text_of(first.span.to(name))}){power}"
            help = proposal(f"write {written}", written, first.span.to(end), safe=True)
            raise _problem(end, "a dtype has no power: ** binds tighter than as", help)
    if level == _COMPARE and len(rest) > 1:
        texts = [text_of(first.span), *[text_of(right.span) for _, right in rest]]
        pairs = zip(texts[:-1], [sign.text for sign, _ in rest], texts[1:], strict=True)
        written = " & ".join([f"({left} {sign} {right})" for left, sign, right in pairs])
        labels = (Label(rest[1][0], "second comparison"), Label(rest[0][0], "first comparison"))
        help = proposal(f"write {written}", written, span, safe=True)
        raise SyntaxProblem(Diagnostic.of(codes.CHAINED_COMPARISON, "comparisons do not chain", *labels, help=help))
    return tree.Infix(first, tuple([(sign.text, right) for sign, right in rest]), span)


def _check_piped(sign: Token, right: tree.Expr) -> None:
    """The right side of ``|>`` is exactly one call. Raises ``SyntaxProblem``."""
    if isinstance(right, tree.Call):
        return
    help: Help = "put the part before the next operator in parentheses: (x |> f(a)) + 1"
    if isinstance(right, tree.Name):
        help = proposal(f"write {right.text}()", f"{text_of(right.span)}()", safe=True)
    elif isinstance(right, tree.Index):
        help = "put the pipe in parentheses: (x |> f(a))[0]"
    elif isinstance(right, tree.Paren):
        help = proposal("take the parentheses around it away", text_of(right.inner.span), safe=True)
    message = "the right side of |> is one call with parentheses"
    labels = Label(right.span, "not a call"), Label(sign)
    raise SyntaxProblem(Diagnostic.of(codes.PIPE, message, *labels, help=help))


# --- mistakes


def _after_keyword(callee: str, operand: tree.Expr, keywords: Sequence[tree.Keyword]) -> SyntaxProblem:
    """An operand behind keywords; the first of ``where`` is meant as a comparison."""
    name, value = keywords[0].name.span, keywords[-1].value.span
    moved = f"{text_of(operand.span)}, {text_of(name.to(value))}"
    help = proposal(f"operands come first: {moved}", moved, name.to(operand.span))
    if callee == "where":
        text = f"a comparison is written {keywords[0].name.text} == ..."
        value = keywords[0].value.span
        help = proposal(text, " == ", Span(name.source, name.line, name.end_column, value.line, value.column))
    return _problem(operand.span, "an operand follows a keyword", help)


def _given_twice(again: tree.Keyword, first: tree.Keyword) -> SyntaxProblem:
    labels = (Label(again.name.span, "again"), Label(first.name.span, "first here"))
    is_same = text_of(again.value.span) == text_of(first.value.span)
    help = removing("keep one of them", again.name.span.to(again.value.span), safe=is_same)
    message = f"{again.name.text} is given twice in one call"
    return SyntaxProblem(Diagnostic.of(name_codes.KEYWORD_TWICE, message, *labels, help=help))


def _problem(span: Span, message: str, help: Help, *, code: Code = codes.UNEXPECTED) -> SyntaxProblem:
    return SyntaxProblem(Diagnostic.of(code, message, Label(span), help=help))
