"""Near misses of ``fuse-softmax``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, model, node
from pass_helpers import ALL, Building, check_numbers, context, ledger, names, run

from dmlc.ir import DType, Graph, Operation, Value
from dmlc.ir.dtype import bool_, f16, f32, f64, i32
from dmlc.ops.binary import ADD, AND, DIV, GREATER, LESS, LESS_EQUAL, MAX, OR, SUB
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.elementwise import EXP, IS_INF, IS_NAN, LOG, NOT, TANH
from dmlc.ops.move import EXPAND, RESHAPE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_SUM, ReduceAttributes
from dmlc.ops.select import TOP_K
from dmlc.passes.fuse_softmax import FuseSoftmax
from dmlc.passes.manager import Pass
from dmlc.passes.recognize_reduce import RecognizeReduce
from tests.rows import each_row

Step = Callable[[Building, Value], Value]


def same(b: Building, value: Value) -> Value:
    return value


def fires(graph: Graph, step: Pass | None = None, target: str = "onnx", **feeds: Any) -> set[str]:
    """The rules of the pass that do; the numbers stay in any case."""
    with np.errstate(all="ignore"):
        ctx = check_numbers(step or FuseSoftmax(), graph, context(target, ALL), exact=False, feeds=feeds or None)
    return {rule for rule, _ in ledger(ctx)}


def written(
    before: Step = same,
    peak: Step = same,
    total: Step = same,
    *,
    shape: Any = (3, 4),
    axes: Any = (1,),
    dtype: DType = f32,
    keepdims: bool = True,
) -> Graph:
    """exp(x - peak(max)) over total(sum), both of what ``before`` makes of their operand."""
    b = Building()
    x = b.input("x", shape, dtype)
    m = peak(b, b(REDUCE_MAX, before(b, x), axes=list(axes), keepdims=keepdims))
    e = b(EXP, b(SUB, x, m))
    return b.done(b(DIV, e, total(b, b(REDUCE_SUM, before(b, e), axes=list(axes), keepdims=keepdims))))


def to(dtype: DType) -> Step:
    return lambda b, v: b(CAST, v, to=dtype)


def there_and_back(dtype: DType, home: DType = f32) -> Step:
    return lambda b, v: b(CAST, b(CAST, v, to=dtype), to=home)


def test_it_is_one_as_it_stands() -> None:
    assert fires(written())
    assert fires(written(to(f32), to(f16), to(f16), dtype=f16))  # reduced in a wider type


def test_a_softmax_of_a_wider_value() -> None:
    b = Building()
    x = b(CAST, b.input("x", (3, 4), f16), to=f32)
    e = b(EXP, b(SUB, x, b(REDUCE_MAX, x, axes=[1])))
    graph = b.done(b(DIV, e, b(REDUCE_SUM, e, axes=[1])))
    assert fires(graph)
    assert names(graph) == ["cast", "softmax"]


@pytest.mark.parametrize("narrow", [f16, i32])
def test_casts_that_round_on_the_way(narrow: DType) -> None:
    assert not fires(written(total=there_and_back(narrow)))
    assert not fires(written(there_and_back(narrow) if narrow is f16 else to(narrow), to(f32), to(f32)))


def test_a_cast_to_a_narrower_float_before_the_sum() -> None:
    assert not fires(written(to(f16), to(f32), to(f32)))


def test_reductions_over_no_axis() -> None:
    b = Building()
    e = b(EXP, b.input("x", (3, 4)))
    total = b.graph.add(REDUCE_SUM, [e], ReduceAttributes(axes=(), keepdims=True)).result
    assert not fires(b.done(b(DIV, e, total)))
    b = Building()
    x = b.input("x", (3, 4))
    total = b.graph.add(REDUCE_LOG_SUM_EXP, [x], ReduceAttributes(axes=(), keepdims=True)).result
    assert not fires(b.done(b(SUB, x, total)))


def test_a_sum_that_is_bounded_or_broadcast() -> None:
    assert not fires(written(total=lambda b, v: b(MAX, v, b.constant(5))))
    wide = np.full((1, 1, 1), -np.inf)
    assert not fires(written(total=lambda b, v: b(MAX, v, b.constant(wide))))
    assert not fires(
        written(total=lambda b, v: b(WHERE, b(IS_INF, v), b.constant(np.zeros((1, 1, 1))), v)),
    )


@pytest.mark.parametrize(
    ("bounds", "same"),
    [
        ({"min": float(np.finfo(np.float32).min), "max": float(np.finfo(np.float32).max)}, True),
        ({"min": float(np.finfo(np.float32).min)}, True),
        ({"max": float(np.finfo(np.float32).max)}, True),
        ({"min": 5.0}, False),
        ({"max": 0.5}, False),
    ],
)
def test_a_sum_that_is_clipped(bounds: dict[str, float], same: bool) -> None:
    assert bool(fires(written(total=lambda b, v: b(CLIP, v, **bounds)))) == same


@pytest.mark.parametrize("bound", [lambda b, v: b(MAX, v, b.constant(3, i32)), lambda b, v: b(CLIP, v, min=3)])
def test_a_difference_from_bounded_integers(bound: Step) -> None:
    b = Building()
    assert not fires(b.done(b(SUB, b.input("x", (3, 4), i32), bound(b, b.input("z", (3, 4), i32)))))


def test_reductions_that_stand_elsewhere() -> None:
    assert not fires(written(shape=(4, 4), keepdims=False))
    assert not fires(written(lambda b, v: b(TRANSPOSE, v, perm=[1, 0]), shape=(4, 4), axes=(0,), keepdims=False))
    halves: Step = lambda b, v: b(RESHAPE, b(EXPAND, v, shape=[2, 2, 1]), shape=[1, 1, 4])  # noqa: E731
    assert not fires(written(total=halves, shape=(2, 2, 4), axes=(1, 2)))
    dropped: Step = lambda b, v: b(EXPAND, v, shape=[4, 4])  # noqa: E731
    assert not fires(written(total=dropped, peak=dropped, shape=(4, 4), keepdims=False))
    assert fires(written(total=lambda b, v: b(EXPAND, v, shape=[3, 4])))
    b = Building()
    x = b.input("x", (4, 4))
    e = b(EXP, x)
    assert not fires(b.done(b(SUB, x, b(LOG, b(REDUCE_SUM, e, axes=[1], keepdims=False)))))


# --- guards against infinity


def guarded(condition: Step, *, kept: bool = True) -> Graph:
    def total(b: Building, v: Value) -> Value:
        zero = b.constant(0)
        return b(WHERE, condition(b, v), v, zero) if kept else b(WHERE, condition(b, v), zero, v)

    return written(total=total)


def bound(op: Operation, number: float) -> Step:
    return lambda b, v: b(op, v, b.constant(number))


def both(op: Operation, *steps: Step) -> Step:
    def made(b: Building, v: Value) -> Value:
        first, second = (step(b, v) for step in steps)
        return b(op, first, second)

    return made


def no(step: Step) -> Step:
    return lambda b, v: b(NOT, step(b, v))


def of(op: Operation) -> Step:
    return lambda b, v: b(op, v)


def another(b: Building, v: Value) -> Value:
    return b.input("z", (3, 1))


def flags(b: Building, v: Value) -> Value:
    return b.input("mask", (3, 1), bool_)


@pytest.mark.parametrize(
    "condition",
    [
        no(of(IS_INF)),
        bound(LESS, np.inf),
        both(AND, no(of(IS_INF)), no(of(IS_NAN))),
        no(both(OR, of(IS_INF), of(IS_NAN))),
        bound(GREATER, -np.inf),
    ],
)
def test_guards_that_change_no_finite_number(condition: Step) -> None:
    assert fires(guarded(condition))
    assert fires(guarded(no(condition), kept=False))
    assert not fires(guarded(condition, kept=False))


@each_row(
    "condition",
    [
        bound(LESS, 2),
        bound(LESS_EQUAL, np.inf),
        both(AND, no(of(IS_INF)), flags),
        both(OR, of(IS_INF), flags),
        lambda b, v: b(NOT, b(IS_INF, another(b, v))),
        lambda b, v: b(LESS, another(b, v), b.constant(np.inf)),
    ],
)
@each_row("kept", [True, False])
def test_guards_that_may_change_one(condition: Step, kept: bool) -> None:
    feeds = {
        "x": np.array([[0, 1, 2, 3], [9, 0, -9, 1], [1, 1, 1, 1]], np.float32),
        "z": np.array([[0], [np.inf], [1]], np.float32),
        "mask": np.array([[True], [False], [True]]),
    }
    assert not fires(guarded(condition, kept=kept), **feeds)


def test_a_guard_that_never_holds() -> None:
    assert not fires(guarded(bound(GREATER, np.inf)))
    assert fires(guarded(bound(GREATER, np.inf), kept=False))


def test_a_guard_of_many_steps_is_not_followed() -> None:
    b = Building()
    x = b.input("x", (3, 4))
    e = b(EXP, x)
    total = b(REDUCE_SUM, e, axes=[1])
    flag = b(IS_INF, total)
    for _ in range(2001):
        flag = b(NOT, flag)
    assert not fires(b.done(b(DIV, e, b(WHERE, flag, total, b.constant(0)))))


def test_what_makes_the_guarded_value_is_used_elsewhere() -> None:
    b = Building()
    x = b(TANH, b.input("x", (3, 4)))
    m = b(REDUCE_MAX, x, axes=[1])
    finite = b(WHERE, b(NOT, b(IS_INF, m)), m, b.constant(0))
    e = b(EXP, b(SUB, x, finite))
    assert fires(b.done(b(DIV, e, b(REDUCE_SUM, e, axes=[1])), x))


# --- logarithms


def less(made: Step, shape: Any = (3, 4)) -> Graph:
    b = Building()
    x = b(ADD, b.input("x", shape), b.constant(0.5))
    return b.done(b(SUB, x, made(b, x)))


def total_of(b: Building, x: Value) -> Value:
    return b(REDUCE_SUM, b(EXP, x), axes=[1])


def test_as_many_logarithms_as_there_must_be() -> None:
    assert fires(less(lambda b, x: b(LOG, total_of(b, x))))
    assert not fires(less(total_of))
    assert not fires(less(lambda b, x: b(LOG, b(LOG, total_of(b, x)))))
    assert not fires(less(lambda b, x: b(LOG, b(REDUCE_LOG_SUM, b(EXP, x), axes=[1]))))


def test_what_has_two_results_is_no_logarithm() -> None:
    assert not fires(less(lambda b, x: b.node(TOP_K, x, k=1, axis=1)[0]))


def test_powers_of_another_value() -> None:
    b = Building()
    x, z = b.input("x", (3, 4)), b.input("z", (3, 4))
    assert not fires(b.done(b(SUB, x, b(LOG, b(REDUCE_SUM, b(EXP, z), axes=[1])))))


def shifted(b: Building, x: Value, first: Any = (1,), then: Any = (1,), again: Any = (1,)) -> Value:
    d = b(SUB, x, b(REDUCE_MAX, x, axes=list(first)))
    return b(ADD, b(LOG, b(REDUCE_SUM, b(EXP, d), axes=list(then))), b(REDUCE_MAX, x, axes=list(again)))


def test_what_is_added_back_is_what_was_taken_out() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4) * 3
    assert fires(less(shifted), x=x)
    wide = np.arange(9, dtype=np.float32).reshape(3, 3) * 3
    for axes in (((0, 1), (1,), (1,)), ((1,), (1,), (0, 1)), ((0,), (1,), (0,))):
        assert not fires(less(lambda b, v, axes=axes: shifted(b, v, *axes), (3, 3)), x=wide)


def recognized(made: Step, shape: Any = (3, 4), dtype: DType = f32) -> set[str]:
    """The rules that find one, for NumPy, which has it at no cost."""
    b = Building()
    return fires(b.done(made(b, b.input("x", shape, dtype))), RecognizeReduce(), "numpy")


def test_what_is_and_what_is_no_log_sum_exp() -> None:
    assert recognized(lambda b, x: b(LOG, total_of(b, x)))
    assert recognized(lambda b, x: b(LOG, b(MAX, total_of(b, x), b.constant(np.full((1, 1, 1), -np.inf)))))
    assert not recognized(lambda b, x: b(LOG, b(EXPAND, total_of(b, x), shape=[3, 4])))
    assert not recognized(
        lambda b, x: b(LOG, b(CAST, b(REDUCE_SUM, b(CAST, b(EXP, x), to=f32), axes=[1]), to=f64)), dtype=f16
    )
    assert not recognized(
        lambda b, x: b(
            LOG, b.graph.add(REDUCE_SUM, [b(EXP, x)], ReduceAttributes(axes=(), keepdims=True)).result
        )
    )  # fmt: skip

    def broadcast(b: Building, x: Value) -> Value:
        total = total_of(b, x)
        finite = b(OR, b(NOT, b(IS_INF, total)), b.input("mask", (3, 4), bool_))
        return b(LOG, b(WHERE, finite, total, b.constant(0)))

    assert not recognized(broadcast)


def test_a_shifted_log_sum_exp_that_is_broadcast() -> None:
    def made(b: Building, x: Value, *, by: Step = same, added: Step = same, last: Step = same) -> Value:
        m = b(REDUCE_MAX, x, axes=[1])
        logarithm = b(LOG, b(REDUCE_SUM, b(EXP, b(SUB, x, by(b, m))), axes=[1]))
        return b(ADD, last(b, logarithm), added(b, m))

    rows: Step = lambda b, v: b(EXPAND, v, shape=[3, 1])  # noqa: E731
    wide: Step = lambda b, v: b(EXPAND, v, shape=[3, 4])  # noqa: E731
    rule = "shifted-log-sum-exp"
    assert rule in recognized(made)
    for more in ({"by": rows}, {"by": rows, "added": rows}, {"added": rows}, {"last": rows, "added": rows}):
        assert rule not in recognized(lambda b, x, more=more: made(b, x, **more), (1, 4))
    assert rule not in recognized(lambda b, x: made(b, x, last=wide, added=wide))
    assert rule not in recognized(lambda b, x: made(b, x, added=wide))


# --- how many nodes it takes


def test_axes_that_are_no_neighbours_take_as_many_nodes() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    e = b(EXP, x)
    total = b(REDUCE_SUM, e, axes=[0, 2])
    assert not fires(b.done(b(DIV, e, total)))
    b = Building()
    x = b.input("x", (2, 3, 4))
    assert not fires(b.done(b(SUB, x, b(LOG, b(REDUCE_SUM, b(EXP, x), axes=[0, 2])))))


def test_a_logarithm_of_doubles_that_a_model_has_is_kept() -> None:
    nodes = [node("ReduceMax", ["x"], ["m"], axes=[1]), node("Sub", ["x", "m"], ["d"]),
             node("LogSoftmax", ["d"], ["y"], axis=1)]  # fmt: skip
    check(model(nodes, dtype=onnx.TensorProto.DOUBLE), [n.op_type for n in nodes], target="onnx")


# --- between moves


@pytest.mark.parametrize("op", [SOFTMAX, LOG_SOFTMAX])
def test_groups_that_are_no_neighbours_of_the_reshaped(op: Operation) -> None:
    b = Building()
    inner = b(RESHAPE, b.input("x", (6, 4)), shape=[2, 3, 4])
    assert not fires(b.done(b(RESHAPE, b(op, inner, axes=[0, 2]), shape=[6, 4])))
    b = Building()
    x = b(SOFTMAX, b(UNSQUEEZE, b.input("x", (6, 4)), axes=[0]), axes=[0, 2])
    assert not fires(b.done(b(RESHAPE, x, shape=[6, 4])))


def test_a_softmax_over_no_axis_has_no_groups() -> None:
    b = Building()
    inner = b(RESHAPE, b.input("x", (6, 4)), shape=[2, 3, 4])
    middle = b.graph.add(SOFTMAX, [inner], SoftmaxAttributes(axes=())).result
    graph = b.done(b(RESHAPE, middle, shape=[6, 4]))
    run(FuseSoftmax(), graph, context("onnx", ALL))
    assert names(graph) == ["reshape", "softmax", "reshape"]


# --- where it stands


def test_what_broadcasts_the_values_is_no_softmax_of_them() -> None:
    b = Building()
    x = b.input("x", (1, 4))
    e = b(EXP, x)
    total = b(EXPAND, b(REDUCE_SUM, e, axes=[1]), shape=[3, 1])
    assert not fires(b.done(b(DIV, e, total)))
    assert not fires(written(peak=lambda b, v: b(EXPAND, v, shape=[3, 1]), shape=(1, 4)))
