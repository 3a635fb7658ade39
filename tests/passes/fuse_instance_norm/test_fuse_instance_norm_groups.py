"""Group normalizations: what each target gets, near misses, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, operators, reasons
from onnx import TensorProto

import dmlc
from tests.rows import each_row

RNG = np.random.default_rng(6)
EPS = np.float32(1e-3)
SHAPE = (2, 4, 3, 3)
KEPT = ["Reshape", "InstanceNormalization", "Reshape"]


def weights(count: int, *, flat: bool = False, dtype: Any = np.float32) -> dict[str, Any]:
    shape = (count,) if flat else (count, 1, 1)
    return {k: RNG.normal(size=shape).astype(dtype) for k in "gb"}


def grouped(
    inner: Any = 1.0,
    groups: int = 2,
    to: Any = (0, 2, -1),
    shape: Sequence[Any] = SHAPE,
    **extra: Any,
) -> onnx.ModelProto:
    """As torch exports it."""
    nodes = [
        node("Reshape", ["x", "to"], ["r"]),
        node("InstanceNormalization", ["r", "one", "zero"], ["n"], epsilon=1e-3),
        node("Shape", ["x"], ["sh"]),
        node("Reshape", ["n", "sh"], ["back"]),
        node("Mul", ["back", "g"], ["s"]),
        node("Add", ["s", "b"], ["y"]),
    ]
    one, zero = np.broadcast_to(np.asarray(inner, np.float32), groups), np.zeros(groups, np.float32)
    return model(nodes, shape, to=np.array(to), one=one, zero=zero, **{**weights(4), **extra})


def written_out(to: Sequence[int], axes: Sequence[int]) -> onnx.ModelProto:
    keep = {"axes": list(axes), "keepdims": 1}
    nodes = [
        node("Reshape", ["x", "to"], ["r"]),
        node("ReduceMean", ["r"], ["m"], **keep),
        node("Sub", ["r", "m"], ["d"]),
        node("Pow", ["d", "two"], ["q"]),
        node("ReduceMean", ["q"], ["v"], **keep),
        node("Add", ["v", "eps"], ["w"]),
        node("Sqrt", ["w"], ["t"]),
        node("Div", ["d", "t"], ["n"]),
        node("Reshape", ["n", "back"], ["k"]),
        node("Mul", ["k", "g"], ["s"]),
        node("Add", ["s", "b"], ["y"]),
    ]
    return model(nodes, SHAPE, to=np.array(to), back=np.array(SHAPE), two=np.float32(2), eps=EPS, **weights(4))


def test_plain_onnx_has_a_group_norm() -> None:
    program = check(grouped(), ["GroupNormalization"], target="onnx", allow=["range"])
    assert classes(program)["fuse-group-norm"] == "range"
    assert "--allow range" in reasons(dmlc.compile(grouped(), target="onnx"), "fuse-group-norm")


@each_row("opset", [None, 17, 20, 21])
@each_row("source", ["grouped", "open sizes", "written out"])
@each_row("mean", [0, 300, -19000, 100_000, 3e6])
def test_a_large_mean_costs_no_more_digits_than_before(opset: int | None, source: str, mean: float) -> None:
    m = {
        "grouped": grouped,
        "open sizes": lambda: grouped(shape=("N", 4, "H", "W")),
        "written out": lambda: written_out((0, 2, -1), (2,)),
    }[source]()
    program = dmlc.compile(m, target="onnx", opset=opset)
    assert "GroupNormalization" not in operators(program) and len(operators(program)) <= len(m.graph.node)
    x = (mean + RNG.normal(size=SHAPE)).astype(np.float32)
    rows = x.astype(np.float64).reshape(2, 2, -1)
    normal = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-3)
    g, b = (onnx.numpy_helper.to_array(t) for t in m.graph.initializer if t.name in "gb")
    # The mean is rounded by half a unit in its last digit, which moves the result by so much.
    atol = 1e-4 + 4 * float(np.spacing(np.float32(abs(mean)))) * float(np.abs(g).max())
    np.testing.assert_allclose(program.run({"x": x}, "cpu")["y"], normal.reshape(SHAPE) * g + b, rtol=1e-4, atol=atol)


def test_elsewhere_scale_and_bias_become_one_node() -> None:
    for options in ({}, {"target": "cpu"}, {"target": "onnx", "opset": 20}):
        program = check(grouped(), [*KEPT, "BatchNormalization"], **options)
        assert classes(program)["fuse-group-affine"] == "reassociates"


def test_sizes_need_not_be_known() -> None:
    m = grouped(shape=("N", 4, "H", "W"))
    check(m, ["GroupNormalization"], target="onnx", allow=["range"], shape=SHAPE)
    check(m, ["Reshape", "InstanceNormalization", "Shape", "Reshape", "BatchNormalization"], shape=SHAPE)


@pytest.mark.parametrize(("to", "axes"), [((0, 2, -1), (2,)), ((2, 2, 2, 3, 3), (2, 3, 4)), ((0, 2, 2, 9), (2, 3))])
def test_written_out(to: Sequence[int], axes: Sequence[int]) -> None:
    m = written_out(to, axes)
    check(m, ["GroupNormalization"], target="onnx", allow=["range"])
    check(m, [*KEPT, "BatchNormalization"])


def test_written_out_over_less_stays() -> None:
    m = written_out((2, 2, 2, 3, 3), (3, 4))
    found = operators(dmlc.compile(m, target="onnx", allow=["range"]))
    assert "GroupNormalization" not in found
    check(m, found, target="onnx", allow=["range"])


@pytest.mark.parametrize(
    ("m", "words"),
    [
        (grouped(inner=2.0), "for each group"),
        (grouped(inner=[1.0, 3.0]), "for each group"),
        (grouped(groups=4, to=(1, 4, -1)), "mix the batch"),
    ],
)
def test_near_misses(m: onnx.ModelProto, words: str) -> None:
    program = check(m, [*KEPT, "BatchNormalization"], target="onnx")
    assert words in reasons(program, "fuse-group-norm")


def test_a_normalized_value_that_is_used_elsewhere_stays() -> None:
    m = grouped()
    m.graph.output.append(onnx.helper.make_tensor_value_info("n", TensorProto.FLOAT, None))
    program = check(m, [*KEPT, "BatchNormalization"], target="onnx")
    assert "n is used outside" in reasons(program, "fuse-group-norm")


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
def test_groups_of_one_channel_are_an_instance_norm(target: str) -> None:
    m = grouped(groups=4, to=(0, 4, -1), inner=[1.0, 2.0, -3.0, 0.5])
    check(m, ["InstanceNormalization"], target=target)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"g": np.full((1, 4, 3, 3), 2, np.float32)}, ""),  # not along the channels
        ({"b": np.full((4, 1, 1), np.inf, np.float32)}, "not finite"),
    ],
)
def test_another_scale_or_bias_stays(extra: dict[str, Any], words: str) -> None:
    program = check(grouped(**extra), [*KEPT, "Mul", "Add"])
    assert words in reasons(program, "fuse-group-affine")


def test_a_product_that_is_used_elsewhere_stays() -> None:
    m = grouped()
    m.graph.output.append(onnx.helper.make_tensor_value_info("s", TensorProto.FLOAT, None))
    assert "used 2 times" in reasons(check(m, [*KEPT, "Mul", "Add"]), "fuse-group-affine")


# --- GroupNormalization, which has no kernel


def group_norm(count: int, opset: int, *, groups: int = 2, dtype: Any = np.float32, **options: Any) -> onnx.ModelProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [node("GroupNormalization", ["x", "g", "b"], ["y"], num_groups=groups, epsilon=1e-3)]
    return model(
        nodes, opset=opset, dtype=kind, **{"shape": SHAPE, **weights(count, flat=True, dtype=dtype), **options}
    )


@pytest.mark.parametrize("target", ["directml", "cpu"])
def test_it_becomes_what_targets_have(target: str) -> None:
    program = check(group_norm(4, 21), [*KEPT, "BatchNormalization"], target=target)
    assert classes(program)["lower-group-norm"] == "reassociates"
    check(group_norm(2, 18), KEPT, target=target)  # a scale for each group
    check(group_norm(4, 21, groups=4), ["InstanceNormalization"], target=target)


@pytest.mark.parametrize("sizes", [("N", 4, 3, 3), ("N", 4, "H", 3), ("N", 4, 3, "W"), (2, 4, "H", 3), (2, 4, 3, "W")])
def test_one_open_size_behind_the_channels_needs_no_shape(sizes: Sequence[Any]) -> None:
    check(group_norm(4, 21, shape=sizes), [*KEPT, "BatchNormalization"], target="directml", shape=SHAPE)


def test_its_sizes_need_not_be_known() -> None:
    m = group_norm(4, 21, shape=("N", 4, "H", "W"))
    check(m, ["Reshape", "InstanceNormalization", "Shape", "Reshape", "BatchNormalization"], shape=SHAPE)


def test_one_of_vectors() -> None:
    feeds = [RNG.normal(size=(2, 4)).astype(np.float32)]
    check(group_norm(4, 21, shape=(2, 4)), [*KEPT, "Mul", "Add"], feeds=feeds)


def test_in_f16_it_keeps_mul_and_add() -> None:
    check(group_norm(4, 21, dtype=np.float16), [*KEPT, "Mul", "Add"])


def test_scales_may_be_fed() -> None:
    m = group_norm(4, 21)
    del m.graph.initializer[:]
    m.graph.input.extend([onnx.helper.make_tensor_value_info(k, TensorProto.FLOAT, [4]) for k in "gb"])
    program = dmlc.compile(m)
    assert [n.op_type for n in program.to_onnx().graph.node if n.op_type != "Unsqueeze"] == [*KEPT, "Mul", "Add"]
    feeds = {"x": RNG.normal(size=SHAPE).astype(np.float32), **weights(4, flat=True)}
    want = dmlc.compile(m, target="onnx", only_rules=["dce"]).run(feeds, "cpu")["y"]
    np.testing.assert_allclose(program.run(feeds, "cpu")["y"], want, rtol=2e-5, atol=1e-5)


def test_on_plain_onnx_and_in_f64_it_stays() -> None:
    check(group_norm(4, 21), ["GroupNormalization"], target="onnx")
    program = check(group_norm(4, 21, dtype=np.float64), ["GroupNormalization"], target="cpu")
    assert "f64 has no kernel" in reasons(program, "lower-group-norm")
