"""Quantizations that DirectML's provider gets wrong, or that ONNX Runtime fuses for it without a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx import ModelProto, parser

import dmlc
from dmlc.placement.report import placement
from dmlc.targets import load_target
from dmlc.targets.provider import provider
from tests.rows import each_row

APART = "keep-quantization-apart"
BLOCKS = "axis-for-blocks"
OLD = ("directml:ort-1.17", "directml:ort-1.18", "directml:ort-1.20")
NUMBERS = (
    "<float s = {0.1}, uint8 z = {3}, float t = {0.004}, uint8 w = {0}, int64[2] k = {4, 3}, int64[1] e = {1}"
    ", uint16 wide = {0}>"
)


def model(body: str, opset: int = 17, more: str = "") -> ModelProto:
    graph = f"(uint8[3,4] x) => (uint8[m,n] y{more}) {NUMBERS} {{ {body} }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {graph}')


BYTES = {"x": (np.arange(12, dtype=np.uint8) * 20).reshape(3, 4)}
#: Bodies, and whether ONNX Runtime makes one quantized node of them.
FUSED = {
    "softmax": ("a = DequantizeLinear(x, s, z) b = Softmax(a) y = QuantizeLinear(b, t, w)", True),
    "leaky relu": ("a = DequantizeLinear(x, s, z) b = LeakyRelu(a) y = QuantizeLinear(b, t, w)", True),
    "own domain": (
        "a = com.microsoft.DequantizeLinear(x, s, z) b = LeakyRelu(a) y = com.microsoft.QuantizeLinear(b, t, w)",
        True,
    ),
    "through layouts": (
        "a = DequantizeLinear(x, s, z) c = Reshape(a, k) b = Softmax(c) d = Transpose(b) y = QuantizeLinear(d, t, w)",
        True,
    ),
    "through a reshape to a fed shape": (
        "a = DequantizeLinear(x, s, z) h = Shape(x) c = Reshape(a, h) b = Softmax(c) y = QuantizeLinear(b, t, w)",
        True,
    ),
    "as a scale": (
        "a = DequantizeLinear(x, s, z) g = Gather<axis = 0>(a, e) f = ReduceMax<keepdims = 0>(a) b = LeakyRelu(f)"
        " y = QuantizeLinear(a, b, w)",
        False,
    ),
    "16 bits": (
        "h = Cast<to = 4>(x) a = com.microsoft.DequantizeLinear(h, s) b = Softmax(a)"
        " q = com.microsoft.QuantizeLinear(b, t, wide) y = Cast<to = 2>(q)",
        False,
    ),
    "relu": ("a = DequantizeLinear(x, s, z) b = Relu(a) y = QuantizeLinear(b, t, w)", False),
    "something between": (
        "a = DequantizeLinear(x, s, z) c = Exp(a) b = Softmax(c) y = QuantizeLinear(b, t, w)",
        False,
    ),
    "something behind": ("a = DequantizeLinear(x, s, z) b = Softmax(a) c = Sqrt(b) y = QuantizeLinear(c, t, w)", False),
    "no quantization behind": ("a = DequantizeLinear(x, s, z) b = Softmax(a) y = Cast<to = 2>(b)", False),
    "used twice": (
        "a = DequantizeLinear(x, s, z) b = Softmax(a) c = Add(b, b) d = Mul(b, c) y = QuantizeLinear(d, t, w)",
        False,
    ),
}


def found(m: ModelProto, target: str) -> set[str]:
    """The known failures of the model as it is."""
    limits = [finding.limit for _, finding in placement(m, load_target(target)).findings]
    return {f.id for f in provider("dml_ep").failures if any(f.what in limit for limit in limits)}


@each_row("name", FUSED)
def test_activations_between_quantizations(name: str) -> None:
    body, is_fused = FUSED[name]
    m = model(body)
    for target in OLD:
        assert ("quantized-softmax" in found(m, target)) == is_fused
        program = dmlc.compile(m, target=target)
        assert (APART in dict(r.fired(program))) == is_fused
        assert not r.troubles(program) and not r.refusals(program)
        r.same(r.run(m, BYTES), r.run(program.to_onnx(), BYTES), 0)
    assert not found(m, "directml") and APART not in dict(r.fired(dmlc.compile(m)))


def test_an_output_between_keeps_the_nodes_apart() -> None:
    m = model("a = DequantizeLinear(x, s, z) b = Softmax(a) y = QuantizeLinear(b, t, w)", more=", float[3,4] b")
    assert not found(m, OLD[0])
    assert APART not in dict(r.fired(dmlc.compile(m, target=OLD[0])))


def test_check_says_which_releases_have_it() -> None:
    m = model(FUSED["softmax"][0])
    hanging = {entry for node in placement(m, load_target("directml")).nodes for entry in node.hangs_on}
    assert "onnxruntime after 1.23.2 (quantized-softmax)" in hanging
    assert "onnxruntime up to 1.23.2 (quantized-softmax)" in {
        entry for node in placement(m, load_target(OLD[0])).nodes for entry in node.hangs_on
    }


def test_bytes_of_two_kinds_stay() -> None:
    m = model("a = DequantizeLinear(x, s, z) b = Softmax(a) c = QuantizeLinear(b, t, q) y = Cast<to = 2>(c)")
    m.graph.initializer.append(r.numpy_helper.from_array(np.int8(0), "q"))
    assert not found(m, OLD[0]) and APART not in dict(r.fired(dmlc.compile(m, target=OLD[0])))


EXTREMES = {
    "the same numbers": ("a = DequantizeLinear(x, s, z) b = {op}(a, e) y = QuantizeLinear(b, s, z)", True),
    "another scale": ("a = DequantizeLinear(x, s, z) b = {op}(a, e) y = QuantizeLinear(b, t, z)", False),
    "another zero point": ("a = DequantizeLinear(x, s, z) b = {op}(a, e) y = QuantizeLinear(b, s, w)", False),
    "a zero point on one side": ("a = DequantizeLinear(x, s, z) b = {op}(a, e) y = QuantizeLinear(b, s)", False),
    "no zero points": ("a = DequantizeLinear(x, s) b = {op}(a, e) y = QuantizeLinear(b, s)", True),
}


@each_row("name", EXTREMES)
@each_row("op", ["ReduceMax", "ReduceMin"])
def test_extremes_between_quantizations(op: str, name: str) -> None:
    body, is_dropped = EXTREMES[name]
    m = model(body.format(op=op), 18)
    for opset, meets in ((18, is_dropped), (21, False)):
        program = dmlc.compile(m, opset=opset)
        assert (APART in dict(r.fired(program))) == meets
        assert not r.troubles(program)
        r.same(r.run(m, BYTES), r.run(program.to_onnx(), BYTES), 0)
    assert ("quantized-extreme" in found(m, "directml")) == is_dropped
    assert "quantized-extreme" not in found(m, "directml:ort-1.18")


def test_it_is_repaired_again_where_its_result_is_compiled() -> None:
    program = dmlc.compile(model(FUSED["softmax"][0]), target=OLD[2])
    again = dmlc.compile(program.to_onnx(), target=OLD[2])
    assert r.operators(again) == r.operators(program) == ["DequantizeLinear", "Max", "Softmax", "QuantizeLinear"]


# --- blocks


def blocks(
    op: str, shape: list[Any], axis: int, size: int, *, zero: bool = True, kind: str = "i8", half: bool = False
) -> ModelProto:
    rank, real = len(shape), r.HALF if half else r.FLOAT
    numbers = [n if isinstance(n, int) else 3 for n in shape]
    numbers[axis % rank] = -(-numbers[axis % rank] // size)
    rng = np.random.default_rng(1)
    dtype = np.int8 if kind == "i8" else np.uint8
    given = {"s": rng.uniform(0.1, 1, numbers).astype(np.float16 if half else np.float32)}
    if zero:
        given["z"] = rng.integers(0, 9, numbers).astype(dtype)
    data, result = (r.KINDS[kind], real) if op == "DequantizeLinear" else (real, r.KINDS[kind])
    attributes = {} if zero or op == "DequantizeLinear" else {"output_dtype": r.KINDS[kind]}
    made = r.node(op, ["x", *given], ["y"], axis=axis, block_size=size, **attributes)
    return r.model(made, [("x", data, shape)], [("y", result, shape)], **given)


def numbers_for(m: ModelProto) -> dict[str, np.ndarray]:
    """Data for the input; open sizes are 3."""
    tensor = m.graph.input[0].type.tensor_type
    shape = [dim.dim_value or 3 for dim in tensor.shape.dim]
    drawn = np.random.default_rng(2).normal(size=shape) * 40
    return {"x": np.abs(drawn).clip(0, 100).astype(r.onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))}


@each_row("op", ["DequantizeLinear", "QuantizeLinear"])
@each_row(
    ("shape", "axis", "size"),
    [
        ([2, 4], 1, 2), ([2, 4], -1, 4), ([4, 3], 0, 2), ([2, 6, 3], 1, 3), ([2, 6, 3], 1, 1), ([6], 0, 2),
        (["n", 6, "m"], 1, 2), ([2, 1, 6, 1], 2, 3), ([2, 6, 1], 1, 6),
    ],
)  # fmt: skip
def test_blocks_of_an_axis(op: str, shape: list[Any], axis: int, size: int) -> None:
    for options in ({}, {"zero": False}, {"kind": "u8"}, {"half": True}):
        m = blocks(op, shape, axis, size, **options)  # type: ignore[arg-type]
        assert found(m, "directml") == {"quantize-blocks"}
        program = r.repaired(m, "quantize-blocks", BLOCKS, numbers_for(m))
        (node,) = [n for n in program.to_onnx().graph.node if n.op_type == op]
        assert not any(a.name == "block_size" and a.i for a in node.attribute)
        assert r.fired(program)[0] == (BLOCKS, "exact")


def test_a_last_block_that_is_not_full_is_refused() -> None:
    program = r.left_alone(blocks("DequantizeLinear", [2, 5], 1, 2), BLOCKS)
    assert r.refusals(program) == ["E0592"]
    assert "the last block is not full" in [m.reason() for m in program.remarks]


def test_an_axis_of_open_size_is_refused() -> None:
    m = blocks("DequantizeLinear", [2, 4], 1, 2)
    m.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    m.graph.output[0].type.tensor_type.ClearField("shape")
    assert r.refusals(r.left_alone(m, BLOCKS)) == ["E0592"]


def test_an_operand_of_unknown_rank_is_refused() -> None:
    m = blocks("DequantizeLinear", [2, 4], 1, 2)
    for info in (*m.graph.input, *m.graph.output):
        info.type.tensor_type.ClearField("shape")
    assert r.refusals(r.left_alone(m, BLOCKS)) == ["E0592"]


@each_row("size", [0, None])
def test_an_axis_without_blocks_stays(size: int | None) -> None:
    attributes = {} if size is None else {"block_size": size}
    made = r.node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1, **attributes)
    numbers = {"s": np.ones(4, np.float32), "z": np.zeros(4, np.int8)}
    m = r.model(made, [("x", r.KINDS["i8"], [2, 4])], [("y", r.FLOAT, [2, 4])], **numbers)
    assert not r.troubles(r.left_alone(m, BLOCKS))


WEIGHTS = (
    '<ir_version: 10, opset_import: ["": 21]> g (float[2,32] x) => (float[2,3] y)'
    " <int4[32,3] w = {%s}, float[2,3] s = {1,2,3,4,5,6}>"
    " { b = DequantizeLinear<axis = %d, block_size = 16>(w, s) y = %s }"
)


@pytest.mark.parametrize(
    ("axis", "product", "is_refused"), [(0, "MatMul(x, b)", False), (0, "Gemm(x, b)", True), (0, "Gelu(b)", True)]
)
def test_weights_of_4_bits(axis: int, product: str, is_refused: bool) -> None:
    """ONNX Runtime makes a MatMulNBits of those of a MatMul, before DirectML sees them."""
    m = parser.parse_model(WEIGHTS % (", ".join(["1"] * 96), axis, product))
    if product.startswith("Gelu"):
        del m.graph.input[:]
        m.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 32
    assert ("quantize-blocks" in found(m, "directml")) is is_refused
    program = dmlc.compile(m)
    assert r.refusals(program) == (["E0592"] if is_refused else [])


def test_results_of_4_bits_are_advised_of() -> None:
    text = "(float[3,3] x) => (uint4[3,3] y) <float s = {1.0}, uint4 z = {1}> { y = QuantizeLinear(x, s, z) }"
    m = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}')
    program = dmlc.compile(m)
    assert [d.code.id for d in program.problems()] == ["W0611"]
    assert not r.refusals(program)
