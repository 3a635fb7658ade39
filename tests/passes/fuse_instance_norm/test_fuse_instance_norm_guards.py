"""Guards of ``fuse-instance-norm``: each test fails if one of them is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from fusion_helpers import check, classes, info, model, node, reasons

import dmlc

SHAPE = (2, 4, 3, 5)
RNG = np.random.default_rng(8)
COLUMN = RNG.standard_normal((4, 1, 1)).astype(np.float32)
KEPT = ["Reshape", "InstanceNormalization", "Reshape"]
INSTANCE = node("InstanceNormalization", ["x", "one", "zero"], ["n"], epsilon=1e-3)


def flat(count: int, number: float = 1) -> np.ndarray:
    return np.full(count, number, np.float32)


def grouped(
    *last: onnx.NodeProto, to: Any = (2, 2, 30), shape: Any = SHAPE, inner: str = "InstanceNormalization", **extra: Any
) -> onnx.ModelProto:
    nodes = [
        node("Reshape", ["x", "to"], ["r"]),
        node(inner, ["r", "one", "zero"], ["n"], **({"epsilon": 1e-3} if inner == "InstanceNormalization" else {})),
        node("Reshape", ["n", "back"], ["k" if last else "y"]),
        *last,
    ]
    count = max(to[1], 0)
    weights = {"one": flat(count), "zero": flat(count, 0), "back": np.array(SHAPE), **extra}
    return model(nodes, shape, to=np.array(to), **weights)


AFFINE = (node("Mul", ["k", "g"], ["s"]), node("Add", ["s", "b"], ["y"]))


def test_a_bias_of_each_group() -> None:
    m = grouped(zero=flat(2, 3))
    assert "for each group" in reasons(check(m, KEPT, target="onnx"), "fuse-group-norm")


def test_what_is_between_the_reshapes_is_an_instance_norm() -> None:
    nodes = [
        node("Reshape", ["x", "to"], ["r"]),
        node("Mul", ["r", "two"], ["n"]),
        node("Reshape", ["n", "back"], ["k"]),
        *AFFINE,
    ]
    m = model(nodes, SHAPE, to=np.array([2, 2, 30]), back=np.array(SHAPE), two=np.float32(2), g=COLUMN, b=COLUMN)
    for target in ("onnx", "cpu"):
        found = classes(dmlc.compile(m, target=target))
        assert not {"fuse-group-norm", "fuse-group-affine", "fuse-groups-of-one"} & set(found)
    nodes = [
        node("Reshape", ["x", "to"], ["r"]),
        node("Conv", ["r", "w", "b"], ["n"]),
        node("Reshape", ["n", "back"], ["y"]),
    ]
    m = model(nodes, SHAPE, to=np.array([2, 4, 15]), back=np.array(SHAPE), w=np.ones((4, 4, 1), np.float32), b=flat(4))
    assert "fuse-groups-of-one" not in classes(check(m, ["Reshape", "Conv", "Reshape"]))
    assert reasons(dmlc.compile(m), "lower-group-norm") == ""


def test_what_is_before_is_a_reshape() -> None:
    nodes = [node("Sin", ["x"], ["r"]), INSTANCE, node("Reshape", ["n", "back"], ["y"])]
    nodes[1] = node("InstanceNormalization", ["r", "one", "zero"], ["n"], epsilon=1e-3)
    shape = (2, 4, 15)
    m = model(nodes, shape, one=flat(4), zero=flat(4, 0), back=np.array(shape))
    check(m, ["Sin", "InstanceNormalization"], target="onnx")
    m = model(nodes, shape, one=flat(4), zero=flat(4, 0), back=np.array([2, 4, 3, 5]))
    check(m, ["Sin", "InstanceNormalization", "Reshape"], target="onnx")
    nodes[0] = node("Transpose", ["x"], ["r"], perm=[0, 1, 3, 2])
    m = model(nodes, SHAPE, one=flat(4), zero=flat(4, 0), back=np.array(SHAPE))
    assert "fuse-groups-of-one" not in classes(check(m, [n.op_type for n in nodes]))


def test_groups_that_are_not_known() -> None:
    of_channels = grouped(to=(0, 2, -1), shape=("N", "C", "H", "W"))
    of_rows = grouped(to=(0, -1, 5), shape=(2, 4, "H", 5), one=flat(12), zero=flat(12, 0))
    for m in (of_channels, of_rows):
        m.graph.initializer.pop([i.name for i in m.graph.initializer].index("back"))
        m.graph.node.insert(2, node("Shape", ["x"], ["back"]))
    vector = grouped(to=(2, 2, 30), shape=(120,), back=np.array([120]))
    # half of C * H * W is not known to be a whole number, so that the sizes after it are open
    whys = ("does not undo the first", "are not groups of the channels", "are not groups of the channels")
    for unknown, why in zip((of_channels, of_rows, vector), whys, strict=True):
        program = dmlc.compile(unknown, target="onnx")
        assert why in reasons(program, "fuse-group-norm")


def test_a_vector_of_channels_has_no_groups_of_one() -> None:
    """An instance normalization needs an axis to normalize over."""
    nodes = [node("Reshape", ["x", "to"], ["r"]), INSTANCE, node("Reshape", ["n", "back"], ["y"])]
    nodes[1] = node("InstanceNormalization", ["r", "one", "zero"], ["n"], epsilon=1e-3)
    m = model(nodes, (2, 4), one=flat(4), zero=flat(4, 0), to=np.array([2, 4, 1]), back=np.array([2, 4]))
    assert "fuse-groups-of-one" not in classes(dmlc.compile(m))


def test_f16_has_no_kernel_for_what_follows_a_group_norm() -> None:
    half = {k: np.ones(s, np.float16) for k, s in (("g", (4, 1, 1)), ("b", (4, 1, 1)), ("one", 2), ("zero", 2))}
    m = grouped(*AFFINE, **half)
    m.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    m.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    assert "fuse-group-affine" not in classes(dmlc.compile(m))


# --- GroupNormalization


def group_norm(
    count: int = 4, groups: int = 2, *, opset: int = 21, shape: Any = SHAPE, bias: int | None = None
) -> onnx.ModelProto:
    made = node("GroupNormalization", ["x", "g", "b"], ["y"], num_groups=groups, epsilon=1e-3)
    biases = np.ones(count if bias is None else bias, np.float32)
    weights = {"g": RNG.standard_normal(count).astype(np.float32), "b": biases}
    m = model([made], shape, opset=opset, **weights)
    m.graph.output[0].CopyFrom(info("y", list(shape)))
    return m


def lowered(m: onnx.ModelProto) -> tuple[bool, str]:
    program = dmlc.compile(m)
    return "lower-group-norm" in classes(program), reasons(program, "lower-group-norm")


@pytest.mark.parametrize(
    ("m", "why"),
    [
        (group_norm(shape=(2, "C", 3, 5)), "not known to be 2 groups"),
        (group_norm(groups=3), "not known to be 3 groups"),
        (group_norm(groups=0), "not known to be 0 groups"),
        (group_norm(bias=2), "scale and bias are f32[4] and f32[2] for 4 channels"),
        (group_norm(count=3), "for 4 channels"),
    ],
)
def test_group_norms_that_are_not_understood(m: onnx.ModelProto, why: str) -> None:
    fired, reason = lowered(m)
    assert not fired and why in reason


def test_channels_that_are_groups_of_their_own_need_an_axis() -> None:
    program = dmlc.compile(group_norm(groups=4, shape=(2, 4)))
    assert [n.op_type for n in program.to_onnx().graph.node][:3] == KEPT


# --- scale and bias of each channel


def absorbed(m: onnx.ModelProto, **options: Any) -> bool:
    return bool({"absorb-channel-scale", "absorb-channel-bias"} & set(classes(dmlc.compile(m, **options))))


def scaled(shape: Any, factor: Any, **extra: Any) -> onnx.ModelProto:
    weights = {"one": flat(4), "zero": flat(4, 0), "c": np.asarray(factor, np.float32), **extra}
    return model([INSTANCE, node("Mul", ["n", "c"], ["y"])], shape, **weights)


def test_scales_that_are_absorbed_and_that_are_not() -> None:
    assert absorbed(scaled(SHAPE, COLUMN))
    assert not absorbed(scaled(SHAPE, np.ones((1, 1, 4, 1, 1)) * 2))  # broadcasts to more axes
    assert not absorbed(scaled((2, 1, 3), np.ones((1, 5, 1)) * 2, one=flat(1), zero=flat(1, 0)))


def test_a_scale_that_is_fed_is_not_multiplied() -> None:
    m = scaled(SHAPE, COLUMN)
    m.graph.initializer.pop([i.name for i in m.graph.initializer].index("one"))
    m.graph.input.append(info("one", [4]))
    assert not absorbed(m)


def test_a_scale_of_the_batch_is_none_of_the_channels() -> None:
    assert not absorbed(scaled((4, 4, 3, 5), np.arange(4).reshape(1, 4, 1, 1, 1)))


def test_other_operators_have_no_scale_to_multiply() -> None:
    made = node("DequantizeLinear", ["q", "one", "zero"], ["n"], axis=1)
    nodes = [node("Cast", ["x"], ["q"], to=onnx.TensorProto.UINT8), made, node("Mul", ["n", "c"], ["y"])]
    assert not absorbed(model(nodes, SHAPE, one=flat(4), zero=np.zeros(4, np.uint8), c=COLUMN))
    made = node("Gemm", ["x", "one", "zero"], ["n"])
    weights = {"one": np.ones((4, 4), np.float32), "zero": flat(4, 0), "c": flat(4, 2)}
    assert not absorbed(model([made, node("Mul", ["n", "c"], ["y"])], (2, 4), **weights))


def test_a_scale_for_each_group_is_none_for_each_channel() -> None:
    made = node("GroupNormalization", ["x", "g", "b"], ["n"], num_groups=2, epsilon=1e-3)
    weights = {"g": flat(2), "b": flat(2, 0), "c": COLUMN}
    m = model([made, node("Mul", ["n", "c"], ["y"])], SHAPE, opset=18, **weights)
    assert not absorbed(m, target="onnx")


# --- written out


def written(over: Any, shape: Any, *, factor: Any = None, keepdims: int = 1, outputs: Any = ("y",)) -> onnx.ModelProto:
    nodes = [
        node("ReduceMean", ["x"], ["m"], axes=list(over), keepdims=keepdims),
        node("Sub", ["x", "m"], ["d"]),
        node("Mul", ["d", "d"], ["q"]),
        node("ReduceMean", ["q"], ["v"], axes=list(over), keepdims=keepdims),
        node("Add", ["v", "eps"], ["w"]),
        node("Sqrt", ["w"], ["r"]),
        node("Div", ["d", "r"], ["y" if factor is None else "z"]),
    ]
    if factor is not None:
        nodes.append(node("Mul", ["z", "f"], ["y"]))
    extra = {} if factor is None else {"f": np.asarray(factor, np.float32)}
    return model(nodes, shape, outputs=outputs, eps=np.float32(1e-3), **extra)


def test_written_out_over_the_axes_of_an_instance() -> None:
    assert "fuse-instance-norm" in classes(dmlc.compile(written((2, 3), SHAPE, factor=COLUMN)))
    assert "fuse-instance-norm" in classes(dmlc.compile(written((1, 2), (2, 3, 5, 4), factor=flat(4, 2))))


def only(m: onnx.ModelProto) -> dmlc.Program:
    return dmlc.compile(m, only_rules=["fuse-instance-norm", "dce"])


def test_written_out_over_other_axes_or_broadcast() -> None:
    fired = "fuse-instance-norm"
    assert fired in classes(only(written((2, 3), SHAPE)))
    for over in ((1, 3), (1, 2, 3), (3,), (0, 2)):
        assert fired not in classes(only(written(over, SHAPE)))
    nodes = [*written((2, 3), SHAPE).graph.node][:-1]
    nodes += [node("Div", ["f", "r"], ["g"]), node("Mul", ["d", "g"], ["y"])]
    extra = {"eps": np.float32(1e-3), "f": np.ones((3, 1, 1, 1, 1), np.float32)}
    assert fired not in classes(only(model(nodes, SHAPE, **extra)))
    nodes = [*written((2,), (4, 4, 4)).graph.node]
    nodes[3] = node("ReduceMean", ["q"], ["v"], axes=[2], keepdims=0)
    assert fired not in classes(only(model(nodes, (4, 4, 4), eps=np.float32(1e-3))))


def test_a_million_channels_get_no_constants() -> None:
    shape = (1, (1 << 20) + 1, 3)
    program = only(written((2,), shape))
    assert "the number of channels" in reasons(program, "fuse-instance-norm")


@pytest.mark.parametrize(
    ("over", "shape", "factor", "keepdims"),
    [
        ((1,), (4, 4), None, 1),  # no channels
        ((1, 3), SHAPE, None, 1),
        ((0, 1, 2), SHAPE, None, 1),
        ((2,), (4, 4, 4), None, 0),  # the deviation stands along another axis
        ((2, 3), SHAPE, np.ones((3, 1, 1, 1, 1)) * 2, 1),  # broadcast
    ],
)
def test_written_out_otherwise(over: Any, shape: Any, factor: Any, keepdims: int) -> None:
    m = written(over, shape, factor=factor, keepdims=keepdims)
    found = [n.op_type for n in dmlc.compile(m).to_onnx().graph.node]
    assert "fuse-instance-norm" not in classes(check(m, found))


def test_written_out_and_used_elsewhere() -> None:
    m = written((2, 3), SHAPE, factor=COLUMN, outputs=("y", "r"))
    assert "fuse-instance-norm" not in classes(dmlc.compile(m))


@pytest.mark.parametrize("target", ["directml", "cpu"])
def test_scale_and_bias_of_another_dtype_stay(target: str) -> None:
    """ONNX has withdrawn the operator's form of opset 18, and its inference checks nothing of it."""
    source = """<ir_version: 8, opset_import: ["": 18]>
        g (float16[2,4,3,3] x, float[4] s, float[4] b) => (float16[2,4,3,3] y) {
            y = GroupNormalization <num_groups = 4> (x, s, b)
        }"""
    made = dmlc.compile(onnx.parser.parse_model(source), target=target).to_onnx()
    assert [n.op_type for n in made.graph.node] == ["GroupNormalization"]


def test_an_axis_that_may_be_empty() -> None:
    """ONNX Runtime's CPU kernel of f16 ends the process."""
    for size, bounds in (("0", ""), ("N", "dim N in 0..4\n")):
        body = "{\n    y = mean_variance_norm(x, axes=[2, 3])\n    return y\n}"
        text = f"{bounds}model m(x: f16[1, 3, 2, {size}]) -> (y) {body}"
        model = dmlc.compile(dmlc.Source(text), target="cpu").to_onnx()
        assert "InstanceNormalization" not in {n.op_type for n in model.graph.node}
