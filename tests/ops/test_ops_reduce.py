"""The reductions against Python sums, over dtypes, ranks, axes and keepdims."""

from __future__ import annotations

import math

import numpy as np
from ops_calls import code_of, run, types_of

from dmlc.ops import OPERATIONS
from dmlc.ops.reduce import REDUCTIONS, ReduceAttributes
from tests.rows import each_row
from tools.oracles import core
from tools.oracles import groups as oracle

FLOAT_ONLY = ("reduce_l2", "reduce_log_sum", "reduce_log_sum_exp")
SHAPES = [((4,), [0]), ((2, 3), [1]), ((3, 2), [0, 1]), ((2, 1, 3), [1]), ((2, 3, 1, 2), [0, 3])]


def dtypes_of(name: str) -> tuple[str, ...]:
    if name in FLOAT_ONLY:
        return core.FLOATS
    return core.ALL if name in ("reduce_max", "reduce_min") else core.NUMERIC


def test_every_reduction_is_here() -> None:
    declared = {name for name in OPERATIONS if name.startswith("reduce_")} - {"reduce_any", "reduce_all"}
    assert {op.name for op in REDUCTIONS} == set(oracle.REDUCE) == declared


@each_row("name", oracle.REDUCE)
def test_reference(name: str) -> None:
    for dtype in dtypes_of(name):
        for seed, (shape, axes) in enumerate(SHAPES):
            x = core.sample(dtype, shape, seed, full=name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_l1"))
            expected = oracle.reduce(name, x, axes, dtype)
            core.same(run(OPERATIONS[name], x, axes=axes), expected, times=8)
            dropped = run(OPERATIONS[name], x, axes=[a - len(shape) for a in axes], keepdims=False)
            core.same(dropped, expected.reshape(dropped.shape), times=8)


@each_row("name", oracle.REDUCE)
def test_all_axes_is_the_default(name: str) -> None:
    x = core.sample("f32", (2, 3, 2), 5)
    core.same(run(OPERATIONS[name], x), oracle.reduce(name, x, [0, 1, 2], "f32"), times=8)


@each_row("name", oracle.REDUCE)
def test_scalar_is_the_elementwise_part(name: str) -> None:
    """As is the graph's empty list of axes, which a program cannot write."""
    for dtype in dtypes_of(name):
        x = core.sample(dtype, (), 3)
        core.same(run(OPERATIONS[name], x), oracle.reduce(name, x, [], dtype))
    x = core.sample("f32", (2, 3), 4)
    reference = OPERATIONS[name].reference
    assert reference is not None
    core.same(reference(ReduceAttributes(axes=(), keepdims=True), x), oracle.reduce(name, x, [], "f32"))


@each_row("name", oracle.REDUCE)
def test_other_dtypes_are_refused(name: str) -> None:
    for dtype in core.ALL:
        assert code_of(OPERATIONS[name], f"{dtype}[2]") == ("" if dtype in dtypes_of(name) else "E0309")


@each_row("name", oracle.REDUCE)
def test_empty(name: str) -> None:
    for dtype in dtypes_of(name):
        x = np.zeros((2, 0), core.NUMPY[dtype])
        if name == "reduce_mean" and dtype in core.INTEGERS:
            assert code_of(OPERATIONS[name], x, axes=1) == "E0315"
            assert code_of(OPERATIONS[name], f"{dtype}[N]", axes=0, dims={"N": (0, 4)}) == "E0315"
            assert code_of(OPERATIONS[name], x, axes=0) == ""
            continue
        core.same(run(OPERATIONS[name], x, axes=1), oracle.reduce(name, x, [1], dtype))
        assert code_of(OPERATIONS[name], f"{dtype}[N]", axes=0, dims={"N": (0, 4)}) == ""


@each_row("name", oracle.REDUCE)
def test_axes_errors(name: str) -> None:
    op = OPERATIONS[name]
    assert code_of(op, "f32[2, 3]", axes=2) == "E0301"
    assert code_of(op, "f32[2, 3]", axes=[0, 0]) == "E0302"
    assert code_of(op, "f32[2, 3]", axes=[]) == "E0303"
    assert code_of(op, "f32[2, 3]", keepdims=1) == "E0304"
    assert types_of(op, "f32[2, N]", axes=0) == ["f32[1, N]"]
    assert types_of(op, "f32[2, N]", axes=0, keepdims=False) == ["f32[N]"]


@each_row("dtype", core.INTEGERS)
def test_integer_sums_and_products_wrap(dtype: str) -> None:
    info = np.iinfo(core.NUMPY[dtype])
    x = np.array([[info.max, info.max, 3], [info.min, 1, 2]], core.NUMPY[dtype])
    for name in ("reduce_sum", "reduce_prod", "reduce_sum_square", "reduce_l1", "reduce_mean"):
        core.same(run(OPERATIONS[name], x, axes=1), oracle.reduce(name, x, [1], dtype))


def test_integer_mean_truncates_toward_zero() -> None:
    x = np.array([[-1, -2, -2], [1, 2, 2]], np.int32)
    assert run(OPERATIONS["reduce_mean"], x, axes=1).tolist() == [[-1], [1]]


def test_l1_of_the_lowest_wraps() -> None:
    x = np.array([-(2**31), 5], np.int32)
    assert run(OPERATIONS["reduce_l1"], x).tolist() == [-(2**31) + 5]


def test_f16_accumulates_in_f32() -> None:
    assert run(OPERATIONS["reduce_sum"], np.ones(4096, np.float16)).item() == 4096
    assert run(OPERATIONS["reduce_mean"], np.full(3000, 100, np.float16)).item() == 100
    assert run(OPERATIONS["reduce_l2"], np.full(8, 300, np.float16)).item() == np.float16(math.sqrt(8) * 300)
    assert run(OPERATIONS["reduce_sum"], np.full(4, 60000, np.float16)).item() == math.inf


def test_log_sum_exp_does_not_overflow() -> None:
    x = np.array([[1000, 1000], [-2000, -2000], [-math.inf, -math.inf], [math.inf, 0]], np.float32)
    expected = np.array([1000 + math.log(2), -2000 + math.log(2), -math.inf, math.inf], np.float32)
    np.testing.assert_allclose(run(OPERATIONS["reduce_log_sum_exp"], x, axes=1, keepdims=False), expected, rtol=1e-6)


def test_nan() -> None:
    x = np.array([1, math.nan, 3], np.float32)
    for name in oracle.REDUCE:
        assert math.isnan(run(OPERATIONS[name], x).item()), name


def test_bool_extremes_are_any_and_all() -> None:
    x = np.array([[True, False], [True, True], [False, False]])
    assert run(OPERATIONS["reduce_max"], x, axes=1, keepdims=False).tolist() == [True, True, False]
    assert run(OPERATIONS["reduce_min"], x, axes=1, keepdims=False).tolist() == [False, True, False]
