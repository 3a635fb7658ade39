"""Sizes that a program computes from shapes are known where ONNX operators take them."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

#: Statements that end in ``r``, and its type for ``x: f32[N, M, 4]``.
PROGRAMS = {
    "a size": ("n = onnx.Shape(x)[0]\nr = onnx.Range(0 as i64, n, 1 as i64)", "i64[N]"),
    "the number of elements": ("r = onnx.Range(0 as i64, onnx.Size(x), 1 as i64)", "i64[4 * M * N]"),
    "gathered": ("n = gather(onnx.Shape(x), 1 as i64)\nr = onnx.Range(0 as i64, n, 1 as i64)", "i64[M]"),
    "gathered from the end": ("n = gather(onnx.Shape(x), -2 as i64)\nr = onnx.Range(0 as i64, n, 1 as i64)", "i64[M]"),
    "joined": (
        "s = onnx.Shape(x)\nt = concat(s[2:], s[:1], axis=0)\nr = onnx.Expand(1.0 as f32, t)",
        "f32[4, N]",
    ),
    "computed": ("n = onnx.Shape(x)[1] * 2 + 1\nr = onnx.Range(0 as i64, n, 1 as i64)", "i64[2 * M + 1]"),
    "halved": ("n = onnx.Div(onnx.Shape(x)[1], 2)\nr = onnx.Range(0 as i64, n, 1 as i64)", "i64[M // 2]"),
    "cast": ("n = onnx.Shape(x)[1] as i32\nr = onnx.Range(0 as i32, n, 1 as i32)", "i32[M]"),
    "a dim as a number": ("n = full(shape=[1], value=M, dtype=i64)\nr = onnx.Expand(1.0 as f32, n)", "f32[M]"),
    "of what is computed": ("r = onnx.Expand(1.0 as f32, onnx.Shape(x + 1))", "f32[N, M, 4]"),
    "chosen": ("s = onnx.Shape(x)\nr = onnx.Expand(1.0 as f32, where(true as bool, s, s * 2))", "f32[N, M, 4]"),
    "an input's": ("r = onnx.Expand(1.0 as f32, k)", "f32[unknown_0]"),
    "partly an input's": (
        "t = concat(onnx.Shape(x)[:1], k, axis=0)\nr = onnx.Expand(1.0 as f32, t)",
        "f32[N, unknown_0]",
    ),
    "gathered at an input": ("n = gather(onnx.Shape(x), k)\nr = onnx.Expand(1.0 as f32, n)", "f32[unknown_0]"),
    "narrowed": ("n = onnx.Shape(x)[1:2] as i8\nr = onnx.Expand(1.0 as f32, n as i64)", "f32[unknown_0]"),
    "converted to f32": ("n = onnx.Shape(x)[1:2] as f32\nr = onnx.Expand(1.0 as f32, n as i64)", "f32[unknown_0]"),
    "a difference": ("n = onnx.Shape(x)[1] - 9\nr = onnx.Range(0 as i64, n, 1 as i64)", "i64[unknown_0]"),
}


def type_of(statements: str, **options: object) -> str:
    lines = "".join([f"    {line}\n" for line in statements.split("\n")])
    text = f"model m(x: f32[N, M, 4], k: i64[1]) -> (r, same, kk) {{\n{lines}    return r, x, k\n}}\n"
    graph = dmlc.compile(Source("m.dml", text), target="onnx", **options).source_graph  # type: ignore[arg-type]
    return str(graph.outputs[0][1].type)


@each_row(("statements", "type"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_size_that_is_computed_from_shapes_is_known(statements: str, type: str) -> None:
    assert type_of(statements) == type


def test_the_size_follows_a_dim_that_is_bound() -> None:
    assert type_of(PROGRAMS["joined"][0], bind={"N": 3}) == "f32[4, 3]"
    assert type_of(PROGRAMS["halved"][0], bind={"M": 7}) == "i64[3]"


def test_a_result_of_a_computed_size_is_computed_with_its_dim() -> None:
    text = """
model m(x: f32[N, 4]) -> (y) {
    n = onnx.Shape(x)[0]
    t = onnx.Range(0 as i64, n, 1 as i64)
    return x * (unsqueeze(t, axes=[1]) as f32)
}
"""
    found = dmlc.compile(Source("m.dml", text), target="onnx").run({"x": np.ones((3, 4), np.float32)}, "cpu")["y"]
    np.testing.assert_array_equal(found, np.arange(3)[:, None] * np.ones((3, 4)))


def test_a_long_chain_is_followed_only_so_far() -> None:
    """One operand costs at most so many nodes, however long a program computes with sizes."""
    steps = "\n".join(["n = onnx.Shape(x)[0]", *[f"n{i} = {f'n{i - 1}' if i else 'n'} + 1" for i in range(300)]])
    assert type_of(f"{steps}\nr = onnx.Range(0 as i64, n9, 1 as i64)") == "i64[N + 10]"
    assert type_of(f"{steps}\nr = onnx.Range(0 as i64, n299, 1 as i64)") == "i64[unknown_0]"


def test_a_new_size_has_no_name_that_an_input_has() -> None:
    text = "model m(x: f32[unknown_0, 4]) -> (y) {\n    return x[:, 0] + (onnx.NonZero(x)[0] as f32)\n}\n"
    with pytest.raises(dmlc.DmlcError, match=r"E0313.*unknown_1 against unknown_0|E0313.*unknown_0 against unknown_1"):
        dmlc.compile(Source("m.dml", text))


def test_the_builder_refuses_the_name_of_a_size_that_an_operator_gives() -> None:
    g = dmlc.Graph("m")
    dmlc.onnx.NonZero(g.input("x", "f32", ("N", 4)))
    with pytest.raises(dmlc.DmlcError, match="E0204"):
        g.input("z", "f32", ("unknown_0",))
