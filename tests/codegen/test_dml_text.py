"""A model as a program of the language, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

FLOAT = TensorProto.FLOAT
node = helper.make_node


def info(name: str, shape: Any, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes: list[onnx.NodeProto], inputs: Any, outputs: Any, **weights: Any) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(w), k) for k, w in weights.items()]
    graph = helper.make_graph(nodes, "head", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def head() -> onnx.ModelProto:
    rng = np.random.default_rng(1)
    return model(
        [
            node("Conv", ["x", "kernel"], ["c 1"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
            node("Clip", ["c 1", "", "six"], ["r"]),
            node("ReduceMean", ["r"], ["m"], axes=[2, 3], keepdims=0),
            node("MatMul", ["m", "w"], ["l"]),
            node("Softmax", ["l"], ["p"], axis=-1),
            node("ArgMax", ["l"], ["top one"], axis=1, keepdims=0),
        ],
        [info("x", ["n", 3, 8, 8])],
        [info("p", None), info("top one", None, TensorProto.INT64)],
        kernel=rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        w=rng.normal(size=(4, 5)).astype(np.float32),
        six=np.float32(6),
    )


def test_the_program_is_the_model_again(tmp_path: Path) -> None:
    m = head()
    dmlc.compile(m).save(tmp_path / "head.dml")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["head.dml", "head.npz"]
    text = (tmp_path / "head.dml").read_text()
    assert 'load("head.npz", "w0")' in text
    assert "onnx.Conv(x, kernel, kernel_shape=[3, 3], pads=[1, 1, 1, 1])" in text
    feeds = {"x": np.random.default_rng(2).normal(size=(2, 3, 8, 8)).astype(np.float32)}
    before, after = dmlc.compile(m).run(feeds, "cpu"), dmlc.compile(tmp_path / "head.dml").run(feeds, "cpu")
    assert list(before) == list(after) == ["p", "top one"]
    np.testing.assert_array_equal(after["top one"], before["top one"])
    np.testing.assert_allclose(after["p"], before["p"], rtol=2e-5)


def test_without_a_file_beside_it_the_weights_are_in_the_text() -> None:
    text = dmlc.compile(head()).artifact("dml").payload
    assert "load(" not in text
    np.testing.assert_allclose(
        dmlc.compile(Source("t.dml", text)).run({"x": np.ones((1, 3, 8, 8), np.float32)}, "cpu")["p"],
        dmlc.compile(head()).run({"x": np.ones((1, 3, 8, 8), np.float32)}, "cpu")["p"],
        rtol=2e-5,
    )


def test_a_program_can_be_written_too(tmp_path: Path) -> None:
    source = Source(
        "t.dml",
        "model m(x: f32[N, 4]) -> (y) {\n    y = reduce_sum(reduce_sum(x, axes=[0]), axes=[1])\n    return y\n}\n",
    )
    dmlc.compile(source).save(tmp_path / "t.dml")
    assert [p.name for p in tmp_path.iterdir()] == ["t.dml"]
    assert (tmp_path / "t.dml").read_text().count("reduce_sum") == 1


def _branch(name: str) -> onnx.GraphProto:
    return helper.make_graph([node("Relu", ["x"], [name])], name, [], [info(name, None)])


@pytest.mark.parametrize(
    ("m", "words"),
    [
        (
            model(
                [node("If", ["c"], ["y"], name="choose", then_branch=_branch("a"), else_branch=_branch("b"))],
                [info("x", [2]), info("c", [], TensorProto.BOOL)],
                [info("y", [2])],
            ),
            "node choose (If) holds a graph",
        ),
        (
            model(
                [node("Reshape", ["x", "s"], ["y"], name="open")],
                [info("x", [4]), info("s", ["n"], TensorProto.INT64)],
                [info("y", None)],
            ),
            "node open (Reshape)",
        ),
        (model([node("Relu", ["x"], ["y"])], [info("x", None)], [info("y", None)]), "input x"),
        (
            model([node("Add", ["x", "w"], ["y"])], [info("x", [2]), info("w", [])], [info("y", [2])], w=np.float32(1)),
            "input w has a default",
        ),
    ],
)  # fmt: skip
def test_what_no_program_can_say_is_refused(m: onnx.ModelProto, words: str, tmp_path: Path) -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(m).save(tmp_path / "m.dml")
    assert caught.value.diagnostics[0].code.id == "E0508"
    assert words in caught.value.diagnostics[0].message
    assert not list(tmp_path.iterdir())


INT64 = TensorProto.INT64
#: Models with sizes that only operators tell, or that the model knows better than reading does, and their inputs.
OPEN_SIZES = {
    "NonZero": (
        model([node("NonZero", ["x"], ["i"]), node("Transpose", ["i"], ["y"], perm=[1, 0])],
              [info("x", ["n", 4])], [info("y", None, INT64)]),
        {"x": np.float32([[0, 1, 0, 2], [0, 0, 3, 0]])},
    ),
    "two equal sizes": (
        model([node("NonZero", ["x"], ["i"]), node("Shape", ["i"], ["s"]), node("ConstantOfShape", ["s"], ["z"],
              value=numpy_helper.from_array(np.array([7], np.int64))), node("Add", ["i", "z"], ["y"])],
              [info("x", ["n", 4])], [info("y", None, INT64)]),
        {"x": np.float32([[0, 1, 0, 2], [0, 0, 3, 0]])},
    ),
    "Range of a size": (
        model([node("Shape", ["x"], ["s"], start=0, end=1), node("Squeeze", ["s"], ["l"]),
               node("Range", ["zero", "l", "one"], ["r"]), node("Cast", ["r"], ["f"], to=FLOAT),
               node("Unsqueeze", ["f", "ones"], ["c"]), node("Add", ["x", "c"], ["y"])],
              [info("x", ["n", 4])], [info("y", None)], zero=np.int64(0), one=np.int64(1), ones=np.int64([1])),
        {"x": np.ones((3, 4), np.float32)},
    ),
    "Slice to an input's number": (
        model([node("Slice", ["x", "zero", "k"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["a", "b"], ["y"])],
              [info("x", ["n", 4]), info("k", [1], INT64)], [info("y", None)], zero=np.int64([0])),
        {"x": np.float32([[1, -1, 0, 2], [2, 2, 2, 2]]), "k": np.int64([1])},
    ),
    "ConstantOfShape": (
        model([node("ConstantOfShape", ["s"], ["c"], value=numpy_helper.from_array(np.array([0.1], np.float32))),
               node("Add", ["x", "c"], ["y"])],
              [info("x", [1]), info("s", [1], INT64)], [info("y", None)]),
        {"x": np.float32([2]), "s": np.int64([3])},
    ),
    "ConstantOfShape of nothing": (
        model([node("ConstantOfShape", ["s"], ["y"], value=numpy_helper.from_array(np.array([True])))],
              [info("s", [2], INT64)], [info("y", None, TensorProto.BOOL)]),
        {"s": np.int64([0, 3])},
    ),
    "Unique": (
        model([node("Unique", ["x"], ["u", "i"]), node("Cast", ["i"], ["f"], to=FLOAT), node("Add", ["u", "f"], ["y"])],
              [info("x", ["n"])], [info("y", None)]),
        {"x": np.float32([1, 2, 2, 3])},
    ),
    "Tile by an input": (
        model([node("Tile", ["x", "k"], ["t"]), node("Exp", ["t"], ["y"])],
              [info("x", ["n", 2]), info("k", [2], INT64)], [info("y", None)]),
        {"x": np.float32([[0, 1]]), "k": np.int64([2, 3])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN_SIZES)
def test_a_program_of_sizes_that_values_tell_is_the_model_again(name: str, tmp_path: Path) -> None:
    proto, feeds = OPEN_SIZES[name]
    path = tmp_path / "m.dml"
    dmlc.compile(proto).save(path)
    before = dmlc.compile(proto, target="onnx").run(feeds, "cpu")["y"]
    for target in ("onnx", "directml"):
        again = dmlc.compile(path, target=target)
        np.testing.assert_allclose(again.run(feeds, "cpu")["y"], before, rtol=1e-6)
    assert again.run(feeds, "cpu")["y"].shape == before.shape


@each_row("name", OPEN_SIZES)
def test_the_text_of_a_program_that_is_read_is_that_text(name: str) -> None:
    first = dmlc.compile(OPEN_SIZES[name][0]).artifact("dml").payload
    assert dmlc.compile(Source("m.dml", first)).artifact("dml").payload == first


def test_a_size_that_reading_knows_is_written_as_reading_knows_it() -> None:
    """A window of a pool fits in a program; in a model its size stays open, for the window may be larger."""
    pool = node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2])
    proto = model([pool, node("Shape", ["p"], ["s"]), node("ConstantOfShape", ["s"], ["z"]),
                   node("Add", ["p", "z"], ["y"])], [info("x", [1, 3, "h", 8])], [info("y", None)])  # fmt: skip
    first = dmlc.compile(proto).artifact("dml").payload
    assert "# f32[1, 3, h // 2, 4]" in first
    assert "    y: f32[1, 3, h // 2, 4],\n" in first
    assert dmlc.compile(Source("m.dml", first)).artifact("dml").payload == first


def test_a_size_that_only_the_model_knows_stands_behind_a_reshape_that_says_it() -> None:
    """Nothing proves the declared size, so that reading gives the slice a size of its own."""
    cut = node("Slice", ["t", "zero", "l", "one", "one"], ["c"])
    proto = model([node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["l"]), cut,
                   node("Cast", ["c"], ["f"], to=FLOAT), node("Add", ["x", "f"], ["y"])],
                  [info("x", ["n", "m"])], [info("y", None)],
                  t=np.arange(99).reshape(1, 99), zero=np.int64([0]), one=np.int64([1]))  # fmt: skip
    proto.graph.value_info.append(info("c", [1, "m"], INT64))
    first = dmlc.compile(proto).artifact("dml").payload
    lines = [
        "t0 = onnx.Slice(t, zero, l, one, one)  # i64[1, min(m, 99)]",
        "c = reshape(t0, shape=[1, m])  # i64[1, m]",
    ]
    assert "\n    ".join(["", *lines]) in first
    assert dmlc.compile(Source("m.dml", first)).artifact("dml").payload == first


def test_a_size_that_only_the_model_knows_is_kept_behind_an_unsqueeze() -> None:
    """The reshape that says it merges with the unsqueeze, and the sum with ``x`` still fits."""
    cut = node("Slice", ["t", "zero", "l", "zero", "one"], ["c"])
    proto = model([node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["l"]), cut,
                   node("Unsqueeze", ["c", "zero"], ["u"]), node("Unsqueeze", ["c", "one"], ["v"]),
                   node("Add", ["x", "u"], ["a"]), node("MatMul", ["a", "v"], ["y"])],
                  [info("x", ["n", "m"])], [info("y", None)],
                  t=np.arange(99, dtype=np.float32), zero=np.int64([0]), one=np.int64([1]))  # fmt: skip
    proto.graph.value_info.append(info("c", ["m"]))
    first = dmlc.compile(proto).artifact("dml").payload
    assert "reshape(t0, shape=[m])" in first
    second = dmlc.compile(Source("m.dml", first)).artifact("dml").payload
    assert "reshape(t0, shape=[1, m])" in second
    assert dmlc.compile(Source("m.dml", second)).artifact("dml").payload == second


def test_results_that_nothing_reads_are_dropped() -> None:
    """A program that drops a result gives it a type, and would name it when it is written again."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(1, 12, 3)), "r": rng.normal(size=(1, 12, 4))}
    proto = model([node("GRU", ["x", "w", "r"], ["", "h"], hidden_size=4)], [info("x", [5, 2, 3])], [info("h", None)],
                  **{name: data.astype(np.float32) for name, data in weights.items()})  # fmt: skip
    first = dmlc.compile(proto).artifact("dml").payload
    assert "    _, h = onnx.GRU(x, w, r, hidden_size=4)  # _, f32[1, 2, 4]\n" in first
    assert dmlc.compile(Source("m.dml", first)).artifact("dml").payload == first


def test_sizes_that_results_share_are_one_size_behind_the_call() -> None:
    """Neither is known where the call is read; both are when they are reshaped."""
    top = node("TopK", ["x", "k"], ["v", "i"])
    proto = model([top], [info("x", ["n", 4]), info("k", [1], INT64)], [info("v", None), info("i", None, INT64)])
    proto.graph.value_info.extend([info("v", ["n", 3]), info("i", ["n", 3], INT64)])
    first = dmlc.compile(proto).artifact("dml").payload
    assert "onnx.TopK(x, k)  # f32[n, unknown_0], i64[n, unknown_0]" in first.replace(", axis=-1", "")
    assert dmlc.compile(Source("m.dml", first)).artifact("dml").payload == first


def test_equal_fills_are_written_once() -> None:
    fill = numpy_helper.from_array(np.array([7], np.float32))
    proto = model(
        [node("ConstantOfShape", ["a"], ["b"], value=fill), node("ConstantOfShape", ["c"], ["d"], value=fill)],
        [info("a", [1], INT64), info("c", [2], INT64)], [info("b", None), info("d", None)])  # fmt: skip
    first = dmlc.compile(proto).artifact("dml").payload
    assert first.count("full(shape=[1], value=7.0, dtype=f32)  # f32[1]") == 1
    assert dmlc.compile(Source("m.dml", first)).artifact("dml").payload == first


def _levels(count: int) -> onnx.ModelProto:
    """Features of the levels of a detector, each of half the height and width, in one list."""
    nodes, weights = [], {"rows": np.int64([0, 2, -1]), "flat": np.int64([-1, 2])}
    for i in range(count):
        nodes.append(node("Conv", [f"r{i - 1}" if i else "x", f"k{i}"], [f"c{i}"], strides=[2, 2], pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [f"c{i}"], [f"r{i}"]))
        nodes.append(node("Reshape", [f"r{i}", "rows"], [f"f{i}"]))
        weights[f"k{i}"] = np.full((2, 2, 3, 3), 0.1, np.float32)
    nodes.append(node("Concat", [f"f{i}" for i in range(count)], ["all"], axis=2))
    nodes.append(node("Transpose", ["all"], ["t"], perm=[0, 2, 1]))
    nodes.append(node("Reshape", ["t", "flat"], ["l"]))
    nodes.append(node("Softmax", ["l"], ["p"], axis=-1))
    return model(nodes, [info("x", ["N", 2, "H", "W"])], [info("p", None), info("all", None)], **weights)


def _strides(count: int) -> onnx.ModelProto:
    """Convolutions of one picture, each with strides of its own, in one list."""
    nodes, weights = [], {"rows": np.int64([0, 1, -1])}
    for i in range(count):
        nodes.append(node("Conv", ["x", f"k{i}"], [f"c{i}"], strides=[2 + i, 2]))
        nodes.append(node("Reshape", [f"c{i}", "rows"], [f"f{i}"]))
        weights[f"k{i}"] = np.full((1, 1, 2 + i, 3), 0.1, np.float32)
    nodes.append(node("Concat", [f"f{i}" for i in range(count)], ["all"], axis=2))
    nodes.append(node("Shape", ["all"], ["s"]))
    nodes.append(node("ConstantOfShape", ["s"], ["z"]))
    nodes.append(node("Add", ["all", "z"], ["y"]))
    return model(nodes, [info("x", ["N", 1, "H", "W"])], [info("y", None)], **weights)


@pytest.mark.parametrize(
    ("proto", "shape"), [(_levels(7), (2, 2, 150, 130)), (_strides(90), (2, 1, 100, 100))], ids=["levels", "strides"]
)
def test_sums_of_divided_sizes_are_written(proto: onnx.ModelProto, shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "m.dml"
    dmlc.compile(proto).save(path)
    feeds = {"x": np.random.default_rng(3).normal(size=shape).astype(np.float32)}
    before, after = dmlc.compile(proto).run(feeds, "cpu"), dmlc.compile(path).run(feeds, "cpu")
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-6)


def test_a_quotient_that_is_subtracted_first_is_read_as_it_was_meant() -> None:
    """A leading minus binds tighter than the division."""
    source = "dim N in 1..7\nmodel m(x: f32[N]) -> (y) {\n"
    source += "    y = pad(x, pads=[3 - N // 2, 0])\n    return y\n}\n"
    program = dmlc.compile(dmlc.Source(source), target="numpy")
    again = dmlc.compile(dmlc.Source(program.to_bytes("dml").decode()), target="numpy")
    feeds = {"x": np.arange(5, dtype=np.float32)}
    assert again.run(feeds)["y"].tolist() == program.run(feeds)["y"].tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_size_that_is_too_long_and_that_no_value_has_is_refused() -> None:
    proto = _strides(90)
    del proto.graph.node[-3:]
    proto.graph.node.append(node("Reshape", ["all", "flat"], ["y"]))
    proto.graph.initializer.append(numpy_helper.from_array(np.int64([-1, 1]), "flat"))
    with pytest.raises(dmlc.DmlcError, match=r"E0508.*too long an expression"):
        dmlc.compile(proto).artifact("dml")


def test_operators_of_onnx_runtime_are_read_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    proto = model(
        [
            node("FusedMatMul", ["x", "m"], ["s"], domain="com.microsoft", alpha=2.0),
            node("SkipLayerNormalization", ["s", "x", "g"], ["n"], domain="com.microsoft", epsilon=1.0),
            node("MultiHeadAttention", ["n", "n", "n"], ["a"], domain="com.microsoft", num_heads=2),
            node(
                *("DynamicQuantizeLSTM", ["a", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "", "c"]),
                domain="com.microsoft", hidden_size=3, activations=["Sigmoid", "Tanh", "Tanh"],
            ),
        ],
        [info("x", ["n", 3, 4])],
        [info("y", None), info("c", None)],
        m=np.eye(4, dtype=np.float32),
        g=np.ones(4, np.float32),
        w=rng.integers(-9, 9, (1, 4, 12), dtype=np.int8),
        r=rng.integers(-9, 9, (1, 3, 12), dtype=np.int8),
        ws=np.float32([0.1]), wz=np.int8([0]), rs=np.float32([0.1]), rz=np.int8([0]),
    )  # fmt: skip
    proto.opset_import.add(domain="com.microsoft", version=1)
    path = tmp_path / "m.dml"
    dmlc.compile(proto, target="cpu").save(path)
    feeds = {"x": rng.normal(size=(2, 3, 4)).astype(np.float32)}
    before = dmlc.compile(proto, target="cpu").run(feeds, "cpu")
    again = dmlc.compile(path, target="cpu")
    assert "DynamicQuantizeLSTM" in [n.op_type for n in again.to_onnx().graph.node]
    after = again.run(feeds, "cpu")
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-5, atol=1e-6)


def test_results_that_a_node_leaves_out_are_dropped(tmp_path: Path) -> None:
    weights = {"w": np.ones((1, 12, 2), np.float32), "r": np.ones((1, 12, 3), np.float32)}
    nodes = [node("LSTM", ["x", "w", "r"], ["", "h", "c"], hidden_size=3), node("Relu", ["c"], ["y"])]
    proto = model(nodes, [info("x", ["t", 1, 2])], [info("y", None), info("h", None)], **weights)
    path = tmp_path / "m.dml"
    dmlc.compile(proto).save(path)
    assert "    _, h, c = onnx.LSTM(x, w, r, hidden_size=3)" in path.read_text()
    feeds = {"x": np.ones((4, 1, 2), np.float32)}
    before, after = dmlc.compile(proto).run(feeds, "cpu"), dmlc.compile(path).run(feeds, "cpu")
    for name in ("y", "h"):
        np.testing.assert_array_equal(after[name], before[name])


def test_an_operator_that_reading_does_not_know_is_refused() -> None:
    proto = model([node("Turn", ["x"], ["y"], domain="my.domain")], [info("x", [2])], [info("y", [2])])
    proto.opset_import.add(domain="my.domain", version=1)
    with pytest.raises(dmlc.DmlcError, match=r"E0508.*my\.domain\.Turn.*no operator Turn"):
        dmlc.compile(proto, target="onnx").artifact("dml")


@pytest.mark.parametrize(
    ("nodes", "opset"),
    [
        ([node("Attention", ["q", "q", "q"], ["y"])], 23),
        ([node("Cast", ["q"], ["i"], to=TensorProto.INT8), node("BitShift", ["i", "i"], ["y"], direction="LEFT")], 28),
    ],
)
def test_operators_that_came_after_the_opset_of_the_target(nodes: list[onnx.NodeProto], opset: int) -> None:
    graph = helper.make_graph(nodes, "g", [info("q", [1, 2, 3, 4])], [onnx.ValueInfoProto(name="y")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    text = Source("m.dml", dmlc.compile(proto, target="onnx").artifact("dml").payload)
    for target in ("onnx", "cpu", "directml", "directml:ort-1.17"):
        again = dmlc.compile(text, target=target)
        assert again.opset == opset
        assert any(f"opset {opset}, not " in line for line in again.source_graph.notes)
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(text, target="onnx", opset=20)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0501"
    assert diagnostic.help == f"leave out opset=: the lowest opset for it is {opset}"


def test_a_call_means_what_it_does_at_the_opset_of_reading(tmp_path: Path) -> None:
    """Opset 20 has a new word for the mode, and DirectML's provider takes the operator to opset 19."""
    proto = model(
        [node("GridSample", ["x", "g"], ["y"], mode="bilinear", align_corners=1)],
        [info("x", [1, 1, 4, 4]), info("g", [1, 2, 2, 2])],
        [info("y", None)],
    )
    path = tmp_path / "m.dml"
    rng = np.random.default_rng(5)
    feeds = {"x": rng.normal(size=(1, 1, 4, 4)).astype(np.float32), "g": np.full((1, 2, 2, 2), 0.1, np.float32)}
    for target in ("directml", "cpu"):
        dmlc.compile(proto, target=target).save(path)
        assert 'onnx.GridSample(x, g, align_corners=1, mode="linear")' in path.read_text()
        for other in ("directml", "cpu"):
            after = dmlc.compile(path, target=other).run(feeds, "cpu")["y"]
            np.testing.assert_allclose(after, dmlc.compile(proto, target=target).run(feeds, "cpu")["y"], rtol=1e-6)


def test_writing_a_program_that_was_read_changes_no_byte() -> None:
    """Constants stand in the order of their use, whatever the order of the model's weights is."""
    proto = head()
    weights = list(proto.graph.initializer)
    for order in (weights, weights[::-1]):
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(order)
        text = dmlc.compile(proto).artifact("dml").payload
        assert dmlc.compile(Source("m.dml", text)).artifact("dml").payload == text


@pytest.mark.parametrize("name", ["past + seq", "N+1", "2n", "in", "inf", "batch size", "#"])
def test_dims_of_any_name(name: str, tmp_path: Path) -> None:
    # exporters name sizes as they come; they were written bare, which no program is
    proto = model([node("Softmax", ["x"], ["y"], axis=0)], [info("x", [name, 4])], [info("y", [name, 4])])
    path = tmp_path / "head.dml"
    dmlc.compile(proto).save(path)
    again = dmlc.compile(path).to_onnx()
    assert [d.dim_param for d in again.graph.input[0].type.tensor_type.shape.dim] == [name, ""]
    reshaped = (
        f"dim `{name}` in 1..9\nmodel m(x: f32[`{name}`, 4]) -> (y) {{ return reshape(x, shape=[`{name}` * 4]) }}"
    )
    dmlc.compile(Source("m", reshaped), target="onnx").save(path)
    assert f"dim `{name}` in 1..9" in path.read_text(encoding="utf-8")
    assert dmlc.compile(path, target="onnx").to_onnx().graph.output[0] is not None


@pytest.mark.parametrize("name", ["a\0", "\x1b[31m", "a`b", "a\nb", "\x7f"])
@pytest.mark.parametrize("place", ["model", "input", "weight", "value", "dim"])
def test_names_that_cannot_be_quoted(name: str, place: str, tmp_path: Path) -> None:
    def at(here: str, other: str) -> str:
        return name if here == place else other

    proto = model(
        [
            node("MatMul", [at("input", "x"), at("weight", "w")], [at("value", "v")]),
            node("Softmax", [at("value", "v")], ["y"]),
        ],
        [info(at("input", "x"), [at("dim", "n"), 4])],
        [info("y", None)],
        **{at("weight", "w"): np.ones((4, 4), np.float32)},
    )
    proto.graph.name = at("model", "m")
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(proto).save(tmp_path / "m.dml")
    assert caught.value.diagnostics[0].code.id == "E0508"
    assert not list(tmp_path.iterdir())


def test_the_name_that_drops_a_result_is_quoted() -> None:
    proto = model([node("Exp", ["_"], ["e"]), node("Add", ["e", "_"], ["y"])], [info("_", ["n"])], [info("y", None)])
    text = dmlc.compile(proto).artifact("dml").payload
    assert "`_`: f32[n]" in text
    assert dmlc.compile(Source("m.dml", text)).signature.inputs[0][0] == "_"


def test_an_output_with_the_name_of_an_input_is_refused() -> None:
    proto = model([node("Exp", ["x"], ["y"])], [info("x", [2])], [info("x", [2]), info("y", [2])])
    with pytest.raises(dmlc.DmlcError, match=r"E0508.*x names an input and an output"):
        dmlc.compile(proto, target="onnx").artifact("dml")


def test_names_of_files_and_texts_are_quoted(tmp_path: Path) -> None:
    weights = np.arange(64, dtype=np.float32).reshape(4, 16)
    proto = model([node("MatMul", ["x", "w"], ["y"])], [info("x", ["n", 4])], [info("y", ["n", 16])], w=weights)
    path = tmp_path / 'a"b.dml'
    dmlc.compile(proto).save(path)
    assert dmlc.compile(path).signature.outputs[0][0] == "y"
    for name in ("a\\b.dml", "a\nb.dml"):
        with pytest.raises(dmlc.DmlcError, match="cannot be written in a program"):
            dmlc.compile(proto).save(tmp_path / name)


NORMS = """<ir_version: 8, opset_import: ["": 17]>
g (float[4, 6, 8] x) => (float[4, 6, 8] y, float[4, 6, 8] z, float[4, 6, 8] w)
<float[8] s = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] b = {8, 7, 6, 5, 4, 3, 2, 1}, float e = {0.001}> {
    m = ReduceMean<axes=[-1]>(x) c = Sub(x, m) q = Mul(c, c) v = ReduceMean<axes=[-1]>(q)
    f = Add(v, e) r = Sqrt(f) n = Div(c, r) t = Mul(n, s) y = Add(t, b)
    q2 = Mul(x, x) v2 = ReduceMean<axes=[-1]>(q2) f2 = Add(v2, e) r2 = Sqrt(f2) n2 = Div(x, r2) z = Mul(n2, s)
    m3 = ReduceMean<axes=[1]>(x) c3 = Sub(x, m3) q3 = Mul(c3, c3) v3 = ReduceMean<axes=[1]>(q3)
    f3 = Add(v3, e) r3 = Sqrt(f3) w = Div(c3, r3)
}"""


def test_norms_are_fused_in_text_and_cost_the_same_when_it_is_compiled() -> None:
    model = onnx.parser.parse_model(NORMS)
    direct = dmlc.compile(model)
    text = direct.artifact("dml").payload
    epsilon = float(np.float32(0.001))
    for line in (
        f"y = layer_norm(x, s, b, epsilon={epsilon})",
        f"z = rms_norm(x, s, epsilon={epsilon})",
        f"w = mean_variance_norm(x, axes=[1], epsilon={epsilon})",
    ):
        assert line in text
    for target in ("directml", "cpu", "onnx"):
        wanted = dmlc.compile(model, target=target)
        again = dmlc.compile(Source("g.dml", text), target=target)
        operators = [sorted(node.op_type for node in made.to_onnx().graph.node) for made in (wanted, again)]
        assert len(operators[1]) <= len(operators[0]), target
    feeds = {"x": np.random.default_rng(0).normal(size=(4, 6, 8)).astype(np.float32)}
    a, b = direct.run(feeds), dmlc.compile(Source("g.dml", text)).run(feeds)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-5, atol=1e-6)


def test_norms_are_one_dispatch_of_directml() -> None:
    text = dmlc.compile(onnx.parser.parse_model(NORMS)).artifact("dxdispatch").payload
    assert text.count('"DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION') == 3
    assert "ELEMENT_WISE_SQRT" not in text
