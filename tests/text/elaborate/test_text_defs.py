"""``def``: hygienic macros, polymorphic, with parameters that are known while compiling."""

from __future__ import annotations

import numpy as np
from text_helpers import body_of, codes, diagnostics, errors, in_model, source, types_of

import dmlc
from dmlc.diagnostics import render
from dmlc.text.elaborate.scope import HIDEABLE
from tests.rows import each_row


def test_a_def_is_unfolded_where_it_is_called() -> None:
    program = "def centred(x, *, axes) {\n    m = reduce_mean(x, axes=axes)\n    return x - m\n}\n" + in_model(
        "y = centred(x * 2, axes=[1])", "return y"
    )
    assert body_of(program) == ["t0 = x * 2.0", "t1 = reduce_mean(t0, axes=[1])", "y = t0 - t1", "return y"]


def test_it_takes_any_dtype_and_shape() -> None:
    program = "def twice(x) {\n    return x + x\n}\n" + in_model(
        "return twice(x), twice(n), twice(x as f16), twice(reduce_sum(x, keepdims=false))", results="a, b, c, d"
    )
    assert types_of(program) == ["f32[4, 3]", "i32[4, 3]", "f16[4, 3]", "f32[]"]


def test_it_is_hygienic() -> None:
    """Names of the def and of the model do not meet, in either direction."""
    program = "def f(a) {\n    x = a * 2\n    y = x + 1\n    return y\n}\n" + in_model(
        "a = f(x)", "y = f(a)", "return y"
    )
    assert body_of(program)[:2] == ["t0 = x * 2.0", "a = t0 + 1.0"]
    assert errors("def f(a) {\n    return a + x\n}\n" + in_model("return f(x)")) == [("E0202", 2, 16)]


def test_consts_and_dims_reach_into_it() -> None:
    program = "const w: f32[] = 0.5\ndef f(a) {\n    b = w * a\n    return reshape(b, shape=[N * 3])\n}\n" + in_model(
        "return f(x)", inputs="x: f32[N, 3]"
    )
    assert types_of(program) == ["f32[3 * N]"]


def test_a_parameter_hides_a_const() -> None:
    program = "const w: f32[] = 0.5\ndef f(w) {\n    return w + 1\n}\n" + in_model("return f(x)")
    assert types_of(program) == ["f32[4, 3]"]
    local = "const w: f32[] = 0.5\ndef f(a) {\n    w = a\n    return w\n}\n" + in_model("return f(x)")
    assert errors(local) == [("E0204", 3, 5)]


def test_several_results() -> None:
    program = "def both(x) {\n    return x + 1, x - 1\n}\n" + in_model(
        "a, b = both(x)", "_, c = both(b)", "return a + c"
    )
    assert len(body_of(program)) == 6
    assert codes("def both(x) {\n    return x, x\n}\n" + in_model("return both(x)")) == ["E0207"]


def test_a_def_may_call_a_later_one() -> None:
    program = "def a(x) {\n    return b(x)\n}\ndef b(x) {\n    return x * 3\n}\n" + in_model("return a(x)")
    assert body_of(program)[0] == "y = x * 3.0"


def test_known_parameters() -> None:
    program = (
        "def f(x, *, axes, ties=last, t=i64, scale=1 + 1, keep=true) {\n"
        "    i = argmax(x, axes=axes, ties=ties, dtype=t, keepdims=keep)\n"
        "    return i * scale as t\n}\n"
    )
    lines = body_of(program + in_model("return f(x, axes=[0]), f(x, axes=1, ties=first, t=u32, scale=3, keep=false)",
                                       results="a, b"))  # fmt: skip
    assert lines[0] == "t0 = argmax(x, axes=[0], ties=last, dtype=i64)"
    assert lines[2] == "a = t0 * t1" or "2" in " ".join(lines)
    assert any("argmax(x, axes=[1], keepdims=false)" in line for line in lines)


def test_known_parameters_are_numbers_lists_dims_and_words_of_other_defs() -> None:
    program = (
        "def inner(x, *, k, how) {\n    v, _ = top_k(x, k=k, order=how, axis=0)\n    return v\n}\n"
        "def outer(x, *, k, how=largest) {\n    return inner(x, k=k // 2, how=how)\n}\n"
        "dim N in 4..8\n"
    )
    calls = in_model("return outer(x, k=N), outer(x, k=4, how=smallest)", inputs="x: f32[N]", results="a, b")
    assert types_of(program + calls) == ["f32[N // 2]", "f32[2]"]


@each_row(
    ("call", "expected"),
    [
        ("f(x)", [("E0306", 5, 9)]),
        ("f(x, k=1, k2=2)", [("E0305", 5, 19)]),
        ("f(x, x, k=1)", [("E0308", 5, 9)]),
        ("f(k=1)", [("E0308", 5, 9)]),
        ("f(a=x, k=1)", [("E0305", 5, 11)]),
        ("f(x, k=x)", [("E0331", 5, 16)]),
        ("f(x, k=exp(x))", [("E0331", 5, 16)]),
        ("f(x, k=whatever)", [("E0202", 5, 16)]),
        ("f(x, k=2)", []),
        ("x |> f(k=2)", []),
        ("x |> f(x, k=2)", [("E0308", 5, 14)]),
    ],
)
def test_calls_are_checked(call: str, expected: list[tuple[str, int, int]]) -> None:
    definition = "def f(a, *, k) {\n    return a * k\n}\n"
    assert errors(definition + in_model(f"y = {call}", "return y")) == expected


def test_a_mistake_inside_shows_the_call() -> None:
    program = (
        "def first_k(v, *, k) {\n    t, _ = top_k(v, k=k)\n    return t\n}\n"
        "def wrap(v) {\n    return first_k(v, k=9)\n}\n" + in_model("y = wrap(x)", "return y")
    )
    (found,) = diagnostics(program)
    assert (
        render(found)
        == """error[E0316]: k is 9, axis 1 has 3 elements
 --> t.dml:2:23
  |
2 |     t, _ = top_k(v, k=k)
  |                       ^ too large
6 |     return first_k(v, k=9)
  |            --------------- in this call
8 | model m(x: f32[4, 3], n: i32[4, 3]) -> (y) {
  |            --------- x has this type
9 |     y = wrap(x)
  |         ------- in this call
  = help: k is at most 3; see: dmlc explain E0316
"""
    )


def test_the_same_mistake_of_several_calls_is_told_once() -> None:
    program = "def f(v) {\n    return v + [1]\n}\n" + in_model("y = f(x) + f(n as f32)", "return y")
    assert errors(program) == [("E0335", 2, 16)]


@each_row(
    ("program", "expected"),
    [
        ("def f(x) {\n    return f(x)\n}\n", [("E0206", 1, 5)]),
        ("def f(x) {\n    return g(x)\n}\ndef g(x) {\n    return f(x)\n}\n", [("E0206", 1, 5)]),
        ("def f(x) {\n    return exp(g(x) + 1)\n}\ndef g(x) {\n    y = x |> f()\n    return y\n}\n", [("E0206", 1, 5)]),
        ("def f(x) {\n    return g(x) + g(x)\n}\ndef g(x) {\n    return x\n}\n", []),
        ("def f(x, *, k=g(1)) {\n    return x\n}\ndef g(x) {\n    return f(x)\n}\n", [("E0206", 1, 5)]),
    ],
)
def test_circles(program: str, expected: list[tuple[str, int, int]]) -> None:
    assert [e for e in errors(program + in_model("return x")) if e[0] != "E0331"] == expected
    assert ("E0206" in codes(program + in_model("return f(x)"))) is bool(expected)


_TAKEN = "softmax argmax not min f32 bool first last largest smallest increasing decreasing true inf nan none load onnx"


@each_row("name", _TAKEN.split())
def test_what_a_def_and_its_parameters_cannot_be_named(name: str) -> None:
    assert errors(f"def {name}(a) {{\n    return a\n}}\n" + in_model("return x")) == [("E0205", 1, 5)]
    assert errors(f"def f({name}) {{\n    return 1\n}}\n" + in_model("return x")) == [("E0205", 1, 7)]
    assert errors(f"def f(a, *, {name}=1) {{\n    return a\n}}\n" + in_model("return x")) == [("E0205", 1, 13)]


def test_names_twice() -> None:
    assert errors("def f(a, a) {\n    return a\n}\n" + in_model("return x")) == [("E0204", 1, 10)]
    assert errors("def f(a, *, a) {\n    return a\n}\n" + in_model("return x")) == [("E0204", 1, 13)]
    twice = "def f(a) {\n    return a\n}\n" * 2
    assert errors(twice + in_model("return x")) == [("E0204", 4, 5)]
    assert errors("def f(a) {\n    b = a\n    b = a\n    return b\n}\n" + in_model("return f(x)")) == [("E0204", 3, 5)]
    assert errors("def f(a) {\n    a = 1\n    return a\n}\n" + in_model("return f(x)")) == [("E0204", 2, 5)]


def test_names_in_a_def_that_nothing_calls_are_looked_at() -> None:
    program = (
        "def f(a, *, k, t) {\n    b = argmx(a)\n    c, d = top_k(q, k=k)\n    e = g(c, 2)\n"
        "    i = argmax(a, dtype=t, ties=k)\n    return e as t\n}\n"
        "def g(a) {\n    return a + z\n}\n"
    )
    assert errors(program + in_model("return x")) == [
        ("E0203", 2, 9),
        ("E0202", 3, 18),
        ("E0308", 4, 9),
        ("E0202", 9, 16),
    ]


def test_a_number_may_be_an_operand_and_a_result() -> None:
    program = "def f(a, b) {\n    return a * b, 2\n}\n" + in_model("p, q = f(x, 3)", "return p * q")
    assert body_of(program) == ["p = x * 3.0", "y = p * 2.0", "return y"]


@each_row("name", sorted(HIDEABLE))
def test_newer_operations_are_hidden_with_advice(name: str) -> None:
    """Programs that were written before the operation existed keep their meaning."""
    hidden = f"def {name}(a) {{\n    return a + 1\n}}\n" + in_model(f"return {name}(x)", inputs="x: f32[4]")
    made = dmlc.compile(source(hidden))
    np.testing.assert_array_equal(made.run({"x": np.zeros(4, np.float32)}, backend="reference")["y"], np.ones(4))
    assert [(d.code.id, d.labels[0].span.line) for d in made.diagnostics] == [("W0612", 1)]
    parameters = f"def f({name}, *, k=1) {{\n    return {name} * k\n}}\n" + in_model("return f(x)", inputs="x: f32[4]")
    assert [d.code.id for d in dmlc.compile(source(parameters)).diagnostics] == ["W0612"]
    plain = "def f(a) {\n    return a + 1\n}\n" + in_model(f"{name} = f(x)", f"return {name}", inputs="x: f32[4]")
    assert not dmlc.compile(source(plain)).diagnostics
