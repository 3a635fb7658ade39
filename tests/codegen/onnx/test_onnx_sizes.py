"""Symbolic sizes: one model, run at two sizes or more, and at size 0 where a dim may be 0."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
import pytest
from onnx_cases import Bench, evaluate
from onnx_session import TARGETS, assert_same, check, kinds, lower, run, session

import dmlc
from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import DmlcError, Source
from dmlc.ir import DTYPES, DType, Value, symbol
from dmlc.ir.dtype import f16, f32, i8, i16, i32, i64, u8, u32, u64
from dmlc.ops import binary, choose, elementwise, index, matmul, move, normalize, reduce, scan, select
from tests.rows import each_row

N, M = symbol("N"), symbol("M")
Build = Callable[[Bench, Value], Value]


def turned(b: Bench, x: Value) -> Value:
    return b(move.TRANSPOSE, x, perm=[1, 0, 2])


CASES: dict[str, tuple[DType, Build]] = {
    "reshape batch": (f32, lambda b, x: b(move.RESHAPE, x, shape=[N, 12])),
    "reshape merge": (f32, lambda b, x: b(move.RESHAPE, x, shape=[N * 3, 4])),
    "reshape split": (f32, lambda b, x: b(move.RESHAPE, x, shape=[N, 1, 3, 2, 2])),
    "reshape flat": (f32, lambda b, x: b(move.RESHAPE, x, shape=[N * 12])),
    "reshape half": (f32, lambda b, x: b(move.RESHAPE, b(move.CONCAT, x, x, axis=0), shape=[2, N, 12])),
    "transpose": (f32, lambda b, x: b(move.TRANSPOSE, x, perm=[2, 0, 1])),
    "squeeze": (f32, lambda b, x: b(move.SQUEEZE, b(move.UNSQUEEZE, x, axes=[1, 4]), axes=[4])),
    "expand": (f32, lambda b, x: b(move.EXPAND, x, shape=[2, N, 3, 4])),
    "expand one": (f32, lambda b, x: b(move.EXPAND, b(reduce.REDUCE_SUM, x, axes=[0]), shape=[N, 3, 4])),
    "expand more": (f32, lambda b, x: b(move.EXPAND, b(move.RESHAPE, x, shape=[N, 1, 12]), shape=[N, N + 1, 12])),
    "slice": (f32, lambda b, x: b(move.SLICE, x, starts=[N - 1, 0], ends=[N, 2], axes=[0, 1])),
    "slice rest": (f32, lambda b, x: b(move.SLICE, x, starts=[1], ends=[N], axes=[0])),
    "slice half": (f32, lambda b, x: b(move.SLICE, x, starts=[0], ends=[N // 2], axes=[0])),
    "slice back": (f32, lambda b, x: b(move.SLICE, x, starts=[N - 1], ends=[-(2**31)], axes=[0], steps=[-1])),
    "split": (f32, lambda b, x: b(move.SPLIT, x, axis=0, sizes=[1, N - 1])),
    "split middle": (f32, lambda b, x: b.node(move.SPLIT, x, axis=0, sizes=[1, N - 2, 1]).results[1]),
    "pad": (f32, lambda b, x: b(move.PAD, x, pads=[1, 0, 0, 2, 0, 0])),
    "concat": (f32, lambda b, x: b(move.CONCAT, x, x, axis=0)),
    "iota": (f32, lambda b, x: b(binary.ADD, b(move.UNSQUEEZE, b(index.IOTA, length=N, dtype=f32), axes=[1, 2]), x)),
    "iota half": (f32, lambda b, x: b(index.IOTA, length=(N + 1) // 2, dtype=i32)),
    "iota less": (f32, lambda b, x: b(index.IOTA, length=(N - 5) // 2 + 3, dtype=i32)),
    "full": (f32, lambda b, x: b(index.FULL, shape=[N, 2, N * N - N], value=3, dtype=u8)),
    "one_hot": (f32, lambda b, x: b(index.ONE_HOT, b(select.ARGMAX, x, axes=[1]), depth=N + 2)),
    "top_k": (f32, lambda b, x: b.node(select.TOP_K, x, k=N - 1, axis=0).results[1]),
    "argmax": (f32, lambda b, x: b(select.ARGMAX, x, axes=[0])),
    "argmax last": (f16, lambda b, x: b(select.ARGMAX, x, axes=[0], ties="last")),
    "argmax 01": (i64, lambda b, x: b(select.ARGMAX, x, axes=[0, 1], keepdims=False)),
    "argmax 02": (u64, lambda b, x: b(select.ARGMIN, x, axes=[0, 2], ties="last")),
    "argmax all": (f32, lambda b, x: b(select.ARGMAX, x)),
    "hardmax": (f32, lambda b, x: b(select.HARDMAX, x, axes=[0])),
    "mean": (f32, lambda b, x: b(reduce.REDUCE_MEAN, x, axes=[0, 1])),
    "mean u8": (u8, lambda b, x: b(reduce.REDUCE_MEAN, x, axes=[0, 2])),
    "mean i64": (i64, lambda b, x: b(reduce.REDUCE_MEAN, x, axes=[0, 1], keepdims=False)),
    "mean u64": (u64, lambda b, x: b(reduce.REDUCE_MEAN, x)),
    "sum i8": (i8, lambda b, x: b(reduce.REDUCE_SUM, x, axes=[0, 2])),
    "sum i64": (i64, lambda b, x: b(reduce.REDUCE_SUM, x, axes=[0, 1], keepdims=False)),
    "prod u32": (u32, lambda b, x: b(reduce.REDUCE_PROD, x, axes=[0, 2])),
    "max i64": (i64, lambda b, x: b(reduce.REDUCE_MAX, x, axes=[0, 1])),
    "min i16": (i16, lambda b, x: b(reduce.REDUCE_MIN, x, axes=[0])),
    "log_sum_exp": (f32, lambda b, x: b(reduce.REDUCE_LOG_SUM_EXP, x, axes=[0])),
    "softmax": (f32, lambda b, x: b(normalize.SOFTMAX, x, axes=[0])),
    "softmax 01": (f32, lambda b, x: b(normalize.SOFTMAX, x, axes=[0, 1])),
    "softmax 02": (f32, lambda b, x: b(normalize.LOG_SOFTMAX, x, axes=[0, 2])),
    "norm": (f32, lambda b, x: b(normalize.MEAN_VARIANCE_NORM, x, axes=[0, 2])),
    "rms": (f32, lambda b, x: b(normalize.RMS_NORM, x, b.feed(np.ones(4, np.float32)))),
    "cumsum": (i8, lambda b, x: b(scan.CUMSUM, x, axis=0)),
    "cumprod": (f32, lambda b, x: b(scan.CUMPROD, x, axis=0)),
    "cumprod back": (i8, lambda b, x: b(scan.CUMPROD, x, axis=0, reverse=True, exclusive=True)),
    "cumprod inner": (f16, lambda b, x: b(scan.CUMPROD, turned(b, x), axis=1, exclusive=True)),
    "matmul": (u32, lambda b, x: b(matmul.MATMUL, b(move.TRANSPOSE, x, perm=[1, 2, 0]), turned(b, x))),
    "matmul row": (f32, lambda b, x: b(matmul.MATMUL, x, b.feed(np.ones(4, np.float32)))),
    "matmul column": (f32, lambda b, x: b(matmul.MATMUL, b.feed(np.ones((2, 3), np.float32)), x)),
    "bits": (u8, lambda b, x: b(binary.XOR, x, b(elementwise.NOT, x))),
    "power": (i16, lambda b, x: b(binary.POW, x, b(choose.CLIP, x, min=0, max=5))),
    "gather": (f32, lambda b, x: b(index.GATHER, x, b(select.ARGMAX, x, axes=[0, 1, 2], keepdims=False), axis=1)),
}  # fmt: skip
#: gather takes an index below 3: its data is chosen so.


def make(label: str, opset: int, low: int = 2, size: int = 5) -> tuple[Bench, np.dtype]:
    dtype, build = CASES[label]
    bench = Bench(opset)
    bench.graph.declare_dim("N", (low, inf))
    data = bench.sample(dtype, size, 3, 4)
    if label == "gather":
        data = np.zeros_like(data)
    bench.show("y", build(bench, bench.feed(data, ["N", 3, 4])))
    return bench, dtype.numpy


def sized(label: str, size: int) -> dict[str, np.ndarray]:
    return make(label, 21, size=size)[0].feeds


def artifact_of(label: str, opset: int, target: str, low: int = 2) -> tuple[Artifact, Bench]:
    bench, _ = make(label, opset, low)
    bench.done()
    lowered, _ = make(label, opset, low)
    return lower(lowered.done(), target, opset), bench


@each_row("label", CASES)
def test_two_sizes(label: str) -> None:
    """The opsets and the targets take turns."""
    for turn, opset in list(enumerate((11, 13, 15, 18, 21)))[len(label) % 2 :: 2]:
        artifact, bench = artifact_of(label, opset, TARGETS[(turn + len(label)) % 3])
        check(artifact.payload)
        ready = session(artifact.payload, optimize=turn % 2 == 0)
        for size in (5, 2):
            feeds = sized(label, size)
            assert_same(run(ready, feeds), evaluate(bench.graph, feeds))


EMPTY = [
    "reshape batch", "reshape merge", "reshape flat", "reshape half", "transpose", "squeeze", "expand", "pad",
    "concat", "iota", "full", "mean", "sum i8", "sum i64", "prod u32", "max i64", "min i16", "log_sum_exp",
    "softmax", "softmax 01", "softmax 02", "norm", "rms", "cumsum", "cumprod", "cumprod back", "matmul",
    "matmul row", "matmul column", "bits", "power",
]  # fmt: skip


@each_row("label", EMPTY)
@each_row("opset", [11, 14, 21])
def test_size_zero(label: str, opset: int) -> None:
    artifact, bench = artifact_of(label, opset, TARGETS[opset % 3], low=0)
    check(artifact.payload)
    ready = session(artifact.payload)
    for size in (0, 3):
        feeds = sized(label, size)
        assert_same(run(ready, feeds), evaluate(bench.graph, feeds))


@each_row("op", reduce.REDUCTIONS)
@each_row("dtype", [f16, f32, i8, u8, i32, u32, i64, u64])
def test_static_empty_reductions(op: reduce.Operation, dtype: DType) -> None:
    """The targets take turns, so that each meets each reduction and each dtype."""
    if dtype not in op.operands[0].dtypes or (op is reduce.REDUCE_MEAN and dtype.is_integer):
        return
    bench = Bench()
    x = bench.feed(np.zeros((2, 0, 3), dtype.numpy))
    bench.show("y", bench(op, x, axes=[1]), bench(op, x, axes=[1, 2], keepdims=False), bench(op, x, axes=[0]))
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, TARGETS[(reduce.REDUCTIONS.index(op) + DTYPES.index(dtype)) % 3], 21)
    check(artifact.payload)
    assert_same(run(session(artifact.payload), bench.feeds), want)


#: No size has to be computed for these.
@each_row(
    "label",
    ["reshape batch", "reshape merge", "reshape split", "reshape flat", "reshape half", "expand", "slice rest",
     "slice", "slice back", "argmax", "argmax 01", "softmax 01", "hardmax", "mean", "max i64", "pad", "concat"],
)  # fmt: skip
def test_no_shape_where_none_is_needed(label: str) -> None:
    artifact, _ = artifact_of(label, 21, "cpu")
    assert "Shape" not in kinds(artifact)


def test_a_batch_that_may_be_empty_is_not_computed_where_the_operand_has_it() -> None:
    """Key and value heads of grouped queries are expanded to all heads; only their number is new."""
    bench = Bench()
    bench.graph.declare_dim("N", (0, 9))
    q = bench.feed(np.ones((2, 4, 3, 5), np.float32), ["N", 4, 3, 5])
    k = bench.feed(np.ones((2, 1, 5, 3), np.float32), ["N", 1, 5, 3])
    bench.show("y", bench(matmul.MATMUL, q, k), bench(matmul.MATMUL, k, q))
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, "cpu", 21)
    assert sorted(kinds(artifact)) == ["Expand", "MatMul", "MatMul"]
    assert_same(run(session(artifact.payload), bench.feeds), want)


def test_a_size_is_computed_once() -> None:
    bench = Bench()
    x = bench.feed(np.zeros((4, 3), np.float32), ["N", 3])
    bench.show("y", bench(index.IOTA, length=N, dtype=i64), bench(index.FULL, shape=[N, N], value=1, dtype=f32), x)
    bench.show("z", bench(index.IOTA, length=N * 2, dtype=i64), bench(index.IOTA, length=N * 2 + 1, dtype=i64))
    assert kinds(lower(bench.done(), "cpu", 21)).count("Shape") == 1


def test_a_size_from_the_second_input() -> None:
    bench = Bench()
    bench.feed(np.zeros((4, 3), np.float32), ["N", 3])
    bench.feed(np.zeros((2, 7), np.float32), [2, "M"])
    bench.show("y", bench(index.IOTA, length=M - N, dtype=u32))
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    for opset in (11, 21):
        assert_same(run(session(lower(graph, "cpu", opset).payload), bench.feeds), want)


def test_below_opset_14_a_computed_size_must_not_be_zero() -> None:
    """Reshape reads 0 as a copy there, and allowzero came with opset 14."""

    def build(opset: int) -> Bench:
        bench = Bench(opset)
        for dim in "NM":
            bench.graph.declare_dim(dim, (0, inf))
        x = bench.feed(np.zeros((4, 3, 0), np.float32), ["N", 3, "M"])
        bench.show("y", bench(move.RESHAPE, x, shape=[M, N, 3]))
        return bench

    bench = build(14)
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    assert_same(run(session(lower(graph, "cpu", 14).payload), bench.feeds), want)
    with pytest.raises(DmlcError) as caught:
        lower(build(13).done(), "cpu", 13)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0501"
    assert "opset 14" in diagnostic.message


def test_a_computed_size_beside_a_copied_one_that_is_zero() -> None:
    """ONNX Runtime's ReshapeFusion makes -1 of the computed one, which no size fits where there are no elements."""
    bench = Bench()
    bench.graph.declare_dim("N", (0, 3))
    x = bench.feed(np.zeros((0, 3, 4, 2), np.float32), ["N", 3, "M", 2])
    bench.show("y", bench(move.RESHAPE, x, shape=[N, M * 6]), bench(select.ARGMAX, x, axes=[1, 3]))
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    for opset in (14, 21):
        assert_same(run(session(lower(graph, "cpu", opset).payload), bench.feeds), want)
    with pytest.raises(DmlcError, match=r"E0501.*needs opset 14"):
        lower(graph, "cpu", 13)


@each_row("target", TARGETS)
def test_a_number_from_dims_beside_several_dtypes(target: str) -> None:
    """The i64 number is a node's result, whose name is final only then; the others are casts of it."""
    lines = ["a = i <= (2 * K + 1)", "b = x * (2 * K + 1)", "c = i + (2 * K + 1)", "d = x[0:2, :] + (2 * K + 1)"]
    text = "model m(x: f32[K, 7], i: i64[4, 2]) -> (a, b, c, d) {\n    " + "\n    ".join(lines)
    program = dmlc.compile(Source("m.dml", text + "\n    return a, b, c, d\n}\n"), target=target)
    check(program.to_onnx())
    assert program.verify(3).ok
