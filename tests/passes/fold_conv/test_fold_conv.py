"""``fold-conv``: positive, near-miss and numerical tests through compiled models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from tests.rows import each_row

node = helper.make_node
RNG = np.random.default_rng(7)
#: Two roundings of f32 beside a sum of a few dozen products.
RTOL = 2e-5


def info(name: str, shape: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(nodes: list[onnx.NodeProto], *, opset: int = 17, outputs: tuple[str, ...] = ("y",), **weights: Any) -> Any:
    base = {
        "k": RNG.normal(size=(4, 3, 3, 3)), "gamma": RNG.normal(size=4), "beta": RNG.normal(size=4),
        "mean": RNG.normal(size=4), "variance": RNG.uniform(0.1, 2, size=4),
    }  # fmt: skip
    used = {name for n in nodes for name in n.input}
    arrays = {k: np.asarray(v, np.float32) for k, v in {**base, **weights}.items() if k in used}
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", [2, 3, 8, 8])],
        [info(o, None) for o in outputs],
        [numpy_helper.from_array(a, k) for k, a in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def operators(program: dmlc.Program) -> list[str]:
    return [n.op_type for n in program.to_onnx().graph.node]


def check(m: onnx.ModelProto, want: list[str], **options: Any) -> dmlc.Program:
    program = dmlc.compile(m, **options)
    assert operators(program) == want
    feeds = {"x": RNG.normal(size=(2, 3, 8, 8)).astype(np.float32)}
    plain = dmlc.compile(m, only_rules=["dce"])
    for name, array in plain.run(feeds, "cpu").items():
        np.testing.assert_allclose(program.run(feeds, "cpu")[name], array, rtol=RTOL, atol=RTOL)
    return program


CONV = node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1])
NORM = node("BatchNormalization", ["c", "gamma", "beta", "mean", "variance"], ["y"], epsilon=1e-3)


@pytest.mark.parametrize("opset", [9, 13, 15, 21])
def test_a_batch_norm_goes_into_the_weights(opset: int) -> None:
    program = check(model([CONV, NORM], opset=opset), ["Conv"])
    assert [e.rule for e in program.ledger if e.rule == "fold-batch-norm"]


def test_with_a_bias_and_groups() -> None:
    conv = node("Conv", ["x", "k", "b"], ["c"], group=3, strides=[2, 2])
    check(
        model([conv, NORM], k=RNG.normal(size=(6, 1, 3, 3)), b=RNG.normal(size=6), gamma=np.ones(6), beta=np.ones(6),
              mean=np.ones(6), variance=np.ones(6)),
        ["Conv"],
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(4, 1, 1), (1, 4, 1, 1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_constant_for_each_channel_is_the_bias(shape: tuple[int, ...], swapped: bool) -> None:
    names = ["d", "c"] if swapped else ["c", "d"]
    check(model([CONV, node("Add", names, ["y"])], d=RNG.normal(size=shape)), ["Conv"])


def test_bias_then_norm_are_both_folded() -> None:
    nodes = [CONV, node("Add", ["c", "d"], ["e"]), node("BatchNormalization", ["e", *NORM.input[1:]], ["y"])]
    check(model(nodes, d=RNG.normal(size=(4, 1, 1))), ["Conv"])


@each_row("shape", [(), (1,), (4, 1, 1), (1, 4, 1, 1), (1, 1, 1, 1)])
@each_row("names", [["c", "d"], ["d", "c"]])
@each_row("operator", ["Mul", "Div", "Add"])
def test_a_constant_for_each_channel_scales_or_moves(shape: tuple[int, ...], names: list[str], operator: str) -> None:
    want = ["Conv", "Div"] if operator == "Div" and names[0] == "d" else ["Conv"]
    check(model([CONV, node(operator, names, ["y"])], d=RNG.uniform(0.5, 2, size=shape)), want)


def test_scale_and_shift_go_into_a_convolution_with_a_bias() -> None:
    conv = node("Conv", ["x", "k", "b"], ["c"])
    nodes = [conv, node("Mul", ["c", "d"], ["m"]), node("Add", ["m", "e"], ["y"])]
    weights = {"b": RNG.normal(size=4), "d": RNG.normal(size=(1, 4, 1, 1)), "e": RNG.normal(size=(4, 1, 1))}
    program = check(model(nodes, **weights), ["Conv"])
    rules = [entry.rule for entry in program.ledger if entry.rewrite_class == "reassociates"]
    assert rules == ["fold-scale-into-conv", "fold-bias-into-conv"]


@pytest.mark.parametrize(
    ("nodes", "weights", "want"),
    [
        ([CONV, node("Mul", ["c", "d"], ["y"])], {"d": np.ones((8, 8)) * 2}, ["Conv", "Mul"]),
        ([CONV, node("Mul", ["c", "d"], ["y"])], {"d": np.ones((2, 1, 1, 1)) * 2}, ["Conv", "Mul"]),
        ([CONV, node("Mul", ["c", "d"], ["y"])], {"d": np.ones((1, 1, 1, 1, 1)) * 2}, ["Conv", "Mul"]),
        ([CONV, node("Mul", ["c", "c"], ["y"])], {}, ["Conv", "Mul"]),
        ([CONV, node("Mul", ["c", "d"], ["y"])], {"d": np.array([1e38, 1, 1, 1]).reshape(4, 1, 1),
                                                  "k": np.ones((4, 3, 3, 3)) * 1e3}, ["Conv", "Mul"]),
        ([CONV, node("Div", ["c", "d"], ["y"])], {"d": np.array([0, 1, 1, 1]).reshape(4, 1, 1)}, ["Conv", "Div"]),
    ],
)  # fmt: skip
def test_scales_that_stay(nodes: list[onnx.NodeProto], weights: dict[str, Any], want: list[str]) -> None:
    check(model(nodes, **weights), want)


@pytest.mark.parametrize(
    ("nodes", "weights", "want"),
    [
        ([CONV, node("Add", ["c", "d"], ["y"])], {"d": np.ones((8, 8))}, ["Conv", "Add"]),
        ([CONV, node("Add", ["c", "d"], ["y"])], {"d": np.ones((2, 4, 1, 1))}, ["Conv", "Add"]),
        ([CONV, node("Relu", ["c"], ["r"]), node("Add", ["r", "d"], ["y"])], {"d": np.ones((4, 1, 1))},
         ["Conv", "Relu", "Add"]),
    ],
)  # fmt: skip
def test_near_misses(nodes: list[onnx.NodeProto], weights: dict[str, Any], want: list[str]) -> None:
    check(model(nodes, **weights), want)


def test_a_convolution_that_is_used_elsewhere_stays() -> None:
    program = check(model([CONV, NORM], outputs=("y", "c")), ["Conv", "BatchNormalization"])
    assert any(r.rule == "fold-batch-norm" and "c is used 2 times" in r.reason() for r in program.remarks)


def test_exact_leaves_it() -> None:
    check(model([CONV, NORM]), ["Conv", "BatchNormalization"], exact=True)


@each_row("shape", [(), (1,), (3, 1, 1), (1, 3, 1, 1), (1, 1, 1, 1)])
@each_row("names", [["x", "d"], ["d", "x"]])
@each_row("operator", ["Mul", "Div"])
def test_a_scale_of_the_input_goes_into_the_weights(shape: tuple[int, ...], names: list[str], operator: str) -> None:
    nodes = [node(operator, names, ["s"]), node("Conv", ["s", "k", "b"], ["y"], pads=[1, 1, 1, 1])]
    want = ["Div", "Conv"] if operator == "Div" and names[0] == "d" else ["Conv"]
    check(model(nodes, d=RNG.uniform(0.5, 2, size=shape), b=RNG.normal(size=4)), want)


def test_two_scales_and_one_behind_are_all_folded() -> None:
    nodes = [
        node("Div", ["x", "d"], ["a"]),
        node("Mul", ["e", "a"], ["s"]),
        node("Conv", ["s", "k"], ["c"], strides=[2, 2]),
        node("Mul", ["c", "f"], ["y"]),
    ]
    check(model(nodes, d=255.0, e=RNG.normal(size=(3, 1, 1)), f=2.0), ["Conv"])


def test_one_number_scales_the_input_of_groups() -> None:
    conv = node("Conv", ["s", "k"], ["y"], group=3)
    check(model([node("Mul", ["x", "d"], ["s"]), conv], k=RNG.normal(size=(6, 1, 3, 3)), d=0.5), ["Conv"])


INPUT_CONV = node("Conv", ["s", "k"], ["y"])


@pytest.mark.parametrize(
    ("nodes", "weights", "want", "outputs"),
    [
        ([node("Mul", ["x", "d"], ["s"]), INPUT_CONV], {"d": np.full((8, 8), 2)}, ["Mul", "Conv"], ("y",)),
        ([node("Mul", ["x", "d"], ["s"]), INPUT_CONV], {"d": np.full((2, 1, 1, 1), 2)}, ["Mul", "Conv"], ("y",)),
        ([node("Mul", ["x", "x"], ["s"]), INPUT_CONV], {}, ["Mul", "Conv"], ("y",)),
        ([node("Mul", ["x", "d"], ["s"]), INPUT_CONV], {"d": 2.0}, ["Mul", "Conv"], ("y", "s")),
        ([node("Mul", ["x", "d"], ["s"]), INPUT_CONV], {"d": 1e-38}, ["Mul", "Conv"], ("y",)),
        ([node("Mul", ["x", "d"], ["s"]), INPUT_CONV], {"d": 3e38}, ["Mul", "Conv"], ("y",)),
        (
            [node("Mul", ["x", "d"], ["s"]), node("Conv", ["s", "k"], ["y"], group=3)],
            {"d": np.array([1, 2, 3]).reshape(3, 1, 1), "k": RNG.normal(size=(6, 1, 3, 3))},
            ["Mul", "Conv"],
            ("y",),
        ),
    ],
)
def test_near_misses_of_a_scale_of_the_input(
    nodes: list[onnx.NodeProto], weights: Any, want: list[str], outputs: tuple[str, ...]
) -> None:
    program = dmlc.compile(model(nodes, outputs=outputs, **weights))
    assert operators(program) == want


def test_a_scale_that_broadcasts_the_input_stays() -> None:
    graph = helper.make_graph(
        [node("Mul", ["x", "d"], ["s"]), INPUT_CONV],
        "g",
        [info("x", [2, 1, 8, 8])],
        [info("y", None)],
        [
            numpy_helper.from_array(np.ones((3, 1, 1), np.float32) * 2, "d"),
            numpy_helper.from_array(RNG.normal(size=(4, 3, 3, 3)).astype(np.float32), "k"),
        ],
    )
    broadcasting = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert operators(dmlc.compile(broadcasting)) == ["Mul", "Conv"]


@each_row("shape", [(), (1,), (3, 1, 1), (1, 3, 1, 1)])
@each_row("inputs", [["k"], ["k", "b"]])
@each_row("operator", ["Add", "Sub"])
def test_a_shift_of_the_input_goes_into_the_bias(shape: tuple[int, ...], inputs: list[str], operator: str) -> None:
    conv = node("Conv", ["s", *inputs], ["y"], pads=[0, 0, 0, 0], strides=[2, 2])
    check(model([node(operator, ["x", "d"], ["s"]), conv], d=RNG.normal(size=shape), b=RNG.normal(size=4)), ["Conv"])


def test_the_whole_preparation_of_an_image_is_folded() -> None:
    nodes = [
        node("Div", ["x", "s"], ["a"]),
        node("Sub", ["a", "m"], ["b"]),
        node("Div", ["b", "d"], ["c"]),
        node("Conv", ["c", "k"], ["y"], auto_pad="VALID"),
    ]
    mean, deviation = RNG.normal(size=(3, 1, 1)), RNG.uniform(0.5, 2, size=(3, 1, 1))
    check(model(nodes, s=255.0, m=mean, d=deviation), ["Conv"])


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ([node("Sub", ["x", "d"], ["s"]), node("Conv", ["s", "k"], ["y"], pads=[0, 0, 0, 1])], {"d": 2.0}),
        ([node("Sub", ["x", "d"], ["s"]), node("Conv", ["s", "k"], ["y"], auto_pad="SAME_UPPER")], {"d": 2.0}),
        (
            [node("Sub", ["x", "d"], ["s"]), node("Conv", ["s", "k"], ["y"], group=3)],
            {"d": 2.0, "k": RNG.normal(size=(6, 1, 3, 3))},
        ),
        ([node("Sub", ["d", "x"], ["s"]), INPUT_CONV], {"d": 2.0}),
        ([node("Sub", ["x", "d"], ["s"]), INPUT_CONV], {"d": np.full((8, 1), 2.0)}),
        ([node("Sub", ["x", "d"], ["s"]), INPUT_CONV], {"d": 3e38, "k": np.full((4, 3, 3, 3), 9.0)}),
    ],
)
def test_near_misses_of_a_shift_of_the_input(nodes: list[onnx.NodeProto], weights: Any) -> None:
    assert operators(dmlc.compile(model(nodes, **weights))) == ["Sub", "Conv"]


# --- transposed convolutions


@each_row("groups", [1, 3])
@each_row("bias", [False, True])
@each_row("padding", [0, 1])
def test_a_batch_norm_goes_into_a_transposed_convolution(groups: int, bias: bool, padding: int) -> None:
    operands = ["x", "t", "b"] if bias else ["x", "t"]
    attributes = {"strides": [2, 2], "output_padding": [padding, padding], "group": groups}
    weights = {name: RNG.uniform(0.5, 2, size=6) for name in ("gamma", "beta", "mean", "variance", "b")}
    kernel = RNG.normal(size=(3, 6 // groups, 3, 3))
    check(model([node("ConvTranspose", operands, ["c"], **attributes), NORM], t=kernel, **weights), ["ConvTranspose"])


@each_row("shape", [(), (6, 1, 1), (1, 6, 1, 1)])
@each_row("operator", ["Mul", "Div", "Add"])
@each_row("groups", [1, 3])
def test_a_constant_for_each_channel_of_a_transposed_convolution(
    shape: tuple[int, ...], operator: str, groups: int
) -> None:
    made = node("ConvTranspose", ["x", "t", "b"], ["c"], group=groups)
    weights = {"t": RNG.normal(size=(3, 6 // groups, 2, 2)), "b": RNG.normal(size=6)}
    scaled = model([made, node(operator, ["c", "d"], ["y"])], d=RNG.uniform(0.5, 2, size=shape), **weights)
    check(scaled, ["ConvTranspose"])


def test_constants_of_other_sizes_than_the_channels_stay() -> None:
    made = node("ConvTranspose", ["x", "t"], ["c"])
    weights = {"t": RNG.normal(size=(3, 4, 1, 1)), "d": RNG.normal(size=(1, 1, 8))}
    check(model([made, node("Add", ["c", "d"], ["y"])], **weights), ["ConvTranspose", "Add"])
