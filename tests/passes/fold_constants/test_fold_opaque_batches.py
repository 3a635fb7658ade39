"""Merged batches around opaque products of matrices, and layouts around elementwise operators of ``com.microsoft``."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto, parser

import dmlc
from tests.kit import run
from tests.rows import each_row

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
PARTS = """
    merged = Constant <value_ints = [-1, 4, 8]> ()
    others = Constant <value_ints = [-1, 8, 5]> ()
    turned = Constant <value_ints = [-1, 5, 8]> ()
    apart = Constant <value_ints = [-1, 3, 4, 5]> ()
    nought = Constant <value = int8 {0}> ()
    three = Constant <value = int8 {3}> ()
    scale = Constant <value_float = 0.25> ()
    noughts = Constant <value = int8[5] {0, 0, 0, 0, 0}> ()
    a = Reshape (x, merged)
"""


def model(body: str, x: str = "float[N,3,4,8]", z: str = "float[N,3,8,5]", y: str = "float[N,3,4,5]") -> ModelProto:
    return parser.parse_model(f"{HEAD} g ({x} x, {z} z) => ({y} y) {{ {PARTS} {body} y = Reshape (p, apart) }}")


def left(source: ModelProto) -> list[str]:
    """The operators that are left; the numbers stay."""
    made = dmlc.compile(source, target="onnx").to_onnx()
    rng = np.random.default_rng(0)
    feeds = {}
    for value in source.graph.input:
        shape = [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
        is_float = value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        data = rng.normal(size=shape) if is_float else rng.integers(-9, 9, shape)
        feeds[value.name] = data.astype(np.float32 if is_float else np.int8)
    got, wanted = (next(iter(run(m, feeds).values())) for m in (made, source))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    return [node.op_type for node in made.graph.node]


FUSED = "p = com.microsoft.FusedMatMul"
INT8 = {"x": "int8[N,3,4,8]", "z": "int8[N,3,8,5]"}


@each_row(
    ("body", "z"),
    [
        (f"b = Reshape (z, others) {FUSED} <alpha = 0.5> (a, b)", "float[N,3,8,5]"),
        (f"b = Reshape (z, turned) {FUSED} <transB = 1> (a, b)", "float[N,3,5,8]"),
    ],
)
def test_a_merged_batch_of_a_product_with_a_transpose_is_split(body: str, z: str) -> None:
    assert left(model(body, z=z)) == ["FusedMatMul"]


def test_a_transpose_between_goes_along() -> None:
    body = f"b = Reshape (z, turned) t = Transpose <perm = [0, 2, 1]> (b) {FUSED} <alpha = 0.5> (a, t)"
    assert left(model(body, z="float[N,3,5,8]")) == ["Transpose", "FusedMatMul"]


def test_a_merged_batch_of_a_quantized_product_is_split() -> None:
    made = model("b = Reshape (z, others) p = MatMulInteger (a, b, three, nought)", **INT8, y="int32[N,3,4,5]")
    assert left(made) == ["MatMulInteger"]
    body = "b = Reshape (z, others) p = QLinearMatMul (a, scale, three, b, scale, nought, scale, three)"
    assert left(model(body, **INT8, y="int8[N,3,4,5]")) == ["QLinearMatMul"]


def test_a_quantized_product_with_a_zero_point_for_each_column_stays() -> None:
    source = model("b = Reshape (z, others) p = MatMulInteger (a, b, three, noughts)", **INT8, y="int32[N,3,4,5]")
    made = dmlc.compile(source, target="onnx").to_onnx()  # ONNX Runtime refuses such zero points beside a batch
    assert [node.op_type for node in made.graph.node].count("Reshape") == 3


def test_a_product_whose_batch_is_transposed_stays() -> None:
    body = f"""
        late = Constant <value_ints = [4, -1, 8]> ()
        b = Reshape (z, others) c = Reshape (x, late) {FUSED} <transBatchA = 1> (c, b)
    """
    assert left(model(body, x="float[4,N,3,8]")).count("Reshape") == 3


def test_another_opaque_node_stays() -> None:
    body = """
        rows = Constant <value_ints = [-1, 8]> ()
        c = Reshape (x, rows) d = Reshape (z, rows) p = com.microsoft.CDist <metric = "euclidean"> (c, d)
    """
    assert "CDist" in left(model(body, x="float[1,3,4,8]", z="float[1,1,5,8]", y="float[1,3,4,5]"))


@each_row("op", ["QuickGelu <alpha = 1.0>", "Gelu", "FastGelu"])
def test_elementwise_operators_of_onnx_runtime_are_computed_in_the_first_shape(op: str) -> None:
    text = f"""{HEAD} g (float[N,3,4,5] x, float[1] z) => (float[N,3,4,5] y) {{
        rows = Constant <value_ints = [-1, 5]> () apart = Constant <value_ints = [-1, 3, 4, 5]> ()
        a = Reshape (x, rows) b = Add (a, z) c = com.microsoft.{op} (b) y = Reshape (c, apart)
    }}"""
    assert "Reshape" not in left(parser.parse_model(text))


@each_row("length", [20, 1])
def test_a_bias_keeps_its_shape(length: int) -> None:
    """One of one element broadcasts to every shape, but ONNX Runtime takes a bias only as long as the last axis."""
    text = f"""{HEAD} g (float[N,3,4,5] x, float[{length}] z) => (float[N,3,4,5] y) {{
        rows = Constant <value_ints = [-1, {length}]> () apart = Constant <value_ints = [-1, 3, 4, 5]> ()
        a = Reshape (x, rows) c = com.microsoft.FastGelu (a, z) y = Reshape (c, apart)
    }}"""
    assert left(parser.parse_model(text)).count("Reshape") == 2
