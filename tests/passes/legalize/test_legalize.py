"""``legalize``: what has no kernel gets a form that has one, with the same numbers by the NumPy references."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from pass_helpers import Building, assert_equal, evaluate, ledger, names, random_feeds

from dmlc.diagnostics import DmlcError
from dmlc.ir import DTYPES, INTEGERS, DType, Graph, Operation, Value, symbol
from dmlc.ir.dtype import bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from dmlc.ir.verifier import verify
from dmlc.ops import ALL_OPERATIONS, binary, choose, elementwise, index, matmul, reduce, scan, select
from dmlc.ops.constant import CONSTANT
from dmlc.passes.legalize import Legalize
from dmlc.passes.manager import EXACT, PassContext
from dmlc.targets import kernel_table, load_target
from dmlc.targets.needed_kernels import NEEDS, UNCHECKED
from tests.rows import each_row

N = symbol("N")
TARGETS = ("directml", "cpu", "onnx")


def legalize(graph: Graph, target: str = "cpu", opset: int = 21) -> PassContext:
    """Legalized with the graph's invariants checked; a second run must find nothing to do."""
    ctx = PassContext(load_target(target), opset)
    Legalize().run(graph, ctx)
    verify(graph)
    again = PassContext(load_target(target), opset)
    assert not Legalize().run(graph, again)
    assert not again.ledger
    assert all(entry.rewrite_class == EXACT for entry in ctx.ledger)
    return ctx


def one(
    op: Operation, dtype: DType, *others: DType, target: str = "cpu", opset: int = 21, **attributes: object
) -> list[str]:
    """The operations that one call of tensors of shape [2, 3] becomes."""
    build = Building()
    operands = [build.input(f"x{i}", (2, 3), d) for i, d in enumerate((dtype, *others))]
    graph = build.done(*build.node(op, *operands, **attributes))
    feeds = random_feeds(graph)
    before = evaluate(graph, feeds)
    legalize(graph, target, opset)
    assert_equal(before, evaluate(graph, feeds))
    return names(graph)


def test_the_table_knows_every_operation() -> None:
    """Either its kernels, or why none are asked for."""
    known = NEEDS.keys() | UNCHECKED.keys()
    assert [op.name for op in ALL_OPERATIONS if op not in known and op is not CONSTANT] == []
    assert not NEEDS.keys() & UNCHECKED.keys()


def test_the_table_names_kernels_that_exist() -> None:
    table = kernel_table(load_target("cpu"))
    assert table is not None
    for op, need in NEEDS.items():
        for name, parameter in need.kernels:
            assert table.dtypes(name, 21, parameter), f"{op.name}: {name} {parameter}"


@each_row("op", [*NEEDS])
def test_f32_stays_as_it_is(op: Operation) -> None:
    """f32 has every kernel, or the operation is written in others; else the table has a wrong name in it."""
    if getattr(op, "composed", None) is not None:
        return
    table = kernel_table(load_target("cpu"))
    assert table is not None
    if f32 in (op.operands[0].dtypes if op.name != "where" else DTYPES):
        for opset in range(11, 22):
            assert all(f32 in table.dtypes(name, opset, parameter) for name, parameter in NEEDS[op].kernels)


# --- widening


@each_row(
    ("op", "dtype", "opset", "expected"),
    [
        (binary.ADD, i8, 21, ["add"]),
        (binary.ADD, i8, 13, ["cast", "cast", "add", "cast"]),
        (binary.ADD, u32, 11, ["add"]),
        (binary.MAX, u16, 21, ["cast", "cast", "max", "cast"]),
        (binary.MAX, i32, 21, ["max"]),
        (binary.MAX, u64, 21, ["max"]),
        (binary.LESS, u64, 11, ["less"]),
        (binary.EQUAL, bool_, 11, ["equal"]),
    ],
)
def test_binary_widening(op: Operation, dtype: DType, opset: int, expected: list[str]) -> None:
    assert one(op, dtype, dtype, opset=opset) == expected


def test_matmul_widening() -> None:
    for dtype, casts in ((i16, True), (u32, False), (u64, False), (i32, False), (i64, False)):
        build = Building()
        x = build.input("x", (3, 3), dtype)
        graph = build.done(build(matmul.MATMUL, x, x))
        legalize(graph)
        assert names(graph) == (["cast", "cast", "matmul", "cast"] if casts else ["matmul"])


def test_where_moves_what_it_cannot_compare() -> None:
    for dtype, casts in ((u64, 2), (bool_, 2), (i16, 2), (u32, 2), (u8, 0), (f64, 0)):
        assert one(choose.WHERE, bool_, dtype, dtype) == ["cast"] * casts + ["where"] + ["cast"] * (casts // 2)


def test_constants_are_widened_without_a_cast() -> None:
    build = Building()
    x = build.input("x", (3,), i16)
    graph = build.done(build(binary.MAX, x, 7))
    legalize(graph)
    assert names(graph) == ["cast", "max", "cast"]


def test_numpy_has_no_kernel_table() -> None:
    build = Building()
    graph = build.done(build(select.ARGMAX, build.input("x", (3,), u64)))
    assert not Legalize().run(graph, PassContext(load_target("numpy"), 21))


def test_what_nothing_computes_is_refused_at_its_place() -> None:
    build = Building()
    x = build.input("x", (3,), f64)
    graph = build.done(build(elementwise.ERF, x))
    with pytest.raises(DmlcError) as caught:
        Legalize().run(graph, PassContext(load_target("onnx"), 21))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0502"
    assert diagnostic.span is not None
    assert diagnostic.span.line == 1
    assert "f32" in diagnostic.help


def test_floats_stay() -> None:
    build = Building()
    x = build.input("x", (2, 3), f16)
    y = build(reduce.REDUCE_SUM, build(binary.FLOORDIV, build(binary.POW, x, 2), 3), axes=[1])
    graph = build.done(build(choose.CLIP, y, min=0))
    assert not Legalize().run(graph, PassContext(load_target("directml"), 21))


# --- selections


def test_u64_is_searched_in_the_order_of_i64() -> None:
    assert one(select.ARGMAX, u64) == ["cast", "add", "argmax"]
    assert one(select.TOP_K, u64, k=2) == ["cast", "add", "top_k", "add", "cast"]


def test_hardmax_of_f64_is_an_index() -> None:
    assert one(select.HARDMAX, f64) == ["argmax", "one_hot"]
    assert one(select.HARDMAX, f32) == ["hardmax"]


def test_unsigned_indices_become_i64() -> None:
    for dtype, casts in ((u32, ["cast"]), (u64, ["cast"]), (i32, []), (i64, [])):
        build = Building()
        x, i = build.input("x", (4,)), build.input("i", (2,), dtype)
        graph = build.done(build(index.GATHER, x, i))
        legalize(graph)
        assert names(graph) == [*casts, "gather"]


# --- integer arithmetic


def test_i64_extremes_by_comparison() -> None:
    assert one(binary.MAX, i64, i64) == ["less", "where"]
    assert one(binary.MIN, i64, i64) == ["less", "where"]
    assert one(binary.MIN, i32, i32, opset=11) == ["less", "where"]
    assert one(choose.CLIP, i64, min=0, max=5) == ["less", "where", "less", "where"]
    assert one(choose.CLIP, f64, min=0, opset=11) == ["max"]
    assert one(elementwise.RELU, i64) == ["less", "where"]
    assert one(elementwise.RELU, i8, opset=14) == ["relu"]
    assert one(elementwise.RELU, i8, opset=13) == ["cast", "relu", "cast"]


@each_row("op", [binary.DIV, binary.MOD])
@each_row("dtype", INTEGERS)
def test_divisors_are_guarded_once(op: Operation, dtype: DType) -> None:
    """A divisor of 0 fails and -1 under the lowest number traps: neither reaches the kernel."""
    build = Building()
    x, y = build.input("x", (64,), dtype), build.input("y", (64,), dtype)
    graph = build.done(build(op, x, y))
    rng = np.random.default_rng(3)
    low = int(dtype.lowest)
    a = rng.choice(np.array([low, low + 1, 0, 1, 5, int(dtype.highest)], dtype.numpy), 64)
    b = rng.choice(np.array([-1 if low else 1, 1, 2, int(dtype.highest)], dtype.numpy), 64)
    before = evaluate(graph, {"x": a, "y": b})
    legalize(graph)
    assert_equal(before, evaluate(graph, {"x": a, "y": b}))
    kernel = next(node for node in graph if node.op is op)
    graph.set_outputs([("divisor", kernel.operand(1))])
    seen = evaluate(graph, {"x": a, "y": np.where(b == 1, 0, b).astype(dtype.numpy)})
    assert not (seen[0] == 0).any()
    if dtype in (i32, i64):
        assert not (seen[0] == -1).any()


def test_a_constant_divisor_needs_no_guard() -> None:
    def lowered(divisor: int, dtype: DType) -> list[str]:
        build = Building()
        graph = build.done(build(binary.DIV, build.input("x", (3,), dtype), divisor))
        legalize(graph)
        return names(graph)

    assert lowered(7, i64) == ["div"]
    assert lowered(-1, i8) == ["div"]
    assert "where" in lowered(-1, i32)


@each_row("dtype", INTEGERS)
@each_row("opset", [11, 18])
def test_integer_arithmetic_at_the_ends_of_the_range(dtype: DType, opset: int) -> None:
    build = Building()
    x, y = build.input("x", (200,), dtype), build.input("y", (200,), dtype)
    shown = [build(op, x, y) for op in (binary.FLOORDIV, binary.AND, binary.OR, binary.XOR, binary.POW)]
    shown += [build(elementwise.NOT, x), build(binary.AND, x, 7), build(binary.POW, x, 3), build(binary.POW, x, 0)]
    graph = build.done(*shown)
    rng = np.random.default_rng(5)
    low, high = int(dtype.lowest), int(dtype.highest)
    a = rng.choice(np.array([low, low + 1, 0, 1, 2, 3, high // 3, high], dtype.numpy), 200)
    b = rng.choice(np.array([1, 2, 3, 17, high // 2 + 1, high], dtype.numpy), 200)
    before = evaluate(graph, {"x": a, "y": b})
    legalize(graph, opset=opset)
    assert_equal(before, evaluate(graph, {"x": a, "y": b}))


def test_bits_stay_from_opset_18_on() -> None:
    assert one(binary.XOR, u8, u8, opset=18) == ["xor"]
    assert "xor" not in one(binary.XOR, u8, u8, opset=17)
    assert one(binary.XOR, bool_, bool_, opset=11) == ["xor"]
    assert one(elementwise.NOT, i32, opset=17) == ["sub"]


def test_squares_of_a_constant_base_are_constants() -> None:
    """Nodes of constants alone would be dispatches of every run, and ONNX's inference refuses their overflow."""
    build = Building()
    exponent = build.input("b", (5,), i16)
    graph = build.done(build(binary.POW, 3, exponent))
    feeds = {"b": np.array([0, 1, 5, 9, 12], np.int16)}
    before = evaluate(graph, feeds)
    legalize(graph)
    assert [node for node in graph if node.op is binary.MUL and not node.result.shape] == []
    assert_equal(before, evaluate(graph, feeds))


def test_power_by_a_constant_is_squared() -> None:
    build = Building()
    graph = build.done(build(binary.POW, build.input("x", (3,), i64), 6))
    legalize(graph)
    assert names(graph) == ["mul", "mul", "mul"]


# --- reductions


@each_row("target", TARGETS)
@each_row("dtype", INTEGERS)
@each_row("op", [r for r in reduce.REDUCTIONS if i64 in r.operands[0].dtypes])
def test_integer_reductions_are_exact(op: Operation, dtype: DType, target: str) -> None:
    build = Building()
    x = build.input("x", (3, 4, 5), dtype)
    graph = build.done(*[build(op, x, axes=a, keepdims=k) for a, k in (([0], True), ([1, 2], False), ([0, 2], True))])
    rng = np.random.default_rng(7)
    low, high = int(dtype.lowest), int(dtype.highest)
    near = np.array([low, low + 1, 0, 1, high // 2 + 1, high - 1, high], dtype.numpy)
    feeds = {"x": rng.choice(near, (3, 4, 5))}
    before = evaluate(graph, feeds)
    legalize(graph, target)
    assert_equal(before, evaluate(graph, feeds))
    kept = {node.op for node in graph if node.op in reduce.REDUCTIONS}
    sums_on_directml = {reduce.REDUCE_SUM} if target == "directml" else set()
    assert kept <= sums_on_directml | {reduce.REDUCE_MAX, reduce.REDUCE_MIN}
    for node in graph:
        if node.op in (reduce.REDUCE_MAX, reduce.REDUCE_MIN):
            assert node.operand(0).type.dtype in (i8, u8, i32)


def test_a_sum_that_came_from_32_bits_stays_a_sum_on_directml() -> None:
    build = Building()
    x = build.input("x", (3, 4), u8)
    graph = build.done(build(reduce.REDUCE_SUM, build(choose.CAST, x, to=i64), axes=[1]))
    legalize(graph, "directml")
    assert names(graph) == ["cast", "reduce_sum"]
    build = Building()
    graph = build.done(build(reduce.REDUCE_SUM, build.input("x", (3, 4), i64), axes=[1]))
    legalize(graph, "directml")
    assert names(graph) == ["cumsum", "slice"]


def test_any_and_all() -> None:
    assert one(reduce.REDUCE_MAX, bool_, axes=[1]) == ["reduce_max"]
    assert one(reduce.REDUCE_MIN, bool_, axes=[1], opset=19) == ["cast", "reduce_min", "cast"]
    assert one(reduce.REDUCE_MIN, bool_, axes=[1], opset=11) == ["cast", "reduce_min", "cast"]


@each_row("size", [0, 3])
@each_row("dtype", [bool_, *INTEGERS])
def test_extremes_of_nothing(dtype: DType, size: int) -> None:
    build = Building(N=(0, inf))
    x = build.input("x", ("N", 4), dtype)
    shown: list[Value] = [build(op, x, axes=[0]) for op in (reduce.REDUCE_MAX, reduce.REDUCE_MIN)]
    if dtype is not bool_:
        shown += [build(op, x, axes=[0, 1]) for op in (reduce.REDUCE_SUM, reduce.REDUCE_PROD)]
    graph = build.done(*shown)
    feeds = random_feeds(graph, {"N": size})
    before = evaluate(graph, feeds)
    legalize(graph)
    assert_equal(before, evaluate(graph, feeds))
    for node in graph:
        if node.op in (reduce.REDUCE_MAX, reduce.REDUCE_MIN):
            assert graph.dims.interval(node.operand(0).shape[0])[0] >= 1


@pytest.mark.parametrize("target", TARGETS)
def test_symbolic_sizes_leave_no_new_conditions(target: str) -> None:
    build = Building(N=(1, inf))
    x, z = build.input("x", ("N", 3, 4), i64), build.input("z", ("N", 3, 4), u16)
    shown = [build(op, v, axes=[0, 2]) for v in (x, z) for op in reduce.REDUCTIONS if i64 in op.operands[0].dtypes]
    shown += [build(scan.CUMPROD, z, axis=0), build(select.HARDMAX, build.input("f", ("N", 2), f64), axes=[0])]
    graph = build.done(*shown)
    feeds = random_feeds(graph, {"N": 5})
    before, conditions = evaluate(graph, feeds), dict(graph.conditions)
    legalize(graph, target)
    assert_equal(before, evaluate(graph, feeds))
    assert graph.conditions == conditions


# --- records


def test_the_ledger_says_what_was_done_where() -> None:
    build = Building()
    x = build.input("x", (3,), u16)
    build.line = 6
    graph = build.done(build(binary.MAX, x, 7))
    ctx = legalize(graph)
    assert ledger(ctx) == [("widen-dtype", EXACT)]
    assert ctx.ledger[0].text == "max of u16 in i32"
    assert [span.line for span in ctx.ledger[0].spans] == [7]
    assert {node.history.rules for node in graph if node.op is binary.MAX} == {("widen-dtype",)}


def test_a_missing_row_is_a_sentence() -> None:
    with pytest.raises(KeyError, match=r"constant has no row in .*needed_kernels: add its kernels"):
        NEEDS[CONSTANT]
