"""Near misses of ``hoist``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fusion_helpers import model, node
from pass_helpers import ALL, Building, check_numbers, context, ledger, names, remarks

import dmlc
from dmlc.ir import DType, Operation
from dmlc.ir.dtype import f16, f32, i8, i32, u8, u32
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import ABS, EXP, NEG, SQRT
from dmlc.ops.reduce import REDUCE_L1, REDUCE_L2, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.hoist import Hoist

PASS = Hoist()


def stays(graph: Any, target: str = "numpy", **feeds: Any) -> str:
    """Nothing happens, whatever is allowed; the reasons."""
    before = names(graph)
    with np.errstate(all="ignore"):
        ctx = check_numbers(PASS, graph, context(target, ALL), feeds=feeds or None)
    assert names(graph) == before
    return " | ".join(remarks(ctx))


def of_constant(reduction: Operation, op: Operation, number: Any, dtype: DType = f32) -> Any:
    b = Building()
    return b.done(b(reduction, b(op, b.input("x", (3, 4), dtype), b.constant(number, dtype)), axes=[1]))


# --- extremes


@pytest.mark.parametrize("op", [EXP, ABS])
def test_a_root_of_what_is_never_negative_makes_no_nan(op: Operation) -> None:
    b = Building()
    graph = b.done(b(REDUCE_MIN, b(SQRT, b(op, b.input("x", (3, 4)))), axes=[1]))
    ctx = check_numbers(PASS, graph, exact=False)
    assert ("rising-after-extreme", "reassociates") in ledger(ctx)


@pytest.mark.parametrize(("source", "to"), [(u8, i8), (u32, i32), (i8, u8)])
def test_a_cast_that_wraps_turns_the_order(source: DType, to: DType) -> None:
    b = Building()
    graph = b.done(b(REDUCE_MAX, b(CAST, b.input("x", (2, 2), source), to=to), axes=[1]))
    x = np.array([[1, 200], [3, 2**31 % 2**source.bits]]).astype(source.numpy)
    assert "does not keep the order" in stays(graph, x=x)


# --- factors and shifts of sums


def test_integers_are_not_scaled_after_their_sum() -> None:
    stays(of_constant(REDUCE_SUM, DIV, 2, i32))
    stays(of_constant(REDUCE_SUM, MUL, 3, i32))
    stays(of_constant(REDUCE_SUM, ADD, 3, i32))


@pytest.mark.parametrize("reduction", [REDUCE_L1, REDUCE_L2])
def test_a_norm_of_a_negation_is_no_negated_norm(reduction: Operation) -> None:
    b = Building()
    stays(b.done(b(reduction, b(NEG, b.input("x", (3, 4))), axes=[1])))


def test_a_computed_factor_may_keep_a_sum_of_f16_from_overflowing() -> None:
    b = Building()
    x, c = b.input("x", (3, 4), f16), b.input("c", (3, 1), f16)
    graph = b.done(b(REDUCE_SUM, b(MUL, x, c), axes=[1]))
    feeds = {"x": np.full((3, 4), 30000, np.float16), "c": np.full((3, 1), 0.01, np.float16)}
    assert "without c the sum of f16 might overflow" in stays(graph, **feeds)


@pytest.mark.parametrize(("op", "number"), [(MUL, np.inf), (DIV, 0.0), (MUL, [[0.0], [1], [1]]), (MUL, np.nan)])
def test_factors_that_are_no_numbers_to_scale_by(op: Operation, number: Any) -> None:
    x = np.array([[2, -1, 0.5, 3]] * 3, np.float32)
    assert "are not all finite and other than 0" in stays(of_constant(REDUCE_SUM, op, number), x=x)


@pytest.mark.parametrize("op", [ADD, SUB, MUL])
def test_what_reduces_no_axis_saves_nothing(op: Operation) -> None:
    for reduction in (REDUCE_L1, REDUCE_MEAN, REDUCE_MAX):
        b = Building()
        inner = b(op, b.input("x", (3, 4)), b.constant(2))
        stays(b.done(b.graph.add(reduction, [inner], ReduceAttributes(axes=(), keepdims=True)).result))


def test_a_constant_that_keeps_its_axes_is_not_made_again() -> None:
    b = Building()
    bias = b.constant(np.arange(3).reshape(3, 1))
    made = bias.producer
    graph = b.done(b(REDUCE_MAX, b(ADD, b.input("x", (3, 4)), bias), axes=[1]))
    check_numbers(PASS, graph)
    assert names(graph) == ["reduce_max", "add"]
    assert made is not None and made.graph is graph


@pytest.mark.parametrize(("op_type", "moves"), [("Conv", False), ("LRN", True)])
def test_what_a_convolution_takes_with_it_stays(op_type: str, moves: bool) -> None:
    inner = node("Conv", ["x", "w"], ["c"]) if op_type == "Conv" else node(op_type, ["x"], ["c"], size=1)
    nodes = [inner, node("Relu", ["c"], ["r"]), node("ReduceMax", ["r"], ["y"], axes=[2, 3])]
    weights = {"w": np.ones((2, 2, 1, 1), np.float32)} if op_type == "Conv" else {}
    program = dmlc.compile(model(nodes, (1, 2, 40, 50), **weights))
    assert ("rising-after-extreme" in {entry.rule for entry in program.ledger}) is moves
    assert moves or any("computed together with the Conv" in r.reason() for r in program.remarks)
