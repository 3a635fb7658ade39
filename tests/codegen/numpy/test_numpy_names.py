"""Names of functions, parameters and values."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy_models import Model, check, function, source

from dmlc.codegen.numpy.names import PythonNames, identifier
from dmlc.diagnostics import DmlcError
from dmlc.ops.call import CallSite
from tests.rows import each_row


@each_row(
    ("text", "name"),
    [
        ("scores", "scores"),
        ("class", "class_"),
        ("None", "None_"),
        ("match", "match"),
        ("my input", "my_input"),
        ("1st", "_1st"),
        ("größe", "größe"),
        ("ﬁt", "_t"),  # Python itself reads the ligature as "fi"
        ("", "__"),
        ("_", "__"),
        ("a.b/c:0", "a_b_c_0"),
    ],
)
def test_identifier(text: str, name: str) -> None:
    assert identifier(text) == name


def test_namespace_keeps_names_apart() -> None:
    names = PythonNames({"x"})
    assert [names.add("x"), names.add("x"), names.local("sum"), names.local("l"), names.local("class")] == [
        "x_2", "x_3", "sum_", "l_", "class_",
    ]  # fmt: skip
    assert names.constant("weights of layer") == "_WEIGHTS_OF_LAYER"
    assert names.constant("_") == "_CONSTANT"


def signature(*inputs: str, model: str = "model") -> tuple[str, list[str]]:
    made = Model(model)
    values = [made.input(name, "f32", 2) for name in inputs]
    text = source(made.returns(y=values[0]))
    found = function(text, identifier(model))
    return found.__name__, list(inspect.signature(found).parameters)


@pytest.mark.parametrize(
    ("inputs", "parameters"),
    [
        (["x", "class"], ["x", "class_"]),
        (["class", "class_"], ["class_2", "class_"]),  # one that can keep its name does
        (["a b", "a_b", "a:b"], ["a_b_2", "a_b", "a_b_3"]),
        (["np", "model", "_check"], ["np", "model", "_check"]),
        (["ValueError", "range"], ["ValueError", "range"]),
    ],
)
def test_parameters(inputs: list[str], parameters: list[str]) -> None:
    assert signature(*inputs)[1] == parameters


@pytest.mark.parametrize(
    ("model", "name"), [("lambda", "lambda_"), ("two words", "two_words"), ("isinstance", "isinstance")]
)
def test_function_is_named_as_the_model(model: str, name: str) -> None:
    assert signature("x", model=model)[0] == name


@each_row(
    "name",
    ["np", "_np", "numpy", "range", "isinstance", "list", "bytes", "int", "ValueError", "_check", "_softmax", "_rows"],
)
def test_names_that_the_file_uses_itself(name: str) -> None:
    """As the model, an input, a value and a dim."""
    rng = np.random.default_rng(0)
    model = Model(name)
    x = model.input(name, "f32", name, 3)
    i = model.input(f"{name}_2", "u32", 2)
    weights = model.constant(rng.random((600, 3)).astype(np.float32), name)
    a = model.call("softmax", model.call("matmul", x, model.call("transpose", weights)), axes=[0, 1], name=name)
    b = model.call("hardmax", a, axes=[0, 1])
    graph = model.returns(a=a, b=b, c=model.call("gather", x, i), d=model.call("one_hot", i, depth=3))
    check(graph, rng.random((4, 3)).astype(np.float32), np.array([0, 3], np.uint32))


def test_values_keep_their_names_and_outputs_give_theirs() -> None:
    model = Model()
    x = model.input("x", "f32", 4)
    p = model.call("softmax", x, name="p")
    q = model.call("argmax", model.call("+", model.call("*", p, 2.0), x))
    text = source(model.returns(winner=q, p=p))
    assert "\n        p = _softmax(x, axes=0)\n" in text
    assert "\n        winner = np.argmax(p * 2.0 + x, axis=0, keepdims=True).astype(np.uint32)\n" in text
    assert "\n    return winner, p\n" in text


def test_parentheses_only_where_they_mean_something() -> None:
    model = Model()
    x, y = model.input("x", "f32", 4), model.input("y", "f32", 4)

    def of(value: object) -> str:
        text = source(model.returns(out=value))  # type: ignore[arg-type]
        return next(line.strip()[6:] for line in text.splitlines() if line.strip().startswith("out = "))

    call = model.call
    assert of(call("-", call("-", x, y), x)) == "x - y - x"
    assert of(call("-", x, call("-", y, x))) == "x - (y - x)"
    assert of(call("*", call("+", x, y), 2.0)) == "(x + y) * 2.0"
    assert of(call("/", x, call("*", y, x))) == "x / (y * x)"
    assert of(call("**", call("neg", x), 2.0)) == "(-x) ** 2"
    assert of(call("neg", call("**", x, 3.0))) == "-(x**3)"
    assert of(call("**", x, call("**", y, -0.5))) == "x ** y**-0.5"
    assert of(call("**", -2.0, x)) == "(-2.0) ** x"
    assert of(call("not", call("&", call("<", x, y), call(">=", y, 0.0)))) == "~((x < y) & (y >= 0.0))"
    assert of(call("==", call("<", x, y), call("<", y, x))) == "(x < y) == (y < x)"
    assert of(call("cast", call("+", x, y), to="f16")) == "(x + y).astype(np.float16)"


def test_dead_nodes_leave_no_trace() -> None:
    model = Model()
    x = model.input("x", "f32", 4)
    model.call("exp", model.constant(np.ones(3, np.float32), "unused"), name="nothing")
    text = source(model.returns(y=model.call("neg", x)))
    assert "exp" not in text and "UNUSED" not in text


def test_carried_operators_are_refused() -> None:
    carried = pytest.importorskip("dmlc.inference.carried")
    model = Model()
    x = model.input("x", "f32", 4)
    node = carried.carry(model.graph, "", "Gelu", [x], {}, 1, CallSite())
    with pytest.raises(DmlcError) as caught:
        source(model.returns(y=node.results[0]))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0570"
    assert diagnostic.message == "there is no NumPy code for onnx.Gelu"
    assert "ONNX" in diagnostic.help
