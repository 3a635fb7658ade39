"""A model for each known fault of DirectML's provider (``failures`` in dml_ep.json): the smallest, with data.

``python -m tools.fault_models FOLDER`` writes them as FAULT.onnx, for ``dmlc doctor --probe`` on a Windows machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

_TYPES = {
    "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8,
    "u32": TensorProto.UINT32, "bool": TensorProto.BOOL,
}  # fmt: skip
#: A model and its data.
Fact = tuple[ModelProto, dict[str, np.ndarray]]


def _model(
    node: tuple[str, dict[str, Any]],
    data: dict[str, np.ndarray],
    results: list[tuple[str, list[int]]],
    opset: int,
    **constants: Any,
) -> Fact:
    op, attributes = node
    domain, _, op = op.rpartition(".")
    names = [f"y{i}" for i in range(len(results))]
    made = helper.make_node(op, [*data, *constants], names, domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in data.items()
    ]
    outputs = [helper.make_tensor_value_info(n, _TYPES[t], shape) for n, (t, shape) in zip(names, results, strict=True)]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([made], "fact", inputs, outputs, weights)
    versions = {"": opset} | ({domain: 1} if domain else {})
    imports = [helper.make_opsetid(name, version) for name, version in versions.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10), data


def _of(*shape: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    return {"x": (np.arange(int(np.prod(shape))) % 7 + 1).astype(dtype).reshape(shape)}


def _image(op: str, out: list[int], opset: int, **attributes: Any) -> Fact:
    scales = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)} if op == "Resize" else {}
    return _model((op, attributes), _of(1, 1, 4, 4), [("f32", out)] * (2 if op == "MaxPool" else 1), opset, **scales)


def _max_pool() -> Fact:
    node = ("MaxPool", {"kernel_shape": [2, 2], "storage_order": 1})
    return _model(node, _of(1, 1, 4, 4), [("f32", [1, 1, 3, 3]), ("i64", [1, 1, 3, 3])], 12)


def _layer_norm() -> Fact:
    results = [("f32", [2, 4]), ("f32", [2, 1])]
    return _model(("LayerNormalization", {}), _of(2, 4), results, 17, scale=np.ones(4, np.float32))


def _group_norm() -> Fact:
    ones = np.ones(2, np.float32)
    return _model(
        ("GroupNormalization", {"num_groups": 1}), _of(1, 2, 3), [("f32", [1, 2, 3])], 21, scale=ones, bias=ones
    )


def _scatter() -> Fact:
    index, updates = np.zeros((1, 4), np.int64), np.ones((1, 4), np.float32)
    node = ("ScatterElements", {"reduction": "add"})
    return _model(node, _of(2, 4), [("f32", [2, 4])], 16, index=index, updates=updates)


def _batch_norm() -> Fact:
    one = np.ones(2, np.float32)
    results = [("f32", [1, 2, 3]), ("f32", [2]), ("f32", [2])]
    node = ("BatchNormalization", {"training_mode": 1})
    return _model(node, _of(1, 2, 3), results, 15, scale=one, bias=one, mean=one, variance=one)


def _rnn() -> Fact:
    weights = {"w": np.full((1, 2, 3), 0.1, np.float32), "r": np.full((1, 2, 2), 0.1, np.float32)}
    return _model(("RNN", {"hidden_size": 2, "layout": 1}), _of(1, 4, 3), [("f32", [1, 4, 1, 2])], 14, **weights)


def _einsum(equation: str, operands: int) -> Fact:
    data = {name: array for i in range(operands) for name, array in ((f"x{i}", _of(3, 3)["x"]),)}
    return _model(("Einsum", {"equation": equation}), data, [("f32", [3, 3])], 12)


def _given(op: str, shapes: list[list[int]], out: list[list[int]], opset: int = 17, **attributes: Any) -> Fact:
    """A node of f32 operands, all fed; an empty shape is an operand that is absent."""
    data = {f"x{i}": _of(*shape)["x"] for i, shape in enumerate(shapes) if shape}
    made, feeds = _model((op, attributes), data, [("f32", shape) for shape in out if shape], opset)
    node = made.graph.node[0]
    node.input[:] = [f"x{i}" if shape else "" for i, shape in enumerate(shapes)]
    names = iter([*node.output])
    node.output[:] = [next(names) if shape else "" for shape in out]
    return made, feeds


def _gate() -> Fact:
    made, data = _model(("Split", {"axis": 1}), _of(2, 4), [("f32", [2, 2]), ("f32", [2, 2])], 13)
    gate = helper.make_node("Sigmoid", ["y1"], ["gate"])
    made.graph.node.extend([gate, helper.make_node("Mul", ["y0", "gate"], ["y"])])
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2]))
    return made, data


def _resize_of(shape: list[int], opset: int, **attributes: Any) -> Fact:
    sizes = np.array([2 * size for size in shape])
    roi, scales = np.zeros(0, np.float32), np.zeros(0, np.float32)
    node = ("Resize", {"mode": "nearest", **attributes})
    return _model(node, _of(*shape), [("f32", sizes.tolist())], opset, roi=roi, scales=scales, sizes=sizes)


def _mixed_batch_norm() -> Fact:
    one = np.ones(2, np.float32)
    made, data = _model(
        ("BatchNormalization", {}), _of(1, 2, 3), [("f32", [1, 2, 3])], 15, scale=one, bias=one, mean=one, variance=one
    )
    for info in (made.graph.input[0], made.graph.output[0]):
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    return made, {"x": data["x"].astype(np.float16)}


def _group_attention(**attributes: Any) -> Fact:
    made, data = _given(
        "com.microsoft.GroupQueryAttention",
        [[1, 2, 32], [1, 2, 32], [1, 2, 32]],
        [[1, 2, 32], [1, 2, 2, 16], [1, 2, 2, 16]],
        num_heads=2,
        kv_num_heads=2,
        **attributes,
    )
    lengths = {"lengths": np.array([1], np.int32), "total": np.array([2], np.int32)}
    made.graph.initializer.extend([numpy_helper.from_array(array, name) for name, array in lengths.items()])
    made.graph.node[0].input.extend(["", "", *lengths])
    if attributes.get("do_rotary"):
        tables = {name: np.ones((2, 8), np.float32) for name in ("cosines", "sines")}
        made.graph.initializer.extend([numpy_helper.from_array(array, name) for name, array in tables.items()])
        made.graph.node[0].input.extend(tables)
    return made, data


def _half(fact: Fact) -> Fact:
    made, data = fact
    for info in (*made.graph.input, *made.graph.output):
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    return made, {name: array.astype(np.float16) for name, array in data.items()}


def _attention(op: str, present: bool = False, past: bool = False, **attributes: Any) -> Fact:
    """Attention of a batch of 1, length 2, and one head of 4, or QAttention, whose weights are bytes."""
    quantized = op == "QAttention"
    heads = [2, 1, 1, 3 if past else 2, 4]
    made, data = _model(
        (f"com.microsoft.{op}", {"num_heads": 1, **attributes}),
        _of(1, 2, 4, dtype="uint8" if quantized else "float32"),
        [("f32", [1, 2, 4]), *([("f32", heads)] if present else [])],
        17,
        weights=np.ones((4, 12), np.uint8 if quantized else np.float32),
        bias=np.zeros(12, np.float32),
        **({"x_scale": np.float32(1), "w_scale": np.float32(1)} if quantized else {}),
    )
    if past:
        names = [*made.graph.node[0].input, *[""] * 8]
        made.graph.node[0].input[:] = [*names[: 8 if quantized else 4], "past"]
        made.graph.initializer.append(numpy_helper.from_array(np.ones((2, 1, 1, 1, 4), np.float32), "past"))
    return made, data


def _weight_blocks(columns: int) -> Fact:
    blocks = -(-columns // 16)
    weights = {"b": np.zeros((2, blocks, 8), np.uint8), "scales": np.ones(2 * blocks, np.float32)}
    attributes = {"K": columns, "N": 2, "bits": 4, "block_size": 16}
    return _model(("com.microsoft.MatMulNBits", attributes), _of(1, 3, columns), [("f32", [1, 3, 2])], 17, **weights)


def _quantized_sigmoid() -> Fact:
    numbers = {"scale": np.float32(0.1), "zero": np.uint8(2), "result_scale": np.float32(0.1)}
    fact = _model(("com.microsoft.QLinearSigmoid", {}), _of(2, 3, dtype="uint8"), [("u8", [2, 3])], 17, **numbers)
    fact[0].graph.node[0].input.append("")
    return fact


def _with_ints(fact: Fact, index: int, name: str, array: np.ndarray) -> Fact:
    """The model with an operand of integers at a number."""
    made, data = fact
    operands = [*made.graph.node[0].input, *[""] * 9]
    operands[index] = name
    while not operands[-1]:
        operands.pop()
    made.graph.node[0].input[:] = operands
    made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made, data


def _group_attention_with(index: int, array: np.ndarray, **attributes: Any) -> Fact:
    return _with_ints(_group_attention(**attributes), index, "extra", array)


def _packed_attention() -> Fact:
    made, data = _group_attention()
    made.graph.node[0].input[1] = made.graph.node[0].input[2] = ""
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 96
    del made.graph.input[1:]
    return made, _named(np.concatenate([data["x0"]] * 3, axis=-1))


def _named(array: np.ndarray) -> dict[str, np.ndarray]:
    return {"x0": array}


def activated(host: str = "MatMul", activation: str = "Sigmoid", *, both: bool = True) -> Fact:
    """A node whose result goes to an activation; with ``both``, also out of the model."""
    made, data = _given(host, [[2, 3], [3, 3]] if host == "MatMul" else [[3, 3], [3, 3]], [[2, 3]])
    shape = [2, 3] if host == "MatMul" else [3, 3]
    made.graph.node.append(helper.make_node(activation, ["y0"], ["y1"]))
    del made.graph.output[:]
    names = ["y0", "y1"] if both else ["y1"]
    made.graph.output.extend([helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in names])
    return made, data


_ROWS = [[2, 3, 4], [2, 3, 4], [4]]
_HEADS = [[1, 2, 8], [1, 2, 8], [1, 2, 8]]
_MHA = "com.microsoft.MultiHeadAttention"


def _mha_past(length: int = 2) -> Fact:
    """MultiHeadAttention with keys and values of the past, or of a cache of a length."""
    heads = [1, 2, length, 4]
    return _given(_MHA, [*_HEADS, [], [], [], heads, heads], [[1, 2, 8], [1, 2, 4, 4], [1, 2, 4, 4]], num_heads=2)


_SKIP, _SKIP_RMS = "com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization"

_QUANTIZED = "<float s = {0.1}, uint8 z = {3}, int64[1] k = {1}>"
_PARTS = "<float[2,2] s = {0.1, 0.2, 0.3, 0.4}, int8[2,2] z = {0, 1, 2, 3}>"


def _text(opset: int, body: str) -> Fact:
    """A model in ONNX's text form, fed with numbers from 1 to 7 as far as its inputs have them."""
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> g {body}')
    data = {}
    for info in made.graph.input:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        data[info.name] = _of(*shape, dtype=dtype.name)["x"]
    return made, data


def _transposed(shapes: str, attributes: str, result: str = "n,m,h,w") -> Fact:
    return _text(17, f"({shapes}) => (float[{result}] y) {{ y = ConvTranspose<{attributes}>(x, w) }}")


#: By the row's id.
FACTS: dict[str, Callable[[], Fact]] = {
    "reduce-integers": lambda: _model(
        ("ReduceMean", {}), _of(2, 3, dtype="int64"), [("i64", [2, 1])], 18, axes=np.array([1])
    ),
    "reduce-unsigned": lambda: _model(
        ("ReduceMean", {}), _of(2, 3, dtype="uint32"), [("u32", [2, 1])], 18, axes=np.array([1])
    ),
    "reduce-f64": lambda: _model(
        ("ReduceMax", {}), _of(2, 3, dtype="float64"), [("f64", [2, 1])], 20, axes=np.array([1])
    ),
    "rank": lambda: _model(("Neg", {}), _of(*[1] * 8, 3), [("f32", [1] * 8 + [3])], 13),
    "cast-bool": lambda: _model(
        ("Cast", {"to": TensorProto.BOOL}), {"x": np.array([0.25, -3, 0, 1], np.float32)}, [("bool", [4])], 19
    ),
    "log-sum-exp": lambda: _model(
        ("ReduceLogSumExp", {}), {"x": np.array([[100, 100]], np.float32)}, [("f32", [1, 1])], 18, axes=np.array([1])
    ),
    "empty": lambda: _model(("ReduceMax", {}), _of(0, 3), [("f32", [1, 3])], 20, axes=np.array([0])),
    "pad-negative": lambda: _model(("Pad", {}), _of(5), [("f32", [4])], 13, pads=np.array([0, -1])),
    "pad-negative-attribute": lambda: _model(("Pad", {"pads": [0, -1]}), _of(5), [("f32", [4])], 10),
    "reduce-bytes-18": lambda: _model(
        ("ReduceMax", {}), _of(2, 3, dtype="uint8"), [("u8", [2, 1])], 18, axes=np.array([1])
    ),
    "layer-norm-results": _layer_norm,
    "group-norm": _group_norm,
    "resize-cubic": lambda: _image("Resize", [1, 1, 8, 8], 13, mode="cubic"),
    "resize-outside": lambda: _image("Resize", [1, 1, 8, 8], 18, mode="linear", antialias=1, exclude_outside=1),
    "resize-extrapolation": lambda: _image("Resize", [1, 1, 8, 8], 13, mode="linear", extrapolation_value=2.0),
    "scatter-reduction": _scatter,
    "max-pool-order": _max_pool,
    "batch-norm-training": _batch_norm,
    "rnn-layout": _rnn,
    "einsum-operands": lambda: _einsum("ab,bc,cd->ad", 3),
    "einsum-ellipsis": lambda: _einsum("...b,bc->...c", 2),
    "cast-int-bool": lambda: _model(
        ("Cast", {"to": TensorProto.BOOL}), {"x": np.array([0, 1, 256, -1])}, [("bool", [4])], 19
    ),
    "matmul-rank": lambda: _given("MatMul", [[2, 2, 1, 4, 6], [1, 2, 3, 6, 5]], [[2, 2, 3, 4, 5]]),
    "fused-matmul-rank": lambda: _given(
        "com.microsoft.FusedMatMul", [[2, 2, 2, 4, 6], [2, 2, 2, 6, 5]], [[2, 2, 2, 4, 5]]
    ),
    "split-gate": _gate,
    "pow-int": lambda: _model(
        ("Pow", {}), _of(2, 3, dtype="int32"), [("i32", [2, 3])], 15, exponent=np.array(3, np.int32)
    ),
    "trilu-rank": lambda: _given("Trilu", [[2, 2, 2, 3, 3]], [[2, 2, 2, 3, 3]]),
    "resize-rank": lambda: _resize_of([2, 2, 2, 2, 2], 13),
    "resize-aspect": lambda: _resize_of([1, 1, 2, 2], 18, keep_aspect_ratio_policy="not_larger"),
    "einsum-letters": lambda: _given("Einsum", [[2, 1, 2, 1, 2], [1, 2, 1, 2]], [[2]], equation="abcde,fghi->a"),
    "batch-norm-mixed": _mixed_batch_norm,
    "simplified-norm-results": lambda: _given(
        "SimplifiedLayerNormalization", [[2, 3, 4], [4]], [[2, 3, 4], [2, 3, 1]], stash_type=1
    ),
    "skip-norm-results": lambda: _given(_SKIP, _ROWS, [[2, 3, 4], [2, 3, 1]]),
    "skip-norm-bias": lambda: _given(_SKIP_RMS, [*_ROWS, [4]], [[2, 3, 4]]),
    "skip-norm-broadcast": lambda: _given(_SKIP, [[2, 3, 4], [1, 3, 4], [4]], [[2, 3, 4]]),
    "lrn-rank-low": lambda: _given("LRN", [[2, 5, 4]], [[2, 5, 4]], size=3),
    "lrn-rank": lambda: _given("LRN", [[2, 5, 2, 2, 3]], [[2, 5, 2, 2, 3]], size=3),
    "mvn-epsilon": lambda: _given("MeanVarianceNormalization", [[2, 3, 2, 2]], [[2, 3, 2, 2]], 13, axes=[0, 2, 3]),
    "mha-unidirectional": lambda: _given(_MHA, _HEADS, [[1, 2, 8]], num_heads=2, unidirectional=1),
    "mha-scale": lambda: _given(_MHA, _HEADS, [[1, 2, 8]], num_heads=2, scale=0.0),
    "gqa-rotary": lambda: _group_attention(do_rotary=1),
    "gqa-window": lambda: _group_attention(local_window_size=1),
    "gqa-softcap": lambda: _group_attention(softcap=2.0),
    "gqa-smooth": lambda: _group_attention(smooth_softmax=1),
    "attention-past": lambda: _attention("Attention", past=True, present=True),
    "quantized-attention-past": lambda: _attention("QAttention", past=True, present=True),
    "attention-present": lambda: _attention("Attention", present=True),
    "attention-causal": lambda: _attention("Attention", unidirectional=1),
    "attention-rotary": lambda: _attention("Attention", do_rotary=1),
    "quantized-sigmoid": _quantized_sigmoid,
    "weight-block": lambda: _weight_blocks(24),
    "mha-bias-broadcast": lambda: _given(_MHA, [*_HEADS, [], [], [1, 1, 2, 2]], [[1, 2, 8]], num_heads=2),
    "mha-keys-by-head": lambda: _given(
        _MHA, [[1, 2, 8], [1, 2, 2, 4], [1, 2, 2, 4], [], [], [1, 2, 2, 2]], [[1, 2, 8]], num_heads=2
    ),
    "mha-cache": lambda: _with_ints(_mha_past(4), 8, "past", np.array([1], np.int32)),
    "mha-scores": lambda: _given(_MHA, _HEADS, [[1, 2, 8], [], [], [1, 2, 2, 2]], num_heads=2),
    "mha-past-mask": lambda: _with_ints(_mha_past(), 4, "mask", np.ones((1, 4), np.int32)),
    "gqa-operands": lambda: _group_attention_with(10, np.zeros((1, 2, 2, 2), np.float32)),
    "gqa-packed": _packed_attention,
    "gqa-causal": lambda: _group_attention(causal=0),
    "gqa-norms": lambda: _with_ints(
        _group_attention_with(14, np.ones(16, np.float32)), 15, "other", np.ones(16, np.float32)
    ),
    "norm-f16": lambda: _half(_given("LayerNormalization", [[2, 4], [4]], [[2, 4]])),
    "skip-norm-f16": lambda: _half(_given(_SKIP, _ROWS, [[2, 3, 4]])),
    "gemm-batch": lambda: _given("MatMul", [[65536, 1, 2], [65536, 2, 1]], [[65536, 1, 1]]),
    "fused-gemm-batch": lambda: _given("com.microsoft.FusedMatMul", [[65536, 1, 2], [65536, 2, 1]], [[65536, 1, 1]]),
    "einsum-product": lambda: _given(
        "Einsum", [[2, 1, 4, 3, 2], [2, 1, 4, 5, 2]], [[2, 1, 4, 3, 5]], equation="hbwpc,hbwqc->hbwpq"
    ),
    "lp-epsilon": lambda: _given("LpNormalization", [[2, 3]], [[2, 3]], axis=1),
    "fused-output": activated,
    "quantized-extreme": lambda: _text(
        18,
        f"(uint8[2,4] x) => (uint8[2,1] y) {_QUANTIZED}"
        " { a = DequantizeLinear(x, s, z) b = ReduceMax(a, k) y = QuantizeLinear(b, s, z) }",
    ),
    "quantize-blocks": lambda: _text(
        21, f"(int8[2,4] x) => (float[2,4] y) {_PARTS} {{ y = DequantizeLinear<axis = 1, block_size = 2>(x, s, z) }}"
    ),
    "quantize-4-bit": lambda: _text(
        21,
        "(float[3,3] x) => (float[3,3] y) <float s = {1.0}, uint4 z = {1}>"
        " { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    ),
    "lp-pool-f16": lambda: _text(
        18, "(float16[1,1,4,4] x) => (float16[1,1,2,2] y) { y = LpPool<kernel_shape = [2,2], strides = [2,2]>(x) }"
    ),
    "sum-f16": lambda: _text(18, "(float16[4,1025] x) => (float16[1,1] y) { y = ReduceMean(x) }"),
    "conv-transpose-line": lambda: _transposed(
        "float[1,2,5] x, float[2,1,3] w", "group = 2, strides = [2], pads = [1,1], output_padding = [1]", "n,m,w"
    ),
    "conv-transpose-size": lambda: _transposed(
        "float[1,2,5,5] x, float[2,1,3,3] w", 'strides = [2,2], auto_pad = "SAME_UPPER"'
    ),
    "conv-transpose-start": lambda: _transposed(
        "float[1,2,4,4] x, float[2,1,3,3] w", "strides = [2,2], output_shape = [9,9], output_padding = [1,1]"
    ),
    "reshape-allowzero": lambda: _text(
        17, "(float[2,3,4] x) => (float[2,12] y) <int64[2] k = {2, -1}> { y = Reshape<allowzero = 1>(x, k) }"
    ),
    "slice-steps": lambda: _text(
        17,
        "(float[6,3] x) => (float[3,3] y) <int64[1] a = {0}, int64[1] b = {6}, int64[1] c = {2}>"
        " { y = Slice(x, a, b, , c) }",
    ),
    "gather-nd-number": lambda: _text(17, "(float[2,3] x) => (float y) <int64[2] i = {1, 2}> { y = GatherND(x, i) }"),
    "resize-pytorch-pixel": lambda: _text(
        17,
        "(float[1,1,4,4] x) => (float[1,1,1,8] y) <int64[4] k = {1, 1, 1, 8}>"
        ' { y = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(x, , , k) }',
    ),
    "gelu": lambda: _model(("Gelu", {}), _of(2, 4), [("f32", [2, 4])], 20),
    "fast-gelu": lambda: _model(("com.microsoft.FastGelu", {}), _of(2, 4), [("f32", [2, 4])], 17),
}


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.fault_models", description=__doc__)
    arguments.add_argument("folder", type=Path, metavar="FOLDER")
    folder = arguments.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, fact in FACTS.items():
        onnx.save(fact()[0], folder / f"{name}.onnx")


if __name__ == "__main__":
    main()
