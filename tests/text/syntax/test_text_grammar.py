"""The grammar itself: no conflicts, no overlapping terminals, and our lexer reads what Lark's would."""

from __future__ import annotations

import functools

from lark import Lark
from text_helpers import source

from dmlc import text
from dmlc.diagnostics import Span
from dmlc.text.syntax import grammar, parser
from dmlc.text.syntax.grammar import STARTS
from dmlc.text.syntax.tree import Call, Infix, Model, Name, Number

PROGRAM = """dml 1
dim a in 1..64
const w: f32[2] = [1.5, .5e-3]
def f(x, *, k=0x1f, t=f32) {
    return x ** -k as t
}
model m(`in put`: f32[a, 2]) -> (y: f32[a, 2], z) {
    y, _ = onnx.com.microsoft.Foo(`in put`, s="a#b", n=[1, 2]) // w % 3
    z = y | !(y <= 1_000) & y != 2 ^ y |> f(k=2)
    return y, z
}
"""


@functools.cache
def lark_with_basic_lexer() -> Lark:
    return Lark(
        grammar.grammar(),
        parser="lalr",
        lexer="basic",
        strict=True,
        start=list(STARTS),
        maybe_placeholders=False,
    )


def test_the_grammar_is_strictly_lalr() -> None:
    """strict=True makes every shift/reduce conflict and every pair of overlapping terminals an error."""
    lark_with_basic_lexer()


def test_our_lexer_gives_the_tokens_of_larks() -> None:
    ours = [(t.type, t.text, t.line, t.column) for t in parser.lex(source(PROGRAM)).tokens if t.type != "NL"]
    theirs = [(t.type, str(t), t.line, t.column) for t in lark_with_basic_lexer().lex(PROGRAM) if t.type != "NL"]
    assert ours == theirs


def test_lark_reads_each_line() -> None:
    """Lark alone reads each line of a program by its own rule, as the parser does."""
    starts = ["header", "dim", "const", "def_head", "statement", "end", "model_head"]
    starts += ["statement", "statement", "statement", "end"]
    lark = lark_with_basic_lexer()
    for start, line in zip(starts, PROGRAM.splitlines(), strict=True):
        assert lark.parse(line if line.endswith("{") else f"{line}\n", start=start) is not None
    assert len(text.parse(source(PROGRAM)).items) == 5


def test_the_tree_has_spans_and_no_lark() -> None:
    program = text.parse(source("model m(x: f32[4]) -> (y) {\n    y = x + exp(2)\n    return y\n}\n"))
    (model,) = program.items
    assert isinstance(model, Model)
    (assign,) = model.body
    value = assign.value
    assert isinstance(value, Infix)
    assert isinstance(value.first, Name)
    ((sign, call),) = value.rest
    assert sign == "+"
    assert isinstance(call, Call)
    assert call.operands == (Number("2", call.span),)
    span = call.span
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 13, 2, 19)
    assert (value.span.column, value.span.end_column) == (9, 19)
    assert type(call).__module__ == "dmlc.text.syntax.tree"


def test_trees_compare_without_spans() -> None:
    one = text.parse(source("model m(x: f32[4]) -> (y) {\n    return x\n}\n"))
    two = text.parse(source("\n\nmodel  m( x : f32[ 4 ] )->(y){ return x }"))
    other = text.parse(source("model m(x: f32[5]) -> (y) {\n    return x\n}\n"))
    assert one == two
    assert one != other


def test_a_token_is_the_place_of_what_it_says() -> None:
    text_of = source("model m(x: f32[4]) -> (y) {\n    return x\n}\n")
    token = next(t for t in parser.lex(text_of).tokens if t.type == "RETURN")
    place = Span(text_of, 2, 5, 2, 11)
    assert token == place
    assert place == token
    assert len({token, place}) == 1
    assert token != Span(text_of, 2, 5, 2, 12)
