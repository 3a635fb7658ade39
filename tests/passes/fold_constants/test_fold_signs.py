"""Signs of parts of a concat that move into the factor: positive, near-miss and numerical tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pass_helpers import Building, evaluate, ledger, names, random_feeds, remarks, run

import dmlc
from dmlc.ir import DType, Graph, Value
from dmlc.ir.dtype import f16, f32, f64, i32
from dmlc.ops.binary import ADD, MUL, SUB
from dmlc.ops.elementwise import NEG, SIN
from dmlc.ops.move import CONCAT, SLICE
from dmlc.passes.cse import Cse
from dmlc.passes.dce import Dce
from dmlc.passes.fold_constants import FoldConstants
from dmlc.passes.manager import FixedPoint

PASS = FixedPoint((FoldConstants(), Cse(), Dce()))
SPECIAL = [0.0, -0.0, np.inf, -np.inf, 1e-30, -3.5]


def half(b: Building, x: Value, first: int, last: int) -> Value:
    return b(SLICE, x, starts=(first,), ends=(last,), axes=(x.type.rank - 1,), steps=(1,))


def rotated(b: Building, x: Value, size: int = 8) -> Value:
    """The halves of the last axis, swapped, the second one negated."""
    return b(CONCAT, b(NEG, half(b, x, size // 2, size)), half(b, x, 0, size // 2), axis=x.type.rank - 1)


def same_bits(graph_maker: Callable[[], Graph], feeds: dict[str, np.ndarray]) -> list[str]:
    """Run the pass over a graph; the results must have the same bits. The names of the operations left."""
    plain, changed = graph_maker(), graph_maker()
    run(PASS, changed)
    for a, b in zip(evaluate(plain, feeds), evaluate(changed, feeds), strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return names(changed)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("dtype", [f16, f32, f64])
def test_constant_factor_takes_the_signs(dtype: DType, swapped: bool) -> None:
    table = np.resize(np.array([*SPECIAL, 0.5]), (5, 8))

    def graph() -> Graph:
        b = Building()
        x, t = b.input("x", (2, 5, 8), dtype), b.constant(table, dtype)
        turned = rotated(b, x)
        return b.done(b(MUL, t, turned) if swapped else b(MUL, turned, t))

    x = np.resize(np.array([1.5, -2, 0.0, -0.0, 4]), (2, 5, 8)).astype(dtype.numpy)
    x[0, 0, :3] = [1e-4, -1e-4, 7]
    with np.errstate(invalid="ignore"):
        left = same_bits(graph, {"x": np.where(x == 0, dtype.numpy.type(0.25), x)})
    assert left == ["slice", "slice", "concat", "mul"]


def test_infinities_and_zeros_keep_their_signs() -> None:
    def graph() -> Graph:
        b = Building()
        return b.done(b(MUL, rotated(b, b.input("x", (1, 8))), b.constant([[2.0, -2, 0.5, -0.0, 1, 0.0, -1, 3]])))

    x = np.array([[np.inf, -np.inf, 3.0, 5.0, 0.0, -0.0, np.inf, 2.0]], np.float32)
    assert same_bits(graph, {"x": x}) == ["slice", "slice", "concat", "mul"]


def test_products_of_one_computed_factor_share_its_signs() -> None:
    def graph() -> Graph:
        b = Building()
        q, k, t = b.input("q", (2, 5, 8)), b.input("k", (2, 5, 8)), b(SIN, b.input("t", (5, 8)))
        return b.done(b(MUL, rotated(b, q), t), b(MUL, rotated(b, k), t))

    left = same_bits(graph, random_feeds(graph()))
    assert "neg" not in left
    assert left.count("mul") == 3


@pytest.mark.parametrize("count", [2, 3, 5])
def test_any_part_may_be_negated(count: int) -> None:
    def graph() -> Graph:
        b = Building()
        parts = [b.input(f"x{i}", (2, 3)) for i in range(count)]
        mixed = [b(NEG, part) if i % 2 == 0 else part for i, part in enumerate(parts)]
        return b.done(b(MUL, b(CONCAT, *mixed, axis=1), b.constant(np.arange(3.0 * count) - 2)))

    assert same_bits(graph, random_feeds(graph())) == ["concat", "mul"]


def test_axis_of_the_concat_need_not_be_the_last() -> None:
    def graph() -> Graph:
        b = Building()
        x, z = b.input("x", (2, 3, 4)), b.input("z", (2, 5, 4))
        return b.done(b(MUL, b(CONCAT, b(NEG, x), z, axis=1), b.constant(np.arange(8.0).reshape(8, 1))))

    assert same_bits(graph, random_feeds(graph())) == ["concat", "mul"]


def test_shared_parts_stay() -> None:
    b = Building()
    x, t = b.input("x", (2, 8)), b.constant(np.ones((2, 8)) * 3)
    negated = b(NEG, half(b, x, 4, 8))
    joined = b(CONCAT, negated, half(b, x, 0, 4), axis=1)
    graph = b.done(b(MUL, joined, t), b(ADD, joined, t))
    ctx = run(PASS, graph)
    assert names(graph).count("neg") == 1
    assert any("is used 2 times" in remark for remark in remarks(ctx))
    b = Building()
    x, t = b.input("x", (2, 8)), b.constant(np.ones((2, 8)) * 3)
    negated = b(NEG, half(b, x, 4, 8))
    graph = b.done(b(MUL, b(CONCAT, negated, half(b, x, 0, 4), axis=1), t), negated)
    run(PASS, graph)
    assert names(graph).count("neg") == 1


def test_one_product_of_a_computed_factor_stays() -> None:
    b = Building()
    x, t = b.input("x", (2, 8)), b.input("t", (2, 8))
    graph = b.done(b(MUL, rotated(b, x), t), b(MUL, x, t))
    ctx = run(PASS, graph)
    assert names(graph).count("neg") == 1
    assert any("no other product shares the factor" in remark for remark in remarks(ctx))


def test_products_whose_signs_differ_do_not_share() -> None:
    b = Building()
    q, k, t = b.input("q", (2, 8)), b.input("k", (2, 8)), b.input("t", (2, 8))
    other = b(CONCAT, half(b, k, 4, 8), b(NEG, half(b, k, 0, 4)), axis=1)
    graph = b.done(b(MUL, rotated(b, q), t), b(MUL, other, t))
    run(PASS, graph)
    assert names(graph).count("neg") == 2


def shares(b: Building, x: Value, factor: Value, other: Value) -> int:
    """Number of negations left of two products of a factor, one of which has negated parts."""
    graph = b.done(b(MUL, rotated(b, x), factor), other)
    run(PASS, graph)
    return names(graph).count("neg")


def test_only_products_with_the_same_signs_share_a_factor() -> None:
    signs = np.array([-1.0, -1, -1, -1, 1, 1, 1, 1])
    for number, left in ((signs, 0), (-signs, 1), (np.where(signs > 0, 2, -1), 1)):
        b = Building()
        t = b.input("t", (2, 8))
        assert shares(b, b.input("x", (2, 8)), t, b(MUL, b.constant(number), t)) == left
    for op in (ADD, SUB):
        b = Building()
        t = b.input("t", (2, 8))
        assert shares(b, b.input("x", (2, 8)), t, b(op, rotated(b, b.input("z", (2, 8))), t)) == 2
    b = Building()
    t = b.input("t", (2, 8))
    assert shares(b, b.input("x", (2, 8)), t, b(SIN, t)) == 1


def test_a_factor_that_is_negated_as_a_whole_has_signs_of_another_shape() -> None:
    b = Building()
    t, parts = b.input("t", (2, 4)), [b(NEG, b.input(name, (2, 2))) for name in "xz"]
    graph = b.done(b(MUL, b(CONCAT, *parts, axis=1), t), b(MUL, t, b.constant(-1.0)))
    run(PASS, graph)
    assert names(graph).count("neg") == 2


def test_a_product_whose_concat_is_needed_elsewhere_shares_nothing() -> None:
    b = Building()
    q, k, t = b.input("q", (2, 8)), b.input("k", (2, 8)), b.input("t", (2, 8))
    turned = rotated(b, k)
    graph = b.done(b(MUL, rotated(b, q), t), b(MUL, turned, t), turned)
    run(PASS, graph)
    assert names(graph).count("neg") == 2


def test_a_large_table_is_not_stored_twice() -> None:
    b = Building()
    table = np.zeros((2**20 + 1, 4), np.float32)
    x = b.input("x", (1, 4))
    graph = b.done(b(MUL, b(CONCAT, b(NEG, half(b, x, 2, 4)), half(b, x, 0, 2), axis=1), b.constant(table)))
    ctx = run(FoldConstants(), graph)
    assert names(graph).count("neg") == 1
    assert any("the constant has 4194308 elements" in remark for remark in remarks(ctx))


@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
def test_factors_that_broadcast_along_the_axis_stay(shape: tuple[int, ...]) -> None:
    b = Building()
    graph = b.done(b(MUL, rotated(b, b.input("x", (2, 8))), b.constant(np.full(shape, 3.0))))
    run(PASS, graph)
    assert names(graph).count("neg") == 1


def test_integers_and_open_parts_stay() -> None:
    b = Building()
    graph = b.done(b(MUL, rotated(b, b.input("x", (2, 8), i32)), b.constant(np.full((2, 8), 3), i32)))
    run(PASS, graph)
    assert names(graph).count("neg") == 1
    b = Building(N=(1, 9))
    x, z = b.input("x", (2, "N")), b.input("z", (2, 3))
    joined = b(CONCAT, b(NEG, x), z, axis=1)
    graph = b.done(b(MUL, joined, joined))
    run(PASS, graph)
    assert names(graph).count("neg") == 1


def test_rotary_embedding_is_rotated_without_a_negation() -> None:
    """Exact: two sites a layer, one table for all."""
    g = dmlc.Graph("rotary")
    t = g.input("t", dtype="float32", shape=(5, 8))
    for i in range(4):
        x = g.input(f"x{i}", dtype="float32", shape=(2, 5, 8))
        low, high = (dmlc.slice(x, starts=(i,), ends=(i + 4,), axes=(2,), steps=(1,)) for i in (0, 4))
        turned = dmlc.concat(-high, low, axis=2)
        g.output(f"y{i}", x * dmlc.cos(t) + turned * dmlc.sin(t))
    program = dmlc.compile(g, target="cpu", exact=True)
    ops = [node.op_type for node in program.to_onnx().graph.node]
    assert "Neg" not in ops and ops.count("Mul") == 9
    rng = np.random.default_rng(0)
    shapes = {"t": (5, 8), **{f"x{i}": (2, 5, 8) for i in range(4)}}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    plain = dmlc.compile(g, target="cpu", exact=True, skip_rules=("sign-into-factor",))
    assert "Neg" in [node.op_type for node in plain.to_onnx().graph.node]
    for name, result in program.run(feeds).items():
        assert result.tobytes() == plain.run(feeds)[name].tobytes()


def test_the_ledger_names_the_rule() -> None:
    b = Building()
    graph = b.done(b(MUL, rotated(b, b.input("x", (2, 8))), b.constant(np.ones((2, 8)) * 3)))
    assert ledger(run(PASS, graph)) == [("sign-into-factor", "exact")]
