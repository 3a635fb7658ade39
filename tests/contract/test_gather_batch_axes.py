"""``gather(x, i, axis, batch_axes)``: its numbers on every target, its result shape, its default axis, its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import dmlc
from dmlc.diagnostics import DmlcError, Source
from tests.rows import each_row

WAYS = [
    ("directml", 21, "reference"),
    ("directml", 21, "cpu"),
    ("directml", 11, "cpu"),
    ("cpu", 12, "cpu"),
    ("onnx", 21, "cpu"),
    ("onnx", 11, "cpu"),
    ("numpy", None, "numpy"),
]


def expected(x: np.ndarray, i: np.ndarray, axis: int, batch: int) -> np.ndarray:
    """One element at a time."""
    out = np.zeros((*x.shape[:axis], *i.shape[batch:], *x.shape[axis + 1 :]), x.dtype)
    inner = i.ndim - batch
    for at in np.ndindex(out.shape):
        place = int(i[(*at[:batch], *at[axis : axis + inner])])
        out[at] = x[(*at[:axis], place, *at[axis + inner :])]
    return out


def shape_text(shape: tuple[Any, ...]) -> str:
    return ", ".join(map(str, shape))


def program(keywords: str, x: tuple[Any, ...], i: tuple[Any, ...], dtypes: tuple[str, str] = ("f32", "i32")) -> Source:
    head = f"model m(x: {dtypes[0]}[{shape_text(x)}], i: {dtypes[1]}[{shape_text(i)}]) -> (y)"
    return Source("m.dml", f"{head} {{\n    y = gather(x, i{keywords})\n    return y\n}}\n")


def check(source: Source, x: np.ndarray, i: np.ndarray, axis: int, batch: int) -> None:
    """In every other way, by turns."""
    want = expected(x, i, axis, batch)
    for target, opset, backend in WAYS[(axis + batch + i.ndim) % 2 :: 2]:
        got = dmlc.compile(source, target=target, opset=opset).run({"x": x, "i": i}, backend=backend)["y"]
        assert (got.dtype, got.shape) == (want.dtype, want.shape), (target, opset)
        np.testing.assert_array_equal(got, want, err_msg=f"{target} {opset}")


#: Shapes of x and i, axis, batch_axes.
CASES = [
    ((3, 5), (3, 4), 1, 1),
    ((3, 5), (3,), 1, 1),
    ((2, 3, 5), (2, 4), 1, 1),
    ((2, 3, 5), (2, 4), 2, 1),
    ((2, 3, 5), (2, 3, 4), 2, 2),
    ((2, 3, 5), (2, 3), 2, 2),
    ((2, 3, 5, 2), (2, 4, 2), 1, 1),
    ((2, 3, 5, 2), (2, 4, 2), 2, 1),
    ((2, 3, 5, 2), (2,), 3, 1),
    ((2, 3, 5, 2), (2, 3, 6), 2, 2),
    ((2, 3, 5), (4, 2), 1, 0),
    ((1, 6), (1, 1), 1, 1),
]


@each_row(("x_shape", "i_shape", "axis", "batch"), CASES)
def test_numbers(x_shape: tuple[int, ...], i_shape: tuple[int, ...], axis: int, batch: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.permutation(np.arange(np.prod(x_shape))).reshape(x_shape).astype(np.float32)
    i = rng.integers(-x_shape[axis], x_shape[axis], i_shape).astype(np.int32)
    check(program(f", axis={axis}, batch_axes={batch}", x_shape, i_shape), x, i, axis, batch)
    names = ("N", "C", "H", "W")[: len(x_shape)]
    open_i = (*names[:batch], *i_shape[batch:])
    check(program(f", axis={axis - len(x_shape)}, batch_axes={batch}", names, open_i), x, i, axis, batch)
    other_i = (*("P", "Q")[:batch], *i_shape[batch:])  # equal to the sizes of x where the program runs
    for shape in (names, x_shape):
        check(program(f", axis={axis}, batch_axes={batch}", shape, other_i), x, i, axis, batch)


DTYPES, INDICES = ("f16", "f64", "i8", "u16", "i64", "u64", "bool"), ("i32", "i64", "u32", "u64")


@each_row("index", INDICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, index: str) -> None:
    """The two axes take turns."""
    numpy = (
        np.dtype({"f": "float", "i": "int", "u": "uint"}[dtype[0]] + dtype[1:]) if dtype != "bool" else np.dtype(bool)
    )
    x = np.arange(24).reshape(2, 3, 4).astype(numpy)
    i = np.array([[2, 0], [1, 1]], {"i32": np.int32, "i64": np.int64, "u32": np.uint32, "u64": np.uint64}[index])
    axis = 1 + (DTYPES.index(dtype) + INDICES.index(index)) % 2
    check(program(f", axis={axis}, batch_axes=1", (2, 3, 4), (2, 2), (dtype, index)), x, i, axis, 1)


def test_axis_defaults_to_batch_axes() -> None:
    x, i = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[3], [0], [1]], np.int32)
    check(program(", batch_axes=1", (3, 4), (3, 1)), x, i, 1, 1)
    check(program("", (3, 4), (3, 1)), x, np.array([[2], [0], [1]], np.int32), 0, 0)


def test_printed_programs_leave_the_default_axis_out() -> None:
    for keywords in (", batch_axes=1", "", ", axis=2", ", axis=2, batch_axes=1"):
        text = dmlc.compile(program(keywords, (3, 4, 5), (3, 1)), target="numpy").artifact("dml").payload
        assert f"gather(x, i{keywords})" in text
        assert dmlc.compile(Source("again.dml", text), target="numpy").artifact("dml").payload == text


@each_row(
    ("target", "opset", "keywords", "operators"),
    [
        ("directml", 21, ", batch_axes=1", {"Unsqueeze", "Cast", "GatherND"}),
        ("onnx", 12, ", batch_axes=1", {"Unsqueeze", "Cast", "GatherND"}),
        ("onnx", 11, ", batch_axes=1", {"Reshape", "Expand", "GatherElements"}),
        ("directml", 21, ", axis=2, batch_axes=1", {"Reshape", "Expand", "GatherElements"}),
        ("directml", 21, ", axis=1", {"Gather"}),
    ],
)
def test_operators(target: str, opset: int, keywords: str, operators: set[str]) -> None:
    made = dmlc.compile(program(keywords, (2, 3, 4), (2, 5)), target=target, opset=opset)
    assert {node.op_type for node in made.to_onnx().graph.node} <= operators


@each_row(
    ("keywords", "i", "code", "words"),
    [
        (", axis=0, batch_axes=1", (2, 5), "E0304", "axis 0 is one of the first 1"),
        (", axis=-3, batch_axes=1", (2, 5), "E0304", "axis 0 is one of the first 1"),
        (", batch_axes=3", (2, 3, 4), "E0301", "axis 3 does not exist"),
        (", axis=2, batch_axes=3", (2, 3, 4), "E0304", "axis 2 is one of the first 3"),
        (", batch_axes=2", (2,), "E0304", "batch_axes is 2, the indices have 1 axis"),
        (", axis=2, batch_axes=-1", (2, 5), "E0304", "batch_axes is -1"),
        (", batch_axes=1", (3, 5), "E0317", "2 elements in x, 3 in the indices"),
        (", batch_axes=1", (1, 5), "E0317", "2 elements in x, 1 in the indices"),
        (", batch_axes=1.5", (2, 5), "E0304", "must be an integer"),
    ],
)
def test_errors(keywords: str, i: tuple[int, ...], code: str, words: str) -> None:
    with pytest.raises(DmlcError) as error:
        dmlc.compile(program(keywords, (2, 3, 4), i))
    (found,) = error.value.diagnostics
    assert (found.code.id, words in found.message) == (code, True), found


def test_open_sizes_that_differ_are_found_at_run_time() -> None:
    made = dmlc.compile(program(", batch_axes=1", ("N", 4), ("M", 2)), target="numpy")
    x, i = np.zeros((3, 4), np.float32), np.zeros((2, 2), np.int32)
    with pytest.raises(DmlcError, match="E0426"):
        made.run({"x": x, "i": i})


def test_rows_of_top_k() -> None:
    """Boxes of the best scores, the first stage of a detector's selection."""
    text = """
model m(boxes: f32[batch, anchors, 4], scores: f32[batch, anchors]) -> (best) {
    v, i = top_k(scores, k=5)
    best = gather(boxes, i, batch_axes=1)
    return best
}
"""
    rng = np.random.default_rng(1)
    boxes, scores = rng.random((2, 9, 4), np.float32), rng.random((2, 9), np.float32)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    for target in ("directml", "cpu", "onnx", "numpy"):
        made = dmlc.compile(Source("m.dml", text), target=target)
        got = made.run({"boxes": boxes, "scores": scores})["best"]
        np.testing.assert_array_equal(got, np.take_along_axis(boxes, order[..., None], axis=1))


def test_the_builder_has_it() -> None:
    g = dmlc.Graph("m")
    x, i = g.input("x", dtype="float32", shape=(2, 3, 4)), g.input("i", dtype="int64", shape=(2, 5))
    g.output("y", dmlc.gather(x, i, batch_axes=1))
    g.output("z", dmlc.gather(x, i, axis=-1, batch_axes=1))
    made = dmlc.compile(g)
    assert [str(type_) for _, type_ in made.signature.outputs] == ["f32[2, 5, 4]", "f32[2, 3, 5]"]


@each_row("target", ["directml", "cpu", "onnx"])
@each_row(
    ("shapes", "batch", "text"),
    [
        ("float[3, 5, 2] x, int64[3, 4] i", 1, "gather(x, i, batch_axes=1)"),
        ("float[N, 5] x, int64[N] i", 1, "gather(x, i, batch_axes=1)"),
        ("float[3, 5, 2] x, int64[4] i", 0, "gather(x, i)"),
        ("float[N, 5] x, int64[M] i", 1, "onnx.GatherND"),
        ("float[3, 5, 2] x, int64[3, 2] i", -1, "onnx.GatherND"),
    ],
)
def test_gather_nd_of_models(shapes: str, batch: int, text: str, target: str) -> None:
    """Indices that are one coordinate, as an Unsqueeze says, are those of a gather; others are carried."""
    nodes = "j = Unsqueeze(i, last) y = GatherND<batch_dims=BATCH>(x, j)" if batch >= 0 else "y = GatherND(x, i)"
    rank = shapes.rpartition("int64[")[2].count(",") + 1
    nodes = nodes.replace("BATCH", str(batch))
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]>
        m ({shapes}) => (float y) <int64[1] last = {{{rank}}}> {{ {nodes} }}"""
    )
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    made = dmlc.compile(model, target=target)
    assert text in made.artifact("dml").payload
    kinds = [node.op_type for node in made.to_onnx().graph.node]
    assert len(kinds) <= len(model.graph.node)
    sizes = {"N": 3, "M": 3}
    x_shape, i_shape = (
        [sizes.get(d.dim_param, d.dim_value) for d in value.type.tensor_type.shape.dim] for value in model.graph.input
    )
    rng = np.random.default_rng(0)
    feeds = {"x": rng.random(x_shape, np.float32), "i": rng.integers(0, 2, i_shape)}
    want = ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_array_equal(made.run(feeds, backend="cpu")["y"], want)


@each_row("target", ["directml", "cpu", "onnx"])
def test_indices_that_are_known_need_no_node(target: str) -> None:
    text = """
const i: i32[2, 3] = [[0, 2, -1], [1, 1, 0]]
model m(x: f32[2, 4, 5]) -> (y) {
    y = gather(x, i, batch_axes=1)
    return y
}
"""
    made = dmlc.compile(Source("m.dml", text), target=target)
    assert [node.op_type for node in made.to_onnx().graph.node] == ["GatherND"]
    x = np.arange(40, dtype=np.float32).reshape(2, 4, 5)
    index = np.array([[0, 2, 3], [1, 1, 0]])
    np.testing.assert_array_equal(
        made.run({"x": x}, backend="cpu")["y"], np.take_along_axis(x, index[..., None], axis=1)
    )
