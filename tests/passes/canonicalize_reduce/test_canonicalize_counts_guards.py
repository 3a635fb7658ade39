"""Counts, ranges and axes that rules of reductions ask for: each test fails where one guard of theirs is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from pass_helpers import ALL, Building, check_numbers, context, ledger, remarks

from dmlc.ir import DType, Value, symbol
from dmlc.ir.dtype import bool_, f32, i32
from dmlc.ops.binary import ADD, DIV, MUL
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import RECIPROCAL, SQRT
from dmlc.ops.index import IOTA
from dmlc.ops.move import EXPAND, RESHAPE, SLICE, TRANSPOSE
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_PROD,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
)
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from dmlc.passes.manager import PassContext
from dmlc.passes.recognize_reduce import RecognizeReduce
from dmlc.targets import load_target

Made = Callable[[Building, Value], Value]
INF = float("inf")


def done(
    made: Made, shape: Any = (3, 4), dtype: DType = f32, *, step: Any = None, target: str = "directml", **options: Any
) -> tuple[set[str], PassContext]:
    b = Building(n=(4, INF))
    graph = b.done(made(b, b.input("x", shape, dtype)))
    ctx = context(target, options.pop("allowed", ALL), **options)
    with np.errstate(all="ignore"):
        check_numbers(step or CanonicalizeReduce(), graph, ctx, exact=False, binding={"n": 5})
    return {rule for rule, _ in ledger(ctx)}, ctx


def over_none(b: Building, op: Any, x: Value) -> Value:
    return b.graph.add(op, [x], ReduceAttributes(axes=(), keepdims=True)).result


def twice(b: Building, x: Value, op: Any = REDUCE_SUM) -> Value:
    return b(op, b(op, x, axes=[1], keepdims=False), axes=[0], keepdims=False)


EXACT: dict[str, Any] = {"target": "cpu", "allowed": ("exact",)}


def test_integers_of_which_no_product_is_large() -> None:
    merged = done(lambda b, x: twice(b, b(CAST, x, to=i32), REDUCE_PROD), (30, 40), bool_, **EXACT)[0]
    assert "merge-nested-reductions" in merged
    assert "merge-nested-reductions" not in done(lambda b, x: twice(b, x, REDUCE_PROD), (30, 40), i32, **EXACT)[0]


def test_constants_without_elements_and_counts_without_a_bound() -> None:
    none: Made = lambda b, x: b(ADD, x, twice(b, b.constant(np.zeros((2, 0)), i32)))  # noqa: E731
    assert "merge-nested-reductions" in done(none, (3,), i32, **EXACT)[0]

    def few(b: Building, x: Value) -> Value:
        numbers = b(SLICE, b(IOTA, length=symbol("n"), dtype=i32), starts=[0], ends=[4])
        return b(ADD, b(REDUCE_MAX, x, axes=[0]), twice(b, b(RESHAPE, numbers, shape=[2, 2])))

    assert "merge-nested-reductions" not in done(few, ("n",), i32, **EXACT)[0]
    squares: Made = lambda b, x: b(REDUCE_SUM, b(MUL, x, x), axes=[0])  # noqa: E731
    assert not done(squares, ("n",), i32, step=RecognizeReduce(), **EXACT)[0]


@pytest.mark.parametrize(("number", "fires"), [(1 / 3, True), (0.3, False)])
def test_a_factor_that_is_nearly_one_over_the_count(number: float, fires: bool) -> None:
    made: Made = lambda b, x: b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant(number))  # noqa: E731
    assert ("mean-from-sum" in done(made, (4, 3), step=RecognizeReduce())[0]) is fires


@pytest.mark.parametrize(("count", "fires"), [(4.0, True), ([[[4.0]]], False)])
def test_a_mean_times_a_count_of_more_axes(count: Any, fires: bool) -> None:
    made: Made = lambda b, x: b(MUL, b(REDUCE_MEAN, x, axes=[1]), b.constant(count))  # noqa: E731
    assert ("sum-from-mean" in done(made, step=RecognizeReduce())[0]) is fires


def test_an_inverse_root_over_no_axis() -> None:
    made: Made = lambda b, x: b(MUL, x, b(RECIPROCAL, b(SQRT, over_none(b, REDUCE_SUM_SQUARE, x))))  # noqa: E731
    assert "divide-by-norm" not in done(made, step=RecognizeReduce())[0]


def test_integers_over_their_norm() -> None:
    made: Made = lambda b, x: b(DIV, x, b(ADD, b(REDUCE_L1, x, axes=[1]), b.constant(1, i32)))  # noqa: E731
    assert not done(made, dtype=i32, step=RecognizeReduce())[0]
    assert not done(
        lambda b, x: b(DIV, x, b(REDUCE_L1, x, axes=[1])), dtype=i32, step=RecognizeReduce(), target="numpy"
    )[0]


# --- moves before reductions


def only(rule: str, made: Made, shape: Any = (3, 4)) -> tuple[set[str], list[str]]:
    rules, ctx = done(made, shape, only_rules=frozenset((rule,)))
    return rules, remarks(ctx)


def test_moves_before_what_is_no_reduction() -> None:
    flatten: Made = lambda b, x: b(REDUCE_L1, b(RESHAPE, x, shape=[12, 1]), axes=[1])  # noqa: E731
    assert only("drop-flatten-before-reduction", flatten) == (set(), [])
    moved: Made = lambda b, x: over_none(b, REDUCE_L1, b(TRANSPOSE, x, perm=[1, 0]))  # noqa: E731
    assert only("drop-transpose-before-reduction", moved, (1, 4)) == (set(), [])
    between: Made = lambda b, x: over_none(  # noqa: E731
        b, REDUCE_SUM, b(TRANSPOSE, b(REDUCE_SUM, x, axes=[2], keepdims=False), perm=[1, 0])
    )
    assert only("sink-transpose-between-reductions", between, (3, 4, 5)) == (set(), [])


def test_what_is_broadcast_elsewhere_is_no_reason() -> None:
    broadcast: Made = lambda b, x: b(REDUCE_MAX, b(EXPAND, x, shape=[4, 3]), axes=[0])  # noqa: E731
    assert only("reduction-of-expand", broadcast, (4, 1)) == (set(), [])


def test_axes_of_one_element_go_with_either_neighbour() -> None:
    shape = (2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3)
    b = Building()
    graph = b.done(b(REDUCE_SUM, b.input("x", shape), axes=[0, 2, 4, 6, 8]))
    target = replace(load_target("directml"), max_rank=4)
    ctx = context(target, allowed=ALL, skip_rules=frozenset(("drop-unit-axes",)))
    check_numbers(CanonicalizeReduce(), graph, ctx, exact=False)
    assert all(n.operand(0).type.rank <= 4 for n in graph if n.op is REDUCE_SUM)
