"""ConvTranspose whose padding DirectML's provider computes otherwise: ONNX Runtime's CPU kernel is the measure."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx import ModelProto, parser

import dmlc
from tests.rows import each_row

RULE = "explicit-transposed-pads"
FAULTS = ("conv-transpose-line", "conv-transpose-size", "conv-transpose-start")


def transposed(size: list[Any], kernel: int, channels: int = 2, **attributes: Any) -> ModelProto:
    """A ConvTranspose with the same attribute for each spatial axis, and one weight for each channel."""
    axes = len(size)
    weights = np.random.default_rng(3).normal(size=(channels, 1, *[kernel] * axes)).astype(np.float32)
    texts = {name: value for name, value in attributes.items() if isinstance(value, str)}
    lists = {name: value for name, value in attributes.items() if name not in texts}
    spread = {name: value * (2 * axes if name == "pads" else axes) for name, value in lists.items()}
    made = r.node("ConvTranspose", ["x", "w"], ["y"], group=channels, **texts, **spread)
    return r.model(made, [("x", r.FLOAT, [1, channels, *size])], [("y", r.FLOAT, None)], opset=17, w=weights)


def feeds(*size: int, channels: int = 2) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(5).normal(size=(1, channels, *size)).astype(np.float32)}


def runs(model: ModelProto, given: dict[str, np.ndarray]) -> bool:
    try:
        r.run(model, given)
    except Exception:  # ONNX Runtime's exceptions have no common base
        return False
    return True


CASES = list(product((3, 4), (1, 3, 4), (1, 2, 3), (1, 2), (0, 1), (None, "SAME_UPPER", "SAME_LOWER"), (None, 0, 1)))


#: One case in so many for each number of axes: neither number divides how many values a factor has, so that all meet.
STEPS = {1: 5, 2: 7}


@each_row(("axes", "case"), [(axes, case) for axes, step in STEPS.items() for case in CASES[axes::step]])
def test_every_padding_keeps_its_numbers(axes: int, case: tuple[Any, ...]) -> None:
    """Combinations of sizes, kernels, strides, dilations, output padding, auto_pad and output_shape."""
    size, kernel, stride, dilation, padding, auto, more = case
    given: dict[str, Any] = {"strides": [stride], "dilations": [dilation], "output_padding": [padding]}
    if auto is not None:
        given["auto_pad"] = auto
    if more is not None:
        given["output_shape"] = [size * stride + more]
    model, data = transposed([size] * axes, kernel, **given), feeds(*[size] * axes)
    if not runs(model, data):
        return
    program = dmlc.compile(model)
    if not r.refusals(program):
        assert not r.troubles(program).intersection(FAULTS)
        np.testing.assert_array_equal(program.run(data, backend="cpu")["y"], r.run(model, data)["y"])
    else:  # ONNX Runtime's own result there is not of the size that ONNX says
        assert f"{RULE}" not in dict(r.fired(program))
        assert stride > (kernel - 1) * dilation + 1 + padding or more is not None


@pytest.mark.parametrize(("padding", "pads"), [(0, (1, 1)), (1, (1, 1)), (1, (0, 0)), (2, (0, 1)), (1, (2, 0))])
def test_output_padding_of_a_line(padding: int, pads: tuple[int, int]) -> None:
    """It goes into the pads at the end; what they do not hold is the padding of a second axis."""
    model = transposed([5], 3, strides=[3], output_padding=[padding])
    model.graph.node[0].attribute.append(r.onnx.helper.make_attribute("pads", pads))
    for dim in (5, "n"):
        made = ModelProto()
        made.CopyFrom(model)
        if dim == "n":
            made.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "n"
        program = r.repaired(made, "conv-transpose-line", RULE, feeds(5))
        (node,) = [n for n in program.to_onnx().graph.node if n.op_type == "ConvTranspose"]
        left = {a.name: list(a.ints) for a in node.attribute}
        rest = max(0, padding - pads[1])
        assert left.get("output_padding", [0])[-1] == rest
        assert len(left["strides"]) == (2 if rest else 1)


def test_kokoro_upsampling() -> None:
    """The node of hexgrad/kokoro issue 79: depthwise, of open length."""
    model = transposed(["n"], 3, 8, strides=[2], dilations=[1], pads=[1], output_padding=[1])
    program = r.repaired(model, "conv-transpose-line", RULE, feeds(6, channels=8), feeds(7, channels=8))
    assert r.operators(program) == ["ConvTranspose"]


@pytest.mark.parametrize("opset", [11, 21])
def test_padding_of_an_open_size(opset: int) -> None:
    """Pads of auto_pad follow from the kernel and the stride alone."""
    model = transposed(["n", "m"], 3, strides=[2], auto_pad="SAME_LOWER")
    model.opset_import[0].version = opset
    r.repaired(model, "conv-transpose-size", RULE, feeds(4, 5), feeds(5, 5), opset=opset)


def test_a_size_that_is_asked_for_stays_where_the_operand_is_open() -> None:
    model = transposed(["n", 4], 3, strides=[2], dilations=[2], output_shape=[9])
    program = r.left_alone(model, RULE)
    assert r.refusals(program) == ["E0591"]
    assert "its pads depend on a dynamic size, or are negative" in [m.reason() for m in program.remarks]


def test_a_node_that_no_kernel_takes_stays() -> None:
    """Both run on the CPU from opset 22 on, where the one that is not repaired keeps the model."""
    body = (
        "d = ConvTranspose<strides = [2], dilations = [2], output_shape = [9]>(x, w)"
        " y = ConvTranspose<strides = [2], pads = [1, 1], output_padding = [1]>(d, w)"
    )
    graph = f"(float[1,1,n] x, float[1,1,3] w) => (float[1,1,m] y) {{ {body} }}"
    program = r.left_alone(parser.parse_model(f'<ir_version: 11, opset_import: ["": 22]> g {graph}'), RULE)
    assert program.opset == 22 and not r.refusals(program)


def test_an_operand_of_unknown_rank_stays() -> None:
    model = transposed([4, 4], 3, strides=[2], auto_pad="SAME_LOWER")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert not r.refusals(r.left_alone(model, RULE))


STAYS = {
    "no output padding": transposed([5], 3, strides=[2], pads=[1]),
    "two axes": transposed([5, 5], 3, strides=[2], pads=[1], output_padding=[1]),
    "the same size": transposed([4, 4], 3, strides=[2], auto_pad="SAME_UPPER"),
    "a stride of one": transposed(["n", "m"], 3, auto_pad="SAME_UPPER"),
    "a size without dilations": transposed([4, 4], 3, strides=[2], output_shape=[8]),
    "output padding that shifts nothing": transposed([5, 5], 3, strides=[2], output_shape=[10], output_padding=[1]),
}


@each_row("name", STAYS)
def test_what_the_provider_computes_rightly_stays(name: str) -> None:
    program = r.left_alone(STAYS[name], RULE)
    assert not r.troubles(program) and not r.refusals(program)
