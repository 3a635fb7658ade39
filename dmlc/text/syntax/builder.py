"""Lark's transformer: builds the node of the syntax tree when a rule of the grammar is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from dmlc.diagnostics import Diagnostic, Help, Label, Proposal, Span, proposal, removing, text_of
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.limits import Limits
from dmlc.text.stopping import checkpoint
from dmlc.text.syntax import tree
from dmlc.text.syntax.operators import Signed, SyntaxProblem, climb, finish, name, string
from dmlc.text.syntax.tokens import Token

Pieces: TypeAlias = list[Any]


class DefHead(NamedTuple):
    name: tree.Name
    parameters: tuple[tree.Name, ...]
    keywords: tuple[tree.Parameter, ...]
    span: Span


class ModelHead(NamedTuple):
    name: tree.Name
    inputs: tuple[tree.Input, ...]
    results: tuple[tree.Result, ...]
    span: Span


class Subscript(NamedTuple):
    """The items of one bracket of an index."""

    items: tuple[tree.Expr | tree.Slice | tree.Ellipsis, ...]
    span: Span


class Builder:
    """One method for each rule of ``dml.lark`` that makes a node. It keeps nothing between calls.

    A mistake that the grammar does not see raises ``SyntaxProblem``.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def program(self, p: Pieces) -> tree.Program:
        before: tree.Const | tree.Def | tree.Model | None = None
        for item in p:
            if isinstance(item, tree.Use) and before is not None:
                labels = (Label(item.span), Label(before.name.span, "this comes first"))
                help = "put it at the top of the file"
                message = "write use lines before the first const, def and model"
                raise SyntaxProblem(Diagnostic(codes.UNEXPECTED, message, labels, help))
            if before is None and isinstance(item, (tree.Const, tree.Def, tree.Model)):
                before = item
        return tree.Program(tuple(p))

    def header(self, p: Pieces) -> tree.Header:
        number = p[1]
        if number.text != "1":
            message = f"language version {number.text} is not known"
            help = proposal("this dmlc reads version 1: write dml 1", "1")
            raise SyntaxProblem(Diagnostic.of(codes.VERSION, message, Label(number.span), help=help))
        return tree.Header(tree.Number(number.text, number.span), p[0].to(number))

    def use(self, p: Pieces) -> tree.Use:
        file: Token = p[-2]
        return tree.Use(tuple(p[1:-3]), None if file.type == "STD" else string(file), p[0].to(file))

    def used(self, p: Pieces) -> tree.Used:
        return tree.Used(name(p[0]), name(p[2]) if len(p) > 1 else None)

    def dim(self, p: Pieces) -> tree.Dim:
        return tree.Dim(name(p[1]), finish(p[3], self._limits), finish(p[5], self._limits), p[0].to(p[6]))

    def const(self, p: Pieces) -> tree.Const:
        return tree.Const(name(p[1]), p[3], finish(p[5], self._limits), p[0].to(p[6]))

    def type(self, p: Pieces) -> tree.Type:
        return tree.Type(name(p[0]), tuple([finish(x, self._limits) for x in p[2:-1]]), p[0].to(p[-1]))

    # --- def and model

    def default(self, p: Pieces) -> tree.Parameter:
        return tree.Parameter(name(p[0]), finish(p[2], self._limits))

    def def_head(self, p: Pieces) -> DefHead:
        names: list[tree.Name] = []
        keywords: list[tree.Parameter] = []
        star: Token | None = None
        for piece in p[3:-2]:
            if isinstance(piece, tree.Parameter):
                if star is None:
                    raise _problem(piece.name.span, "only parameters after * have defaults", "put a * before it: *, ")
                keywords.append(piece)
            elif piece.type == "STAR":
                if star is not None:
                    raise _problem(piece.span, "a second *", "one * parts operands from what is known while compiling")
                star = piece
            elif star is None:
                names.append(name(piece))
            else:
                keywords.append(tree.Parameter(name(piece), None))
        if star is not None and not keywords:
            raise _problem(star.span, "no parameter follows *", "take the * out, or name a parameter after it")
        return DefHead(name(p[1]), tuple(names), tuple(keywords), p[0].to(p[-2]))

    def inputs(self, p: Pieces) -> Pieces:
        return p[1:-1]

    def results(self, p: Pieces) -> Pieces:
        if len(p) == 2:
            raise _problem(p[0].to(p[1]), "a model has at least one result", "name it: -> (y)")
        return p[1:-1]

    def input(self, p: Pieces) -> tree.Input:
        if len(p) == 3:
            return tree.Input(name(p[0]), p[2])
        return tree.Input(name(p[0]), p[2], (finish(p[4], self._limits), finish(p[6], self._limits)))

    def result(self, p: Pieces) -> tree.Result:
        return tree.Result(name(p[0]), p[2] if len(p) > 1 else None)

    def model_head(self, p: Pieces) -> ModelHead:
        return ModelHead(name(p[1]), tuple(p[2]), tuple(p[4]), p[0].to(p[1]))

    def definition(self, p: Pieces) -> tree.Def:
        body, result = body_of(p[1:-2], p[-2])
        head: DefHead = p[0]
        return tree.Def(head.name, head.parameters, head.keywords, body, result, head.span)

    def model(self, p: Pieces) -> tree.Model:
        head: ModelHead = p[0]
        body, result = body_of(p[1:-2], p[-2], [result.name.text for result in head.results])
        return tree.Model(head.name, head.inputs, head.results, body, result, head.span)

    # --- statements

    def assign(self, p: Pieces) -> tree.Assign:
        checkpoint()
        targets = tuple([name(t) for t in p[:-3]])
        value = finish(p[-2], self._limits)
        return tree.Assign(targets, value, targets[0].span.to(value.span))

    def returned(self, p: Pieces) -> tree.Return:
        values = tuple([finish(x, self._limits) for x in p[1:-1]])
        return tree.Return(values, p[0].span.to(values[-1].span))

    # --- expressions

    def chain(self, p: Pieces) -> tree.Expr:
        return climb(p, self._limits)

    def prefix(self, p: Pieces) -> Signed:
        return Signed(p[0], p[1])

    def paren(self, p: Pieces) -> tree.Paren:
        return tree.Paren(finish(p[1], self._limits), p[0].to(p[2]))

    def list(self, p: Pieces) -> tree.ListOf:
        return tree.ListOf(tuple([finish(x, self._limits) for x in p[1:-1]]), p[0].to(p[-1]))

    def index(self, p: Pieces) -> tree.Index:
        operand = finish(p[0], self._limits)
        last: Subscript = p[-1]
        return tree.Index(operand, tuple([part.items for part in p[1:]]), operand.span.to(last.span))

    def subscript(self, p: Pieces) -> Subscript:
        span = p[0].to(p[-1])
        if len(p) == 2:
            raise _problem(span, "an index is empty", "write an integer, a slice such as 1:4, or ... for all axes")
        items = [tree.Ellipsis(x.span) if _is(x, "ELLIPSIS") else x for x in p[1:-1]]
        kept = [x if isinstance(x, (tree.Ellipsis, tree.Slice)) else finish(x, self._limits) for x in items]
        return Subscript(tuple(kept), span)

    def slice(self, p: Pieces) -> tree.Slice:
        parts: list[tree.Expr | None] = [None]
        for piece in p:
            if _is(piece, "COLON"):
                parts.append(None)
            else:
                parts[-1] = finish(piece, self._limits)
        first, last = [
            piece.span if isinstance(piece, Token) else finish(piece, self._limits).span for piece in (p[0], p[-1])
        ]
        return tree.Slice(parts[0], parts[1], parts[2] if len(parts) == 3 else None, first.to(last))

    def keyword(self, p: Pieces) -> tree.Keyword:
        return tree.Keyword(name(p[0]), finish(p[2], self._limits))

    def call(self, p: Pieces) -> tree.Call:
        parts = 1
        while p[parts].__class__ is not Token or p[parts].type != "LPAR":
            parts += 1
        operands: list[tree.Expr] = []
        keywords: dict[str, tree.Keyword] = {}
        for piece in p[parts + 1 : -1]:
            if piece.__class__ is not tree.Keyword:
                operands.append(finish(piece, self._limits))
                if keywords:
                    named = next(iter(keywords))
                    text = f"operands come first, keywords after them; a comparison is written {named} == ..."
                    help = _compared(text, next(iter(keywords.values())))
                    raise _problem(operands[-1].span, "an operand follows a keyword", help)
            elif piece.name.text in keywords:
                labels = (Label(piece.name.span, "again"), Label(keywords[piece.name.text].name.span, "first here"))
                message = f"{piece.name.text} is given twice in one call"
                first = keywords[piece.name.text]
                is_same = text_of(piece.value.span) == text_of(first.value.span)
                help = removing("keep one of them", piece.name.span.to(piece.value.span), safe=is_same)
                raise SyntaxProblem(Diagnostic.of(name_codes.KEYWORD_TWICE, message, *labels, help=help))
            else:
                keywords[piece.name.text] = piece
        callee = tuple([name(t) for t in p[:parts]])
        return tree.Call(callee, tuple(operands), tuple(keywords.values()), p[0].to(p[-1]))


def body_of(
    statements: Pieces, closing: Token, results: Sequence[str] = ()
) -> tuple[tuple[tree.Assign, ...], tree.Return]:
    """A block's statements and its only ``return``, which is the last. Raises ``SyntaxProblem``.

    ``results`` are the results that the head of a model names.
    """
    for i, statement in enumerate(statements):
        if isinstance(statement, tree.Return):
            if i + 1 < len(statements):
                after = statements[i + 1]
                what = "a second return" if isinstance(after, tree.Return) else "a statement after return"
                labels = (Label(after.span, "never reached"), Label(statement.span, "the block ends here"))
                raise SyntaxProblem(Diagnostic(codes.RETURN, what, labels, "return once, at the end"))
            return tuple(statements[:-1]), statement
    help = _with_return(statements, closing, results)
    raise SyntaxProblem(Diagnostic.of(codes.RETURN, "this block returns nothing", Label(closing.span), help=help))


def _with_return(statements: Pieces, closing: Token, results: Sequence[str]) -> Help:
    """The proposal to return what the head names, if the block gives all of it a value."""
    given = {target.text: text_of(target.span) for statement in statements for target in statement.targets}
    line = closing.source.line(closing.line)
    if not results or not set(results) <= set(given) or line[: closing.column - 1].strip():
        return "end the block with return and its results"
    first = statements[0].targets[0].span
    indent = first.source.line(first.line)[: first.column - 1]
    if indent.strip():
        return "end the block with return and its results"
    written = f"return {', '.join(given[name] for name in results)}"
    start = Span(closing.source, closing.line, 1, closing.line, 1)
    return proposal(f"end the block with its results: {written}", f"{indent}{written}\n", start, safe=True)


def _compared(text: str, keyword: tree.Keyword) -> Proposal:
    """The proposal to write == for the sign of a keyword."""
    name, value = keyword.name.span, keyword.value.span
    between = Span(name.source, name.line, name.end_column, value.line, value.column)
    return proposal(text, " == ", between)


def _is(piece: Any, kind: str) -> bool:
    return piece.__class__ is Token and piece.type == kind


def _problem(span: Span, message: str, help: Help) -> SyntaxProblem:
    return SyntaxProblem(Diagnostic.of(codes.UNEXPECTED, message, Label(span), help=help))
