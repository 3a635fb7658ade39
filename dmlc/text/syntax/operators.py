"""Flat chains of operands and operators to trees, by precedence."""

from __future__ import annotations

from typing import Any

from dmlc.diagnostics import Change, Diagnostic, Help, Label, Proposal, proposal, text_of
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.limits import Limits
from dmlc.text.syntax.tokens import Token
from dmlc.text.syntax.tree import Call, Cast, Expr, Index, Infix, Name, Number, Paren, Pipe, Power, Prefix, String

#: The language reference's table, weakest first.
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("|>",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "//", "%"),
    ("as",),
    ("prefix",),
    ("**",),
)
_LEVEL = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_PIPE, _COMPARE, _CAST, _PREFIX, _POWER = (_LEVEL[s] for s in ("|>", "==", "as", "prefix", "**"))
#: Two operands and an operator between them are an ``Infix`` at once.
_PLAIN = frozenset(_LEVEL[s] for s in ("|", "^", "&", "==", "+", "*"))

_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class SyntaxProblem(Exception):
    """A mistake that the grammar alone does not see, found while a statement is built."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Signed:
    """Signs and the operand after them, before precedence is known. Never part of a finished tree."""

    __slots__ = ("depth", "operand", "sign")

    def __init__(self, sign: Token, operand: Any) -> None:
        self.sign: Token = sign
        self.operand: Any = operand
        self.depth: int = 1 + operand.depth if operand.__class__ is Signed else 1


def finish(piece: Any, limits: Limits) -> Expr:
    """The tree of an operand that stands alone."""
    if piece.__class__ is Token:
        return name(piece) if piece.type == "NAME" else leaf(piece)
    if piece.__class__ is Signed:
        return climb([piece], limits)
    tree: Expr = piece
    return tree


def leaf(token: Token) -> Expr:
    """A name, a number or a string."""
    kind = token.type
    if kind == "NAME":
        return name(token)
    if kind == "NUMBER":
        return Number(token.text, token)
    return string(token)


def name(token: Token) -> Name:
    text = token.text
    if text[0] == "`":
        return Name(text[1:-1], True, token)
    return Name(text, False, token)


def string(token: Token) -> String:
    """A string without its quotes and escapes. Raises ``SyntaxProblem`` for an unknown escape."""
    text = token.text[1:-1]
    if "\\" in text:
        pieces = text.split("\\")
        out = [pieces[0]]
        rest = iter(pieces[1:])
        for piece in rest:
            if not piece:  # two backslashes; what follows the second is plain text
                out.append("\\" + next(rest, ""))
            elif piece[0] in _ESCAPES:
                out.append(_ESCAPES[piece[0]] + piece[1:])
            else:
                help = "a backslash is written \\\\; in the paths of load, write /"
                label = Label(token.span)
                raise SyntaxProblem(Diagnostic(codes.ESCAPE, f"\\{piece[0]} is not an escape", (label,), help))
        text = "".join(out)
    return String(text, token.span)


def climb(pieces: list[Any], limits: Limits) -> Expr:
    """The tree of a chain: operands, operator tokens between them, ``as`` followed by a name."""
    if len(pieces) == 3 and pieces[0].__class__ is not Signed and pieces[2].__class__ is not Signed:
        left, sign, right = finish(pieces[0], limits), pieces[1], finish(pieces[2], limits)
        level = _LEVEL[sign.text]
        if level in _PLAIN:
            return Infix(left, ((sign.text, right),), left.span.to(right.span))
        return _node(level, [sign], [left, right])
    climber = _Climber(pieces, limits)
    for piece in pieces:
        if piece.__class__ is Token and piece.type not in ("NAME", "NUMBER", "STRING"):
            climber.operator(piece)
        else:
            climber.operand(piece)
    return climber.result()


class _Climber:
    """Operands and operators that wait. A run of operators of one level becomes one node."""

    def __init__(self, pieces: list[Any], limits: Limits) -> None:
        self.pieces = pieces
        self.limits = limits
        self.operands: list[Expr] = []
        self.operators: list[tuple[int, Token]] = []

    def operand(self, piece: Any) -> None:
        while piece.__class__ is Signed:
            self.push(_PREFIX, piece.sign)
            piece = piece.operand
        self.operands.append(leaf(piece) if piece.__class__ is Token else piece)

    def operator(self, sign: Token) -> None:
        level = _LEVEL[sign.text]
        while self.operators and self.operators[-1][0] > level:
            self.reduce()
        self.push(level, sign)

    def push(self, level: int, sign: Token) -> None:
        self.operators.append((level, sign))
        if len(self.operators) > self.limits.nesting and level >= _PREFIX:
            have = sum(piece.depth if piece.__class__ is Signed else 1 for piece in self.pieces)
            label, instead = Label(sign.span, "one too many"), "give a part of it a name"
            error = self.limits.passed("nesting", "signs and powers nest", have, label, instead=instead)
            raise SyntaxProblem(error.diagnostics[0])

    def result(self) -> Expr:
        while self.operators:
            self.reduce()
        (tree,) = self.operands
        return tree

    def reduce(self) -> None:
        """Make one node of the run of operators on top."""
        level = self.operators[-1][0]
        first = len(self.operators)
        while first and self.operators[first - 1][0] == level:
            first -= 1
        signs = [sign for _, sign in self.operators[first:]]
        del self.operators[first:]
        if level == _PREFIX:
            operand = self.operands[-1]
            span = signs[0].span.to(operand.span)
            self.operands[-1] = Prefix(tuple([s.text for s in signs]), operand, span)
            return
        start = len(self.operands) - len(signs) - 1
        operands = self.operands[start:]
        self.operands[start:] = [_node(level, signs, operands)]


def _node(level: int, signs: list[Token], operands: list[Expr]) -> Expr:
    first, rest = operands[0], operands[1:]
    span = first.span.to(rest[-1].span)
    if level == _POWER:
        return Power(tuple(operands), span)
    if level == _CAST:
        return Cast(first, tuple([n for n in rest if isinstance(n, Name)]), span)
    if level == _PIPE:
        for sign, right in zip(signs, rest, strict=True):
            _check_piped(sign, right)
        return Pipe(first, tuple([c for c in rest if isinstance(c, Call)]), span)
    if level == _COMPARE and len(signs) > 1:
        labels = (Label(signs[1].span, "second comparison"), Label(signs[0].span, "first comparison"))
        help = _unchained(signs, operands)
        raise SyntaxProblem(Diagnostic.of(codes.CHAINED_COMPARISON, "comparisons do not chain", *labels, help=help))
    return Infix(first, tuple([(s.text, o) for s, o in zip(signs, rest, strict=True)]), span)


def _unchained(signs: list[Token], operands: list[Expr]) -> Proposal:
    """The proposal to compare each pair of neighbours, and to combine the results."""
    texts = [text_of(operand.span) for operand in operands]
    pairs = zip(texts[:-1], [sign.text for sign in signs], texts[1:], strict=True)
    written = " & ".join(f"({left} {sign} {right})" for left, sign, right in pairs)
    return Proposal(f"write {written}", (Change(written, operands[0].span.to(operands[-1].span)),), safe=True)


def _check_piped(sign: Token, right: Expr) -> None:
    """The right side of ``|>`` is exactly one call. Raises ``SyntaxProblem``."""
    if isinstance(right, Call):
        return
    if isinstance(right, Name):
        help: Help = proposal(f"write {right.text}()", f"{text_of(right.span)}()", safe=True)
    elif isinstance(right, Index):
        help = "put the pipe in parentheses: (x |> f(a))[0]"
    elif isinstance(right, Paren):
        text, inner = text_of(right.span), text_of(right.inner.span)
        help = proposal("take the parentheses around it away", inner, safe=True) if inner in text else ""
    else:
        help = "put the part before the next operator in parentheses: (x |> f(a)) + 1"
    message = "the right side of |> is one call with parentheses"
    labels = Label(right.span, "not a call"), Label(sign.span)
    raise SyntaxProblem(Diagnostic.of(codes.PIPE, message, *labels, help=help))
