"""Pools that round up, at opset 22 and before: the same numbers, and the shape that was declared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, shape_inference

from dmlc.onnx_schema.moves.draft import KnownValues
from dmlc.onnx_schema.versions import move
from tests import kit

#: Size, kernel, stride, both pads, dilation, auto_pad: of each axis.
AXES = [
    (size, kernel, stride, begin, end, dilation, auto)
    for size, kernel, stride, begin, end, dilation, auto in product(
        range(2, 8), (1, 2, 3), (1, 2, 3), (0, 1, 2), (0, 1, 2), (1, 2), ("NOTSET", "SAME_UPPER", "VALID")
    )
    if max(begin, end) < kernel
    and (auto == "NOTSET" or begin == end == 0)
    and (auto != "SAME_UPPER" or (dilation == 1 and kernel >= stride))  # no other padding is computed by every kernel
    and size + begin + end > (kernel - 1) * dilation
]


def pool(op: str, place: int, second: int) -> tuple[NodeProto, tuple[int, ...]]:
    """A pool over two axes: that of a number, and another with the same padding mode."""
    size, kernel, stride, begin, end, dilation, auto = AXES[place]
    same = [axis for axis in AXES if axis[6] == auto]
    size2, kernel2, stride2, begin2, end2, dilation2, _ = same[second % len(same)]
    said: dict[str, Any] = {"ceil_mode": 1, "kernel_shape": [kernel, kernel2], "strides": [stride, stride2]}
    said |= {"dilations": [dilation, dilation2], "auto_pad": auto}
    if auto == "NOTSET":
        said["pads"] = [begin, begin2, end, end2]
    return helper.make_node(op, [f"x{place}"], [f"y{place}"], **said), (1, 2, size, size2)


def model(nodes: list[NodeProto], shapes: dict[str, tuple[int, ...]], opset: int, outputs: Any = None) -> ModelProto:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = outputs or [helper.make_empty_tensor_value_info(f"y{name[1:]}") for name in shapes]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def run(made: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return list(kit.run(made, feeds).values())


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_moved_pools_have_the_declared_shape_and_the_same_numbers(op: str) -> None:
    rng = np.random.default_rng(1)
    nodes, moved, shapes, feeds, rewritten = [], [], {}, {}, 0
    for place in range(len(AXES)):
        node, shape = pool(op, place, int(rng.integers(1000)))
        type = helper.make_tensor_type_proto(TensorProto.FLOAT, shape)
        there = move(node, 22, 21, str, KnownValues(type={node.input[0]: type}.get))
        if there is None:  # the padding would be as long as the kernel
            continue
        nodes.append(node)
        moved += there.nodes
        rewritten += there.nodes != [node]
        shapes[node.input[0]] = shape
        feeds[node.input[0]] = rng.standard_normal(shape).astype(np.float32)
    assert rewritten > 50 and len(nodes) > 0.9 * len(AXES)
    before = shape_inference.infer_shapes(model(nodes, shapes, 22), strict_mode=True)
    onnx.checker.check_model(before, full_check=True)
    after = model(moved, shapes, 21, before.graph.output)
    onnx.checker.check_model(after, full_check=True)
    for old, new in zip(run(before, feeds), run(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-6)


def test_what_is_counted_when_padding_counts_stays() -> None:
    node = helper.make_node(
        "AveragePool", ["x"], ["y"], kernel_shape=[1], strides=[2], ceil_mode=1, count_include_pad=1
    )
    for size, fits in ((3, True), (2, False)):
        type = helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 1, size])
        assert (move(node, 22, 21, str, KnownValues(type={"x": type}.get)) is not None) == fits


def test_dilated_windows_that_pad_themselves_stay() -> None:
    """ONNX Runtime counts them by the size of the dilated window where they are not rounded up."""
    for dilation, fits in ((1, True), (2, False)):
        node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3], strides=[3], ceil_mode=1,
                                auto_pad="SAME_UPPER", dilations=[dilation])  # fmt: skip
        assert (move(node, 22, 21, str, KnownValues(type={}.get)) is not None) == fits


def test_an_open_size_needs_no_other_form() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[2], ceil_mode=1)
    type = helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 1, "W"])
    moved = move(node, 22, 21, str, KnownValues(type={"x": type}.get))
    assert moved is not None and moved.nodes == [node]


def hanging(shape: Sequence[int | str], pads: list[int], stride: int = 2, **said: Any) -> Any:
    """A pool that counts padding and rounds up, moved below opset 19."""
    said = {"ceil_mode": 1, "count_include_pad": 1, "kernel_shape": [2, 2], "strides": [stride] * 2, **said}
    node = helper.make_node("AveragePool", ["x"], ["y"], pads=pads, **said)
    type = helper.make_tensor_type_proto(TensorProto.FLOAT, shape)
    return move(node, 20, 17, str, KnownValues(type={"x": type}.get))


def test_windows_that_fit_do_not_hang_over_the_padding() -> None:
    assert hanging((1, 2, 6, 8), [0, 0, 0, 0]) is not None
    assert hanging((1, 2, 6, 8), [1, 1, 1, 1]) is not None
    assert hanging((1, 2, 5, 7), [0, 0, 0, 0], 1) is not None
    assert hanging((1, 2, 9, 9), [0, 0, 0, 0], 3, kernel_shape=[3, 3]) is not None


@pytest.mark.parametrize(
    ("shape", "pads"),
    [
        ((1, 2, 5, 8), [0, 0, 0, 0]),
        ((1, 2, 8, 5), [1, 1, 1, 1]),
        ((1, 2, "H", 8), [0, 0, 0, 0]),
        ((1, 2, 5, 8), [1, 0, 0, 0]),  # even sizes, but uneven padding
    ],
)
def test_windows_that_may_hang_over_the_padding_stay(shape: Sequence[int | str], pads: list[int]) -> None:
    assert hanging(shape, pads) is None


def test_windows_that_fit_have_the_same_numbers_below_opset_19() -> None:
    x = np.random.default_rng(2).standard_normal((1, 2, 6, 8)).astype(np.float32)
    said = {"ceil_mode": 1, "count_include_pad": 1, "kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    old, new = (
        run(model([node], {"x0": x.shape}, opset), {"x0": x})
        for node, opset in [(helper.make_node("AveragePool", ["x0"], ["y0"], **said), opset) for opset in (20, 17)]
    )
    np.testing.assert_allclose(new[0], old[0], rtol=1e-6, atol=1e-6)
