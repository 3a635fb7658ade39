"""lower-hardmax: the form it gives, what it costs, and that every group has its one 1 at the first maximum."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import parser
from pass_helpers import (
    Building,
    assert_equal,
    check_numbers,
    context,
    evaluate,
    ledger,
    names,
    random_feeds,
    remarks,
    run,
)

import dmlc
from dmlc.ir import Operation
from dmlc.ir.dtype import f16, f32, f64, i64
from dmlc.ops.elementwise import NEG
from dmlc.ops.index import ONE_HOT, OneHotAttributes
from dmlc.ops.move import RESHAPE, TRANSPOSE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import ARGMAX, HARDMAX, ArgAttributes
from dmlc.passes.lower_hardmax import LowerHardmax
from dmlc.passes.manager import PassManager
from tests.rows import each_row

PASS = LowerHardmax()
EXACT_ONLY = ("exact",)


def test_neighbouring_axes_cost_no_transpose() -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (2, 3, 4, 5)), axes=[1, 2]))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == ["argmax", "one_hot", "reshape"]
    argmax, one_hot, _ = graph
    assert argmax.attributes == ArgAttributes(axes=(1, 2), ties="first", dtype=i64, keepdims=False)
    assert one_hot.attributes == OneHotAttributes(depth=12, axis=1, on=1, off=0, dtype=f32)
    assert ledger(ctx) == [("lower-hardmax", "exact")]
    assert all(node.history.rules == ("lower-hardmax",) and node.spans[0].line == 1 for node in graph)


def test_other_axes_cost_a_transpose_there_and_back() -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (2, 3, 4)), axes=[0, 2]))
    check_numbers(PASS, graph, context(allowed=EXACT_ONLY))
    assert names(graph) == ["transpose", "argmax", "one_hot", "reshape", "transpose"]


def test_axes_with_only_a_size_1_between_are_neighbours() -> None:
    b = Building(one=(1, 1))
    graph = b.done(b(HARDMAX, b.input("x", (2, 3, "one", 5)), axes=[1, 3]))
    check_numbers(PASS, graph, binding={"one": 1})
    assert names(graph) == ["argmax", "one_hot", "reshape"]


def test_a_single_axis_stays_and_says_so() -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (2, 3)), axes=[1]))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["hardmax"]
    assert remarks(ctx) == ["over one axis the target's own Hardmax stays (--lower-hardmax lowers it too)"]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_single_axis_is_lowered_when_asked(axis: int) -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (2, 3, 4)), axes=[axis]))
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY, lower_hardmax=True))
    assert names(graph) == ["argmax", "one_hot"]
    first, hot = graph
    assert first.attributes == ArgAttributes(axes=(axis,), ties="first", dtype=i64, keepdims=False)
    depth = (2, 3, 4)[axis]
    assert hot.attributes == OneHotAttributes(depth=depth, axis=axis, on=1, off=0, dtype=f32)
    assert remarks(ctx) == []


def test_several_axes_of_which_one_counts_are_a_single_axis() -> None:
    for lowers, expected in ((False, ["hardmax"]), (True, ["argmax", "one_hot", "reshape"])):
        b = Building()
        graph = b.done(b(HARDMAX, b.input("x", (1, 3, 1)), axes=[0, 1, 2]))
        check_numbers(PASS, graph, context(lower_hardmax=lowers))
        assert [n for n in names(graph) if n != "reshape"] == [n for n in expected if n != "reshape"]
        assert all(len(n.attributes.axes) == 1 for n in graph if n.op is HARDMAX)


def test_all_axes_of_size_1() -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (1, 1)), axes=[0, 1]))
    check_numbers(PASS, graph)
    assert names(graph) == ["hardmax"]


@each_row("dtype", [f16, f32, f64])
@each_row("rank", [2, 3, 4])
def test_every_set_of_axes_gives_the_same_ones(rank: int, dtype: Any) -> None:
    shape = (2, 3, 2, 3)[:rank]
    for count in range(1, rank + 1):
        for axes in itertools.combinations(range(rank), count):
            b = Building()
            graph = b.done(b(HARDMAX, b.input("x", shape, dtype), axes=axes))
            # Few different values, so that there are ties.
            feeds = {"x": np.random.default_rng(7).integers(0, 3, shape).astype(dtype.numpy)}
            check_numbers(PASS, graph, context(allowed=EXACT_ONLY, lower_hardmax=True), feeds=feeds)
            assert "hardmax" not in names(graph)


def test_symbolic_sizes() -> None:
    b = Building(n=(1, 9), m=(2, 5))
    x = b.input("x", ("n", 3, "m"))
    graph = b.done(b(HARDMAX, x, axes=[1, 2]), b(HARDMAX, x, axes=[0, 2]))
    check_numbers(PASS, graph, binding={"n": 4, "m": 3})
    depths = [str(n.attributes_as(OneHotAttributes).depth) for n in graph if n.op is ONE_HOT]
    assert depths == ["3 * m", "m * n"]
    assert graph.conditions == {}


def test_a_nan_gives_at_most_one_1_and_an_index_in_range() -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (3, 4)), axes=[0, 1]))
    run(PASS, graph)
    for place in range(12):
        x = np.arange(12, dtype=np.float32)
        x[place] = np.nan
        (hot,) = evaluate(graph, {"x": x.reshape(3, 4)})
        assert hot.sum() == 1


def test_the_new_moves_join_those_of_the_program() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    flat = b(RESHAPE, b(HARDMAX, x, axes=[1, 2]), shape=[2, 12])
    turned = b(TRANSPOSE, b(HARDMAX, b(TRANSPOSE, x, perm=[1, 0, 2]), axes=[0, 2]), perm=[1, 0, 2])
    graph = b.done(b(NEG, flat), turned)
    feeds = random_feeds(graph)
    before = evaluate(graph, feeds)
    run(PASS, graph)
    assert_equal(before, evaluate(graph, feeds))
    assert sorted(names(graph)) == ["argmax", "argmax", "neg", "one_hot", "one_hot", "reshape"]
    assert [n.attributes.axes for n in graph if n.op is ARGMAX] == [(1, 2), (1, 2)]


def test_only_a_kernel_that_keeps_the_promise_takes_neighbours_as_one_axis() -> None:
    """ONNX Runtime's LogSoftmax of f64 leaves -inf beside a +inf: such a node is written in others as it stands."""
    for op, dtype, lowered in ((LOG_SOFTMAX, f64, False), (SOFTMAX, f64, True), (LOG_SOFTMAX, f32, True)):
        b = Building()
        graph = b.done(b(op, b.input("x", (2, 3, 4), dtype), axes=[1, 2]))
        check_numbers(PASS, graph)
        assert names(graph) == (["reshape", op.name, "reshape"] if lowered else [op.name])


@each_row("op", [SOFTMAX, LOG_SOFTMAX])
@each_row("target", ["onnx", "cpu", "directml", "numpy"])
def test_softmax_over_neighbours_is_that_over_one_axis_where_the_opset_takes_one(op: Operation, target: str) -> None:
    for opset, axes, lowered in ((21, [1, 2], True), (21, [0, 2], False), (12, [1, 2], False), (21, [2], False)):
        b = Building()
        graph = b.done(b(op, b.input("x", (2, 3, 4)), axes=axes))
        ctx = context(target, allowed=EXACT_ONLY, opset=opset)
        check_numbers(PASS, graph, ctx)
        kept, merged = [op.name], ["reshape", op.name, "reshape"]
        assert names(graph) == (merged if lowered and target != "numpy" else kept)


def test_the_moves_of_a_lowered_softmax_meet_those_of_the_program() -> None:
    """A reduction of all that the softmax was taken over needs no reshape back."""
    for operator in ("Softmax", "Hardmax"):
        text = f"""<ir_version: 8, opset_import: ["" : 11]> g (float[5, 7, N] x) => (float[5] y)
            {{ h = {operator} <axis = 1> (x) y = ReduceMin <axes = [1, 2], keepdims = 0> (h) }}"""
        model = dmlc.compile(parser.parse_model(text), target="onnx", opset=21).to_onnx()
        assert [node.op_type for node in model.graph.node] == ["Reshape", operator, "ReduceMin"]


def test_the_pass_ensures_its_property_and_a_second_run_does_nothing() -> None:
    b = Building()
    graph = b.done(b(HARDMAX, b.input("x", (2, 3)), axes=[0, 1]))
    ctx = context()
    assert PassManager((PASS,)).run(graph, ctx)
    assert not PassManager((PASS,)).run(graph, ctx)
    assert "lowered-hardmax" in ctx.properties
