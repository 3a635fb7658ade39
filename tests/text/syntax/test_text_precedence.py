"""Operators: the language reference's table, as trees written with all their parentheses."""

from __future__ import annotations

from text_helpers import codes, errors, in_model, source

from dmlc import text
from dmlc.text.syntax import tree
from tests.rows import each_row


def grouped(expr: tree.Expr) -> str:
    """An expression with parentheses around every operation."""
    if isinstance(expr, (tree.Name, tree.Number)):
        return expr.text
    if isinstance(expr, tree.Paren):
        return grouped(expr.inner)
    if isinstance(expr, tree.Prefix):
        return f"({expr.sign}{grouped(expr.operand)})"
    if isinstance(expr, tree.Infix):
        out = grouped(expr.first)
        for sign, operand in expr.rest:
            shown = operand.callee[0].text if sign == "|>" and isinstance(operand, tree.Call) else grouped(operand)
            out = f"({out} as {shown})" if sign == "as" else f"({out}{sign}{shown})"
        return out
    assert isinstance(expr, tree.Call)
    return f"{expr.callee[0].text}({','.join(map(grouped, expr.operands))})"


def parsed(expression: str) -> tree.Expr:
    program = text.parse(source(f"model m() -> (y) {{\n    return {expression}\n}}\n"))
    (model,) = program.items
    assert isinstance(model, tree.Model)
    return model.result.values[0]


@each_row(
    ("written", "expected"),
    [
        ("a + b - c", "((a+b)-c)"),
        ("a - b + c", "((a-b)+c)"),
        ("a + b * c", "(a+(b*c))"),
        ("a * b + c", "((a*b)+c)"),
        ("a / b // c % d * e", "((((a/b)//c)%d)*e)"),
        ("a | b ^ c & d", "(a|(b^(c&d)))"),
        ("a & b ^ c | d", "(((a&b)^c)|d)"),
        ("a & b == c", "(a&(b==c))"),
        ("a == b & c == d", "((a==b)&(c==d))"),
        ("a + b < c * d", "((a+b)<(c*d))"),
        ("a * b as f16", "(a*(b as f16))"),
        ("a as f16 * b", "((a as f16)*b)"),
        ("a as f16 as f32", "((a as f16) as f32)"),
        ("-a as f16", "((-a) as f16)"),
        ("a ** b as f16", "((a**b) as f16)"),
        ("-2 ** 2", "(-(2**2))"),
        ("2 ** -x", "(2**(-x))"),
        ("2 ** -x ** 2", "(2**(-(x**2)))"),
        ("2 ** -x * 3", "((2**(-x))*3)"),
        ("2 ** -x as f32", "((2**(-x)) as f32)"),
        ("a ** b ** c", "(a**(b**c))"),
        ("-a + -b", "((-a)+(-b))"),
        ("a - -b", "(a-(-b))"),
        ("a--b", "(a-(-b))"),
        ("!a == b", "((!a)==b)"),
        ("!-!a", "(!(-(!a)))"),
        ("-(a + b) ** 2", "(-((a+b)**2))"),
        ("(a + b) * c", "((a+b)*c)"),
        ("a * b |> f", None),
        ("a * b |> f(c)", "((a*b)|>f)"),
        ("a | b |> f() |> g(x)", "(((a|b)|>f)|>g)"),
        ("(a |> f()) + 1", "((a|>f)+1)"),
        ("f(a + b * c, -d)", "f((a+(b*c)),(-d))"),
        ("a % b ** c", "(a%(b**c))"),
        ("a ^ b ^ c", "((a^b)^c)"),
    ],
)
def test_precedence(written: str, expected: str | None) -> None:
    if expected is None:
        assert codes(f"model m() -> (y) {{\n    return {written}\n}}\n") == ["E0108"]
    else:
        assert grouped(parsed(written)) == expected


@each_row("first", ["==", "!=", "<", "<=", ">", ">="])
@each_row("second", ["<", "=="])
def test_comparisons_do_not_chain(first: str, second: str) -> None:
    assert errors(in_model(f"y = x {first} x {second} x", "return y")) == [("E0107", 2, 14 + len(first))]


def test_comparisons_chain_with_parentheses() -> None:
    assert codes(in_model("y = (x < x) == (x < x)", "return y")) == []


@each_row(
    ("statement", "column"),
    [
        ("y = x |> softmax", 14),
        ("y = x |> softmax() + 1", 14),
        ("y = x |> (softmax())", 14),
        ("y = x |> -softmax()", 14),
        ("y = x |> softmax() as f16", 14),
        ("y = x |> 3", 14),
        ("y = x |> [1]", 14),
        ("y = x |> softmax ** 2 |> exp()", 14),
        ("y = x |> exp() |> softmax", 23),
    ],
)
def test_the_right_side_of_a_pipe_is_one_call(statement: str, column: int) -> None:
    assert errors(in_model(statement, "return y")) == [("E0108", 2, column)]


def test_a_pipe_gives_several_results() -> None:
    assert codes(in_model("y, i = x * 2 |> top_k(k=2)", "return y")) == []


def test_a_pipe_into_a_def_and_an_onnx_operator() -> None:
    program = "def f(a, b, *, k) {\n    return a + b * k\n}\n" + in_model(
        "y = x |> f(x, k=2) |> onnx.Relu()", "return y"
    )
    assert codes(program) == []
