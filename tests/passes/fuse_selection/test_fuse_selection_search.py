"""Searches: top_k with k=1, negations, casts and rising functions before a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pass_helpers as h
import pytest
import selection_helpers as s

from dmlc.ir.dtype import DType, f16, f32, f64, i8, i32, i64, u8, u32
from dmlc.ops.binary import DIV, MUL, SUB
from dmlc.ops.choose import CAST, CLIP
from dmlc.ops.elementwise import ABS, EXP, LOG, NEG, RELU, SIGMOID, SQRT, TANH
from dmlc.ops.move import SQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K
from tests.rows import each_row


# --- top_k with k=1
def top(
    used: str, *, shape: tuple[Any, ...] = (3, 4), dtype: DType = f32, order: str = "largest", axis: int = 1, k: int = 1
) -> Any:
    b = h.Building()
    values, indices = b.node(TOP_K, b.input("x", shape, dtype), k=k, axis=axis, order=order, dtype=i64)
    return b.done(*[v for v, name in ((values, "v"), (indices, "i")) if name in used])


@each_row("order", ["largest", "smallest"])
@each_row("axis", [0, 1])
@each_row("dtype", [f32, f16, i32])
@each_row(("used", "want"), [("v", ["reduce"]), ("i", ["arg"]), ("vi", ["arg", "gather_elements"])])
def test_the_top_one(used: str, want: list[str], dtype: DType, axis: int, order: str) -> None:
    graph = top(used, dtype=dtype, axis=axis, order=order)
    before = graph.clone()
    ctx = s.fuse(graph)
    end = "max" if order == "largest" else "min"
    names = {"reduce": f"reduce_{end}", "arg": f"arg{end}"}
    assert h.names(graph) == [names.get(name, name) for name in want]
    assert s.fired(ctx) == [("top-one", "reassociates")]
    s.compare(before, graph, s.hard_inputs((3, 4), dtype.numpy))


@pytest.mark.parametrize("target", ["cpu", "onnx", "numpy"])
def test_two_nodes_for_one_only_on_directml(target: str) -> None:
    graph = top("vi")
    ctx = s.fuse(graph, target)
    assert h.names(graph) == ["top_k"]
    assert "two nodes for one" in s.reasons(ctx, "top-one")
    for used, want in (("v", "reduce_max"), ("i", "argmax")):
        graph = top(used)
        s.fuse(graph, target)
        assert h.names(graph) == [want]


def test_a_single_row_dispatches_no_more() -> None:
    for shape, want in (((1, 9), ["top_k"]), ((9, 1), ["argmax", "gather_elements"]), (("N", 9), 2)):
        graph = top("vi", shape=shape)
        s.fuse(graph)
        assert h.names(graph) == want or len(h.names(graph)) == want


def test_the_squeezed_top_one() -> None:
    b = h.Building()
    values, indices = b.node(TOP_K, b.input("x", (3, 4)), k=1, axis=1, dtype=i64)
    graph = b.done(b(SQUEEZE, values, axes=[1]), b(SQUEEZE, indices, axes=[1]))
    before = graph.clone()
    s.fuse(graph)
    assert sorted(h.names(graph)) == ["argmax", "gather_elements", "squeeze", "squeeze"]
    s.compare(before, graph, s.hard_inputs((3, 4)))
    b = h.Building()
    values, _ = b.node(TOP_K, b.input("x", (3, 4)), k=1, axis=1)
    graph = b.done(b(SQUEEZE, values, axes=[1]))
    s.fuse(graph)
    assert h.names(graph) == ["reduce_max"]


def test_dtypes_of_the_top_one() -> None:
    """Large i64 are compared wrongly by ReduceMax on ONNX Runtime; DirectML has no f64, and 8 bits only from 20 on."""
    for dtype, target, opset, used, want in (
        (i64, "directml", 21, "v", ["argmax", "gather_elements"]),
        (i64, "directml", 21, "i", ["argmax"]),
        (i64, "cpu", 21, "v", ["top_k"]),
        (i64, "onnx", 21, "v", ["top_k"]),
        (u32, "cpu", 21, "v", ["top_k"]),
        (i64, "numpy", 21, "v", ["reduce_max"]),
        (f64, "cpu", 21, "v", ["reduce_max"]),
        (f64, "directml", 21, "v", ["argmax", "gather_elements"]),
        (u8, "directml", 21, "v", ["reduce_max"]),
        (i8, "directml", 18, "v", ["argmax", "gather_elements"]),
    ):
        graph = top(used, dtype=dtype)
        s.fuse(graph, target, opset=opset)
        assert h.names(graph) == want, (dtype, target)
    graph = top("v", dtype=i64)
    before = graph.clone()
    s.fuse(graph)
    row = np.array([[2**31 + 5, 7, 2**31 - 1, 1], [-(2**40), -(2**31) - 3, 5, 2**31], [1, 2, 3, 4]])
    s.compare(before, graph, [row])


def test_near_misses_of_the_top_one() -> None:
    graph = top("vi", k=2)
    assert s.fired(s.fuse(graph)) == []
    graph = top("v")
    assert s.fired(s.fuse(graph, allowed="exact")) == []
    assert h.names(graph) == ["top_k"]


# --- negations
SPELLINGS: dict[str, Any] = {
    "neg": lambda b, x: b(NEG, x),
    "times minus one": lambda b, x: b(MUL, x, -1),
    "minus one times": lambda b, x: b(MUL, b.constant([[-1]], x.type.dtype), x),
    "from zero": lambda b, x: b(SUB, b.constant(0, x.type.dtype), x),
    "over minus one": lambda b, x: b(DIV, x, -1),
}


@each_row("spelling", SPELLINGS)
@each_row("ties", ["first", "last"])
@each_row("op", [ARGMAX, ARGMIN])
def test_a_negated_search(op: Any, ties: str, spelling: str) -> None:
    b = h.Building()
    x = b.input("x", (3, 4))
    graph = b.done(b(op, SPELLINGS[spelling](b, x), axes=[1], ties=ties, dtype=i64))
    before = graph.clone()
    ctx = s.fuse(graph, allowed="exact")
    assert h.names(graph) == ["argmin" if op is ARGMAX else "argmax"]
    assert s.fired(ctx) == [("arg-of-negation", "exact")]
    s.compare(before, graph, s.hard_inputs((3, 4)))


def test_integers_turn_around_where_the_lowest_is_ruled_out() -> None:
    b = h.Building()
    x = b.input("x", (3, 4), i32)
    bounded = b(CLIP, x, min=-5, max=5)
    graph = b.done(b(ARGMIN, b(NEG, x), axes=[1], dtype=i64), b(ARGMIN, b(NEG, bounded), axes=[0], dtype=i64))
    before = graph.clone()
    ctx = s.fuse(graph)
    assert sorted(h.names(graph)) == ["argmax", "argmin", "clip", "neg"]
    assert "not proved that x is above -2147483648" in s.reasons(ctx, "arg-of-negation")
    arrays = [np.array([[-(2**31), 1, 2, 3], [0, 0, -1, 5], [7, 8, 8, -(2**31)]], dtype=np.int32)]
    for array in arrays:
        h.assert_equal(h.evaluate(before, {"x": array}), h.evaluate(graph, {"x": array}))


@pytest.mark.parametrize(
    "make",
    [
        lambda b, x: b(ABS, x),
        lambda b, x: b(SUB, 1, x),
        lambda b, x: b(MUL, x, -2),
        lambda b, x: b(MUL, x, b.constant([-1, -1, -1, 1])),
        lambda b, x: b(RELU, x),
        lambda b, x: b(MUL, x, 0.5),
    ],
)
def test_what_is_no_negation(make: Any) -> None:
    """1 - x rounds, so that ties arise; halving underflows."""
    b = h.Building()
    x = b.input("x", (3, 4))
    graph = b.done(b(ARGMAX, make(b, x), axes=[1], dtype=i64))
    before = h.names(graph)
    assert s.fired(s.fuse(graph, allowed="range")) == []
    assert h.names(graph) == before


def test_a_negation_that_broadcasts_stays() -> None:
    b = h.Building()
    graph = b.done(b(ARGMAX, b(MUL, b.input("x", (3,)), b.constant([[[-1]]])), axes=[2], dtype=i64))
    assert s.fired(s.fuse(graph)) == []


def test_a_negation_that_is_needed_stays() -> None:
    b = h.Building()
    turned = b(NEG, b.input("x", (3, 4)))
    graph = b.done(b(ARGMAX, turned, axes=[1], dtype=i64), turned)
    assert "is used 2 times" in s.reasons(s.fuse(graph), "arg-of-negation")
    assert h.names(graph) == ["neg", "argmax"]
    b = h.Building()  # but several searches let go of it together
    turned = b(NEG, b.input("x", (3, 4)))
    found = b.node(TOP_K, turned, k=2, axis=1, dtype=i64)[1]
    graph = b.done(b(ARGMAX, turned, axes=[1], dtype=i64), b(ARGMIN, turned, axes=[0], dtype=i64), found)
    before = graph.clone()
    s.fuse(graph)
    assert sorted(h.names(graph)) == ["argmax", "argmin", "top_k"]
    s.compare(before, graph, s.hard_inputs((3, 4)))


@pytest.mark.parametrize(("used", "count"), [("i", 1), ("negated", 1), ("both", 1), ("v", 2)])
def test_the_top_of_a_negation(used: str, count: int) -> None:
    """torch.topk(-x, k): the k smallest, whose values are often negated back."""
    b = h.Building()
    values, indices = b.node(TOP_K, b(NEG, b.input("x", (3, 4))), k=2, axis=1, dtype=i64)
    outputs = {"i": [indices], "v": [values], "negated": [b(NEG, values)], "both": [b(NEG, values), indices]}[used]
    graph = b.done(*outputs)
    before = graph.clone()
    ctx = s.fuse(graph, allowed="exact")
    assert len(h.names(graph)) == count
    assert (s.fired(ctx) == []) == (used == "v")
    assert ("the values are used as they are" in s.reasons(ctx, "top-k-of-negation")) == (used == "v")
    s.compare(before, graph, s.hard_inputs((3, 4)))


# --- what keeps the order
@each_row(
    ("op", "narrow", "wide", "target", "fires"),
    [
        (ARGMAX, f16, f32, "directml", True),
        (ARGMIN, f32, f64, "cpu", True),
        (ARGMAX, u8, f32, "directml", True),
        (ARGMAX, i32, i64, "onnx", True),
        (ARGMAX, i32, f64, "onnx", True),
        (ARGMAX, u8, f32, "cpu", False),  # integers are searched slower there
        (ARGMAX, f16, f32, "cpu", False),  # computed in f32 anyway
        (ARGMAX, f32, f16, "directml", False),  # rounds
        (ARGMAX, i32, f32, "directml", False),  # rounds above 2^24
        (ARGMAX, i64, i32, "directml", False),
        (ARGMAX, i32, u32, "directml", False),
    ],
)
def test_a_cast_before_a_search(op: Any, narrow: DType, wide: DType, target: str, fires: bool) -> None:
    b = h.Building()
    graph = b.done(b(op, b(CAST, b.input("x", (3, 4), narrow), to=wide), axes=[1], dtype=i64))
    before = graph.clone()
    ctx = s.fuse(graph, target, "exact")
    assert h.names(graph) == ([op.name] if fires else ["cast", op.name])
    assert s.fired(ctx) == ([("search-of-wider", "exact")] if fires else [])
    if fires:
        s.compare(before, graph, s.hard_inputs((3, 4), narrow.numpy))


RISING = [EXP, LOG, SQRT, SIGMOID, TANH]


@pytest.mark.parametrize("op", [*RISING, SOFTMAX, LOG_SOFTMAX], ids=lambda op: op.name)
def test_rising_functions_are_never_dropped_by_default(op: Any) -> None:
    def build() -> Any:
        b = h.Building()
        x = b.input("x", (3, 4))
        return b.done(b(ARGMAX, b(op, x), axes=[1], dtype=i64))

    graph = build()
    ctx = s.fuse(graph)
    assert h.names(graph) == [op.name, "argmax"]
    assert "--allow range" in s.reasons(ctx, "search-of-rising")
    assert s.fired(s.fuse(build(), allowed="exact")) == []
    graph = build()
    before = graph.clone()
    assert s.fired(s.fuse(graph, allowed="range")) == [("search-of-rising", "range")]
    assert h.names(graph) == ["argmax"]
    plain = np.arange(12, dtype=np.float32).reshape(3, 4) / 4 + 0.25
    s.compare(before, graph, [plain, plain[:, ::-1].copy()])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda b, x: b(ARGMAX, b(SOFTMAX, x, axes=[0]), axes=[1]), "softmax keeps the order only along [0]"),
        (lambda b, x: b(ARGMAX, b(SOFTMAX, x, axes=[0]), axes=[0, 1]), "only along [0]"),
        (
            lambda b, x: b.node(TOP_K, b(SOFTMAX, x), k=2, order="smallest")[1],
            "softmax may round its smallest operands",
        ),
        (lambda b, x: b(ARGMIN, b(SOFTMAX, x), axes=[1]), ""),
        (lambda b, x: b(ARGMAX, b(ABS, x), axes=[1]), ""),
        (lambda b, x: b.node(TOP_K, b(SIGMOID, x), k=2)[0], ""),  # the values are wanted
    ],
)
def test_near_misses_of_rising_functions(make: Any, reason: str) -> None:
    b = h.Building()
    graph = b.done(make(b, b.input("x", (3, 4))))
    before = h.names(graph)
    ctx = s.fuse(graph, allowed="range")
    assert h.names(graph) == before
    assert reason in s.reasons(ctx, "search-of-rising")


def test_a_softmax_that_is_needed_stays() -> None:
    b = h.Building()
    soft = b(SOFTMAX, b.input("x", (3, 4)))
    graph = b.done(b(ARGMAX, soft, axes=[1]), soft)
    assert "is used 2 times" in s.reasons(s.fuse(graph, allowed="range"), "search-of-rising")
