"""Characters to tokens: numbers, names, strings, and where a newline ends a statement."""

from __future__ import annotations

from text_helpers import body_of, codes, diagnostics, errors, graph_of, in_model, source

from dmlc import text
from dmlc.text.syntax import parser
from tests.rows import each_row


def kinds(program: str) -> str:
    return " ".join(token.type for token in parser.lex(source(program)).tokens)


@each_row(
    ("written", "value"),
    [
        ("0", 0), ("12", 12), ("1_000", 1000), ("1_0_0", 100), ("0x1f", 31), ("0XfF", 255), ("0xdead_beef", 0xDEADBEEF),
        ("1.5", 1.5), (".5", 0.5), ("0.5", 0.5), ("1e-6", 1e-6), ("1E6", 1e6), ("1e+2", 100.0), ("1_0.2_5", 10.25),
        ("2.5e3", 2500.0), ("010.5", 10.5), ("1e05", 1e5),
    ],
)  # fmt: skip
def test_numbers(written: str, value: float) -> None:
    (line, _) = body_of(in_model(f"y = x * {written}", "return y", inputs="x: f64[4]"))
    assert float(line.split(" * ")[1]) == value


@each_row(
    "written",
    [
        "1__0",
        "1_",
        "0x",
        "0xg",
        "0b11",
        "0o17",
        "007",
        "1x",
        "5k",
        "1e",
        "1e+",
        "1.5.2",
        "1.5f",
        "1e5x",
        "0x_1",
        "1_.5",
    ],
)
def test_what_is_no_number(written: str) -> None:
    assert errors(in_model(f"y = x * {written}", "return y"))[0][:2] in (("E0106", 2), ("E0101", 2))


def test_a_malformed_number_is_one_error_with_a_way_out() -> None:
    program = in_model("y = x * 0b101", "return y")
    assert errors(program) == [("E0106", 2, 13)]
    assert diagnostics(program)[0].help == "write 5"


@each_row("name", ["a", "_a", "A1", "größe", "σ", "变量", "x_1", "`a b`", "`in`", "`1`", "`x:0`", "`é/ü`"])
def test_names(name: str) -> None:
    graph = graph_of(f"model m({name}: f32[4]) -> (`the result`) {{\n    return {name} + 1\n}}\n")
    assert graph.inputs[0].name == name.strip("`")
    assert graph.outputs[0][0] == "the result"


def test_a_quoted_name_is_the_same_name() -> None:
    assert codes(in_model("`y` = x + 1", "return y")) == []
    assert body_of(in_model("`true` = x + 1", "return `true`"))[0] == "`true` = x + 1.0"


@each_row(
    ("program", "column"),
    [
        ("y = x ~ 1", 11), ("y = x;", 10), ("y = 'a'", 9), ("y = x @ x", 11), ("y = x $", 11), ("y = x \\", 11),
        ("y = x \u00a0+ 1", 11), ("y = x \u2212 1", 11), ("y = x?", 10), ("y = a² + 1", 9), ("y = x \x07", 11),
        ("y = x \r + 1", 11),
    ],
)  # fmt: skip
def test_stray_characters(program: str, column: int) -> None:
    assert errors(in_model(program, "return y")) == [("E0102", 2, column)]


@each_row(
    ("statement", "expected"),
    [
        ('y = onnx.Gelu(x, approximate="tanh)', [("E0103", 2, 34)]),
        ("y = `x + 1", [("E0103", 2, 9)]),
        ("y = `` + 1", [("E0103", 2, 9)]),
        ('y = onnx.Gelu(x, approximate="t\x01")', [("E0103", 2, 34)]),
        ('y = onnx.Gelu(x, approximate="t\\q")', [("E0115", 2, 34)]),
    ],
)
def test_quotes(statement: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(in_model(statement, "return y")) == expected


@each_row(
    ("written", "meant"),
    [
        (r"a\"b", 'a"b'),
        (r"a\\b", r"a\b"),
        (r"a\\\\n", r"a\\n"),
        (r"\n\t", "\n\t"),
        (r"\\\"", '\\"'),
        ("é # {", "é # {"),
    ],
)
def test_escapes(written: str, meant: str) -> None:
    (item,) = text.parse(source(f'const a: f32[] = load("{written}")')).items
    assert item.value.operands[0].text == meant  # type: ignore[union-attr]


@each_row(
    ("program", "expected"),
    [
        ("a\nb", "NAME NL NAME NL"),
        ("\n\n a \n\n\n b\n\n", "NAME NL NAME NL"),
        ("a(\nb,\n\nc\n)\nd", "NAME LPAR NAME _COMMA NAME RPAR NL NAME NL"),
        ("a[\n1]\nb", "NAME LSQB NUMBER RSQB NL NAME NL"),
        ("a\n  |> b", "NAME PIPE NAME NL"),
        ("a # one\n\n  # two\n\n  |> b\nc", "NAME PIPE NAME NL NAME NL"),
        ("{\na\n}\nb", "LBRACE NAME NL RBRACE NL NAME NL"),
        ("{ a }", "LBRACE NAME NL RBRACE NL"),
        ("{ (\n a }", "LBRACE LPAR NAME BAD NL RBRACE NL"),
        ("a\r\nb\r\n", "NAME NL NAME NL"),
        ("a ||> b", "NAME INFIX PIPE NAME NL"),
        ("a--b", "NAME MINUS MINUS NAME NL"),
        ("1..64", "NUMBER RANGE NUMBER NL"),
        ("1.5..2.5", "NUMBER RANGE NUMBER NL"),
        ("a.b", "NAME _DOT NAME NL"),
        ("x**-y", "NAME INFIX MINUS NAME NL"),
        ("dml dml", "DML NAME NL"),
        ("def f", "DEF NAME NL"),
        ("define inn", "NAME NAME NL"),
    ],
)
def test_where_statements_end(program: str, expected: str) -> None:
    assert kinds(program) == expected


@each_row("newline", ["\r\n", "\n"])
@each_row("mark", ["", "\ufeff"])
@each_row("end", ["", "\n", "  # the end"])
def test_line_ends_and_byte_order_marks(newline: str, mark: str, end: str) -> None:
    program = mark + "dml 1\nmodel m(x: f32[4]) -> (y) {  # c\n    y = x\n        |> exp()\n    return y\n}" + end
    assert codes(program.replace("\n", newline)) == []
    bad = (mark + "dml 1\nmodel m(x: f32[4]) -> (y) {\n    return z\n}" + end).replace("\n", newline)
    assert errors(bad) == [("E0202", 3, 12)]


def test_a_pipe_may_not_follow_a_return_of_another_line() -> None:
    """The pipe joins to the line before it, whatever that is."""
    assert body_of(in_model("return x", "  # a comment", "", "  |> exp()"))[0] == "y = exp(x)"
