"""Near misses of the fusions of normalizations: each test fails where one guard of their rules is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, reasons

import dmlc

SHAPE = (2, 4, 3, 5)
EPS = np.float32(1e-3)
COLUMN = np.arange(1, 5, dtype=np.float32).reshape(4, 1, 1)
INSTANCE = node("InstanceNormalization", ["x", "one", "zero"], ["n"], epsilon=1e-3)
ONES = {"one": np.ones(4, np.float32), "zero": np.zeros(4, np.float32), "c": COLUMN}


def test_a_normalized_value_that_is_an_output_keeps_its_scale() -> None:
    m = model([INSTANCE, node("Mul", ["n", "c"], ["y"])], SHAPE, outputs=("y", "n"), **ONES)
    check(m, ["InstanceNormalization", "Mul"])


def grouped(to: list[int], back: list[int], last: tuple[onnx.NodeProto, ...] = (), **extra: Any) -> onnx.ModelProto:
    groups = to[1]
    nodes = [
        node("Reshape", ["x", "to"], ["r"]),
        node("InstanceNormalization", ["r", "one", "zero"], ["n"], epsilon=1e-3),
        node("Reshape", ["n", "back"], ["y" if not last else "k"]),
        *last,
    ]
    weights = {"one": np.ones(groups, np.float32), "zero": np.zeros(groups, np.float32), **extra}
    return model(nodes, SHAPE, to=np.array(to), back=np.array(back), **weights)


KEPT = ["Reshape", "InstanceNormalization", "Reshape"]


@pytest.mark.parametrize(
    ("to", "back", "words"),
    [
        ([2, 2, 30], [2, 4, 15], "does not undo"),
        ([2, 3, 20], [2, 4, 3, 5], "are not groups of the channels"),
        ([1, 2, 60], [2, 4, 3, 5], "mix the batch"),
    ],
)
def test_what_is_no_group_normalization(to: list[int], back: list[int], words: str) -> None:
    assert words in reasons(check(grouped(to, back), KEPT, target="onnx", opset=21), "fuse-group-norm")


def test_it_is_one_otherwise() -> None:
    check(grouped([2, 2, 30], [2, 4, 3, 5]), ["GroupNormalization"], target="onnx", opset=21, allow=["range"])


def test_groups_of_one_that_are_used_elsewhere() -> None:
    m = grouped([2, 4, 15], [2, 4, 3, 5])
    m.graph.output.append(onnx.helper.make_tensor_value_info("n", onnx.TensorProto.FLOAT, None))
    assert "fuse-groups-of-one" not in classes(check(m, KEPT))


def written(over: tuple[int, ...], *, keep: int = 1) -> list[onnx.NodeProto]:
    return [
        node("ReduceMean", ["x"], ["m"], axes=list(over), keepdims=keep),
        node("Sub", ["x", "m"], ["d"]),
        node("Mul", ["d", "d"], ["q"]),
        node("ReduceMean", ["q"], ["v"], axes=list(over), keepdims=keep),
        node("Add", ["v", "eps"], ["w"]),
        node("Sqrt", ["w"], ["r"]),
        node("Div", ["d", "r"], ["y"]),
    ]


def test_numpy_has_no_layer_norm() -> None:
    program = dmlc.compile(model(written((2, 3)), SHAPE, eps=EPS), target="numpy")
    assert not {"fuse-layer-norm", "fuse-instance-norm"} & set(classes(program))


def test_a_dropped_axis_of_a_square_broadcasts_along_another() -> None:
    m = model(written((1,), keep=0), (4, 4), eps=EPS)
    program = dmlc.compile(m)
    assert "LayerNormalization" not in [n.op_type for n in program.to_onnx().graph.node]
    assert "broadcasts along another axis" in reasons(program, "fuse-rms-norm")
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    plain = dmlc.compile(m, only_rules=["dce"])
    np.testing.assert_allclose(program.run({"x": x}, "cpu")["y"], plain.run({"x": x}, "cpu")["y"], rtol=1e-4, atol=1e-5)


def test_f64_has_no_kernel() -> None:
    kind = onnx.TensorProto.DOUBLE
    m = model(written((2, 3)), SHAPE, dtype=kind, eps=np.float64(1e-3))
    program = dmlc.compile(m, target="cpu")
    assert not {"fuse-layer-norm", "fuse-instance-norm"} & set(classes(program))
