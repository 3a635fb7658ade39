"""``size(x)`` and ``like=x``: blocks that know the sizes and dtypes of their operands."""

from __future__ import annotations

import numpy as np
import pytest
from text_helpers import body_of, codes, diagnostics, in_model, types_of

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

BLOCK = """
def centre(x, *, axis) {
    at = iota(length=size(x, axis=axis), like=x)
    half = (size(x, axis=axis) - 1) / 2
    return reduce_sum(x * (at - half), axes=[axis]) / size(x) + full(shape=[], value=0, like=x)
}
"""


@each_row("target", ["cpu", "directml", "numpy"])
@each_row("shape", ["4, 6", "N, M", "N, 6"])
@each_row("dtype", ["f32", "f16", "f64"])
def test_a_block_knows_the_sizes_and_dtypes_of_its_operands(dtype: str, shape: str, target: str) -> None:
    program = BLOCK + in_model("return centre(x, axis=-1)", inputs=f"x: {dtype}[{shape}]")
    x = np.arange(24).reshape(4, 6).astype({"f32": "f4", "f16": "f2", "f64": "f8"}[dtype]) / 24
    out = dmlc.compile(Source("t.dml", program), target=target).run({"x": x})["y"]
    assert out.dtype == x.dtype
    expected = (x.astype("f8") * (np.arange(6) - 2.5)).sum(-1, keepdims=True) / 24
    np.testing.assert_allclose(out, expected, rtol=1e-2 if dtype == "f16" else 1e-5)


@each_row(
    ("call", "types"),
    [
        ("iota(length=size(x, axis=1), dtype=i32)", "i32[M]"),
        ("iota(length=size(x), like=n)", "i64[3 * M]"),
        ("iota(length=size(n), like=n)", "i64[4]"),
        ("reshape(x, shape=[size(x)])", "f32[3 * M]"),
        ("reshape(x, shape=[x |> size(axis=1), -1])", "f32[M, 3]"),
        ("x[:, :size(x, axis=-1) // 2]", "f32[3, M // 2]"),
        ("cast(n, like=x)", "f32[4]"),
        ("argmax(x, like=n)", "i64[1, 1]"),
        ("one_hot(n, depth=size(x, axis=0), like=x)", "f32[4, 3]"),
        ("x * size(x, axis=1)", "f32[3, M]"),
        ("expand(size(x, axis=1) as f32, shape=[2])", "f32[2]"),
        ("cast(size(x), like=n)", "i64[]"),
        ("full(shape=[2], value=size(x, axis=0) / 2, like=x)", "f32[2]"),
    ],
)
def test_sizes_are_numbers_and_like_gives_a_dtype(call: str, types: str) -> None:
    program = "dim M in 2..64\n" + in_model(f"return {call}", inputs="x: f32[3, M], n: i64[4]")
    assert types_of(program) == [types]


def test_a_fixed_size_is_a_constant_without_a_node() -> None:
    assert body_of(in_model("return x / size(x, axis=0) * size(x)", inputs="x: f32[4, 3]")) == [
        "t0 = x / 4.0",
        "y = t0 * 12.0",
        "return y",
    ]


@each_row(
    ("call", "code"),
    [
        ("reshape(x, shape=[size(x, axis=2), -1])", "E0301"),
        ("x * size(x, axis=-3)", "E0301"),
        ("x * size(x, axis=0.5)", "E0304"),
        ("x * size(x, axis=none)", "E0304"),
        ("x * size(x, 1)", "E0308"),
        ("x * size()", "E0308"),
        ("x * size(x, along=1)", "E0305"),
        ("x * size(3)", "E0312"),
        ("x * size(q)", "E0202"),
        ("cast(x, to=f16, like=n)", "E0307"),
        ("full(shape=[], value=0, like=3)", "E0312"),
        ("full(shape=[], value=0, like=[1])", "E0335"),
        ("full(shape=[], value=0)", "E0306"),
        ("argmax(x, like=x)", "E0304"),
        ("exp(x, like=x)", "E0331"),
    ],
)
def test_wrong_sizes_and_dtypes(call: str, code: str) -> None:
    assert codes(in_model(f"return {call}", inputs="x: f32[4, 3], n: i64[4]")) == [code]


def test_size_with_an_axis_by_position_says_the_keyword() -> None:
    (found,) = diagnostics(in_model("return x * size(x, 1)"))
    assert "size(x, axis=1)" in found.help


def test_a_def_named_size_hides_it() -> None:
    program = "def size(x) {\n    return x + 1\n}\n" + in_model("return size(x)", inputs="x: f32[3]")
    assert body_of(program) == ["y = x + 1.0", "return y"]


def test_types_have_no_calls() -> None:
    assert codes(in_model("return x", inputs="x: f32[4], z: f32[size(x)]")) == ["E0331"]


def test_the_builder_has_both() -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f16", ("N", 4))
    assert dmlc.size(x, axis=1) == 4
    assert str(dmlc.size(x)) == "4 * N"
    g.output("i", dmlc.iota(length=dmlc.size(x, axis=0), like=x))
    g.output("z", dmlc.full(shape=[], value=2, like=x))
    g.output("c", dmlc.cast(g.input("n", "i64", ()), like=x))
    out = dmlc.compile(g, target="cpu").run({"x": np.zeros((3, 4), np.float16), "n": np.array(7)})
    assert [out[name].dtype for name in "izc"] == [np.float16] * 3
    np.testing.assert_array_equal(out["i"], [0, 1, 2])
    with pytest.raises(dmlc.DmlcError, match="E0301"):
        dmlc.size(x, axis=2)
    with pytest.raises(dmlc.DmlcError, match="E0307"):
        dmlc.cast(x, to="f32", like=x)


def test_reshape_takes_the_shape_of_another_tensor() -> None:
    inputs = "x: f32[N, 6], z: f64[3 * N, 2]"
    assert types_of(in_model("return reshape(x, like=z)", inputs=inputs)) == ["f32[3 * N, 2]"]
    assert codes(in_model("return reshape(x, like=z, shape=[6])", inputs=inputs)) == ["E0307"]
    assert codes(in_model("return reshape(x, like=[6])", inputs=inputs)) == ["E0335"]
    assert codes(in_model("return reshape(x, like=z)", inputs="x: f32[4], z: f32[5]")) == ["E0317"]
    g = dmlc.Graph("g")
    x, z = g.input("x", "f32", (2, 6)), g.input("z", "f64", (3, 4))
    assert dmlc.reshape(x, like=z).shape == (3, 4)
