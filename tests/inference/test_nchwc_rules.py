"""Rules of the operators that ONNX Runtime's optimizer writes for its own channel layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import dmlc
from dmlc.inference import Fact
from dmlc.ir import DimTable, Shape, symbol
from tests.inference.infer_helpers import walk
from tests.rows import each_row

N = symbol("n")
SHAPES: list[tuple[str, list[Shape], dict[str, Any], Shape]] = [
    ("Conv", [(N, 3, 9, 8), (32, 3, 3, 3)], {"strides": [2, 1], "pads": [1, 0, 1, 0]}, (N, 32, 5, 6)),
    ("Conv", [(N, 32, 9, 8), (32, 1, 3, 3)], {"group": 32, "auto_pad": "SAME_UPPER"}, (N, 32, 9, 8)),
    ("MaxPool", [(N, 32, 9, 8)], {"kernel_shape": [3, 2], "strides": [2, 2]}, (N, 32, 4, 4)),
    ("AveragePool", [(N, 32, 9, 8)], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, (N, 32, 5, 4)),
    ("GlobalAveragePool", [(N, 32, 9, 8)], {}, (N, 32, 1, 1)),
    ("GlobalMaxPool", [(N, 32, 9, 8)], {}, (N, 32, 1, 1)),
    ("ReorderInput", [(N, 32, 9, 8)], {}, (N, 32, 9, 8)),
    ("ReorderInput", [(N, 9, 8, 32)], {"channels_last": 1}, (N, 32, 9, 8)),
    ("ReorderOutput", [(N, 32, 9, 8)], {"channels": 20}, (N, 20, 9, 8)),
    ("ReorderOutput", [(N, 32, 9, 8)], {"channels": 20, "channels_last": 1}, (N, 9, 8, 20)),
    ("Upsample", [(N, 32, 9, 8)], {"scales": [1, 1, 2, 3]}, (N, 32, 18, 24)),
]


def inferred(op: str, shapes: list[Shape | None], a: dict[str, Any]) -> Fact:
    facts = {f"x{i}": Fact(TensorProto.FLOAT, shape) for i, shape in enumerate(shapes)}
    node = helper.make_node(op, list(facts), ["y"], domain="com.microsoft.nchwc", **a)
    return walk([node], facts, {}, DimTable())["y"]


@each_row(("op", "shapes", "a", "wanted"), SHAPES)
def test_shapes_are_those_of_the_plain_layout(op: str, shapes: list[Shape], a: dict[str, Any], wanted: Shape) -> None:
    found = inferred(op, list(shapes), a)
    assert (found.element, found.shape) == (TensorProto.FLOAT, wanted)


@each_row(("op", "a", "rank"), [("ReorderInput", {}, 4), ("ReorderOutput", {"channels": 20}, 4), ("Upsample", {}, 0)])
def test_an_operand_of_an_unknown_rank_leaves_the_sizes_open(op: str, a: dict[str, Any], rank: int) -> None:
    found = inferred(op, [None], a)
    assert found.element == TensorProto.FLOAT
    assert len(found.shape or ()) == rank
    assert not any(isinstance(size, int) for size in found.shape or ())


def test_channels_that_a_block_does_not_divide_are_rounded_up_by_the_processor() -> None:
    shape = inferred("ReorderInput", [(N, 24, 9, 8)], {}).shape
    assert shape is not None
    assert (shape[0], shape[2:]) == (N, (9, 8))
    assert not isinstance(shape[1], int)


def optimized(model: ModelProto, folder: Path) -> ModelProto:
    """The model as ONNX Runtime's optimizer leaves it for this processor."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    made = onnx.load(options.optimized_model_filepath)
    if not any(node.domain == "com.microsoft.nchwc" for node in made.graph.node):
        pytest.skip("ONNX Runtime has no channel layout of its own for this processor")
    return made


def test_a_norm_behind_an_optimized_convolution_is_fused(tmp_path: Path) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[n,3,9,8] x) => (float[n,5,4,20] y)
    {
        c = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w)
        t = Transpose <perm = [0, 2, 3, 1]> (c)
        m = ReduceMean <axes = [-1], keepdims = 1> (t)
        d = Sub (t, m)
        two = Constant <value_float = 2.0> ()
        q = Pow (d, two)
        v = ReduceMean <axes = [-1], keepdims = 1> (q)
        small = Constant <value_float = 0.001> ()
        e = Add (v, small)
        s = Sqrt (e)
        y = Div (d, s)
    }
    """)
    rng = np.random.default_rng(0)
    model.graph.initializer.append(numpy_helper.from_array(rng.normal(size=(20, 3, 3, 3)).astype(np.float32), "w"))
    made = dmlc.compile(optimized(model, tmp_path), target="cpu")
    operators = [node.op_type for node in made.to_onnx().graph.node]
    assert "LayerNormalization" in operators, operators
    assert "ReduceMean" not in operators, operators
    x = rng.normal(size=(2, 3, 9, 8)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(made.run({"x": x})["y"], session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
