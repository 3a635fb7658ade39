"""Indexing: NumPy's basic indexing of tensors with fixed and open sizes, and of lists of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from text_helpers import codes, diagnostics, in_model, types_of

import dmlc
from dmlc.diagnostics import Source
from dmlc.text import format_source
from tests.rows import each_row

X = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
#: These mean the same in Python.
INDICES = (
    "x[0]", "x[-1]", "x[3]", "x[:, 1:4]", "x[..., -1]", "x[::-1]", "x[0, 1, 2]", "x[0][1][2]", "x[1:3, ::2, -2]",
    "x[:, :, ::-2]", "x[..., 1:, 0]", "x[0, ...]", "x[...]", "x[:]", "x[-3:-1]", "x[:, -2:]", "x[3:1:-1]",
    "x[:, 4:1:-2]", "x[:, ::-1, ::-1]", "x[2, ..., 3]", "x[1:, :-1]", "x[..., 0, :]", "x[-4]", "x[:, -1::-2]",
    "(x + 1)[0, 1:]", "-x[0] ** 2", "2 ** -x[0, 0]", "x[0] * x[1, :1]", "x[0:4:3]", "x[:, 1:4][..., ::2][0]",
)  # fmt: skip
#: Clamps that no open size decides.
CLAMPED = ("x[100:]", "x[-100:2]", "x[:100]", "x[2:1]", "x[:, 9:0:-1]", "x[:, ::100]", "x[:, 4:100]")


def _compiled(expression: str, shape: str, target: str) -> dmlc.Program:
    program = in_model(f"return {expression}", inputs=f"x: f32[{shape}]")
    return dmlc.compile(Source("t.dml", program), target=target)


@pytest.mark.parametrize("target", ["cpu", "directml", "onnx", "numpy"])
@each_row("shape", ["4, 5, 6", "A, B, C"])
@each_row("expression", INDICES)
def test_indices_mean_what_they_mean_in_numpy(expression: str, shape: str, target: str) -> None:
    program = _compiled(expression, shape, target)
    expected = eval(expression, {"x": X})  # the language's text is Python's
    for backend in ("reference", "numpy" if target == "numpy" else "cpu"):
        np.testing.assert_allclose(program.run({"x": X}, backend=backend)["y"], expected, rtol=1e-5)


@each_row("expression", CLAMPED)
def test_slices_of_fixed_sizes_are_clamped(expression: str) -> None:
    expected = eval(expression, {"x": X})
    assert types_of(in_model(f"return {expression}", inputs="x: f32[4, 5, 6]")) == [
        f"f32[{', '.join(map(str, expected.shape))}]"
    ]
    for target in ("cpu", "numpy"):
        np.testing.assert_array_equal(_compiled(expression, "4, 5, 6", target).run({"x": X})["y"], expected)


@each_row("step", [-3, -2, -1, 1, 2, 3, None])
@each_row("stop", [-9, -5, -1, 0, 2, 5, 9, None])
def test_every_slice_of_a_small_axis(step: int | None, stop: int | None) -> None:
    x = np.arange(5, dtype=np.float32)
    texts = {i: "" if i is None else str(i) for i in (-9, -5, -2, 0, 3, 5, 9, stop, step, None)}
    starts = [-9, -5, -2, 0, 3, 5, 9, None]
    lines = [f"y{n} = x[{texts[i]}:{texts[stop]}:{texts[step]}]" for n, i in enumerate(starts)]
    names = ", ".join(f"y{n}" for n in range(len(starts)))
    program = dmlc.compile(Source("t.dml", in_model(*lines, f"return {names}", inputs="x: f32[5]", results=names)))
    for backend in ("reference", "cpu"):
        out = program.run({"x": x}, backend=backend)
        for n, i in enumerate(starts):
            np.testing.assert_array_equal(out[f"y{n}"], x[i:stop:step])


def test_items_are_dims_and_expressions_of_them() -> None:
    program = in_model(
        "a = x[N - 1]", "b = x[N // 2:]", "c = x[:, :N]", "d = x[-N]", "return a, b, c, d",
        inputs="x: f32[N, 8]", results="a: f32[8], b, c: f32[N, N], d",
    )  # fmt: skip
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    for target in ("cpu", "numpy"):
        out = dmlc.compile(Source("t.dml", program), target=target).run({"x": x})
        for name, expected in {"a": x[4], "b": x[2:], "c": x[:, :5], "d": x[0]}.items():
            np.testing.assert_array_equal(out[name], expected)


def test_an_integer_in_an_open_axis_is_left_to_run_time() -> None:
    program = _compiled("x[3]", "N", "cpu")
    assert program.run({"x": X[0, 0]})["y"] == 3
    with pytest.raises(dmlc.DmlcError):
        program.run({"x": X[0, 0, :3]})
    assert codes("dim N in 1..3\n" + in_model("return x[3]", inputs="x: f32[N]")) == ["E0341"]
    assert codes("dim N in 4..9\n" + in_model("return x[3]", inputs="x: f32[N]")) == []


def test_it_binds_tighter_than_every_operator_and_follows_calls_and_brackets() -> None:
    program = in_model("return exp(x)[0] + (x |> neg())[1] * [4, 5][1]", inputs="x: f32[3]")
    out = dmlc.compile(Source("t.dml", program)).run({"x": np.array([0, 2, 5], np.float32)})
    np.testing.assert_allclose(out["y"], 1 - 2 * 5)


def test_lists_of_numbers_are_indexed() -> None:
    block = "def f(x, *, axes, sizes) {\n    a = reduce_sum(x, axes=axes[-1]) * axes[0]\n"
    block += "    return a + sizes[1][0], iota(length=sizes[1, 1], dtype=f32)\n}\n"
    program = block + in_model("y, z = f(x, axes=[3, 0], sizes=[[1, 2], [4, 7]])", "return y, z", results="y, z")
    out = dmlc.compile(Source("t.dml", program)).run({"x": X[0, :4, :3], "n": np.zeros((4, 3), np.int32)})
    np.testing.assert_allclose(out["y"], X[0, :4, :3].sum(0, keepdims=True) * 3 + 4)
    assert out["z"].shape == (7,)


@each_row("part", ["axes[1:]", "axes[:-1]", "axes[::2]", "axes[::-2]"])
def test_lists_of_numbers_are_sliced(part: str) -> None:
    program = f"def f(x, *, axes) {{\n    return reduce_sum(x, axes={part})\n}}\n"
    program += in_model("return f(x, axes=[0, 1, 2])", inputs="x: f32[4, 5, 6]")
    out = dmlc.compile(Source("t.dml", program)).run({"x": X})
    np.testing.assert_allclose(out["y"], X.sum(tuple(eval(part, {"axes": [0, 1, 2]})), keepdims=True))


@each_row(
    "part", ["axes[::0]", "axes[0:1, 0]", "axes[size(x, axis=0):]", "axes[size(x, axis=0)]", "axes[...]", "axes[0][0]"]
)
def test_wrong_slices_of_lists(part: str) -> None:
    program = f"def f(x, *, axes) {{\n    return reduce_sum(x, axes={part})\n}}\n"
    program += in_model("return f(x, axes=[0, 1, 2])", inputs="x: f32[N, 5, 6]")
    assert codes(program) == ["E0340"]


def test_consts_are_indexed() -> None:
    program = "const c: i64[2, 3] = [[1, 2, 3], [4, 5, 6]]\n" + in_model(
        "return n + c[1, 0], iota(length=c[0][2], dtype=f32)", inputs="n: i64[2]", results="y, z"
    )
    out = dmlc.compile(Source("t.dml", program)).run({"n": np.array([0, 1])})
    assert (out["y"].tolist(), out["z"].shape) == ([4, 5], (3,))


@each_row(
    ("expression", "code", "help"),
    [
        ("x[n]", "E0340", "gather"),
        ("x[n[0]]", "E0340", "gather"),
        ("x[n + 1:]", "E0340", "gather"),
        ("x[[0, 1]]", "E0340", "gather"),
        ("x[none]", "E0340", "unsqueeze"),
        ("x[:, none]", "E0340", "unsqueeze"),
        ("x[none:2]", "E0340", ""),
        ("x[true]", "E0340", "where"),
        ("x[1.5]", "E0340", "//"),
        ("x[1 / 2]", "E0340", "1 // 2"),
        ('x["a"]', "E0340", ""),
        ("x[::0]", "E0340", ""),
        ("x[0, 0, 0]", "E0340", ""),
        ("x[..., ...]", "E0340", ":"),
        ("x[4]", "E0341", "3, or -1"),
        ("x[:, -4]", "E0341", "2, or -1"),
        ("[1, 2][2] * x", "E0341", ""),
        ("[1, 2][0.5] * x", "E0340", ""),
        ("x[]", "E0101", "..."),
        ("x as f32[0]", "E0101", "(x as f32)[0]"),
        ("x |> exp()[0]", "E0108", "(x |> f(a))[0]"),
        ("5[0]", "E0101", ""),
        ("top_k(x, k=1)[0]", "E0207", "a, b = ..."),
        ("x[2 ** 80]", "E0340", ""),
        ("x[q]", "E0202", ""),
        ("full(shape=[x[0]], value=1, dtype=f32)", "E0331", ""),
    ],
)
def test_what_is_not_an_index_says_what_to_write(expression: str, code: str, help: str) -> None:
    (found,) = diagnostics(in_model(f"y = {expression}", "return y"))
    assert found.code.id == code
    assert help in found.help


def test_indices_nest_without_recursion() -> None:
    deep = "x" + "[:]" * 20_000
    assert codes(in_model(f"return {deep}")) == []


@each_row(
    ("written", "formatted"),
    [
        ("x [ 0 ]", "x[0]"),
        ("x[ : , 1 : 4 ]", "x[:, 1:4]"),
        ("x[ ... ,-1]", "x[..., -1]"),
        ("x[ : : -1 ]", "x[::-1]"),
        ("f( x ) [ 0 ] [1:]", "f(x)[0][1:]"),
        ("(a+b) [:,0]", "(a + b)[:, 0]"),
        ("x[n+1 : m*2]", "x[n + 1:m * 2]"),
        ("x[0,]", "x[\n        0,\n    ]"),
        ("[1, 2] [0]", "[1, 2][0]"),
    ],
)
def test_the_formatter_writes_no_blanks_around_colons(written: str, formatted: str) -> None:
    text = format_source(Source("t.dml", f"model m(x: f32[3]) -> (y) {{\n    return {written}\n}}\n"))
    assert text == f"model m(x: f32[3]) -> (y) {{\n    return {formatted}\n}}\n"
    assert format_source(Source("t.dml", text)) == text


@each_row("expression", INDICES)
@each_row("shape", [(4, 5, 6), ("A", "B", "C")])
def test_tensors_of_the_builder_take_the_same(expression: str, shape: tuple[Any, ...]) -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", shape)
    g.output("y", eval(expression, {"x": x}))
    out = dmlc.compile(g, target="cpu").run({"x": X})
    np.testing.assert_allclose(out["y"], eval(expression, {"x": X}), rtol=1e-5)


def test_tensors_of_the_builder_take_dims_and_numpy_integers() -> None:
    g = dmlc.Graph("g")
    n = g.dim("N")
    x = g.input("x", "f32", (n, 8))
    g.output("y", x[n - 1, np.int64(2) : n // 2 + 4])
    x8 = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(dmlc.compile(g, target="cpu").run({"x": x8})["y"], x8[3, 2:6])


@each_row(
    ("index", "help"),
    [
        ("None", "dmlc.unsqueeze"), ("True", "dmlc.where"), ("np.bool_(True)", "dmlc.where"), ("[0, 1]", "dmlc.gather"),
        ("np.array([0, 1])", "dmlc.gather"), ("np.array(0)", "dmlc.gather"), ("x", "dmlc.gather"),
        ("x > 0", "dmlc.where"), ("np.array([True])", "dmlc.where"), ("(0, None)", "dmlc.unsqueeze"),
        ("slice(x, None)", "dmlc.gather"), ("1.5", "//"), ("'a'", "integer"), ("()", "..."),
    ],
)  # fmt: skip
def test_the_builder_refuses_other_indices_with_the_operation_to_use(index: str, help: str) -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", (4, 3))
    with pytest.raises(dmlc.DmlcError) as info:
        x[eval(index, {"np": np, "x": x})]
    assert info.value.diagnostics[0].code.id == "E0340"
    assert help in info.value.diagnostics[0].help
    assert info.value.diagnostics[0].span is not None


def test_tensors_of_the_builder_are_not_iterable() -> None:
    x = dmlc.Graph("g").input("x", "f32", (4, 3))
    with pytest.raises(TypeError, match="iterable"):
        list(x)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="iterable"):
        _, _ = x  # type: ignore[misc]
    with pytest.raises(dmlc.DmlcError, match="E0341"):
        x[4]
