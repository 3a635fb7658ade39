"""``fuse-instance-norm``: every spelling, its near misses, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, reasons
from onnx import TensorProto

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


def test_an_instance_norm_takes_what_follows() -> None:
    nodes = [node("InstanceNormalization", ["x", "one", "zero"], ["n"], epsilon=1e-3), *FULL[-2:]]
    weights = {k: v for k, v in affine().items() if k != "eps"}
    m = model(nodes, SHAPE, one=np.full(3, 2, np.float32), zero=np.full(3, 0.5, np.float32), **weights)
    check(m, ["InstanceNormalization"])


@pytest.mark.parametrize("shape", [(4, 5), (2, 3, 1, 1), (5,)])
def test_a_scale_along_other_axes_stays_outside(shape: tuple[int, ...]) -> None:
    """Over the last axes it is a layer normalization; for each batch it is no scale of any."""
    import dmlc

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
    import dmlc

    m = model(nodes, SHAPE, **affine(), **extra)
    found = [n.op_type for n in dmlc.compile(m).to_onnx().graph.node]
    assert "InstanceNormalization" not in found
    check(m, found)


def test_statistics_that_are_outputs_stay() -> None:
    m = model(FULL, SHAPE, outputs=("y", "v"), **affine())
    program = check(m, [n.op_type for n in m.graph.node])
    assert "v is used outside" in reasons(program, "fuse-instance-norm")


def test_numpy_code_keeps_what_it_can_say() -> None:
    import dmlc

    text = dmlc.compile(model(FULL, SHAPE, **affine()), target="numpy").to_numpy()
    assert "np.sqrt" in text


# --- groups


def grouped(inner: Any = 1.0, groups: int = 2, shape: Any = (0, 2, -1)) -> onnx.ModelProto:
    nodes = [
        node("Reshape", ["x", "to"], ["r"]),
        node("InstanceNormalization", ["r", "one", "zero"], ["n"], epsilon=1e-3),
        node("Shape", ["x"], ["sh"]),
        node("Reshape", ["n", "sh"], ["back"]),
        node("Mul", ["back", "g"], ["s"]),
        node("Add", ["s", "b"], ["y"]),
    ]
    g, b = (RNG.normal(size=(4, 1, 1)).astype(np.float32) for _ in range(2))
    one, zero = np.full(groups, inner, np.float32), np.zeros(groups, np.float32)
    return model(nodes, (2, 4, 3, 3), to=np.array(shape), one=one, zero=zero, g=g, b=b)


def test_a_group_norm_on_plain_onnx() -> None:
    program = check(grouped(), ["GroupNormalization"], target="onnx")
    assert classes(program)["fuse-group-norm"] == "reassociates"


def test_on_directml_and_below_opset_21_it_stays() -> None:
    kept = ["Reshape", "InstanceNormalization", "Reshape", "Mul", "Add"]
    check(grouped(), kept)
    check(grouped(), kept, target="onnx", opset=20)


@pytest.mark.parametrize(
    ("m", "words"),
    [
        (grouped(inner=2.0), "for each group"),
        (grouped(groups=4, shape=(1, 4, -1)), "mix the batch"),
    ],
)
def test_near_misses_of_groups(m: onnx.ModelProto, words: str) -> None:
    program = check(m, ["Reshape", "InstanceNormalization", "Reshape", "Mul", "Add"], target="onnx")
    assert words in reasons(program, "fuse-group-norm")


def test_f64_has_no_kernel() -> None:
    weights = {k: v.astype(np.float64) for k, v in affine().items()}
    m = model(FULL, SHAPE, dtype=TensorProto.DOUBLE, **weights)
    check(m, [n.op_type for n in m.graph.node])
