"""Near misses of ``fold-conv``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper
from repair_helpers import faulty

import dmlc
from dmlc.passes.fold_conv import FoldConv
from dmlc.passes.manager import PassContext
from dmlc.targets import load_target
from tests.rows import each_row

node = helper.make_node
RULES = {rule.name for rule in FoldConv().rules(PassContext(load_target("cpu"), 21))}
CONV = node("Conv", ["x", "k"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1])
STATISTICS = ("gamma", "beta", "mean", "variance")
NORM = node("BatchNormalization", ["c", *STATISTICS], ["y"])


def model(
    *nodes: onnx.NodeProto, opset: int = 17, dtype: Any = np.float32, outputs: tuple[str, ...] = ("y",), **weights: Any
) -> onnx.ModelProto:
    """A convolution makes 4 channels of 3, and 4 by 4 places of 8 by 8; a weight of None is fed."""
    ones = {"k": np.ones((4, 3, 3, 3), dtype), **{name: np.ones(4, dtype) for name in STATISTICS}, **weights}
    used = {name for n in nodes for name in n.input}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [helper.make_tensor_value_info("x", kind, [2, 3, 8, 8])]
    inputs += [helper.make_tensor_value_info(k, kind, [4]) for k, v in ones.items() if v is None]
    tensors = [numpy_helper.from_array(v, k) for k, v in ones.items() if v is not None and k in used]
    outs = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", inputs, outs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def left(m: onnx.ModelProto | Path, **options: Any) -> dmlc.Program:
    program = dmlc.compile(m, **options)
    assert not {e.rule for e in program.ledger} & RULES
    return program


def test_it_is_folded_otherwise() -> None:
    assert [n.op_type for n in dmlc.compile(model(CONV, NORM)).to_onnx().graph.node] == ["Conv"]


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_that_are_fed(name: str) -> None:
    left(model(CONV, NORM, **{name: None}))


def test_a_norm_that_trains() -> None:
    training = node("BatchNormalization", NORM.input, ["y", "m", "v"], training_mode=1)
    left(model(CONV, training))
    left(model(CONV, node("BatchNormalization", NORM.input, ["y", "m", "v", "sm", "sv"]), opset=9, outputs=("y", "m")))


def test_statistics_of_another_dtype() -> None:
    program = left(model(CONV, NORM, dtype=np.float16, gamma=np.ones(4, np.float16), mean=np.ones(4, np.float32),
                         variance=np.ones(4, np.float32)))  # fmt: skip
    assert any("several dtypes" in r.reason() for r in program.remarks)


def test_another_operator_of_five() -> None:
    left(model(CONV, node("Sum", NORM.input, ["y"])))


@pytest.mark.parametrize(
    ("apart", "first", "last"),
    [
        ("gamma", None, NORM),
        ("k", None, NORM),
        ("b", None, NORM),
        ("d", None, node("Add", ["c", "d"], ["y"])),
        ("d", None, node("Mul", ["c", "d"], ["y"])),
        ("d", node("Mul", ["x", "d"], ["t"]), node("Relu", ["c"], ["y"])),
    ],
)
def test_data_in_a_file_of_its_own(
    apart: str, first: onnx.NodeProto | None, last: onnx.NodeProto, tmp_path: Path
) -> None:
    given = ["x", "k", "b"] if first is None else ["t", "k", "b"]
    nodes = [*([] if first is None else [first]), node("Conv", given, ["c"], strides=[2, 2], pads=[1, 1, 1, 1]), last]
    sizes = {"d": np.full((1, 1, 1) if first else (4, 1, 1), 3, np.float32)}
    m = model(*nodes, b=np.ones(4, np.float32), gamma=np.arange(4, dtype=np.float32), **sizes)
    (tensor,) = (t for t in m.graph.initializer if t.name == apart)
    external_data_helper.set_external_data(tensor, "apart.data")
    onnx.save(m, tmp_path / "m.onnx")
    left(tmp_path / "m.onnx")


def test_what_is_no_convolution_with_known_weights() -> None:
    left(
        model(
            node("MaxPool", ["x"], ["c"], kernel_shape=[2, 2]), NORM, **{n: np.ones(3, np.float32) for n in STATISTICS}
        )
    )
    m = model(node("Conv", ["x", "k", "b"], ["c"]), NORM, b=None)
    assert m.graph.input[1].name == "b"
    left(m)


@pytest.mark.parametrize("shape", [(1, 4, 1), (4,), (1, 1, 4, 1)])
def test_a_sum_along_other_axes(shape: tuple[int, ...]) -> None:
    program = left(model(CONV, node("Add", ["c", "d"], ["y"]), d=np.ones(shape, np.float32)))
    assert any("along other axes than the channels" in r.reason() for r in program.remarks)


@each_row("op_type", ["Add", "Mul", "Div"])
def test_a_convolution_that_is_an_output(op_type: str) -> None:
    left(model(CONV, node(op_type, ["c", "d"], ["y"]), d=np.full((4, 1, 1), 3, np.float32), outputs=("y", "c")))


@each_row("op_type", ["Add", "Mul", "Div"])
def test_an_operand_that_is_an_output(op_type: str) -> None:
    conv = node("Conv", ["t", "k"], ["y"])
    left(model(node(op_type, ["x", "d"], ["t"]), conv, d=np.full((3, 1, 1), 3, np.float32), outputs=("y", "t")))


@each_row("op_type", ["Add", "Mul"])
def test_a_constant_that_broadcasts_the_one_channel(op_type: str) -> None:
    weights = {"k": np.ones((1, 3, 3, 3), np.float32), "d": np.arange(1, 4, dtype=np.float32).reshape(3, 1, 1)}
    program = left(model(CONV, node(op_type, ["c", "d"], ["y"]), **weights))
    assert any("along other axes than the channels" in r.reason() for r in program.remarks)


def test_a_convolution_has_as_many_axes_as_its_weights() -> None:
    """Otherwise a scale of more axes than the weights would have to stay before it."""
    with pytest.raises(dmlc.DmlcError, match="the weights have 4 axes, not 5"):
        dmlc.compile(model(node("Mul", ["x", "d"], ["t"]), node("Conv", ["t", "k"], ["y"]),
                           d=np.full((1, 1, 1, 1, 1), 3, np.float32)))  # fmt: skip


def test_a_single_channel_of_statistics() -> None:
    faulty(model(CONV, NORM, **{name: np.ones(1, np.float32) for name in STATISTICS}))


@pytest.mark.emits_invalid("the source fails in each run")
def test_statistics_whose_size_is_known_too_late_to_be_refused() -> None:
    """The largest of a large weight, 3, is known when it has folded, and the convolution makes 4 channels."""
    size = [node("ReduceMax", ["w"], ["top"]), node("Cast", ["top"], ["three"], to=onnx.TensorProto.INT64)]
    fill = node("ConstantOfShape", ["three"], ["scale"])
    norm = node("BatchNormalization", ["c", "scale", *STATISTICS[1:]], ["y"])
    program = left(model(*size, fill, CONV, norm, w=np.linspace(0, 3, 3000, dtype=np.float32)))
    assert any("not one for each of the 4 channels" in r.reason() for r in program.remarks)


def test_nothing_to_fold_is_no_change() -> None:
    graph = dmlc.compile(model(CONV, node("Relu", ["c"], ["y"]))).source_graph
    assert FoldConv().run(graph.clone(), PassContext(load_target("cpu"), 21)) is False


@each_row("op_type", ["Add", "Mul", "Div", "Sub"])
def test_an_operation_before_a_transposed_convolution(op_type: str) -> None:
    before = node(op_type, ["x", "d"], ["e"])
    weights = {"d": np.full((1, 3, 1, 1), 3, np.float32), "k": np.ones((3, 4, 3, 3), np.float32)}
    left(model(before, node("ConvTranspose", ["e", "k"], ["y"]), **weights))
