"""``fold-pad-into-window``: positive, near-miss and numerical tests through compiled models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dmlc
from tests.rows import each_row

node = helper.make_node
RNG = np.random.default_rng(11)
#: Sums of up to 27 products of f32 in another order.
RTOL = 2e-5
ENDS = [0, 0, 0, 0, 0, 0, 1, 1]
AROUND = [0, 0, 1, 2, 0, 0, 0, 1]


def model(
    pads: list[int], window: onnx.NodeProto, *, opset: int = 17, value: Any = None, outputs: tuple[str, ...] = ("y",)
) -> onnx.ModelProto:
    """``window`` reads ``p``, the padded input [2, 3, 8, 8], and may read the weight ``k``."""
    weights = {"k": RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)}
    if opset < 11:
        pad = node("Pad", ["x"], ["p"], pads=pads, value=float(value or 0))
    else:
        weights["pads"] = np.array(pads, np.int64)
        pad = node("Pad", ["x", "pads"], ["p"])
        if value is not None:
            weights["value"] = np.array(value, np.float32)
            pad.input.append("value")
    used = {*pad.input, *window.input}
    graph = helper.make_graph(
        [pad, window],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 8, 8])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def check(m: onnx.ModelProto, want: list[str], **options: Any) -> dmlc.Program:
    """Compile and compare the operators and the numbers; a Sum keeps a Pad from ONNX Runtime's own Pad_Fusion."""
    program = dmlc.compile(m, **options)
    assert [n.op_type for n in program.to_onnx().graph.node if n.op_type != "Sum"] == want
    feeds = {"x": RNG.normal(size=(2, 3, 8, 8)).astype(np.float32)}
    for name, array in dmlc.compile(m, only_rules=["dce"]).run(feeds, "cpu").items():
        np.testing.assert_allclose(program.run(feeds, "cpu")[name], array, rtol=RTOL, atol=RTOL)
    return program


def pads_of(program: dmlc.Program) -> list[int]:
    (found,) = program.to_onnx().graph.node
    return next(list(a.ints) for a in found.attribute if a.name == "pads")


@each_row("target", ["cpu", "directml", "onnx"])
@each_row("opset", [10, 11, 13, 17, 21])
@each_row("value", [None, 0.0])
def test_zeros_around_a_convolution_become_its_padding(target: str, opset: int, value: float | None) -> None:
    program = check(
        model(ENDS, node("Conv", ["p", "k"], ["y"], strides=[2, 2]), opset=opset, value=value), ["Conv"], target=target
    )
    assert pads_of(program) == [0, 0, 1, 1]
    assert [e.rewrite_class for e in program.ledger if e.rule == "fold-pad-into-window"] == ["reassociates"]


@each_row("options", [{}, {"pads": [1, 1, 1, 1]}, {"auto_pad": "VALID"}, {"pads": [0, 1, 2, 0], "dilations": [2, 2]}])
def test_the_padding_of_both_is_added(options: dict[str, Any]) -> None:
    own = options.get("pads", [0, 0, 0, 0])
    program = check(model(AROUND, node("Conv", ["p", "k"], ["y"], **options)), ["Conv"])
    assert pads_of(program) == [1 + own[0], 2 + own[1], 0 + own[2], 1 + own[3]]


def test_axes_of_a_pad_may_be_named() -> None:
    m = model([1, 2, 0, 1], node("Conv", ["p", "k"], ["y"]), opset=18, value=0)
    m.graph.node[0].input.append("axes")
    m.graph.initializer.append(numpy_helper.from_array(np.array([-2, 3]), "axes"))
    assert pads_of(check(m, ["Conv"])) == [1, 2, 0, 1]


@each_row("opset", [10, 13, 19, 22])
@each_row("options", [{}, {"count_include_pad": 1, "pads": [0, 0, 1, 1]}, {"strides": [2, 2], "auto_pad": "VALID"}])
@each_row("target", ["cpu", "directml"])
def test_zeros_around_an_average_pool_are_counted(opset: int, options: dict[str, Any], target: str) -> None:
    pool = node("AveragePool", ["p"], ["y"], kernel_shape=[3, 3], **options)
    program = check(model([0, 0, 1, 1, 0, 0, 1, 1], pool, opset=opset), ["AveragePool"], target=target)
    assert [e.rule for e in program.ledger if e.rule == "fold-pad-into-window"]


CONV = node("Conv", ["p", "k"], ["y"])


def pool(**options: Any) -> onnx.NodeProto:
    return node("AveragePool", ["p"], ["y"], kernel_shape=[3, 3], **options)


@each_row(
    ("pads", "window", "value", "reason"),
    [
        (ENDS, CONV, 1.0, "the padding is not 0"),
        ([1, 0, 0, 0, 0, 0, 1, 1], CONV, None, "spatial ones"),
        ([0, 0, 0, 0, 1, 0, 1, 1], CONV, None, "spatial ones"),
        (ENDS, node("Conv", ["p", "k"], ["y"], auto_pad="SAME_UPPER"), None, "SAME_UPPER depends on its sizes"),
        (ENDS, pool(ceil_mode=1, strides=[2, 2]), None, "over the end"),
        (ENDS, pool(pads=[1, 1, 1, 1]), None, "leaves its own padding out"),
        ([0, 0, 3, 0, 0, 0, 0, 0], pool(), None, "as large as the window"),
        (ENDS, pool(pads=[0, 0, 2, 2], count_include_pad=1), None, "as large as the window"),
        (ENDS, pool(auto_pad="VALID", pads=[1, 1, 1, 1]), None, "states its padding twice"),
    ],
)
def test_near_misses(pads: list[int], window: onnx.NodeProto, value: float | None, reason: str) -> None:
    program = check(model(pads, window, value=value), ["Pad", window.op_type])
    assert any(r.rule == "fold-pad-into-window" and reason in r.reason() for r in program.remarks)


def test_a_channel_of_zeros_stays() -> None:
    weights = RNG.normal(size=(4, 4, 3, 3)).astype(np.float32)
    for pads in ([0, 1, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 1, 1, 1]):
        m = model(pads, CONV)
        m.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "k"))
        check(m, ["Pad", "Conv"])


@each_row("window", [CONV, pool()])
def test_padding_that_is_used_elsewhere_stays(window: onnx.NodeProto) -> None:
    program = check(model(ENDS, window, outputs=("y", "p")), ["Pad", window.op_type])
    assert any("p is used 2 times" in r.reason() for r in program.remarks)


def several(*windows: onnx.NodeProto) -> onnx.ModelProto:
    """Windows that read one padding, each with an output of its own."""
    m = model(ENDS, windows[0], outputs=tuple([f"y{place}" for place in range(len(windows))]))
    del m.graph.node[1:]
    for place, window in enumerate(windows):
        m.graph.node.add().CopyFrom(window)
        m.graph.node[-1].output[0] = f"y{place}"
    return m


def test_padding_of_several_windows_goes() -> None:
    """A reduction cell of NASNet pads once for a convolution and a pool."""
    check(several(CONV, pool(), pool(strides=[2, 2])), ["Conv", "AveragePool", "AveragePool"])


@each_row(
    "last",
    [pool(ceil_mode=1, strides=[2, 2]), node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3]), node("Relu", ["p"], ["y"])],
)
def test_padding_that_one_window_does_not_take_stays(last: onnx.NodeProto) -> None:
    program = check(several(CONV, last), ["Pad", "Conv", last.op_type])
    assert any("p is used 2 times" in r.reason() for r in program.remarks)


def test_padding_of_very_many_windows_stays() -> None:
    m = several(*[pool(strides=[1 + place % 5, 1 + place // 5]) for place in range(20)])
    check(m, ["Pad", *["AveragePool"] * 20])


def test_a_max_pool_has_no_zeros_around() -> None:
    check(model(ENDS, node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3])), ["Pad", "MaxPool"])


def test_exact_leaves_it() -> None:
    check(model(ENDS, CONV), ["Pad", "Conv"], exact=True)


def test_padding_by_an_open_size_stays(tmp_path: Path) -> None:
    """A program pads what it gives to a model."""
    sizes, weights = [2, 3, "H", "W"], RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [CONV],
        "g",
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "k")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "c.onnx")
    for size, left in (("W", True), ("2", False)):
        body = f"    y = conv(pad(x, pads=[0, 0, {size}, 0, 0, 0, 0, 1]))\n    return y\n"
        path = tmp_path / "m.dml"
        path.write_text(f'use conv from "c.onnx"\nmodel m(x: f32[2, 3, 8, W]) -> (y) {{\n{body}}}\n', "utf-8")
        program = dmlc.compile(path, target="onnx")
        assert ("Pad" in [n.op_type for n in program.to_onnx().graph.node]) is left
        missed = [r.reason() for r in program.remarks if r.rule == "fold-pad-into-window"]
        assert missed == (["the padding is not known"] if left else [])
