"""sort, argsort, reduce_any, reduce_all, stack, tile and flip: their numbers on every target, and their errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import DmlcError, Source
from tests.rows import each_row

#: (target, opset, backend)
WAYS = [
    ("directml", 21, "reference"),
    ("directml", 21, "cpu"),
    ("directml", 11, "cpu"),
    ("cpu", 21, "cpu"),
    ("onnx", 15, "cpu"),
    ("numpy", None, "numpy"),
]
NUMBERS = ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
NUMPY = {name: np.dtype({"f": "float", "i": "int", "u": "uint"}[name[0]] + name[1:]) for name in NUMBERS}
NUMPY["bool"] = np.dtype(bool)


def program(call: str, dtype: str, shape: str = "N, 3, M", dims: str = "") -> Source:
    return Source("m.dml", f"{dims}model m(x: {dtype}[{shape}]) -> (y) {{\n    y = {call}\n    return y\n}}\n")


def sample(dtype: str, *shape: int) -> np.ndarray:
    """Many ties, and both ends of the type."""
    rng = np.random.default_rng(len(dtype) + sum(shape))
    numpy = NUMPY[dtype]
    if dtype == "bool":
        return rng.random(shape) < 0.5
    x = rng.integers(0, 5, shape).astype(numpy)
    if numpy.kind != "f":
        x.flat[0], x.flat[-1] = np.iinfo(numpy).min, np.iinfo(numpy).max
    return x


def check(
    call: str,
    dtype: str,
    expected: Callable[[np.ndarray], np.ndarray],
    *shape: int,
    ways: Sequence[tuple[str, int | None, str]] = WAYS,
    **named: Any,
) -> None:
    x = sample(dtype, *(shape or (2, 3, 5)))
    want = expected(x)
    made: dict[tuple[str, int | None], dmlc.Program] = {}
    for target, opset, backend in ways:
        if (target, opset) not in made:
            made[target, opset] = dmlc.compile(program(call, dtype, **named), target=target, opset=opset)
        got = made[target, opset].run({"x": x}, backend=backend)["y"]
        assert (got.dtype, got.shape) == (want.dtype, want.shape), (target, opset)
        np.testing.assert_array_equal(got, want, err_msg=f"{target} {opset}")


def sorted_places(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Python's own stable sort of each row."""
    rows = np.moveaxis(x, axis, -1)
    out = np.zeros(rows.shape, np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        row = rows[at].tolist()
        out[at] = sorted(range(len(row)), key=lambda i: (-row[i] if descending else row[i], i))
    return np.moveaxis(out, -1, axis)


@each_row("descending", [False, True])
@each_row("dtype", NUMBERS)
def test_sort_and_argsort(dtype: str, descending: bool) -> None:
    """The axes take turns, of which each dtype has one in one direction and two in the other."""
    word, first = "true" if descending else "false", NUMBERS.index(dtype)
    axes = ((0, 2, -2) * 2)[first % 3 :][:3][descending::2]
    for turn, axis in enumerate(axes, first + descending):
        ways = WAYS[turn % 3 :: 3]
        keywords = f"axis={axis}, descending={word}"
        places = lambda x, axis=axis: sorted_places(x, axis, descending)  # noqa: E731
        check(
            f"sort(x, {keywords})", dtype, lambda x, axis=axis, p=places: np.take_along_axis(x, p(x), axis), ways=ways
        )
        check(f"argsort(x, {keywords})", dtype, lambda x, p=places: p(x).astype(np.uint32), ways=ways)


def test_defaults_of_sort() -> None:
    check("sort(x)", "f32", lambda x: np.sort(x, axis=-1))
    check("argsort(x, dtype=i64)", "f32", lambda x: np.argsort(x, axis=-1, kind="stable"))


@each_row("axes", [None, *(list(a) for n in (1, 2, 3) for a in itertools.combinations(range(3), n))], ids=str)
@each_row("keepdims", [True, False])
def test_any_and_all(axes: list[int] | None, keepdims: bool) -> None:
    keywords = ("" if axes is None else f", axes={axes}") + ("" if keepdims else ", keepdims=false")
    over = None if axes is None else tuple(axes)
    check(f"reduce_any(x{keywords})", "bool", lambda x: np.asarray(np.any(x, axis=over, keepdims=keepdims)))
    check(f"reduce_all(x{keywords})", "bool", lambda x: np.asarray(np.all(x, axis=over, keepdims=keepdims)))


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
def test_layouts(dtype: str) -> None:
    """The ways take turns."""
    first = [*NUMBERS, "bool"].index(dtype)
    for n, axes in enumerate(([0], [-1], [2, 0], [0, 1, 2]), first):
        check(f"flip(x, axes={axes})", dtype, lambda x, axes=axes: np.flip(x, axes), ways=WAYS[n % 3 :: 3])
    for n, repeats in enumerate(([1, 1, 1], [2, 1, 3], [1, 4, 1]), first):
        call = f"tile(x, repeats={repeats})"
        check(call, dtype, lambda x, repeats=repeats: np.tile(x, repeats), ways=WAYS[n % 3 :: 3])
    for n, axis in enumerate((0, 1, 3, -1, -4), first):
        call = f"stack(x, x, x, axis={axis})"
        check(call, dtype, lambda x, axis=axis: np.stack([x, x, x], axis), ways=WAYS[n % 3 :: 3])


def test_layouts_of_small_ranks() -> None:
    check("stack(x)", "f32", lambda x: x[None])
    check("stack(reduce_sum(x, keepdims=false), 1)", "f32", lambda x: np.stack([x.sum(dtype=x.dtype), x.dtype.type(1)]))
    check("tile(x, repeats=2)", "f32", lambda x: np.tile(x, 2), 4, shape="N")
    check("tile(x, repeats=[M, N])", "f32", lambda x: np.tile(x, [4, 2]), 2, 4, shape="N, M")
    check("flip(x, axes=-1)", "f32", lambda x: x[::-1], 1, shape="N")


def test_flip_of_nothing() -> None:
    check("flip(x, axes=[0])", "f32", lambda x: x, 0, 3, shape="E, 3", dims="dim E in 0..4\n")


@each_row(
    ("call", "code", "words"),
    [
        ("sort(x, axis=3)", "E0301", "axis 3 does not exist"),
        ("argsort(x, k=2)", "E0305", "argsort has no attribute k"),
        ("sort(x > 0)", "E0309", "sort does not take bool"),
        ("reduce_any(x)", "E0309", "reduce_any does not take f32: it takes bool"),
        ("reduce_all(x > 0, axes=[])", "E0303", "names no axis"),
        ("stack(x, reduce_sum(x), axis=0)", "E0317", "stack needs equal shapes"),
        ("stack(x, reduce_sum(x, keepdims=false))", "E0317", "stack needs equal shapes"),
        ("stack(x, x, axis=4)", "E0301", "axis 4 does not exist"),
        ("stack()", "E0308", "stack takes"),
        ("tile(x, repeats=[2])", "E0304", "repeats needs 3 numbers for 3 axes, not 1"),
        ("tile(x, repeats=[1, 1, -1])", "E03", "-1"),
        ("tile(x)", "E0306", "tile needs repeats"),
        ("flip(x)", "E0306", "flip needs axes"),
        ("flip(x, axes=[0, -3])", "E0302", "named twice"),
        ("sort(reduce_sum(x, keepdims=false))", "E0301", "scalar"),
    ],
)
def test_errors(call: str, code: str, words: str) -> None:
    with pytest.raises(DmlcError) as error:
        dmlc.compile(program(call, "f32"))
    (found,) = error.value.diagnostics
    assert found.code.id.startswith(code), found
    assert words in found.message
    assert found.labels[0].span.line == 2


def test_sort_of_an_axis_that_may_be_empty() -> None:
    with pytest.raises(DmlcError, match="sort over axis 0, whose size E may be 0"):
        dmlc.compile(program("sort(x, axis=0)", "f32", "E, 3", "dim E in 0..4\n"))


def test_the_builder_has_them() -> None:
    g = dmlc.Graph("m")
    x = g.input("x", dtype="float32", shape=(2, 3))
    g.output("a", dmlc.sort(x, descending=True))
    g.output("b", dmlc.argsort(x, axis=0, dtype="int64"))
    g.output("c", dmlc.reduce_any(x > 1) | dmlc.reduce_all(x > 1))
    g.output("d", dmlc.stack(x, x * 2, axis=-1))
    g.output("e", dmlc.flip(dmlc.tile(x, repeats=(1, 2)), axes=1))
    x = np.array([[3, 1, 2], [1, 5, 4]], np.float32)
    found = dmlc.compile(g).run({"x": x})
    np.testing.assert_array_equal(found["a"], [[3, 2, 1], [5, 4, 1]])
    np.testing.assert_array_equal(found["b"], [[1, 0, 0], [0, 1, 1]])
    np.testing.assert_array_equal(found["c"], [[True]])
    np.testing.assert_array_equal(found["d"], np.stack([x, x * 2], -1))
    np.testing.assert_array_equal(found["e"], np.tile(x, (1, 2))[:, ::-1])
    with pytest.raises(DmlcError, match=r"E0301.*axis 2 does not exist"):
        dmlc.sort(g.input("y", dtype="float32", shape=(2, 3)), axis=2)


@each_row("target", ["directml", "cpu", "onnx"])
@each_row(
    ("call", "expected"),
    [
        ("tile(x, repeats=[1, 1, 1]) + 1", ["Add"]),
        ("x + tile(flip(c, axes=[2]), repeats=[2, 3, 2])", ["Add"]),
        ("stack(x)", ["Unsqueeze"]),
        ("flip(flip(x, axes=[0, 2]), axes=[1])", ["Slice"]),
    ],
)
def test_nodes(call: str, expected: list[str], target: str) -> None:
    """Repeating once does nothing, and what is known while compiling is computed then."""
    made = dmlc.compile(program(call, "f32", "2, 3, 4", "const c: f32[1, 1, 2] = [[[1, 2]]]\n"), target=target)
    assert [node.op_type for node in made.to_onnx().graph.node] == expected
