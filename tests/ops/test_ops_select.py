"""argmax, argmin, top_k, hardmax against element-by-element oracles, ranks 1 to 8, every dtype and tie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_calls import code_of, conditions_of, run, types_of

from dmlc.ops import OPERATIONS
from tests.rows import each_row
from tools.oracles import core
from tools.oracles import groups as oracle

ARGS = ("argmax", "argmin")
#: Rank 1 to 8, with axes of size 1.
SHAPES = [
    (5,),
    (3, 4),
    (2, 1, 4),
    (2, 3, 1, 2),
    (1, 2, 3, 1, 2),
    (2, 1, 2, 1, 3, 1),
    (1,) * 7,
    (2, 1, 2, 1, 2, 1, 2, 2),
]


def axes_of(rank: int, seed: int) -> list[list[int]]:
    """Some sets of axes: single ones, all, and a random one."""
    rng = np.random.default_rng([seed, rank])
    some = sorted(rng.permutation(rank)[: rng.integers(1, rank + 1)].tolist())
    return [[0], [rank - 1], list(range(rank)), some]


@each_row("name", ARGS)
@each_row("shape", SHAPES, ids=lambda s: f"rank{len(s)}")
def test_arg_over_ranks_and_axes(name: str, shape: tuple[int, ...]) -> None:
    x = core.sample("f32", shape)
    for axes in axes_of(len(shape), 1):
        for ties in ("first", "last"):
            expected = oracle.arg(x, axes, largest=name == "argmax", last=ties == "last", dtype="u32")
            core.same(run(OPERATIONS[name], x, axes=axes, ties=ties), expected)
            negative = [a - len(shape) for a in reversed(axes)]
            dropped = run(OPERATIONS[name], x, axes=negative, ties=ties, keepdims=False)
            core.same(dropped, expected.reshape(dropped.shape))
            assert dropped.ndim == len(shape) - len(axes)


@each_row("name", ARGS)
@each_row("dtype", core.NUMERIC)
def test_arg_over_dtypes(name: str, dtype: str) -> None:
    x = core.sample(dtype, (3, 4, 2))
    x[0, 1, 1] = x.max()
    for index in core.INDEX:
        expected = oracle.arg(x, [0, 2], largest=name == "argmax", last=False, dtype=index)
        core.same(run(OPERATIONS[name], x, axes=[0, 2], dtype=index), expected)


def test_axis_direction_is_an_exact_synonym() -> None:
    x = core.sample("i8", (3, 4))
    for name in ARGS:
        for direction, ties in (("increasing", "first"), ("decreasing", "last")):
            np.testing.assert_array_equal(
                run(OPERATIONS[name], x, axis_direction=direction), run(OPERATIONS[name], x, ties=ties)
            )
        assert code_of(OPERATIONS[name], x, ties="first", axis_direction="increasing") == "E0307"
        assert code_of(OPERATIONS[name], x, axis_direction="first") == "E0304"
    for direction, order in (("increasing", "smallest"), ("decreasing", "largest")):
        for a, b in zip(
            run(OPERATIONS["top_k"], x, k=3, axis_direction=direction),
            run(OPERATIONS["top_k"], x, k=3, order=order),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
    assert code_of(OPERATIONS["top_k"], x, k=1, order="largest", axis_direction="decreasing") == "E0307"


def test_defaults() -> None:
    assert types_of(OPERATIONS["argmax"], "f32[N, 3]") == ["u32[1, 1]"]
    assert types_of(OPERATIONS["argmin"], "f16[2, 3]", keepdims=False) == ["u32[]"]
    assert types_of(OPERATIONS["top_k"], "f32[4, 3]", k=2) == ["f32[4, 2]", "u32[4, 2]"]
    assert types_of(OPERATIONS["hardmax"], "f32[N, 3]") == ["f32[N, 3]"]


@each_row("shape", SHAPES, ids=lambda s: f"rank{len(s)}")
def test_top_k_over_ranks_and_axes(shape: tuple[int, ...]) -> None:
    x = core.sample("f32", shape)
    for axis in range(len(shape)):
        for order in ("largest", "smallest"):
            for k in {1, shape[axis]}:
                expected = oracle.top_k(x, k, axis, largest=order == "largest", name="f32", index="u32")
                for a, b in zip(run(OPERATIONS["top_k"], x, k=k, axis=axis, order=order), expected, strict=True):
                    core.same(a, b)


@each_row("dtype", core.NUMERIC)
def test_top_k_over_dtypes(dtype: str) -> None:
    x = core.sample(dtype, (4, 6), full=True)
    x[1, :] = x[1, 0]
    for index in core.INDEX:
        for order in ("largest", "smallest"):
            expected = oracle.top_k(x, 4, 1, largest=order == "largest", name=dtype, index=index)
            for a, b in zip(run(OPERATIONS["top_k"], x, k=4, order=order, dtype=index), expected, strict=True):
                core.same(a, b)


@each_row("shape", SHAPES, ids=lambda s: f"rank{len(s)}")
def test_hardmax_over_ranks_and_axes(shape: tuple[int, ...]) -> None:
    for dtype in core.FLOATS:
        x = core.sample(dtype, shape)
        for axes in axes_of(len(shape), 2):
            core.same(run(OPERATIONS["hardmax"], x, axes=axes), oracle.hardmax(x, axes, dtype))


@settings(max_examples=40)
@given(st.data())
def test_properties(data: st.DataObject) -> None:
    """The index points at an extreme element, top_k is sorted and starts with argmax's choice, hardmax sums to 1."""
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    x = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    x = x.reshape(shape).astype(np.float32)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    index = run(OPERATIONS["argmax"], x, axes=axis)
    np.testing.assert_array_equal(
        np.take_along_axis(x, index.astype(np.int64), axis % len(shape)), x.max(axis, keepdims=True)
    )
    values, places = run(OPERATIONS["top_k"], x, k=x.shape[axis], axis=axis)
    assert (np.diff(values, axis=axis) <= 0).all()
    np.testing.assert_array_equal(np.take(places, [0], axis), index)
    np.testing.assert_array_equal(np.sort(places, axis=axis), np.sort(np.argsort(x, axis=axis), axis=axis))
    assert (run(OPERATIONS["hardmax"], x, axes=axis).sum(axis) == 1).all()


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0]])
def test_minus_zero_equals_zero(zeros: list[float]) -> None:
    x = np.array(zeros, np.float32)
    assert run(OPERATIONS["argmax"], x).item() == 0
    assert run(OPERATIONS["argmin"], x, ties="last").item() == 1
    for order in ("largest", "smallest"):
        assert run(OPERATIONS["top_k"], x, k=2, order=order)[1].tolist() == [0, 1]


def test_nan_keeps_indices_in_range_and_hardmax_single() -> None:
    x = np.array([[np.nan, 1, 2], [1, np.nan, 2], [np.nan] * 3], np.float32)
    for ties in ("first", "last"):
        for name in ARGS:
            assert (run(OPERATIONS[name], x, axes=1, ties=ties) < 3).all()
    assert (np.sort(run(OPERATIONS["top_k"], x, k=3)[1]) == [0, 1, 2]).all()
    assert (run(OPERATIONS["hardmax"], x).sum(-1) == 1).all()


# --- good and bad calls


@pytest.mark.parametrize("name", [*ARGS, "hardmax"])
def test_axes_errors(name: str) -> None:
    op = OPERATIONS[name]
    assert code_of(op, "f32[2, 3]", axes=[0, -1]) == ""
    assert code_of(op, "f32[2, 3]", axes=[0, 2]) == "E0301"
    assert code_of(op, "f32[2, 3]", axes=-3) == "E0301"
    assert code_of(op, "f32[2, 3]", axes=[1, -1]) == "E0302"
    assert code_of(op, "f32[2, 3]", axes=[]) == "E0303"
    assert code_of(op, "f32[2, 3]", axes=1.0) == "E0304"
    assert code_of(op, "f32[2, 3]", axes=True) == "E0304"
    assert code_of(op, "f32[2, 3]", axis=1) == "E0305"


@pytest.mark.parametrize("name", [*ARGS, "hardmax", "top_k"])
def test_scalars_and_empty_axes(name: str) -> None:
    op, extra = OPERATIONS[name], {"k": 1} if name == "top_k" else {}
    scalar = code_of(op, "f32[]", **extra)
    assert scalar in ("E0314", "E0301") if name in ("hardmax", "top_k") else scalar == "E0314"
    assert code_of(op, "f32[1]", **extra) == ""
    assert code_of(op, "f32[0]", **extra) in ("E0315", "E0316")
    assert code_of(op, "f32[N]", dims={"N": (0, 8)}, **extra) == "E0315"
    assert code_of(op, "f32[N]", dims={"N": (1, 8)}, **extra) == ""
    if name != "top_k":
        assert code_of(op, "f32[0, 3]", axes=1) == ""


@pytest.mark.parametrize("name", [*ARGS, "top_k", "hardmax"])
def test_dtypes(name: str) -> None:
    extra = {"k": 1} if name == "top_k" else {}
    allowed = core.FLOATS if name == "hardmax" else core.NUMERIC
    for dtype in core.ALL:
        assert code_of(OPERATIONS[name], f"{dtype}[2]", **extra) == ("" if dtype in allowed else "E0309")
    if name != "hardmax":
        for dtype in core.ALL:
            assert code_of(OPERATIONS[name], "f32[2]", dtype=dtype, **extra) == ("" if dtype in core.INDEX else "E0304")


def test_no_groups_at_all() -> None:
    x = np.zeros((0, 3), np.float32)
    for name in ARGS:
        assert run(OPERATIONS[name], x, axes=1).shape == (0, 1)
    assert [r.shape for r in run(OPERATIONS["top_k"], x, k=2)] == [(0, 2), (0, 2)]
    assert run(OPERATIONS["hardmax"], x).shape == (0, 3)


def test_k() -> None:
    op = OPERATIONS["top_k"]
    assert code_of(op, "f32[3]", k=3) == ""
    assert code_of(op, "f32[3]", k=4) == "E0316"
    assert code_of(op, "f32[3]", k=0) == "E0316"
    assert code_of(op, "f32[3]", k=-1) == "E0316"
    assert code_of(op, "f32[3]") == "E0306"
    assert code_of(op, "f32[3]", k=1.5) == "E0304"
    assert code_of(op, "f32[3]", k=1, order="biggest") == "E0304"


def test_k_against_a_symbolic_size() -> None:
    op = OPERATIONS["top_k"]
    assert conditions_of(op, "f32[anchors]", k=5, dims={"anchors": (8, 8400)}) == []
    assert conditions_of(op, "f32[N]", k=5) == ["5 <= N"]
    assert conditions_of(op, "f32[N]", k=1) == []
    assert code_of(op, "f32[N]", k=5, dims={"N": (1, 4)}) == "E0316"
    assert types_of(op, "f32[N]", k="N") == ["f32[N]", "u32[N]"]
    assert conditions_of(op, "f32[N]", k="N") == []
