"""Every operation over every dtype it takes: the generated code against the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy_models import Model, check, check_each, compare, expected, function, run, sample, source

from dmlc.codegen.numpy import LOWERINGS
from dmlc.ir import DType, Operation, as_dtype
from dmlc.ir.dtype import DTYPES, FLOATS, INDEX, INTEGERS, f32
from dmlc.ops import ALL_OPERATIONS, binary, choose, elementwise, index, matmul, move, normalize, reduce, scan, select
from dmlc.ops.constant import CONSTANT
from tests.rows import each_row


@dataclass(frozen=True)
class Case:
    """A call: the shapes of its operands and its attributes."""

    op: Operation
    shapes: tuple[tuple[int, ...], ...]
    attributes: dict[str, Any]


def case(op: Operation, *shapes: tuple[int, ...], **attributes: Any) -> Case:
    return Case(op, shapes, attributes)


S = (2, 3, 4)
CASES: list[Case] = [
    *[case(op, S) for op in elementwise.UNARY],
    *[case(op, ()) for op in elementwise.UNARY],
    *[case(op, a, b) for op in binary.BINARY for a, b in ((S, S), ((4,), S), (S, (3, 1)), ((), S), ((), ()))],
    *[case(op, S, axes=axes, ties=ties, dtype=dtype, keepdims=keep)
      for op in (select.ARGMAX, select.ARGMIN)
      for axes, ties, dtype, keep in (
          ([1], "first", "u32", True), ([0, 2], "last", "i64", True), ([0, 1, 2], "first", "u64", False),
          ([2], "last", "i32", False), ([1, 2], "first", "u32", True),
      )],
    *[case(select.TOP_K, (3, 5, 2), k=k, axis=1, order=order, dtype=dtype)
      for k, order, dtype in ((1, "largest", "u32"), (4, "smallest", "i64"), (5, "largest", "i32"))],
    *[case(select.HARDMAX, S, axes=axes) for axes in ([2], [0, 2], [0, 1, 2])],
    *[case(op, S, axes=axes, keepdims=keep)
      for op in reduce.REDUCTIONS for axes in ([1], [0, 2], [0, 1, 2]) for keep in (True, False)],
    *[case(op, ()) for op in reduce.REDUCTIONS],
    *[case(op, S, axes=axes) for op in (normalize.SOFTMAX, normalize.LOG_SOFTMAX) for axes in ([-1], [0, 2])],
    *[case(normalize.MEAN_VARIANCE_NORM, S, axes=[0, 2], variance=v) for v in (True, False)],
    case(normalize.LAYER_NORM, S, (3, 4), (4,), axis=1, epsilon=1e-3),
    case(normalize.LAYER_NORM, S, (4,)),
    case(normalize.RMS_NORM, S, (4,)),
    case(normalize.RMS_NORM, S, (), axis=0),
    *[case(normalize.LP_NORM, S, axis=1, p=p) for p in (1, 2)],
    *[case(op, S, axis=1, exclusive=e, reverse=r)
      for op in (scan.CUMSUM, scan.CUMPROD) for e in (False, True) for r in (False, True)],
    case(index.ONE_HOT, (2, 3), depth=6),
    case(index.ONE_HOT, (2, 3), depth=4, axis=0, on=5, off=-0.0, dtype="f16"),
    case(index.ONE_HOT, (), depth=4, dtype="bool"),
    case(choose.WHERE, (3, 1), S, ()),
    case(choose.CLIP, S, min=0, max=2),
    case(choose.CLIP, S, max=1),
    case(choose.CLIP, (), min=1),
    case(choose.CLIP, S, min=3, max=1),
    case(move.RESHAPE, S, shape=[4, -1]),
    case(move.RESHAPE, (1, 1), shape=[]),
    case(move.TRANSPOSE, S, perm=[2, 0, 1]),
    case(move.TRANSPOSE, S),
    case(move.SQUEEZE, (1, 3, 1), axes=[0, 2]),
    case(move.UNSQUEEZE, (3,), axes=[0, 2]),
    case(move.UNSQUEEZE, (), axes=[0]),
    case(move.EXPAND, (3, 1), shape=[2, 1, 4]),
    case(move.CONCAT, S, (2, 1, 4), S, axis=1),
    case(move.CONCAT, (3,), axis=0),
    case(move.SLICE, (5, 6), starts=[1], ends=[4], axes=[1]),
    case(move.SLICE, (5, 6), starts=[-1, 0], ends=[-(2**31), 2**31 - 1], axes=[1, 0], steps=[-2, 2]),
    case(move.TILE, S, repeats=[2, 1, 3]),
    case(move.PAD, S, pads=[1, 0, 2, 0, 1, 0], value=1),
    case(index.GATHER, S, (2, 2), axis=1),
    case(index.GATHER, S, (), axis=2),
    case(index.GATHER_ELEMENTS, S, (2, 5, 3), axis=1),
    case(index.SCATTER_ELEMENTS, S, (1, 2, 3), (1, 2, 3), axis=1),
    case(index.IOTA, length=5, dtype="u8"),
    case(index.IOTA, length=300, dtype="f16"),
    case(index.IOTA, length=5, dtype="i64"),
    case(index.FULL, shape=[2, 3], value=2, dtype="u16"),
    case(index.FULL, shape=[], value=True, dtype="bool"),
    case(index.FULL, shape=[2], value=float("-inf"), dtype="f16"),
    *[case(matmul.MATMUL, a, b) for a, b in ((S, (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((2, 3), (5, 3, 2)))],
]  # fmt: skip
#: Operations that other tests of this file call.
APART = {CONSTANT, choose.CAST, move.SPLIT}


def test_every_operation_has_a_lowering_and_a_case() -> None:
    assert set(ALL_OPERATIONS) == set(LOWERINGS) | {CONSTANT}
    assert set(ALL_OPERATIONS) == {c.op for c in CASES} | APART


def dtypes_of(c: Case) -> Iterator[tuple[DType, ...]]:
    """The dtypes of the operands: every one of the first group, with each index dtype in turn."""
    if not c.shapes:
        yield ()
        return
    declared = [*c.op.operands, *([c.op.operands[-1]] * len(c.shapes))][: len(c.shapes)]
    main = next((o for o in declared if o.group == "T"), declared[0])
    others = [o for o in declared if o.group != main.group]
    for i, dtype in enumerate(main.dtypes):
        yield tuple([dtype if o.group == main.group else o.dtypes[i % len(o.dtypes)] for o in declared])
    if others and others[0].group == "I":
        for dtype in INDEX:
            yield tuple([f32 if o.group == main.group else dtype for o in declared])


def feeds_of(c: Case, dtypes: tuple[DType, ...], wild: bool) -> list[np.ndarray]:
    feeds = []
    for i, (shape, dtype) in enumerate(zip(c.shapes, dtypes, strict=True)):
        if c.op in (index.GATHER, index.GATHER_ELEMENTS, index.SCATTER_ELEMENTS) and i == 1:
            size = c.shapes[0][c.attributes["axis"]]
            places = np.random.default_rng(i).integers(0 if dtype.kind == "uint" else -size, size, shape)
            if c.op is index.SCATTER_ELEMENTS:  # the winner of two updates of one place is unspecified
                places = np.broadcast_to(np.array([[[1], [0]]]), shape)
            feeds.append(places.astype(dtype.numpy))
            continue
        array = sample(dtype, shape, seed=i + len(shape), wild=wild)
        if c.op in (binary.DIV, binary.FLOORDIV, binary.MOD) and i == 1 and dtype.is_integer:
            array = np.where(array == 0, np.array(3, array.dtype), array)
        feeds.append(array)
    return feeds


def build(c: Case, dtypes: tuple[DType, ...]) -> Any:
    model = Model()
    inputs = [model.input(f"x{i}", d, *shape) for i, (shape, d) in enumerate(zip(c.shapes, dtypes, strict=True))]
    node = model.node(c.op, *inputs, **c.attributes)
    return model.returns(**{f"y{i}": r for i, r in enumerate(node.results)})


def check_case(c: Case) -> None:
    """Compare for all dtypes in the first case of an operation and for rank 0, where numpy before 2 makes f64 of an f32
    and a number of Python; in the others for every third dtype, by turn."""
    turn = [other for other in CASES if other.op is c.op].index(c)
    every_third = slice((turn + ALL_OPERATIONS.index(c.op)) % 3, None, 3)
    for dtypes in list(dtypes_of(c))[every_third if turn and any(c.shapes) else slice(None)]:
        if c.op is choose.CLIP and dtypes[0].kind == "bool":
            continue
        check_each(build(c, dtypes), [feeds_of(c, dtypes, wild) for wild in (False, True)])


OF_BINARY = [c for c in CASES if c.op in binary.BINARY]
OF_REDUCTIONS = [c for c in CASES if c.op in reduce.REDUCTIONS]


def name_of_case(c: Case) -> str:
    return f"{c.op.name}-{'x'.join(map(str, c.shapes))}".replace(" ", "")


@each_row("c", OF_BINARY, ids=name_of_case)
def test_binary_operations_are_the_reference(c: Case) -> None:
    check_case(c)


@each_row("c", OF_REDUCTIONS, ids=name_of_case)
def test_reductions_are_the_reference(c: Case) -> None:
    check_case(c)


@each_row("c", [c for c in CASES if c.op not in (*binary.BINARY, *reduce.REDUCTIONS)], ids=name_of_case)
def test_other_operations_are_the_reference(c: Case) -> None:
    check_case(c)


@each_row("op", binary.BINARY, ids=lambda op: op.name)
def test_a_number_beside_a_tensor_keeps_the_dtype(op: Operation) -> None:
    """Numbers become Python literals beside arrays, and scalars with a dtype beside scalars. The ranks take turns."""
    for turn, dtype in enumerate(op.operands[0].dtypes):
        x = sample(dtype, (4,) * ((turn + binary.BINARY.index(op)) % 2))
        model = Model()
        a = model.input("x", dtype, *x.shape)
        numbers: list[int | float | bool] = [3, 1 if op is binary.POW else 7.0 if dtype.is_float else 7]
        if dtype.kind == "bool":
            values = [model.call(op, a, True), model.call(op, False, a)]
            check(model.returns(**{f"y{i}": v for i, v in enumerate(values)}), x)
            continue
        if dtype.is_integer and op not in (binary.DIV, binary.FLOORDIV, binary.MOD, binary.POW):
            numbers += [int(dtype.lowest), int(dtype.highest)]
        if dtype.is_float and op in (binary.ADD, binary.MUL, binary.MIN, binary.LESS):
            largest = float(np.finfo(dtype.numpy).max)
            numbers += [largest, -largest, float("inf"), float("nan"), 0.1, 1e-7]
        values = [model.call(op, a, number) for number in numbers]
        values.append(model.call(op, 2, model.call("abs", a)))
        check(model.returns(**{f"y{i}": v for i, v in enumerate(values)}), x)


def test_floor_division_of_f16_rounds_the_quotient_before_the_floor() -> None:
    """-1 / 0.09998 is -10.002: as f16 it is -10, whose floor is -10."""
    model = Model()
    x, y = model.input("x", "f16", 2), model.input("y", "f16", 2)
    div = binary.FLOORDIV
    graph = model.returns(both=model.call(div, x, y), right=model.call(div, x, 0.1), left=model.call(div, -1, y))
    feeds = [np.array([-1, 7], np.float16), np.array([0.1, 0.1], np.float16)]
    both, right, left = run(graph, feeds)
    for got in (both, right):
        np.testing.assert_array_equal(got, np.array([-10, 70], np.float16))
    np.testing.assert_array_equal(left, np.array([-10, -10], np.float16))
    check(graph, *feeds)


@each_row("source", DTYPES, ids=str)
def test_casts(source: DType) -> None:
    model = Model()
    x = model.input("x", source, 6)
    graph = model.returns(**{f"to_{d}": model.call("cast", x, to=d) for d in DTYPES})
    feed = sample(source, (6,), wild=not source.is_float)
    check(graph, np.abs(feed) if source.is_float else feed)


def test_cast_of_nan_is_true_and_does_not_warn() -> None:
    model = Model()
    x = model.input("x", "f32", 4)
    graph = model.returns(b=model.call("cast", x, to="bool"), i=model.call("cast", x, to="i32"))
    truth, _ = run(graph, [np.array([np.nan, 0.0, -0.0, 1e-45], np.float32)])
    np.testing.assert_array_equal(truth, [True, False, False, True])


@pytest.mark.parametrize("sizes", [[2, 1, 3], [6], [0, 6]])
def test_split(sizes: list[int]) -> None:
    model = Model()
    node = model.node("split", model.input("x", "f32", 2, 6), axis=1, sizes=sizes)
    check(model.returns(**{f"y{i}": r for i, r in enumerate(node.results)}), sample("f32", (2, 6)))


def test_only_one_part_of_a_split_is_used() -> None:
    model = Model()
    node = model.node("split", model.input("x", "f32", 6), axis=0, sizes=[2, 3, 1])
    check(model.returns(y=model.call("neg", node.results[1])), sample("f32", (6,)))


@each_row("dtype", INTEGERS, ids=str)
def test_integer_means_are_exact(dtype: DType) -> None:
    """Sums that do not fit any integer type, and means of either sign."""
    low, high = int(dtype.lowest), int(dtype.highest)
    rows = np.array([[high] * 3, [low] * 3, [low, low, low + 1], [high, high - 1, low], [0, 0, 2]], dtype.numpy)
    model = Model()
    x = model.input("x", dtype, 5, 3)
    graph = model.returns(y=model.call("reduce_mean", x, axes=[1], keepdims=False))
    (got,) = run(graph, [rows])
    totals = [sum(map(int, row)) for row in rows]
    assert got.tolist() == [abs(t) // 3 * (1 if t >= 0 else -1) for t in totals]
    check(graph, rows)


@each_row("op", reduce.REDUCTIONS, ids=lambda op: op.name)
@each_row("dtype", [f32, as_dtype("f16"), as_dtype("i8"), as_dtype("u64"), as_dtype("bool")], ids=str)
def test_empty_reductions(op: Operation, dtype: DType) -> None:
    if dtype not in op.operands[0].dtypes or (op is reduce.REDUCE_MEAN and dtype.is_integer):
        return
    model = Model(n=(0, 4))
    x = model.input("x", dtype, "n", 2)
    graph = model.returns(a=model.call(op, x, axes=[0]), b=model.call(op, x, keepdims=False))
    for size in (0, 3):
        check(graph, sample(dtype, (size, 2)))


@each_row("op", reduce.REDUCTIONS, ids=lambda op: op.name)
def test_no_axes_means_the_elementwise_part(op: Operation) -> None:
    """Passes leave such reductions; no user can write them."""
    for dtype in op.operands[0].dtypes:
        model = Model()
        x = model.input("x", dtype, 2, 3)
        record = reduce.ReduceAttributes(axes=(), keepdims=True)
        graph = model.returns(y=model.graph.add(op, [x], record).result)
        check(graph, sample(dtype, (2, 3)))


@pytest.mark.parametrize(
    "op", [normalize.SOFTMAX, normalize.LOG_SOFTMAX, normalize.MEAN_VARIANCE_NORM, normalize.LP_NORM]
)
def test_normalisation_of_nothing(op: Operation) -> None:
    model = Model(n=(0, 4))
    x = model.input("x", "f32", 2, "n")
    attributes = {"axis": 1} if op is normalize.LP_NORM else {"axes": [1]}
    graph = model.returns(y=model.call(op, x, **attributes))
    for size in (0, 3):
        check(graph, sample("f32", (2, size)))


@pytest.mark.parametrize("axis", [0, 1])
def test_selection_in_an_empty_batch(axis: int) -> None:
    model = Model(n=(0, 4))
    x = model.input("x", "f32", "n", 3, 2)
    v, i = model.node("top_k", x, k=2, axis=1).results
    graph = model.returns(
        a=model.call("argmax", x, axes=[1]),
        b=model.call("argmax", x, axes=[1, 2], ties="last"),
        c=model.call("hardmax", x, axes=[1, 2]),
        v=v,
        i=i,
    )
    results = run(graph, [np.zeros((0, 3, 2), np.float32)])
    assert [r.shape for r in results] == [(0, 1, 2), (0, 1, 1), (0, 3, 2), (0, 2, 2), (0, 2, 2)]
    check(graph, sample("f32", (2, 3, 2)))


def test_gather_of_an_empty_axis_and_out_of_range() -> None:
    """Unspecified values, but never an exception."""
    model = Model(n=(0, 9))
    x, i = model.input("x", "f32", "n"), model.input("i", "i64", "n")
    u = model.input("u", "u64", 2)
    graph = model.returns(
        a=model.call("gather", x, u),
        b=model.call("gather_elements", x, i),
        c=model.call("scatter_elements", x, i, x),
        d=model.call("one_hot", u, depth=3),
    )
    far = np.array([2**64 - 1, 2**63], np.uint64)
    for size in (0, 2):
        feeds = [sample("f32", (size,)), np.array([-7, 9][:size], np.int64), far]
        check(graph, *feeds)
    assert not run(graph, feeds)[3].any()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_erf_over_its_whole_range(dtype: DType) -> None:
    x = np.concatenate([np.linspace(-7, 7, 2001), [1e-30, -1e-300, np.inf, -np.inf, np.nan, 0.0]])
    with np.errstate(under="ignore"):
        x = x.astype(dtype.numpy)
    model = Model()
    graph = model.returns(y=model.call("erf", model.input("x", dtype, len(x))))
    (got,), (want,) = run(graph, [x]), expected(graph, [x])
    near = {"f16": 1e-3, "f32": 1.2e-7, "f64": 2e-15}[dtype.name]  # an ulp; f64 sums 39 terms
    np.testing.assert_allclose(got, want, rtol=near)
    assert np.nanmax(np.abs(got)) <= 1


def test_f16_sums_are_taken_in_f32() -> None:
    """4096 ones are 2048 where each partial sum is rounded to f16."""
    model = Model()
    a = model.input("x", "f16", 4097, 2)
    graph = model.returns(
        sum=model.call("reduce_sum", a, axes=[0]),
        l1=model.call("reduce_l1", a, axes=[0]),
        mean=model.call("reduce_mean", model.call("*", a, 60000.0), axes=[0]),
        product=model.call("matmul", model.call("transpose", a), a),
        length=model.call("reduce_l2", model.call("*", a, 300.0), axes=[0]),
        running=model.call("cumsum", a, axis=0),
        back=model.call("cumsum", a, axis=0, reverse=True),
    )
    results = run(graph, [np.ones((4097, 2), np.float16)])
    assert [r.max() for r in results] == [4096, 4096, 60000, 4096, 19200, 4096, 4096]


def test_results_do_not_share_memory_with_constants() -> None:
    model = Model()
    c = model.constant(np.arange(3, dtype=np.float32), "c")
    x = model.input("x", "f32", 3)
    graph = model.returns(
        c=c,
        r=model.call("reshape", c, shape=[3, 1]),
        e=model.call("expand", x, shape=[2, 3]),
        s=model.constant(np.float32(2), "s"),
    )
    made = function(source(graph))
    feed = np.ones(3, np.float32)
    for _ in range(2):
        results = made(feed)
        compare(results, expected(graph, [feed]))
        for result in results:
            result += 1
    assert feed.sum() == 3
