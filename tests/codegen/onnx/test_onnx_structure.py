"""The shape of what is emitted: no node that is not needed, each operator spelled as its opset wants it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_cases import Bench, evaluate
from onnx_session import TARGETS, assert_same, check, kinds, lower, run, session

from dmlc.codegen.artifact import Artifact
from dmlc.codegen.onnx import lowering_of
from dmlc.diagnostics import DmlcError
from dmlc.ir import DType, Operation
from dmlc.ir.dtype import bool_, f16, f32, f64, i32, i64, u8, u16, u32, u64
from dmlc.ops import ALL_OPERATIONS, binary, choose, elementwise, index, move, normalize, reduce, scan, select
from dmlc.ops.constant import CONSTANT
from tests.rows import each_row


def emitted(op: Operation, shape: tuple[int, ...], of: DType = f32, *, opset: int = 21, target: str = "directml",
            **attributes: object) -> onnx.ModelProto:  # fmt: skip
    """The model of one call, after its numbers were compared."""
    bench = Bench(opset)
    bench.show("y", *bench.node(op, bench.feed(bench.sample(of, *shape)), **attributes).results)
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, target, opset)
    check(artifact.payload)
    assert_same(run(session(artifact.payload), bench.feeds), want)
    return artifact.payload


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_every_operation_has_a_lowering() -> None:
    """Constants become initializers and need none."""
    assert [op.name for op in ALL_OPERATIONS if lowering_of(op) is None and op is not CONSTANT] == []


# --- selections


@pytest.mark.parametrize(
    ("axes", "keepdims", "expected"),
    [
        ([1], True, ["ArgMax", "Cast"]),
        ([-1], False, ["ArgMax", "Cast"]),
        ([1, 2], False, ["Reshape", "ArgMax", "Cast"]),
        ([0, 1], False, ["Reshape", "ArgMax", "Cast"]),
        ([2, 3], True, ["Reshape", "ArgMax", "Cast", "Reshape"]),
        ([0, 1, 2, 3], False, ["Reshape", "ArgMax", "Cast"]),
        ([0, 2], True, ["Transpose", "Reshape", "ArgMax", "Cast", "Reshape"]),
    ],
)
def test_argmax_moves_data_only_where_axes_are_apart(axes: list[int], keepdims: bool, expected: list[str]) -> None:
    assert ops(emitted(select.ARGMAX, (2, 3, 4, 5), axes=axes, keepdims=keepdims)) == expected


def test_axes_of_size_one_between_are_no_gap() -> None:
    assert "Transpose" not in ops(emitted(select.ARGMAX, (2, 3, 1, 5), axes=[1, 3]))
    assert "Transpose" not in ops(emitted(select.ARGMIN, (3, 1, 2, 5), axes=[0, 1, 2], ties="last"))
    assert ops(emitted(select.ARGMAX, (2, 1, 5), axes=[1, 2], dtype=i64)) == ["ArgMax"]


@pytest.mark.parametrize("dtype", [i64, u32])
def test_index_casts_only_where_asked_for(dtype: DType) -> None:
    casts = [] if dtype is i64 else ["Cast"]
    assert ops(emitted(select.ARGMAX, (3, 4), axes=[1], dtype=dtype)) == ["ArgMax", *casts]
    assert ops(emitted(select.TOP_K, (3, 4), k=2, dtype=dtype)) == ["TopK", *casts]


def test_last_tie_by_flipping_below_opset_12() -> None:
    assert ops(emitted(select.ARGMAX, (3, 4), axes=[1], ties="last", opset=11)) == ["Slice", "ArgMax", "Sub", "Cast"]
    assert ops(emitted(select.ARGMAX, (3, 4), axes=[1], ties="last", opset=12)) == ["ArgMax", "Cast"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (f32, ["ArgMax"]),
        (f16, ["Cast", "ArgMax"]),
        (f64, ["ArgMax"]),
        (u8, ["ArgMax"]),
        (u16, ["Cast", "ArgMax"]),
        (u32, ["Cast", "ArgMax"]),
        (u64, ["Cast", "Add", "ArgMax"]),
    ],
)
def test_argmax_through_the_nearest_type(dtype: DType, expected: list[str]) -> None:
    bench = Bench()
    bench.show("y", bench(select.ARGMAX, bench.feed(bench.sample(dtype, 3, 4)), axes=[1], dtype=i64))
    assert kinds(lower(bench.done(), "cpu", 21)) == expected


def test_hardmax_is_one_node() -> None:
    assert ops(emitted(select.HARDMAX, (2, 3, 4), axes=[1])) == ["Hardmax"]
    assert ops(emitted(select.HARDMAX, (2, 3, 4), axes=[1], opset=12)) == ["Transpose", "Hardmax", "Transpose"]
    assert ops(emitted(select.HARDMAX, (2, 3, 4), opset=11)) == ["Hardmax"]


# --- reductions


@each_row("opset", range(11, 22))
@each_row("op", reduce.REDUCTIONS)
def test_axes_stand_where_the_opset_has_them(op: Operation, opset: int) -> None:
    model = emitted(op, (2, 3), axes=[1], opset=opset)
    for node in model.graph.node:
        if node.op_type.startswith("Reduce"):
            by_input = opset >= (13 if node.op_type == "ReduceSum" else 18)
            assert len(node.input) == (2 if by_input else 1)
            assert ("axes" in [a.name for a in node.attribute]) is not by_input


def test_no_axes_is_the_elementwise_part() -> None:
    """An empty list of axes would mean all of them to ONNX."""
    expected = {reduce.REDUCE_L1: ["Abs"], reduce.REDUCE_L2: ["Abs"], reduce.REDUCE_LOG_SUM: ["Log"],
                reduce.REDUCE_SUM_SQUARE: ["Mul"]}  # fmt: skip
    for op in reduce.REDUCTIONS:
        bench = Bench()
        x = bench.feed(bench.positive(f32, 2, 3))
        node = bench.graph.add(op, [x], reduce.ReduceAttributes(axes=(), keepdims=False))
        bench.show("y", node.result)
        graph = bench.done()
        want = evaluate(graph, bench.feeds)
        artifact = lower(graph, "cpu", 21)
        assert kinds(artifact) == expected.get(op, ["Identity"])
        assert_same(run(session(artifact.payload), bench.feeds), want)


@pytest.mark.parametrize("target", TARGETS)
def test_integer_sums_per_target(target: str) -> None:
    """Products wrap on the CPU provider, whose sums go through f64; DirectML sums integers and multiplies none."""
    model = emitted(reduce.REDUCE_SUM, (2, 3, 4), i32, axes=[1], target=target)
    wide = emitted(reduce.REDUCE_SUM, (2, 3, 4), i64, axes=[1], target=target)
    if target == "directml":
        assert ops(model) == ["Cast", "ReduceSum", "Cast"]
        assert ops(wide) == ["CumSum", "Slice"]
    else:
        assert ops(model) == ["MatMul", "Reshape"]
        assert ops(wide) == ["MatMul", "Reshape"]


def test_log_sum_exp_takes_the_maximum_out() -> None:
    found = ops(emitted(reduce.REDUCE_LOG_SUM_EXP, (3, 4), axes=[1]))
    assert found[0] == "ReduceMax"
    assert "ReduceLogSumExp" not in found


def test_log_sum_exp_of_infinities() -> None:
    for dtype in (f16, f32, f64):
        bench = Bench()
        inf = np.inf
        data = np.array([[-inf, -inf], [inf, 1], [-inf, 1], [np.nan, 1], [60000, 60000], [-300, -300]], dtype.numpy)
        bench.show("y", bench(reduce.REDUCE_LOG_SUM_EXP, bench.feed(data), axes=[1]))
        graph = bench.done()
        want = evaluate(graph, bench.feeds)
        assert_same(run(session(lower(graph, "directml", 21).payload), bench.feeds), want)


# --- normalisation


def test_softmax_forms() -> None:
    assert ops(emitted(normalize.SOFTMAX, (2, 3, 4))) == ["Softmax"]
    assert ops(emitted(normalize.SOFTMAX, (2, 3, 4), axes=[1])) == ["Softmax"]
    assert ops(emitted(normalize.LOG_SOFTMAX, (2, 3, 4), axes=[1, 2], opset=12)) == ["LogSoftmax"]
    for axes in ([0, 2], [1, 2]):  # neighbours are made one before
        apart = ops(emitted(normalize.SOFTMAX, (2, 3, 4), axes=axes))
        assert apart == ["ReduceMax", "Sub", "Exp", "ReduceSum", "Div"]


def norm(op: Operation, target: str, opset: int, *operands: np.ndarray, dtype: DType = f32) -> list[str]:
    bench = Bench(opset)
    x = bench.feed(bench.sample(dtype, 2, 4))
    bench.show("y", bench(op, x, *[bench.feed(v.astype(dtype.numpy)) for v in operands]))
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, target, opset)
    check(artifact.payload)
    assert_same(run(session(artifact.payload), bench.feeds), want)
    assert bool(artifact.report) is ("SimplifiedLayerNormalization" in kinds(artifact))
    return kinds(artifact)


def test_norms_are_one_node_where_the_target_has_it() -> None:
    full, narrow = np.arange(1.0, 5.0), np.ones(1)
    assert norm(normalize.LAYER_NORM, "onnx", 17, full, full) == ["LayerNormalization"]
    assert norm(normalize.LAYER_NORM, "onnx", 17, full) == ["LayerNormalization"]
    assert "LayerNormalization" not in norm(normalize.LAYER_NORM, "onnx", 16, full, full)
    assert "LayerNormalization" not in norm(normalize.LAYER_NORM, "onnx", 17, narrow)
    assert "LayerNormalization" not in norm(normalize.LAYER_NORM, "cpu", 17, full, dtype=f64)
    own = "SimplifiedLayerNormalization"
    for opset in (11, 21):
        assert norm(normalize.RMS_NORM, "directml", opset, full) == [own]
        assert norm(normalize.RMS_NORM, "directml", opset, full, dtype=f16) == [own]
        assert own not in norm(normalize.RMS_NORM, "onnx", opset, full)
        assert own not in norm(normalize.RMS_NORM, "cpu", opset, narrow)


def test_own_schema_inside_a_graph_is_typed_for_others() -> None:
    bench = Bench()
    x = bench.feed(bench.sample(f32, 2, 4))
    normed = bench(normalize.RMS_NORM, x, bench.feed(np.ones(4, np.float32)))
    bench.show("y", bench(elementwise.EXP, normed))
    model = lower(bench.done(), "cpu", 21).payload
    assert [info.type.tensor_type.elem_type for info in model.graph.value_info] == [onnx.TensorProto.FLOAT]


def test_mean_variance_norm_keeps_its_epsilon() -> None:
    found = ops(emitted(normalize.MEAN_VARIANCE_NORM, (2, 3, 4), axes=[1, 2], epsilon=0.5))
    assert not any("Normalization" in name for name in found)


# --- casts, scans, indices


def test_float_to_bool_is_a_comparison_on_directml() -> None:
    for target, expected in (("directml", ["Equal", "Not"]), ("cpu", ["Cast"])):
        assert ops(emitted(choose.CAST, (9,), f32, target=target, to=bool_)) == expected
    assert ops(emitted(choose.CAST, (9,), u8, to=bool_)) == ["Cast"]


def test_cumprod_by_doubling_takes_few_steps() -> None:
    found = ops(emitted(scan.CUMPROD, (3, 100), axis=1))
    assert found.count("Mul") == 7
    assert "Scan" not in found


def test_one_hot_of_any_value() -> None:
    for dtype, on, off in ((f64, 0.1, -0.1), (i64, 2**62 + 1, -7), (u8, 255, 1), (f16, 0.5, 0)):
        bench = Bench()
        hot = bench(index.ONE_HOT, bench.feed(np.array([0, 3], np.int32)), depth=4, dtype=dtype, on=on, off=off)
        bench.show("y", hot)
        graph = bench.done()
        want = evaluate(graph, bench.feeds)
        assert_same(run(session(lower(graph, "onnx", 21).payload), bench.feeds), want)


def test_floor_of_an_f16_quotient_that_rounds_to_an_integer() -> None:
    """-7.83 / 0.4348 is -18.008, which f16 rounds to -18: its floor is -18, not -19."""
    for dtype, expected in ((f16, -18), (f32, -19)):
        bench = Bench()
        x, y = (bench.feed(np.full(8, v, dtype.numpy)) for v in (-7.83, 0.4348))
        bench.show("y", bench(binary.FLOORDIV, x, y))
        (found,) = run(session(lower(bench.done(), "directml", 21).payload), bench.feeds).values()
        assert (found == expected).all()


# --- f16


def chosen(target: str) -> tuple[Artifact, int]:
    """argmax of f16 products that round to one number: the first of them."""
    bench = Bench()
    x = bench.feed(np.array([1, 1.001, 1.002, 1.003], np.float16))
    y = bench.feed(np.array([1.002, 1.001, 1.0, 0.9995], np.float16))
    bench.show("y", bench(select.ARGMAX, bench(move.RESHAPE, bench(binary.MUL, x, y), shape=[2, 2]), axes=[0, 1]))
    artifact = lower(bench.done(), target, 21)
    (found,) = run(session(artifact.payload), bench.feeds).values()
    return artifact, int(found.item())


@pytest.mark.parametrize("target", ["cpu", "onnx"])
def test_f16_is_rounded_between_nodes(target: str) -> None:
    """ONNX Runtime alone would compare the products in f32."""
    artifact, index = chosen(target)
    assert index == 0
    assert not artifact.report


def test_f16_stays_f16_for_directml_and_the_report_names_what_may_differ() -> None:
    artifact, _ = chosen("directml")
    assert kinds(artifact).count("Cast") == 1, "that of the index"
    (sentence,) = artifact.report
    assert "ArgMax" in sentence


def test_f16_inputs_need_no_word() -> None:
    bench = Bench()
    x = bench.feed(bench.sample(f16, 3, 4))
    bench.show("y", bench(select.ARGMAX, bench(move.TRANSPOSE, x), axes=[0]), bench(binary.MUL, x, x))
    assert lower(bench.done(), "directml", 21).report == ()


# --- ranks


def test_more_than_eight_axes() -> None:
    shape = (1, 2, 1, 2, 1, 2, 1, 2, 1)
    perm = list(range(9))[::-1]
    assert ops(emitted(move.TRANSPOSE, shape, target="cpu", perm=perm)) == ["Transpose"]
    with pytest.raises(DmlcError) as caught:
        emitted(move.TRANSPOSE, shape, target="directml", perm=perm)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0503"
    assert diagnostic.span is not None
