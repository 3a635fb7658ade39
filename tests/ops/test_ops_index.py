"""gather, scatter, one_hot, iota, full."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ops_calls import code_of, conditions_of, run, types_of

from dmlc.ops import OPERATIONS
from tests.rows import each_row
from tools.oracles import core
from tools.oracles import places as oracle

GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS = (OPERATIONS[n] for n in ("gather", "gather_elements", "scatter_elements"))
ONE_HOT, IOTA, FULL = (OPERATIONS[n] for n in ("one_hot", "iota", "full"))


def indices(dtype: str, shape: tuple[int, ...], size: int, seed: int = 0) -> np.ndarray:
    """Indices in range; negative ones too where the type has them."""
    rng = np.random.default_rng([seed, *shape])
    low = -size if dtype[0] == "i" else 0
    return np.asarray(rng.integers(low, size, shape), core.NUMPY[dtype])


@each_row("dtype", core.ALL)
def test_gather(dtype: str) -> None:
    for n, index in enumerate(core.INDEX):
        for shape, where, axis in (((4,), (), 0), ((2, 4), (3,), 1), ((2, 3, 2), (2, 2), -2), ((2, 3), (0, 2), 0)):
            x = core.sample(dtype, shape, n)
            i = indices(index, where, shape[axis], n)
            core.same(run(GATHER, x, i, axis=axis), oracle.gather(x, i, axis % len(shape), dtype))


@each_row("dtype", core.ALL)
def test_gather_and_scatter_elements(dtype: str) -> None:
    for n, index in enumerate(core.INDEX):
        for shape, where, axis in (
            ((4,), (6,), 0),
            ((3, 4), (2, 7), 1),
            ((2, 3, 2), (2, 2, 2), -2),
            ((2, 2), (0, 2), 0),
        ):
            x = core.sample(dtype, shape, n)
            i = indices(index, where, shape[axis], n)
            core.same(run(GATHER_ELEMENTS, x, i, axis=axis), oracle.gather_elements(x, i, axis % len(shape), dtype))
            if where == (2, 2, 2):  # no place twice
                i = np.sort(i, axis=axis) * 0 + np.array([0, 2], i.dtype).reshape(1, 2, 1)
            elif len(i):
                i = np.zeros_like(i[:1]) if axis == 0 else np.zeros_like(i[:, :1])
            updates = core.sample(dtype, i.shape, n + 50)
            expected = oracle.scatter_elements(x, i, updates, axis % len(shape), dtype)
            core.same(run(SCATTER_ELEMENTS, x, i, updates, axis=axis), expected)


def test_scatter_does_not_change_its_operand() -> None:
    x = np.zeros(3, np.float32)
    run(SCATTER_ELEMENTS, x, np.array([1]), np.ones(1, np.float32))
    assert not x.any()


def test_indices_out_of_range_do_not_stop_the_reference() -> None:
    i = np.array([-9, 9], np.int64)
    assert run(GATHER, np.arange(3), i).tolist() == [0, 2]
    assert run(GATHER_ELEMENTS, np.arange(3), i).tolist() == [0, 2]
    assert run(GATHER, np.arange(3), np.array([2**64 - 1], np.uint64)).shape == (1,)
    assert run(GATHER, np.zeros((0, 2), np.float32), i).tolist() == [[0, 0], [0, 0]]
    assert run(GATHER_ELEMENTS, np.zeros(0, np.float32), i).tolist() == [0, 0]
    assert run(SCATTER_ELEMENTS, np.zeros(0, np.float32), i, np.ones(2, np.float32)).tolist() == []


def test_index_types() -> None:
    assert types_of(GATHER, "f32[N, 3]", "u32[M, 2]", axis=1) == ["f32[N, M, 2]"]
    assert types_of(GATHER, "f32[N, 3]", "i64[]") == ["f32[3]"]
    assert types_of(GATHER_ELEMENTS, "f32[N, 3]", "i64[N, 7]", axis=1) == ["f32[N, 7]"]
    assert conditions_of(GATHER_ELEMENTS, "f32[N, 3]", "i64[M, 3]", axis=1) == ["M <= N"]
    assert conditions_of(SCATTER_ELEMENTS, "f32[N]", "i64[M]", "f32[K]") == ["K == M"]
    assert conditions_of(SCATTER_ELEMENTS, "f32[N]", "i64[M]", "f32[M]") == []


@pytest.mark.parametrize("op", [GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS], ids=lambda op: op.name)
def test_index_errors(op: object) -> None:
    assert op in (GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS)
    rest = ["f32[2, 2]"] if op is SCATTER_ELEMENTS else []
    for dtype in core.ALL:
        expected = "" if dtype in core.INDEX else "E0309"
        assert code_of(op, "f32[2, 3]", f"{dtype}[2, 2]", *rest) == expected
    assert code_of(op, "f32[2, 3]", "i32[2, 2]", *rest, axis=2) == "E0301"
    assert code_of(op, "f32[]", "i32[]", *rest) == "E0301"
    assert code_of(op, "f32[2, 3]") == "E0308"
    assert code_of(op, "f32[2, 3]", 0.5, *rest) == "E0312"


def test_element_shapes_must_fit() -> None:
    assert code_of(GATHER_ELEMENTS, "f32[2, 3]", "i32[5, 3]") == ""
    assert code_of(GATHER_ELEMENTS, "f32[2, 3]", "i32[2, 4]") == "E0317"
    assert code_of(GATHER_ELEMENTS, "f32[2, 3]", "i32[2]") == "E0317"
    assert code_of(SCATTER_ELEMENTS, "f32[2, 3]", "i32[2, 3]", "f32[2, 3]") == ""
    assert code_of(SCATTER_ELEMENTS, "f32[2, 3]", "i32[2, 3]", "f32[2, 2]") == "E0317"
    assert code_of(SCATTER_ELEMENTS, "f32[2, 3]", "i32[2, 3]", "f32[3]") == "E0317"
    assert code_of(SCATTER_ELEMENTS, "f32[2, 3]", "i32[2, 3]", "f16[2, 3]") == "E0310"
    assert code_of(SCATTER_ELEMENTS, "f32[2, 3]", "i32[2, 4]", "f32[2, 4]") == "E0317"


# --- one_hot


@pytest.mark.parametrize("index", core.INDEX)
def test_one_hot(index: str) -> None:
    for dtype in core.ALL:
        i = indices(index, (2, 3), 7)
        for axis in (0, 1, 2, -1, -3):
            core.same(run(ONE_HOT, i, depth=5, axis=axis, dtype=dtype), oracle.one_hot(i, 5, axis % 3, 1, 0, dtype))
    on, off = -2.5, math.inf
    core.same(run(ONE_HOT, i, depth=3, on=on, off=off), oracle.one_hot(i, 3, 2, on, off, "f32"))
    single = i[:1, 0].reshape(())
    core.same(run(ONE_HOT, single, depth=2), oracle.one_hot(single, 2, 0, 1, 0, "f32"))


def test_one_hot_out_of_range_is_off() -> None:
    out = run(ONE_HOT, np.array([-1, -4, -5, 4, 100]), depth=4, dtype="i32")
    assert out.tolist() == [[0, 0, 0, 1], [1, 0, 0, 0], [0] * 4, [0] * 4, [0] * 4]
    big = np.array([2**64 - 1, 2**63, 3], np.uint64)
    assert run(ONE_HOT, big, depth=4, dtype="bool").tolist() == [[False] * 4, [False] * 4, [False, False, False, True]]


def test_one_hot_types_and_errors() -> None:
    assert types_of(ONE_HOT, "u32[N]", depth=5, axis=0) == ["f32[5, N]"]
    assert types_of(ONE_HOT, "u32[N]", depth="C", dtype="bool") == ["bool[N, C]"]
    assert conditions_of(ONE_HOT, "u32[N]", depth="C", dims={"C": (0, 9)}) == ["1 <= C"]
    assert code_of(ONE_HOT, "u32[N]") == "E0306"
    assert code_of(ONE_HOT, "u32[N]", depth=0) == "E0304"
    assert code_of(ONE_HOT, "u32[N]", depth=1) == ""
    assert code_of(ONE_HOT, "u32[N]", depth=3, axis=2) == "E0301"
    assert code_of(ONE_HOT, "u32[N]", depth=3, axis=-2) == ""
    assert code_of(ONE_HOT, "f32[N]", depth=3) == "E0309"
    assert code_of(ONE_HOT, "u8[N]", depth=3) == "E0309"
    assert code_of(ONE_HOT, "u32[N]", depth=3, on=256, dtype="u8") == "E0311"
    assert code_of(ONE_HOT, "u32[N]", depth=3, off=0.5, dtype="i32") == "E0311"
    assert code_of(ONE_HOT, "u32[N]", depth=3, on=True, dtype="bool") == ""


# --- iota and full


@each_row("dtype", core.NUMERIC)
def test_iota(dtype: str) -> None:
    for length in (0, 1, 100):
        core.same(run(IOTA, length=length, dtype=dtype), core.build([length], dtype, lambda at: at[0]))


def test_iota_types_and_errors() -> None:
    assert types_of(IOTA, length="N", dtype="i32") == ["i32[N]"]
    assert conditions_of(IOTA, length="N", dtype="i32") == []
    assert code_of(IOTA, length=256, dtype="u8") == ""
    assert code_of(IOTA, length=257, dtype="u8") == "E0311"
    assert code_of(IOTA, length=129, dtype="i8") == "E0311"
    assert code_of(IOTA, length="N", dtype="u8", dims={"N": (300, 400)}) == "E0311"
    assert code_of(IOTA, length=-1, dtype="i32") == "E0304"
    assert code_of(IOTA, length=3) == "E0306"
    assert code_of(IOTA, length=3, dtype="bool") == "E0304"
    assert code_of(IOTA, "f32[3]", length=3, dtype="i32") == "E0308"


@each_row("dtype", core.ALL)
def test_full(dtype: str) -> None:
    for shape in ([], [3], [2, 0], [2, 3]):
        core.same(run(FULL, shape=shape, value=1, dtype=dtype), core.build(shape, dtype, lambda at: 1))


def test_full_types_and_errors() -> None:
    assert types_of(FULL, shape=["N", 2], value=0.5, dtype="f16") == ["f16[N, 2]"]
    assert types_of(FULL, shape=3, value=True, dtype="bool") == ["bool[3]"]
    assert code_of(FULL, shape=[2], value=0.5, dtype="i32") == "E0311"
    assert code_of(FULL, shape=[2], value=300, dtype="u8") == "E0311"
    assert code_of(FULL, shape=[2], value=2, dtype="bool") == "E0311"
    assert code_of(FULL, shape=[2], value=math.nan, dtype="f32") == ""
    assert code_of(FULL, shape=[-1], value=0, dtype="f32") == "E0304"
    assert code_of(FULL, shape=[2], value=0) == "E0306"
    assert code_of(FULL, shape=[2], value="0", dtype="f32") == "E0304"
