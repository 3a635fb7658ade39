"""The grammar itself: no conflicts, no overlapping terminals, and our lexer reads what Lark's would."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest
from lark import Lark
from text_helpers import source

from dmlc import text
from dmlc.diagnostics import Span
from dmlc.text import grammar, parser
from dmlc.text.lalr import PIECE_TABLES, STARTS, TABLES
from dmlc.text.tree import Call, Infix, Model, Name, Number

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


def test_the_tables_are_those_of_the_grammar() -> None:
    """After a change of dml.lark: ``python -m dmlc.text.grammar``."""
    pieces = grammar.piece_tables()
    assert grammar.text_of(pieces) == PIECE_TABLES.read_text(encoding="utf-8")
    assert grammar.text_of(grammar.tables(pieces)) == TABLES.read_text(encoding="utf-8")


def test_our_lexer_gives_the_tokens_of_larks() -> None:
    ours = [(t.type, t.text, t.line, t.column) for t in parser.lex(source(PROGRAM)).tokens if t.type != "NL"]
    theirs = [(t.type, str(t), t.line, t.column) for t in lark_with_basic_lexer().lex(PROGRAM) if t.type != "NL"]
    assert ours == theirs


def test_lark_reads_what_we_read() -> None:
    """Where newlines stand only at the ends of statements, the grammar needs nothing of ours to be read."""
    flat = "\n".join(line.strip() for line in PROGRAM.splitlines() if line) + "\n"
    flat = flat.replace("{\n", "{ ")
    assert lark_with_basic_lexer().parse(flat, start="program").data == "program"
    assert text.parse(source(flat)) == text.parse(source(PROGRAM))


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
    assert type(call).__module__ == "dmlc.text.tree"


def test_trees_compare_without_spans() -> None:
    one = text.parse(source("model m(x: f32[4]) -> (y) {\n    return x\n}\n"))
    two = text.parse(source("\n\nmodel  m( x : f32[ 4 ] )->(y){ return x }"))
    other = text.parse(source("model m(x: f32[5]) -> (y) {\n    return x\n}\n"))
    assert one == two
    assert one != other


@pytest.mark.parametrize(
    "more", ["", "def g() {\n    return f(x,), [], [[1,], -2,], (3), h(k=1, j=2,), a.b.c(), -x ** 2\n}\n"]
)
def test_the_short_tables_read_what_larks_read(more: str) -> None:
    """Whole programs are read by tables in which rules that pass one part on take no step."""
    text_of = source(PROGRAM + more)
    by_short, by_long = parser.parse(text_of), parser.parse_tokens(parser.lex(text_of))
    assert by_short == by_long
    assert spans_of(by_short) == spans_of(by_long)


def test_the_short_tables_have_no_rule_that_passes_its_part_on() -> None:
    rules = grammar.tables(grammar.piece_tables())["rules"]
    assert rules
    assert not [rule for rule in rules if rule["single"] and rule["size"] == 1]


def test_a_token_is_the_place_of_what_it_says() -> None:
    text_of = source("model m(x: f32[4]) -> (y) {\n    return x\n}\n")
    token = next(t for t in parser.lex(text_of).tokens if t.type == "RETURN")
    place = Span(text_of, 2, 5, 2, 11)
    assert token == place
    assert place == token
    assert len({token, place}) == 1
    assert token != Span(text_of, 2, 5, 2, 12)


def test_a_long_program_is_read_as_its_lines_are() -> None:
    """The lexer gives tokens some lines at a time; what ends a statement is seen over that edge too."""
    lines = [f"    v{n} = relu(\n        x,\n    )\n        |> exp()" for n in range(300)]
    text_of = source("\n".join(["model m(x: f32[4]) -> (y) {", *lines, "    return v299", "}", ""]))
    whole = parser.parse(text_of)
    assert whole == parser.parse_tokens(parser.lex(text_of))
    (model,) = whole.items
    assert isinstance(model, Model)
    assert [assign.span.line for assign in model.body] == [4 * n + 2 for n in range(300)]


def spans_of(node: object) -> list[Span]:
    """All places in a tree, in the order of its fields."""
    if isinstance(node, Span):
        return [node]
    parts = (
        node if isinstance(node, tuple) else [getattr(node, f.name) for f in fields(node)] if is_dataclass(node) else ()
    )
    return [span for part in parts for span in spans_of(part)]
