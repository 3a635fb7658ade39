"""Names: what has one, what may have it, and what is told where it has none."""

from __future__ import annotations

import pytest
from text_helpers import codes, diagnostics, errors, graph_of, in_model, source

from dmlc import text
from dmlc.diagnostics import DmlcError
from tests.rows import each_row


@each_row(
    ("program", "expected"),
    [
        (in_model("y = q", "return y"), [("E0202", 2, 9)]),
        (in_model("y = y", "return y"), [("E0202", 2, 9)]),
        (in_model("z = y", "y = x", "return y"), [("E0202", 2, 9)]),
        (in_model("y = softmax", "return y"), [("E0202", 2, 9)]),
        (in_model("y = f32", "return y"), [("E0202", 2, 9)]),
        (in_model("y = first", "return y"), [("E0202", 2, 9)]),
        (in_model("y = _", "return y"), [("E0202", 2, 9)]),
        (in_model("y = argmx(x)", "return y"), [("E0203", 2, 9)]),
        (in_model("y = x(x)", "return y"), [("E0203", 2, 9)]),
        (in_model("y = f32(x)", "return y"), [("E0203", 2, 9)]),
        (in_model("y = np.exp(x)", "return y"), [("E0203", 2, 9)]),
        (in_model("y = onnx(x)", "return y"), [("E0203", 2, 9)]),
        (in_model('y = load("a.npy")', "return y"), [("E0203", 2, 9)]),
        (in_model("y = add(x, x)", "return y"), [("E0203", 2, 9)]),
        (in_model("y = x", "y = x", "return y"), [("E0204", 3, 5)]),
        (in_model("x = n", "return x"), [("E0204", 2, 5)]),
        (in_model("a, a = top_k(x, k=1)", "return a"), [("E0204", 2, 8)]),
        (in_model("true = x", "return x"), [("E0205", 2, 5)]),
        (in_model("none = x", "return x"), [("E0205", 2, 5)]),
        (in_model("_, _ = top_k(x, k=1)", "return x"), []),
        (in_model("`_` = x + 1", "return `_`"), []),
        (in_model("return x", inputs="x: f32[4], x: f32[4]"), [("E0204", 1, 20)]),
        (in_model("return x", inputs="x: f32[4], inf: f32[4]"), [("E0205", 1, 20)]),
        (in_model("return x, x", results="a, a"), [("E0204", 1, 44)]),
        (in_model("return x", results="x"), [("E0210", 1, 41)]),
        (in_model("return x", results="none"), [("E0205", 1, 41)]),
        (in_model("return x", results="_"), [("E0205", 1, 41)]),
        (in_model("return x, n"), [("E0207", 2, 5)]),
        (in_model("return x", results="a, b"), [("E0207", 2, 5)]),
        (in_model("return foo"), [("E0202", 2, 12)]),
        (in_model("y = top_k(x, k=1)", "return x"), [("E0207", 2, 5)]),
        (in_model("a, b, c = top_k(x, k=1)", "return x"), [("E0207", 2, 5)]),
        (in_model("a, b = x", "return x"), [("E0207", 2, 5)]),
        (in_model("a, b = exp(x)", "return x"), [("E0207", 2, 5)]),
        (in_model("y = exp(top_k(x, k=1))", "return x"), [("E0207", 2, 13)]),
        (in_model("y = top_k(x, k=1) + 1", "return x"), [("E0207", 2, 9)]),
        (in_model("y = top_k(x, k=1) |> exp()", "return x"), [("E0207", 2, 9)]),
        (in_model("return top_k(x, k=1)"), [("E0207", 2, 12)]),
        (in_model("a, b = (top_k(x, k=1))", "return a"), []),
        (in_model("a, b, c = split(x, axis=0, sizes=[1, 1, 2])", "return c"), []),
        (in_model("a = split(x, axis=0, sizes=[4])", "return a"), []),
        ("dim a in 1..2\ndim a in 1..3\n" + in_model("return x"), [("E0204", 2, 5)]),
        ("const a: f32[] = 1\nconst a: f32[] = 2\n" + in_model("return x"), [("E0204", 2, 7)]),
        ("const a: f32[] = 1\ndim a in 1..3\n" + in_model("return x"), [("E0204", 2, 5)]),
        ("const a: f32[] = 1\n" + in_model("a = x", "return x"), [("E0204", 3, 5)]),
        ("const x: f32[] = 1\n" + in_model("return x"), [("E0204", 2, 9)]),
        ("const N: i64[] = 5\n" + in_model("return x", inputs="x: f32[N]"), [("E0204", 2, 16)]),
        ("const nan: f32[] = 1\n" + in_model("return x"), [("E0205", 1, 7)]),
        (in_model("return x") + in_model("return x"), [("E0204", 4, 7), ("E0209", 0, 0)][:1]),
        ("const a: f32[] = 1\n", [("E0209", 0, 0)]),
    ],
)  # fmt: skip
def test_places(program: str, expected: list[tuple[str, int, int]]) -> None:
    assert errors(program) == expected


@each_row(
    ("program", "message", "help"),
    [
        (in_model("logits = x", "y = logit", "return y"), "nothing is named logit", 'did you mean "logits"?'),
        (in_model("y = argmx(x)", "return y"), "there is no operation argmx", 'did you mean "argmax"?'),
        (in_model("y = mean(x)", "return y"), "there is no operation mean", 'did you mean "reduce_mean"?'),
        (in_model("y = mul(x, x)", "return y"), "there is no operation mul", "write x * x"),
        (in_model("y = x(1)", "return y"), "x is a value, not an operation", ""),
        (in_model("y = relu", "return y"), "no value is named relu; it is called with operands", "write relu(...)"),
        (in_model("y = x as float16", "return y"), "float16 is not a dtype", 'did you mean "f16"?'),
        (in_model("y = argmax(x, ties=frist)", "return y"), "ties must be first or last, not frist", '"first"'),
        (in_model("y = argmax(x, axs=1)", "return y"), "argmax has no attribute axs", '"axes"'),
        (
            in_model("y = top_k(x, k=2)", "return y"),
            "top_k gives 2 results, and 1 name is before =",
            "write y, _ = top_k(x, k=2)",
        ),
    ],
)
def test_messages(program: str, message: str, help: str) -> None:
    found = diagnostics(program)[0]
    assert found.message == message
    assert help in found.help


def test_values_and_operations_are_separate_namespaces() -> None:
    program = in_model("max = reduce_max(x)", "softmax = max + x", "y = softmax(softmax)", "return y")
    assert codes(program) == []
    assert codes("model softmax(max: f32[4]) -> (exp) {\n    return exp(max)\n}\n") == []


def test_a_value_named_like_a_word_does_not_hide_the_word() -> None:
    program = in_model("first = x + 1", "f32 = first * 2", "y = argmax(f32, ties=first)", "return first as f32")
    assert codes(program) == []


def test_names_reach_the_graph_verbatim() -> None:
    graph = graph_of("model `my model`(`a.b:0`: f32[4], unused: i8[N]) -> (`x y`, again) {\n    z = `a.b:0` + 1\n"
                     "    return z, `a.b:0`\n}\n")  # fmt: skip
    assert graph.name == "my model"
    assert [value.name for value in graph.inputs] == ["a.b:0", "unused"]
    assert [name for name, _ in graph.outputs] == ["x y", "again"]
    assert [node.result.name for node in graph if node.operands] == ["z"]


def test_results_may_repeat_and_be_inputs() -> None:
    graph = graph_of("model m(x: f32[4]) -> (a, b, c) {\n    y = x + 1\n    return y, y, x\n}\n")
    assert [value.name for _, value in graph.outputs] == ["y", "y", "x"]


def test_a_mistake_silences_what_hangs_on_it() -> None:
    program = in_model("a = foo", "b = exp(a) + 1", "c, d = top_k(b, k=1)", "e = bar", "return c + d * e")
    assert errors(program) == [("E0202", 2, 9), ("E0202", 5, 9)]


def test_mistakes_of_all_stages_come_together_in_order() -> None:
    program = """dim N in 3..1
const w: f32[2] = [1]
def f(a) {
    return a + nothing
}
model m(x: f32[N], y: floot[4]) -> (z: f32[K]) {
    a = x + [1]
    b = f(x)
    return b
}
"""
    assert errors(program) == [
        ("E0333", 1, 10),
        ("E0334", 2, 19),
        ("E0202", 4, 16),
        ("E0211", 6, 23),
        ("E0335", 7, 13),
    ]


SEVERAL = "model one(x: f32[4]) -> (y) {\n    return x\n}\nmodel two(x: f32[5]) -> (y) {\n    return x\n}\n"


def test_one_of_several_models() -> None:
    assert text.load(source(SEVERAL), model="two").name == "two"
    assert text.load(source(SEVERAL), model="one").inputs[0].shape == (4,)
    (several,) = diagnostics(SEVERAL)
    assert several.code.id == "E0209"
    assert "one, two" in several.help
    (unknown,) = diagnostics(SEVERAL, model="tow")
    assert unknown.code.id == "E0209"
    assert 'did you mean "two"? models of this file: one, two' in unknown.help
    (wrong,) = diagnostics(in_model("return x"), model="k")
    assert wrong.code.id == "E0209"


def test_names_in_the_other_models_are_looked_at() -> None:
    program = SEVERAL.replace("return x\n}\nmodel two", "return q\n}\nmodel two")
    with pytest.raises(DmlcError) as error:
        text.load(source(program), model="two")
    assert [d.code.id for d in error.value.diagnostics] == ["E0202"]


def test_an_operator_is_called_with_its_domain() -> None:
    (found,) = diagnostics(in_model("y = com.microsoft.FastGelu(x)", "return y"))
    assert "onnx.com.microsoft.FastGelu(...)" in str(found.help)
