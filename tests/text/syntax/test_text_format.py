"""The formatter: one layout, every comment kept, the same tree, and nothing left to change."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from text_helpers import source

from dmlc import text
from dmlc.diagnostics import DmlcError
from dmlc.text.syntax import parser
from tests.rows import each_row


def formatted(program: str) -> str:
    """The canonical text, after the checks that hold for every program."""
    once = text.format_source(source(program))
    assert text.parse(source(once)) == text.parse(source(program))
    assert text.format_source(source(once)) == once
    assert comments(program) == comments(once)
    assert once.endswith("\n") and not once.endswith("\n\n")
    assert not re.search(r"[ \t\r]\n|\n\n\n|\t", once)
    return once


def comments(program: str) -> list[str]:
    return sorted(token.text.rstrip() for token in parser.lex(source(program)).comments)


def statement(line: str) -> str:
    """One statement of a model, formatted."""
    out = formatted(f"model m(x: f32[4]) -> (y) {{\n{line}\nreturn x\n}}")
    return "\n".join(row[4:] for row in out.splitlines()[1:-2])


@each_row(
    ("written", "expected"),
    [
        ("y=x+1", "y = x + 1"),
        ("y = -x**-2", "y = -x ** -2"),
        ("y = x - - x", "y = x - -x"),
        ("y = ! ( x<1 )", "y = !(x < 1)"),
        ("y = ( x+1 )*2", "y = (x + 1) * 2"),
        ("y = x as   f16", "y = x as f16"),
        ("y=argmax( x,axes = [ 1,-2 ],ties=first )", "y = argmax(x, axes=[1, -2], ties=first)"),
        ("a ,_=top_k(x , k = 5)", "a, _ = top_k(x, k=5)"),
        ("y = x|>exp( )|>f(1)", "y = x |> exp() |> f(1)"),
        ("y = x\n|>exp()", "y = x\n    |> exp()"),
        ("y = onnx . com.microsoft . Foo( x,s = \"a,b\" )", 'y = onnx.com.microsoft.Foo(x, s="a,b")'),
        ("`a b` = [ ]", "`a b` = []"),
        ("y = [[1,2],[3]]", "y = [[1, 2], [3]]"),
        ("y = f(\n  x,\n  1\n)", "y = f(x, 1)"),
        ("y = f(\n  x,\n  1,\n)", "y = f(\n    x,\n    1,\n)"),
        ("y = f(x,)", "y = f(\n    x,\n)"),
        ("y = [1,2,]", "y = [\n    1, 2,\n]"),
        ("y = x#c", "y = x  #c"),
        ("# own\n\n\n\ny = x", "# own\n\ny = x"),
        ("y = f(x, # one\n1)", "y = f(\n    x,  # one\n    1,\n)"),
        ("y = f( # one\nx)", "y = f(  # one\n    x,\n)"),
        ("y = f(x\n# one\n)", "y = f(\n    x,\n    # one\n)"),
        ("y = f(\n# one\n)", "y = f(\n    # one\n)"),
        ("y = (x + # one\n1)", "y = (\n    x + 1  # one\n)"),
        ("y = (x # one\n+ 1 # two\n)", "y = (\n    # one\n    x + 1  # two\n)"),
        ("y = x # one\n# two\n|> exp() # three", "y = x  # one\n    # two\n    |> exp()  # three"),
    ],
)  # fmt: skip
def test_statements(written: str, expected: str) -> None:
    assert statement(written) == expected


def test_long_lines_are_opened_at_their_widest_bracket() -> None:
    names = [f"argument_number_{i}" for i in range(6)]
    assert statement(f"y = f({', '.join(names)}, g(x))") == "\n".join(
        ["y = f(", *[f"    {name}," for name in names], "    g(x),", ")"]
    )
    assert statement(f"y = {'x' * 60} |> {'f' * 60}(x)") == f"y = {'x' * 60}\n    |> {'f' * 60}(x)"
    long = "y = " + " + ".join(["x" * 20] * 8)
    assert statement(long) == long, "there is no bracket to open"


def test_a_line_may_have_a_hundred_characters() -> None:
    """The four of the indentation count, a comment behind the line does not."""
    assert statement(f"y = f({'x' * 86}, x)  # a comment") == f"y = f({'x' * 86}, x)  # a comment"
    assert statement(f"y = f({'x' * 86}, x)") == f"y = f({'x' * 86}, x)"
    assert statement(f"y = f({'x' * 87}, x)") == f"y = f(\n    {'x' * 87},\n    x,\n)"


def test_numbers_fill_their_lines() -> None:
    numbers = ", ".join(str(i * 1000) for i in range(40))
    out = formatted(f"const w: i64[40] = [{numbers}]\nmodel m() -> (y) {{ return w }}")
    assert out.splitlines()[0] == "const w: i64[40] = ["
    assert out.splitlines()[1].startswith("    0, 1000, 2000, 3000,")
    assert max(map(len, out.splitlines())) <= 100
    assert out.splitlines()[5] == "model m() -> (y) {" or "]" in out.splitlines()[3:6]


def test_blocks_stand_apart() -> None:
    program = """dim N in 1..4
# about f
def f(x) { return x } # after f
# about g

# more about g
def g(x) {

    y = x


    return y

}
const w: f32[] = 1
const v: f32[] = 2

model m(x: f32[N]) -> (y) { return f(g(x)) }
# the end"""
    assert (
        formatted(program)
        == """dim N in 1..4

# about f
def f(x) {
    return x
}  # after f

# about g

# more about g
def g(x) {
    y = x

    return y
}

const w: f32[] = 1
const v: f32[] = 2

model m(x: f32[N]) -> (y) {
    return f(g(x))
}

# the end
"""
    )


def test_heads() -> None:
    program = """model  m ( x : f32 [ N , 3 ] ,y:f16[ ] )->( a:f32[N*2,1] , b , ){ return x,y }"""
    assert (
        formatted(program)
        == """model m(x: f32[N, 3], y: f16[]) -> (
    a: f32[N * 2, 1],
    b,
) {
    return x, y
}
"""
    )
    head = "def f( a,b , * , k , t = f32,ax=[ 1 ] ){ return a }\nmodel m() -> (y) { return 1 as f32 }"
    assert formatted(head).startswith("def f(a, b, *, k, t=f32, ax=[1]) {\n")
    assert formatted("dml 1\ndim  N  in  1 .. 4\nmodel m() -> (y) { return 1 as f32 }").startswith(
        "dml 1\ndim N in 1..4\n"
    )


def test_line_ends_become_newlines() -> None:
    program = "model m(x: f32[4]) -> (y) {  # c\r\n    return x\r\n}\r\n"
    assert formatted(program.replace("\r", "")) == text.format_source(source(program))


def test_what_is_no_program_is_not_formatted() -> None:
    for program in ("model", "", "model m(x: f32[4]) -> (y) {\n    return x +\n}\n"):
        with pytest.raises(DmlcError):
            text.format_source(source(program))


def test_what_means_nothing_is_formatted_all_the_same() -> None:
    """Only the syntax counts: a program under work has names that nothing defines."""
    assert formatted("model m(x: f33[4])->(y){ return argmx(z) }").splitlines()[1] == "    return argmx(z)"


# --- any program

_NAMES = st.sampled_from(["x", "y", "a1", "`quoted name`", "softmax", "first", "f32", "σ"])
_NUMBERS = st.sampled_from(["0", "1", "2.5", "1e-6", "0x1f", "1_000", ".5"])
_OPERATORS = st.sampled_from(["|", "^", "&", "+", "-", "*", "/", "//", "%", "**"])
_GAPS = st.sampled_from(["", " ", "  ", "\t"])
_BREAKS = st.sampled_from(["", "", " ", "\n", "\n\n  ", " # c\n", "\n# own\n", " # c\n # d\n"])


@st.composite
def _call(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    callee = draw(st.sampled_from(["f", "exp", "onnx.Relu", "onnx.com.microsoft.F", "`g h`"]))
    operands = draw(st.lists(inner, max_size=3))
    names = draw(st.lists(st.sampled_from(["k", "axes", "t"]), unique=True, max_size=2))
    items = operands + [f"{name}{draw(_GAPS)}={draw(_GAPS)}{draw(inner)}" for name in names]
    return f"{callee}{draw(_GAPS)}({_items(draw, items)})"


def _items(draw: st.DrawFn, items: list[str]) -> str:
    out = draw(_BREAKS)
    for i, item in enumerate(items):
        out += item + draw(_BREAKS)
        if i + 1 < len(items) or draw(st.booleans()):
            out += "," + draw(_BREAKS)
    return out


@st.composite
def _list(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    return f"[{_items(draw, draw(st.lists(inner, max_size=4)))}]"


@st.composite
def _infix(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    left, right = draw(inner), draw(inner)
    return f"{left} {draw(_GAPS)}{draw(_OPERATORS)}{draw(_GAPS)} {right}"


@st.composite
def _paren(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    return f"({draw(_BREAKS)}{draw(inner)}{draw(_BREAKS)})"


_LEAVES = _NAMES | _NUMBERS | st.just('"a # b"')
_EXPRESSIONS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        _call(inner),
        _list(inner),
        _infix(inner),
        _paren(inner),
        _paren(inner).map(lambda e: f"- {e}"),
        _LEAVES.map(lambda e: f"!{e}"),
        _LEAVES.map(lambda e: f"{e} as f16"),
    ),
    max_leaves=12,
)


@st.composite
def _statement(draw: st.DrawFn) -> str:
    out = f"{draw(_GAPS)}v{draw(_GAPS)}={draw(_GAPS)}{draw(_EXPRESSIONS)}"
    for _ in range(draw(st.integers(0, 2))):
        out += draw(st.sampled_from([" ", "\n", " # p\n", "\n\n# q\n"])) + "|> " + draw(_call(_EXPRESSIONS))
    return out + draw(st.sampled_from(["\n", " # end\n", "\n\n\n", "\n# between\n"]))


@st.composite
def _program(draw: st.DrawFn) -> str:
    body = "".join(draw(st.lists(_statement(), max_size=4)))
    inputs = draw(st.lists(st.sampled_from(["x: f32[N]", "`i n`:f16[ ]", "z : i8[N*2, 3,]"]), max_size=3))
    results = draw(st.lists(st.sampled_from(["y", "r: f32[N]"]), min_size=1, max_size=3))
    head = f"model m({_items(draw, inputs)}) -> ({_items(draw, results)}) {{"
    top = draw(st.sampled_from(["", "dml 1\n", "# top\n\n\ndim N in 1..4\n", "def f(x,*,k=1){ return x }\n"]))
    return (
        f"{top}{head}{draw(st.sampled_from(['', ' # head']))}\n{body}return x\n}}{draw(st.sampled_from(['', '# e']))}"
    )


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(_program())
def test_any_program(program: str) -> None:
    try:
        text.parse(source(program))
    except DmlcError as error:
        # Only what the generator cannot avoid: a pipe behind an operator, say.
        assert {d.code.id for d in error.diagnostics} <= {"E0108", "E0201", "E0101"}
        return
    formatted(program)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.text(alphabet=st.sampled_from(list('amx1.,:=+-*/|>(){}[]"`# \n')), max_size=60))
def test_any_text_is_read_or_refused(program: str) -> None:
    try:
        text.format_source(source("model m() -> (y) {\n" + program + "\nreturn x\n}"))
        text.load(source(program))
    except DmlcError as error:
        assert all(d.code.id[:3] in ("E01", "E02", "E03") for d in error.diagnostics)


_TOKENS = st.sampled_from(
    ["model", "m", "(", ")", "x", ":", "f32", "[", "]", "->", "{", "}", "\n", "return", "=", "|>", "exp", ",", "1", "+",
     "**", "-", "as", "dim", "in", "..", "const", "def", "*", "load", '"a"', "N", "#c\n", "onnx", ".", "top_k", "k"]
)  # fmt: skip


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.lists(_TOKENS, max_size=40))
def test_any_tokens_are_read_or_refused(tokens: list[str]) -> None:
    try:
        text.load(source("model m(x: f32[N]) -> (y) {\n    y = x + " + " ".join(tokens) + "\n    return y\n}\n"))
    except DmlcError as error:
        assert error.diagnostics
        for diagnostic in error.diagnostics:
            assert diagnostic.code.id[0] == "E"
            span = diagnostic.span
            assert span is None or span.line >= 1
