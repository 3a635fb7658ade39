"""Syntax errors: their code, their place, and all of them at once."""

from __future__ import annotations

from text_helpers import diagnostics, errors, in_model

from dmlc.diagnostics import render
from tests.rows import each_row


@each_row(
    ("program", "expected"),
    [
        ("", [("E0113", 0, 0)]),
        ("\n\n# only a comment\n  \n", [("E0113", 0, 0)]),
        ("dml 2\n", [("E0110", 1, 5)]),
        ("dml 1.0\n", [("E0110", 1, 5)]),
        ("dml\n", [("E0101", 1, 4)]),
        ("dml 1 dim a in 1..2\n", [("E0101", 1, 7)]),
        ("dim a in 8..\n", [("E0109", 1, 13)]),
        ("dim a in ..8\n", [("E0109", 1, 10)]),
        ("dim a in 8\n", [("E0109", 1, 11)]),
        ("dim a 1..8\n", [("E0101", 1, 7)]),
        ("dim in in 1..8\n", [("E0101", 1, 5)]),
        ("const a = 1\n", [("E0101", 1, 9)]),
        ("const a: f32 = 1\n", [("E0101", 1, 14)]),
        ("const a: f32[]\n", [("E0101", 1, 15)]),
        ("x = 1\n", [("E0101", 1, 1)]),
        ("model m(x: f32[3]) -> y {\n    return x\n}\n", [("E0101", 1, 23)]),
        ("model m(x: f32[3]) {\n    return x\n}\n", [("E0101", 1, 20)]),
        ("model m(x: f32[3]) -> () {\n    return x\n}\n", [("E0101", 1, 23)]),
        ("model m(x) -> (y) {\n    return x\n}\n", [("E0101", 1, 10)]),
        ("model m(x: f32[3]) -> (y)\n{\n    return x\n}\n", [("E0101", 1, 26)]),
        ("model m(x: f32[3])\n-> (y) {\n    return x\n}\n", [("E0101", 1, 19)]),
        ("model (x: f32[3]) -> (y) {\n    return x\n}\n", [("E0101", 1, 7)]),
        ("model m(x: f32[3] y: f32[3]) -> (y) {\n    return x\n}\n", [("E0101", 1, 19)]),
        ("def f(x: f32[3]) {\n    return x\n}\n", [("E0101", 1, 8)]),
        ("def f(x, y=2) {\n    return x\n}\n", [("E0101", 1, 10)]),
        ("def f(x, *) {\n    return x\n}\n", [("E0101", 1, 10)]),
        ("def f(*, a, *, b) {\n    return x\n}\n", [("E0101", 1, 13)]),
        ("def f(x) {\n}\n", [("E0111", 2, 1)]),
        (in_model("y = x"), [("E0111", 3, 1)]),
        (in_model("return x", "y = x"), [("E0111", 3, 5)]),
        (in_model("return x", "return x"), [("E0111", 3, 5)]),
        (in_model("return"), [("E0101", 2, 11)]),
        (in_model("argmax(x)", "return x"), [("E0101", 2, 11)]),
        (in_model("y = x x", "return y"), [("E0101", 2, 11)]),
        (in_model("y = x +", "return y"), [("E0101", 2, 12)]),
        (in_model("y = * x", "return y"), [("E0101", 2, 9)]),
        (in_model("y = x as f32[0]", "return y"), [("E0101", 2, 17)]),
        (in_model("y == x", "return y"), [("E0101", 2, 7)]),
        (in_model("y = z = x", "return y"), [("E0101", 2, 11)]),
        (in_model("y = f(x,, x)", "return y"), [("E0101", 2, 13)]),
        (in_model("y = f(, x)", "return y"), [("E0101", 2, 11)]),
        (in_model("y = f(axes=1, x)", "return y"), [("E0101", 2, 19)]),
        (in_model("y = argmax(x, axes=1, axes=1)", "return y"), [("E0201", 2, 27)]),
        (in_model("return = x", "return y"), [("E0101", 2, 12)]),
        (in_model("y = return", "return y"), [("E0101", 2, 9)]),
        (in_model("y = in", "return y"), [("E0101", 2, 9)]),
        (in_model("dim = x", "return y"), [("E0101", 2, 5)]),
        (in_model("y = x as", "return y"), [("E0101", 2, 13)]),
        (in_model("y = x as 3", "return y"), [("E0101", 2, 14)]),
        (in_model("y, = x", "return y"), [("E0101", 2, 8)]),
        (in_model("y = a.b", "return y"), [("E0101", 2, 12)]),
        (in_model("y = (x", "return y"), [("E0104", 2, 9)]),
        (in_model("y = [x)", "return y"), [("E0104", 2, 11)]),
        (in_model("y = x)", "return y"), [("E0104", 2, 10)]),
        (in_model("y = {x}", "return y"), [("E0101", 2, 9)]),
        ("model m(x: f32[3]) -> (y) {\n    return x\n", [("E0104", 1, 27)]),
        ("model m(x: f32[3]) -> (y) {\n    return x\n}\n}\n", [("E0104", 4, 1)]),
        ("model m(x: f32[3]) -> (y)\n    return x\n}\n", [("E0101", 1, 26)]),
        ("model m(x: f32[3]) -> (y)\n    return x\n}\n}\n", [("E0101", 1, 26), ("E0104", 4, 1)]),
        ("model m(x: f32[3] -> (y) {\n    return x\n}\n", [("E0104", 1, 8)]),
        ("model m(x: f32[3]) -> (y) {\n    return x\n} dim a in 1..2\n", [("E0101", 3, 3)]),
        ("if x {\n    y = 1\n}\n", [("E0101", 1, 1)]),
        (in_model("if x {", "    y = 1", "}", "return x"), [("E0101", 2, 8)]),
    ],
)  # fmt: skip
def test_places(program: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(program) == expected


def test_every_broken_statement_is_told() -> None:
    program = """dim a in 8..
const w: f32 = 1
def f(x {
    y = x +
    return y
}
model m(x: f32[4]) -> (y) {
    a = x ~ 1
    b = 0 < x < 1
    c = (x
    d = "abc
    e = x
    return e e
}
"""
    assert errors(program) == [
        ("E0109", 1, 13),
        ("E0101", 2, 14),
        ("E0104", 3, 6),
        ("E0101", 4, 12),
        ("E0102", 8, 11),
        ("E0107", 9, 15),
        ("E0103", 11, 9),
        ("E0101", 13, 14),
    ]


def test_a_bracket_that_is_never_closed_ends_at_the_next_keyword() -> None:
    program = in_model("a = exp((x", "b = (x + 1)", "return x y")
    assert errors(program) == [("E0104", 2, 13), ("E0101", 4, 14)]


def test_a_block_that_is_never_closed_ends_at_the_next_item() -> None:
    program = "def f(x) {\n    return x\n\ndef g(x) {\n    return x +\n}\n"
    assert errors(program) == [("E0104", 1, 10), ("E0101", 5, 15)]


def test_no_more_than_twenty_and_a_count() -> None:
    program = in_model(*[f"v{i} = x ~ 1" for i in range(50)], "return x")
    found = diagnostics(program)
    assert len(found) == 20
    assert found[-1].notes == ("30 more errors are not shown",)
    assert "= note: 30 more errors are not shown" in render(found[-1])


@each_row(
    ("program", "message", "help"),
    [
        (
            in_model("y = x x", "return y"),
            "expected an operator or the end of the line, found x",
            "one statement a line",
        ),
        (in_model("y = return", "return y"), "expected a value, found return", "`return`"),
        (in_model("f(x)", "return y"), 'expected "," or "=", found "("', "a statement is name = value"),
        ("model m(x: f32[3]) -> y {\n    return x\n}\n", 'expected "(", found y', "in parentheses: -> (y)"),
        ("const a: f32 = 1\n", 'expected "[", found "="', "a scalar is f32[]"),
        ("dim in in 1..8\n", "expected a name, found in", "`in`"),
        (in_model("y = z = x", "return y"), 'found "="', "== compares"),
        (in_model("y = x as f32[0]", "return y"), 'found "["', "(x as f32)[0]"),
        (in_model("// a comment", "return y"), 'found "//"', "a comment begins with #"),
        ("// a comment\n" + in_model("return x"), '"//" is outside', "a comment begins with #"),
        ("const a = 1\n", 'expected ":"', "const w: f32[4] = ..."),
        (in_model("a, b = x, n", "return y"), 'found ","', "several names take the results of one call"),
        (in_model("y = f(x x)", "return y"), "found x", "a comma may be missing"),
    ],
)
def test_messages_say_what_was_expected(program: str, message: str, help: str) -> None:
    (found,) = diagnostics(program)
    assert message in found.message
    assert help in found.help


@each_row(
    ("program", "help"),
    [
        ("dim a\n", "bounds follow in: dim a in 1..64"),
        ("model (x: f32[3]) -> (y) {\n    return x\n}\n", "it needs a name: model name(...)"),
        ("def (x) {\n    return x\n}\n", "it needs a name: def name(...)"),
        (
            "def f(a, x: f32[3]) {\n    return x\n}\n",
            "the parameters of a def have no types: it takes any dtype and shape",
        ),
        ("def f(x) -> (y) {\n    return x\n}\n", "a def does not name its results: its block returns them"),
        ("def f(a, k=2) {\n    return a\n}\n", "put a * before it: *, k=..."),
        ("model m(a) -> (y) {\n    return a\n}\n", "each input has a type, such as a: f32[N, 3]"),
        ("model m(x: f32[3]) -> (y): return x\n", "a block is in braces: { return ... }"),
        ("model m(x: f32[3] in 0) -> (y) {\n    return x\n}\n", "a range has two bounds: in 0.0..1.0"),
        (in_model("y = x +", "return y"), "write a value behind +, or take it away"),
        (in_model("return x").replace("\n", "\r"), r"lines end with \n or \r\n: save the file with one of these"),
    ],
)
def test_help_of_syntax_errors(program: str, help: str) -> None:
    assert diagnostics(program)[0].help == help
