"""``fuse-instance-norm``: every spelling, its near misses, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, reasons
from onnx import TensorProto

import dmlc

Nodes = list[onnx.NodeProto]
RNG = np.random.default_rng(5)
EPS = np.float32(1e-3)
SHAPE = (2, 3, 4, 5)


def core(last: str = "y", axes: tuple[int, ...] = (2, 3), *, count: str = "") -> Nodes:
    """Mean, centred square, epsilon inside the root; ``count`` divides the sum of squares instead of a mean."""
    variance = [node("ReduceMean", ["q"], ["v"], axes=list(axes), keepdims=1)]
    if count:
        variance = [node("ReduceSum", ["q", "axes"], ["t"], keepdims=1), node("Div", ["t", count], ["v"])]
    return [
        node("ReduceMean", ["x"], ["m"], axes=list(axes), keepdims=1),
        node("Sub", ["x", "m"], ["d"]),
        node("Mul", ["d", "d"], ["q"]),
        *variance,
        node("Add", ["v", "eps"], ["w"]),
        node("Sqrt", ["w"], ["r"]),
        node("Div", ["d", "r"], [last]),
    ]


def affine(shape: tuple[int, ...] = (3, 1, 1)) -> dict[str, Any]:
    return {"eps": EPS, "g": RNG.normal(size=shape).astype(np.float32), "b": RNG.normal(size=shape).astype(np.float32)}


FULL = [*core("n"), node("Mul", ["n", "g"], ["s"]), node("Add", ["b", "s"], ["y"])]


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 3, 1, 1)])
def test_with_a_scale_and_a_bias_for_each_channel(shape: tuple[int, ...], target: str) -> None:
    program = check(model(FULL, SHAPE, **affine(shape)), ["InstanceNormalization"], target=target)
    assert {"fuse-instance-norm", "absorb-channel-scale", "absorb-channel-bias"} <= set(classes(program))
    assert set(classes(program).values()) == {"reassociates"}


@pytest.mark.parametrize("shape", [(2, 3, 7), (1, 3, 2, 3, 4)])
def test_other_ranks(shape: tuple[int, ...]) -> None:
    axes = tuple(range(2, len(shape)))
    nodes = [*core("n", axes), *FULL[-2:]]
    check(model(nodes, shape, **affine((3, *[1] * len(axes)))), ["InstanceNormalization"])


@pytest.mark.parametrize("shape", [(2, 4, 5, 3), (2, 7, 3), (1, 2, 3, 4, 3)])
@pytest.mark.parametrize("kept", [(3,), (1, 3)])
def test_channels_last_stand_between_transposes(shape: tuple[int, ...], kept: tuple[int, ...]) -> None:
    nodes = [*core("n", tuple(range(1, len(shape) - 1))), *FULL[-2:]]
    check(model(nodes, shape, **affine(kept)), ["Transpose", "InstanceNormalization", "Transpose"])


def test_transposes_of_channels_last_meet_those_around() -> None:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
        *[n for n in core("n", (1, 2)) if n.op_type not in ("Sub", "ReduceMean") or n.output[0] == "v"],
        *FULL[-2:-1],
        node("Add", ["s", "b"], ["u"]),
        node("Transpose", ["u"], ["y"], perm=[0, 3, 1, 2]),
    ]
    nodes[1:1] = [node("ReduceMean", ["t"], ["m"], axes=[1, 2], keepdims=1), node("Sub", ["t", "m"], ["d"])]
    check(model(nodes, SHAPE, **affine((3,))), ["InstanceNormalization"])


def test_sizes_need_not_be_known() -> None:
    """But one of the sizes of a plane must be 2 or more, so that its bias is not that of a single element."""
    for target in ("directml", "onnx"):
        check(model(FULL, ("N", 3, "H", 5), **affine()), ["InstanceNormalization"], target=target, shape=SHAPE)
        m = model(FULL, ("N", 3, "H", "W"), **affine())
        check(m, ["InstanceNormalization", "Add"], target=target, shape=SHAPE)


def split(axes: tuple[int, ...] = (2, 3)) -> Nodes:
    """x * s + (bias - mean * s), as TensorFlow's batch normalization writes it."""
    return [
        *core("y", axes)[:-1],
        node("Reciprocal", ["r"], ["i"]),
        node("Mul", ["i", "g"], ["ig"]),
        node("Mul", ["x", "ig"], ["xs"]),
        node("Mul", ["ig", "m"], ["ms"]),
        node("Sub", ["b", "ms"], ["o"]),
        node("Add", ["xs", "o"], ["y"]),
    ]


def test_a_split_normalization() -> None:
    program = check(model(split(), SHAPE, **affine()), ["InstanceNormalization"])
    assert classes(program)["fuse-instance-norm"] == "reassociates"
    check(model(split((1, 2)), (2, 4, 5, 3), **affine((3,))), ["Transpose", "InstanceNormalization", "Transpose"])


def test_a_split_normalization_of_two_inputs_stays() -> None:
    nodes = split()
    nodes[-2].input[1] = "mm"
    nodes.insert(-2, node("Mul", ["ig", "v"], ["mm"]))
    found = [n.op_type for n in dmlc.compile(model(nodes, SHAPE, **affine())).to_onnx().graph.node]
    assert "InstanceNormalization" not in found
    check(model(nodes, SHAPE, **affine()), found)


def test_a_scale_below_and_a_bias_taken_off() -> None:
    nodes = [*core("n"), node("Div", ["n", "g"], ["s"]), node("Sub", ["s", "b"], ["y"])]
    weights = {**affine(), "g": np.array([0.5, -2, 3], np.float32).reshape(3, 1, 1)}
    check(model(nodes, SHAPE, **weights), ["InstanceNormalization"])


def test_a_scale_below_that_is_zero_stays() -> None:
    nodes = [node("InstanceNormalization", ["x", "one", "zero"], ["n"]), node("Div", ["n", "g"], ["y"])]
    weights = {"one": np.ones(3, np.float32), "zero": np.zeros(3, np.float32)}
    m = model(nodes, SHAPE, g=np.array([1, 0, 2], np.float32).reshape(3, 1, 1), **weights)
    program = check(m, ["InstanceNormalization", "Div"])
    assert "divides by zero" in reasons(program, "absorb-channel-scale")


def test_a_variance_of_moments_is_range() -> None:
    nodes = [
        node("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=1),
        node("Mul", ["x", "x"], ["xx"]),
        node("ReduceMean", ["xx"], ["e2"], axes=[2, 3], keepdims=1),
        node("Mul", ["m", "m"], ["mm"]),
        node("Sub", ["e2", "mm"], ["v"]),
        node("Sub", ["x", "m"], ["d"]),
        *core("n")[-3:],
        *FULL[-2:],
    ]
    m = model(nodes, SHAPE, **affine())
    found = [n.op_type for n in dmlc.compile(m).to_onnx().graph.node]
    assert "InstanceNormalization" not in found
    feeds = [RNG.normal(size=SHAPE).astype(np.float32)]
    program = check(m, ["InstanceNormalization"], allow=["range"], feeds=feeds)
    assert classes(program)["fuse-instance-norm"] == "range"


def test_an_instance_norm_takes_what_follows() -> None:
    nodes = [node("InstanceNormalization", ["x", "one", "zero"], ["n"], epsilon=1e-3), *FULL[-2:]]
    weights = {k: v for k, v in affine().items() if k != "eps"}
    m = model(nodes, SHAPE, one=np.full(3, 2, np.float32), zero=np.full(3, 0.5, np.float32), **weights)
    check(m, ["InstanceNormalization"])


@pytest.mark.parametrize("shape", [(4, 5), (2, 3, 1, 1), (5,)])
def test_a_scale_along_other_axes_stays_outside(shape: tuple[int, ...]) -> None:
    """Over the last axes it is a layer normalization; for each batch it is not a scale of any normalization."""
    m = model(FULL, SHAPE, **{**affine(), "g": np.full(shape, 2, np.float32)})
    found = [n.op_type for n in dmlc.compile(m).to_onnx().graph.node]
    assert found in (["LayerNormalization", "Add"], ["LayerNormalization", "Mul", "Add"])
    check(m, found)


def test_a_scale_for_each_element_of_the_batch_stays() -> None:
    nodes = [node("InstanceNormalization", ["x", "one", "zero"], ["n"]), node("Mul", ["n", "g"], ["y"])]
    g = np.ones((2, 3, 1, 1), np.float32) * 2
    m = model(nodes, SHAPE, one=np.ones(3, np.float32), zero=np.zeros(3, np.float32), g=g)
    program = check(m, ["InstanceNormalization", "Mul"])
    assert "not one number for each channel" in reasons(program, "absorb-channel-scale")


@pytest.mark.parametrize(
    ("nodes", "extra"),
    [
        ([*core("n", (1, 3)), *FULL[-2:]], {}),  # not all axes from the third on
        ([*core("n", count="fewer"), *FULL[-2:]], {"axes": [2, 3], "fewer": np.float32(19)}),  # unbiased
        (
            [
                *core("n")[:-3],
                node("Sqrt", ["v"], ["r0"]),
                node("Add", ["r0", "eps"], ["r"]),
                core("n")[-1],
                *FULL[-2:],
            ],
            {},
        ),
    ],
)
def test_near_misses(nodes: Nodes, extra: Any) -> None:
    m = model(nodes, SHAPE, **affine(), **extra)
    found = [n.op_type for n in dmlc.compile(m).to_onnx().graph.node]
    assert "InstanceNormalization" not in found
    check(m, found)


def test_statistics_that_are_outputs_stay() -> None:
    m = model(FULL, SHAPE, outputs=("y", "v"), **affine())
    program = check(m, [n.op_type for n in m.graph.node])
    assert "v is used outside" in reasons(program, "fuse-instance-norm")


def test_numpy_code_keeps_what_it_can_say() -> None:
    text = dmlc.compile(model(FULL, SHAPE, **affine()), target="numpy").to_numpy()
    assert "np.sqrt" in text


def test_f64_has_no_kernel() -> None:
    weights = {k: v.astype(np.float64) for k, v in affine().items()}
    m = model(FULL, SHAPE, dtype=TensorProto.DOUBLE, **weights)
    check(m, [n.op_type for n in m.graph.node])
