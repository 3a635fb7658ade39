"""Rules of ONNX Runtime's own operators against the results of its CPU kernels: element types, ranks and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from dmlc.inference import Fact, has_rule
from dmlc.inference.fact import of_array
from dmlc.ir import Dim, DimTable, substitute, symbol
from tests.inference.infer_helpers import of_data, walk
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME

_INDEX = {"int32": np.int32, "int64": np.int64, "uint8": np.uint8}
#: An operand: its shape, with an element type other than f32 in front; ``None`` where it is absent; or its data.
Operand = Any


def data(operand: Operand) -> np.ndarray | None:
    if operand is None or isinstance(operand, (np.ndarray, np.generic)):
        return None if operand is None else np.asarray(operand)
    dtype, *shape = operand if operand and isinstance(operand[0], str) else ("float32", *operand)
    if dtype in _INDEX:
        return (np.arange(int(np.prod(shape))) % 2).astype(_INDEX[dtype]).reshape(shape)
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def case(op: str, operands: Sequence[Operand], results: int = 1, domain: str = "com.microsoft", **a: Any) -> Any:
    text = " ".join([op, *[f"{k}={v}" for k, v in a.items()], *["-" if o is None else str(o)[:24] for o in operands]])
    return pytest.param(op, operands, results, domain, a, id=f"{text} -> {results}")


_X, _ROW, _Q = (2, 3, 8), (8,), (2, 5, 8)
_KV, _PAST = (2, 7, 8), (2, 2, 4, 4)
_ONE, _FIVE, _LENGTHS = np.array([1], np.int32), np.array([5], np.int32), np.array([4, 4], np.int32)
_SCALED = (np.float32(0.5), np.uint8(1))
CASES = [
    *[case(op, [_X]) for op in ("Gelu", "FastGelu", "QuickGelu")],
    *[case(op, [_X, _ROW]) for op in ("BiasGelu", "FastGelu")],
    case("Trilu", [(3, 4)]),
    case("Range", [np.int32(1), np.int32(9), np.int32(3)]),
    *[case("ExpandDims", [_X, np.array(axis, np.int32)]) for axis in (1, -1, 3)],
    case("GridSample", [(2, 3, 8, 9), (2, 4, 5, 2)]),
    case("CropAndResize", [(2, 3, 8, 9), (4, 4), ("int32", 4), np.array([5, 6], np.int32)]),
    case("MurmurHash3", [("int32", 3, 4)]),
    case("MurmurHash3", [("int32", 3, 4)], positive=0),
    case("NGramRepeatBlock", [("int64", 2, 6), (2, 50)], ngram_size=3),
    case("MatMulInteger16", [np.ones((3, 4), np.int16), np.ones((4, 6), np.int16)]),
    case("MaxpoolWithMask", [(2, 3, 9, 9), ("int32", 2, 1, 9, 9)], kernel_shape=[3, 3]),
    case("UnfoldTensor", [(2, 10, 4)], dim=1, size=4, step=2),
    case("UnfoldTensor", [(2, 10)], size=3),
    case("NhwcMaxPool", [("uint8", 2, 9, 11, 3)], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
    *[
        case("QLinearConv", [x, *_SCALED, ("uint8", 4, 3, 3, 3), *_SCALED, *_SCALED], kernel_shape=[3, 3], **a)
        for x, a in (
            (("uint8", 2, 9, 11, 3), {"channels_last": 1, "strides": [2, 2]}),
            (("uint8", 2, 3, 9, 11), {"pads": [1, 0, 1, 0]}),
        )
    ],
    case("Inverse", [(2, 4, 4)]),
    *[case("SkipLayerNormalization", [_X, skip, _ROW, _ROW], epsilon=1e-5) for skip in (_X, (1, 3, 8), (3, 8))],
    case("SkipLayerNormalization", [_X, _X, _ROW, _ROW, _ROW], 4),
    case("SkipLayerNormalization", [("float16", *_X), ("float16", *_X), ("float16", 8)], 4),
    case("SkipSimplifiedLayerNormalization", [_X, _X, _ROW], 4),
    case("SkipSimplifiedLayerNormalization", [(6, 8), (6, 8), _ROW, _ROW], 1),
    case("SimplifiedLayerNormalization", [_X, _ROW], 2, domain=""),
    case("SimplifiedLayerNormalization", [(2, 3, 4, 8), (4, 8)], 2, domain="", axis=2),
    case("RotaryEmbedding", [(2, 2, 3, 8), ("int64", 2, 3), (9, 4), (9, 4)]),
    case("RotaryEmbedding", [_X, ("int64", 1), (9, 2), (9, 2)], num_heads=2, rotary_embedding_dim=4),
    case("EmbedLayerNormalization", [("int32", 2, 3), None, (6, 8), (6, 8), None, _ROW, _ROW], 2),
    case(
        "EmbedLayerNormalization",
        [("int32", 2, 3), ("int32", 2, 3), (6, 8), (6, 8), (2, 8), _ROW, _ROW, ("int32", 2, 3)],
        3,
    ),
    *[
        case("FusedMatMul", [a, b], transA=ta, transB=tb)
        for a, b, ta, tb in (
            ((2, 3, 4), (2, 4, 5), 0, 0),
            ((2, 4, 3), (4, 5), 1, 0),
            ((3, 1, 3, 4), (2, 5, 4), 0, 1),
            ((4, 3), (5, 4), 1, 1),
            ((4,), (4, 5), 0, 0),
        )
    ],
    case("FusedMatMul", [(3, 2, 2, 4), (2, 2, 4, 5)], transBatchA=1),
    case("FusedMatMul", [(2, 2, 3, 4), (4, 2, 2, 5)], transBatchB=1),
    case("FusedMatMul", [(4, 2, 2, 3), (2, 2, 4, 5)], transBatchA=1, transA=1),
    case("FusedGemm", [(4, 3), (5, 4), (5,)], transA=1, transB=1, activation="Relu"),
    case("MultiHeadAttention", [_Q, _KV, _KV], num_heads=2),
    case("MultiHeadAttention", [_Q, _KV, (2, 7, 12)], num_heads=2),
    case("MultiHeadAttention", [_Q, _KV, (2, 7, 12), (28,)], 3, num_heads=2),
    case("MultiHeadAttention", [_Q, (2, 2, 7, 4), (2, 2, 7, 4)], num_heads=2),
    case("MultiHeadAttention", [_Q, _KV, _KV, None, ("int32", 2, 7), (1, 1, 5, 7)], num_heads=2, scale=0.3),
    case("MultiHeadAttention", [_Q, _Q, _Q, None, None, None, _PAST, _PAST], 3, num_heads=2),
    case("DecoderMaskedMultiHeadAttention", [(2, 1, 8), (2, 1, 8), (2, 1, 8), None, None, _PAST, _PAST, _ONE], 3,
         num_heads=2, past_present_share_buffer=1),
    case("DecoderMaskedMultiHeadAttention", [(2, 1, 8), (2, 2, 7, 4), (2, 2, 7, 4)], num_heads=2),
    case("Attention", [_X, (8, 24), (24,)], num_heads=2),
    case("Attention", [_X, (8, 24), (24,)], 2, num_heads=2),
    case("Attention", [_X, (8, 28), (28,)], num_heads=2, qkv_hidden_sizes=[8, 8, 12]),
    case("Attention", [_X, (8, 24), (24,), None, (2, 2, 2, 5, 4)], 2, num_heads=2, unidirectional=1),
    case("GroupQueryAttention", [(2, 5, 16), (2, 5, 8), (2, 5, 8), None, None, _LENGTHS, _FIVE], 3, num_heads=2,
         kv_num_heads=1),
    case("GroupQueryAttention", [(2, 5, 32), None, None, None, None, _LENGTHS, _FIVE], 3, num_heads=2, kv_num_heads=1),
    case("GroupQueryAttention", [(2, 5, 8), (2, 5, 8), (2, 5, 8), None, None, _LENGTHS, _FIVE], num_heads=1,
         kv_num_heads=1),
    *[
        case("GroupQueryAttention", [(2, 1, 16), (2, 1, 8), (2, 1, 8), past, past, _LENGTHS, _FIVE], 3, num_heads=2,
             kv_num_heads=1)
        for past in ((2, 1, 4, 8), (2, 1, 9, 8))
    ],
    case("MatMulNBits", [(2, 3, 32), ("uint8", 5, 2, 8), (5, 2)], K=32, N=5, bits=4, block_size=16),
    case("DynamicQuantizeMatMul", [(2, 3, 8), ("uint8", 8, 4), (1,)]),
    case("MatMulIntegerToFloat", [("uint8", 3, 8), ("uint8", 8, 4), (1,), (1,)]),
    case("QuantizeLinear", [_X, np.float32(0.5), np.uint8(1)]),
    case("DequantizeLinear", [("uint8", *_X), np.float32(0.5), np.uint8(1)]),
    case("QLinearSoftmax", [("uint8", *_X), *_SCALED, *_SCALED], opset=13),
    *[
        case("QLinearConcat", [*_SCALED, ("uint8", 2, 3, 4), *_SCALED, ("uint8", 2, 5, 4), *_SCALED], axis=axis)
        for axis in (1, -2)
    ],
    case("QLinearConcat", [*_SCALED, ("uint8", 2, 3), *_SCALED], axis=0),
    *[
        case("QLinearAveragePool", [("uint8", *x), *_SCALED, *_SCALED], kernel_shape=[2, 3], channels_last=last, **a)
        for x, last in (((2, 3, 8, 9), 0), ((2, 8, 9, 3), 1))
        for a in ({}, {"strides": [2, 2], "pads": [1, 0, 1, 1]}, {"strides": [3, 2], "ceil_mode": 1})
    ],
    case("QLinearGlobalAveragePool", [("uint8", 2, 3, 8, 9), *_SCALED, *_SCALED]),
    case("QLinearGlobalAveragePool", [("uint8", 2, 8, 9, 3), *_SCALED, *_SCALED], channels_last=1),
    case("QGemm", [("uint8", 3, 8), *_SCALED, ("uint8", 8, 4), *_SCALED, ("int32", 4), *_SCALED]),
    case("QGemm", [("uint8", 8, 3), *_SCALED, ("uint8", 4, 8), *_SCALED, ("int32", 4)], transA=1, transB=1),
    case(
        "QLinearWhere",
        [np.array([[True], [False]]), ("uint8", 1, 4), *_SCALED, ("uint8", 3, 1, 1), *_SCALED, *_SCALED],
    ),
    case("CDist", [(3, 4), (5, 4)], metric="euclidean"),
]  # fmt: skip


def run(op: str, operands: Sequence[Operand], results: int, domain: str, a: dict[str, Any]) -> Any:
    """The node, its operands by name, and its results, by ONNX Runtime."""
    feeds = {f"x{i}": array for i, o in enumerate(operands) if (array := data(o)) is not None}
    names = [f"x{i}" if o is not None else "" for i, o in enumerate(operands)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(results)], domain=domain, **a)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=imports, ir_version=8)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return node, feeds, session.run(None, feeds)


def is_computed(op: str, results: int) -> bool:
    """False for results that older versions do not compute, or that they require."""
    if op.startswith("Skip") and results == 4:
        return ONNX_RUNTIME >= (1, 30)
    return op != "GroupQueryAttention" or results > 1 or ONNX_RUNTIME >= (1, 28)


COMPUTED = [case for case in CASES if is_computed(case.values[0], case.values[2])]


@each_row("known", [True, False], ids=["sizes known", "sizes open"])
@each_row(("op", "operands", "results", "domain", "a"), COMPUTED)
def test_rules_give_the_types_of_the_kernels(
    op: str, operands: Sequence[Operand], results: int, domain: str, a: dict[str, Any], known: bool
) -> None:
    assert has_rule(domain, op, 1 if domain else 17)
    node, feeds, found = run(op, operands, results, domain, a)
    binding: dict[str, int] = {}
    facts: dict[str, Fact] = {}
    for name, array in feeds.items():
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        if known or array.dtype == np.int32:
            facts[name] = of_data(element, array) if array.dtype == np.int32 else Fact(element, array.shape)
            continue
        names = [f"{name}_{i}" for i in range(array.ndim)]
        binding |= dict(zip(names, array.shape, strict=True))
        facts[name] = Fact(element, tuple([symbol(n) for n in names]))
    inferred = walk([node], facts, {"": 17, "com.microsoft": 1}, DimTable())
    for name, result in zip(node.output, found, strict=True):
        fact = inferred[name]
        assert fact.element == helper.np_dtype_to_tensor_dtype(result.dtype)
        assert fact.shape is not None and len(fact.shape) == result.ndim
        sizes: list[Dim] = [substitute(size, binding) for size in fact.shape]
        if known:
            assert sizes == list(result.shape)
        assert all(not isinstance(s, int) or s == n for s, n in zip(sizes, result.shape, strict=True))


def test_packed_query_and_key_are_typed() -> None:
    """DirectML takes query, key and value in one operand of five axes, or key and value in one."""
    packed = {"x0": Fact(TensorProto.FLOAT, (2, 3, 4, 3, 16))}
    node = helper.make_node("MultiHeadAttention", ["x0"], ["y"], domain="com.microsoft", num_heads=4)
    assert walk([node], packed, {"com.microsoft": 1}, DimTable())["y"].shape == (2, 3, 64)
    given = {"q": Fact(TensorProto.FLOAT, (2, 3, 64)), "k": Fact(TensorProto.FLOAT, (2, 7, 4, 2, 16))}
    node = helper.make_node("MultiHeadAttention", ["q", "k"], ["y"], domain="com.microsoft", num_heads=4)
    assert walk([node], given, {"com.microsoft": 1}, DimTable())["y"].shape == (2, 3, 64)


def test_total_length_that_is_open_leaves_the_present_open() -> None:
    facts = {
        "q": Fact(TensorProto.FLOAT, (2, 1, 8)),
        "k": Fact(TensorProto.FLOAT, (2, 1, 4)),
        "past": Fact(TensorProto.FLOAT, (2, 1, 9, 4)),
        "n": Fact(TensorProto.INT32, (2,)),
        "total": Fact(TensorProto.INT32, (1,)),
    }
    names = ["q", "k", "k", "past", "past", "n", "total"]
    node = helper.make_node(
        "GroupQueryAttention", names, ["y", "a", "b"], domain="com.microsoft", num_heads=2, kv_num_heads=1
    )
    found = walk([node], facts, {"com.microsoft": 1}, DimTable())
    assert found["y"].shape == (2, 1, 8)
    assert found["a"].shape is not None and not isinstance(found["a"].shape[2], int)
    facts["total"] = of_array(TensorProto.INT32, np.array([12], np.int32))
    found = walk([node], facts, {"com.microsoft": 1}, DimTable())
    assert found["a"].shape == (2, 1, 12, 4)


@each_row(("shape", "wanted"), [((2,), 2), ((2, 3), 3)])
def test_words_lie_along_another_axis(shape: tuple[int, ...], wanted: int) -> None:
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=0, mincharnum=1, separators=[" "])
    found = walk([node], {"x": Fact(TensorProto.STRING, shape)}, {"com.microsoft": 1}, DimTable())["y"]
    assert found.element == TensorProto.STRING
    assert found.shape is not None and (found.shape[:-1], len(found.shape)) == (shape, wanted)


def test_ranks_that_quantized_operators_leave_open() -> None:
    node = helper.make_node(
        "QLinearConcat", ["s", "z", "a", "s", "z", "b", "s", "z"], ["y"], domain="com.microsoft", axis=1
    )
    facts = {"z": Fact(TensorProto.UINT8, ()), "a": Fact(TensorProto.UINT8, (2, 3))}
    found = walk([node], facts, {"com.microsoft": 1}, DimTable())["y"]
    assert found.element == TensorProto.UINT8 and found.shape is not None and len(found.shape) == 2
    for op in ("QGemm", "CDist"):
        node = helper.make_node(op, ["a", "b"], ["y"], domain="com.microsoft")
        shape = walk([node], {"a": Fact(TensorProto.FLOAT, (2, 3))}, {"com.microsoft": 1}, DimTable())["y"].shape
        assert shape is not None and len(shape) == 2


@each_row(
    ("op", "shapes", "wanted"),
    [
        ("ComplexMul", [(2, 3, 2), (1, 3, 2)], [(1, (2, 3, 2))]),
        ("ComplexMulConj", [(3, 2), (4, 3, 2)], [(1, (4, 3, 2))]),
        ("GatherND", [(2, 4, 5), (3, 2)], [(1, (3, 5))]),
        ("GemmFastGelu", [(2, 3, 8), (8, 6)], [(1, (2, 3, 6))]),
        ("LongformerAttention", [(2, 8, 32), (32, 96)], [(1, (2, 8, 32))]),
        ("QMoE", [(5, 32), (5, 4)], [(1, (5, 32))]),
        ("SkipGroupNorm", [(2, 8, 8, 32), (32,)], [(1, (2, 8, 8, 32)), (1, (2, 8, 8, 32))]),
    ],
)
def test_operators_without_a_cpu_kernel_are_typed(op: str, shapes: Any, wanted: Any) -> None:
    names = [f"x{i}" for i in range(len(shapes))]
    facts = {name: Fact(TensorProto.FLOAT, shape) for name, shape in zip(names, shapes, strict=True)}
    node = helper.make_node(op, names, [f"y{i}" for i in range(len(wanted))], domain="com.microsoft")
    found = walk([node], facts, {"com.microsoft": 1}, DimTable())
    assert [(found[name].element, found[name].shape) for name in node.output] == wanted


def test_counts_that_depend_on_data_stay_open() -> None:
    facts = {"x": Fact(TensorProto.FLOAT, (7,)), "m": Fact(TensorProto.FLOAT, (3, 5))}
    unique = helper.make_node("Unique", ["x"], ["y", "i", "n"], domain="com.microsoft")
    warping = helper.make_node("DynamicTimeWarping", ["m"], ["w"], domain="com.microsoft")
    found = walk([unique, warping], facts, {"com.microsoft": 1}, DimTable())
    (count,), (repeats,) = found["y"].shape or (), found["n"].shape or ()
    assert count == repeats and not isinstance(count, int)
    assert found["i"].shape == (7,)
    assert found["w"].element == TensorProto.INT32 and found["w"].shape is not None and found["w"].shape[0] == 2


@pytest.mark.parametrize("op", ["ExpandDims", "UnfoldTensor", "MaxpoolWithMask", "NhwcMaxPool", "QLinearConv", "Trilu"])
def test_operands_of_unknown_rank_give_none(op: str) -> None:
    node = helper.make_node(op, ["x"] * 8, ["y"], domain="com.microsoft", size=1, kernel_shape=[2, 2])
    found = walk([node], {"x": Fact(TensorProto.UINT8)}, {"com.microsoft": 1}, DimTable())["y"]
    assert (found.element, found.shape) == (TensorProto.UINT8, None)


def test_sizes_of_what_a_search_finds_are_read_from_its_operands() -> None:
    def number(value: int) -> Fact:
        return of_array(TensorProto.INT32, np.array([value], np.int32))

    facts = {name: number(value) for name, value in (("longest", 12), ("least", 1), ("beams", 4), ("kept", 2))}
    facts |= {"ids": Fact(TensorProto.INT32, (symbol("n"), 3)), "penalty": Fact(TensorProto.FLOAT16, (1,))}
    names = ["ids", "longest", "least", "beams", "kept", "penalty"]
    nodes = [
        helper.make_node("BeamSearch", names, ["words", "best", "scores"], domain="com.microsoft"),
        helper.make_node("GreedySearch", names[:3], ["greedy"], domain="com.microsoft"),
        helper.make_node("Sampling", ["ids", "open"], ["drawn", "logits"], domain="com.microsoft"),
    ]
    found = walk(nodes, {**facts, "open": Fact(TensorProto.INT32, (1,))}, {"com.microsoft": 1}, DimTable())
    assert (found["words"].element, found["words"].shape) == (TensorProto.INT32, (symbol("n"), 2, 12))
    assert (found["best"].element, found["best"].shape) == (TensorProto.FLOAT16, (symbol("n"), 2))
    assert found["scores"].shape is not None and len(found["scores"].shape) == 4
    assert (found["greedy"].element, found["greedy"].shape) == (TensorProto.INT32, (symbol("n"), 12))
    assert found["drawn"].shape is not None and found["drawn"].shape[0] == symbol("n")
    assert found["logits"].element == TensorProto.FLOAT
