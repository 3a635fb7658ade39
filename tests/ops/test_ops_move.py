"""The operations that move elements, against maps of coordinates; their shape rules, static and symbolic."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ops_calls import code_of, conditions_of, node_of, run, types_of

from dmlc.ops import OPERATIONS
from dmlc.ops.move import NewAxesAttributes, SliceAttributes
from tests.rows import each_row
from tools.oracles import core
from tools.oracles import places as oracle

RESHAPE, TRANSPOSE, SQUEEZE, UNSQUEEZE = (OPERATIONS[n] for n in ("reshape", "transpose", "squeeze", "unsqueeze"))
EXPAND, CONCAT, SPLIT, SLICE, PAD = (OPERATIONS[n] for n in ("expand", "concat", "split", "slice", "pad"))


# --- reshape


@each_row("dtype", core.ALL)
def test_reshape(dtype: str) -> None:
    for shape, to in (((), [1, 1]), ((6,), [2, 3]), ((2, 3), [-1]), ((2, 0), [0, 5]), ((2, 1, 3, 2), [3, -1, 2])):
        x = core.sample(dtype, shape)
        out = run(RESHAPE, x, shape=to)
        core.same(out, oracle.reshape(x, [s if s != -1 else x.size // -math.prod(to) for s in to], dtype))


def test_reshape_types() -> None:
    assert types_of(RESHAPE, "f32[N, 8, 3]", shape=[-1, 12]) == ["f32[2 * N, 12]"]
    assert types_of(RESHAPE, "f32[N, 4]", shape=["N", 2, -1]) == ["f32[N, 2, 2]"]
    assert types_of(RESHAPE, "f32[]", shape=[]) == ["f32[]"]
    assert types_of(RESHAPE, "f32[1, 1]", shape=[]) == ["f32[]"]
    assert conditions_of(RESHAPE, "f32[N, 8]", shape=["N", 8]) == []
    assert conditions_of(RESHAPE, "f32[N, 8]", shape=[-1, 5]) == ["8 * N == 5 * ((8 * N) // 5)"]
    assert conditions_of(RESHAPE, "f32[N]", shape=["M"]) == ["N == M"]
    assert conditions_of(RESHAPE, "f32[N]", shape=["M", -1]) == ["N == (N // M) * M"] or conditions_of(
        RESHAPE, "f32[N]", shape=["M", -1]
    ) == ["N == M * (N // M)"]
    assert "1 <= M" in conditions_of(RESHAPE, "f32[N]", shape=["M", -1], dims={"M": (0, 4)})


def test_reshape_errors() -> None:
    assert code_of(RESHAPE, "f32[4, 3]", shape=[6, 2]) == ""
    assert code_of(RESHAPE, "f32[4, 3]", shape=[5, 2]) == "E0317"
    assert code_of(RESHAPE, "f32[4, 3]", shape=[5, -1]) == "E0317"
    assert code_of(RESHAPE, "f32[4, 3]", shape=[0, -1]) == "E0304"
    assert code_of(RESHAPE, "f32[4, 3]", shape=[0, 3]) == "E0317"
    assert code_of(RESHAPE, "f32[4, 3]", shape=[-1, -1]) == "E0304"
    assert code_of(RESHAPE, "f32[4, 3]", shape=[-2, -6]) == "E0304"
    assert code_of(RESHAPE, "f32[4, 3]", shape=[2.0, 6]) == "E0304"
    assert code_of(RESHAPE, "f32[4, 3]") == "E0306"
    assert code_of(RESHAPE, "f32[N, 3]", shape=[2, 2], dims={"N": (2, 9)}) == "E0317"


# --- transpose, squeeze, unsqueeze, expand


@each_row("dtype", core.ALL)
def test_transpose(dtype: str) -> None:
    for perm in ([], [0], [1, 0], [2, 0, 1], [3, 1, 0, 2]):
        x = core.sample(dtype, (2, 3, 1, 4)[: len(perm)])
        core.same(run(TRANSPOSE, x, perm=perm), oracle.transpose(x, perm, dtype))
        negative = [a - len(perm) for a in perm]
        core.same(run(TRANSPOSE, x, perm=negative), oracle.transpose(x, perm, dtype))
    core.same(run(TRANSPOSE, x), oracle.transpose(x, [3, 2, 1, 0], dtype))


def test_transpose_errors() -> None:
    assert types_of(TRANSPOSE, "f32[N, 3]", perm=[1, 0]) == ["f32[3, N]"]
    assert code_of(TRANSPOSE, "f32[N, 3]", perm=[0, 0]) == "E0302"
    assert code_of(TRANSPOSE, "f32[N, 3]", perm=[0, 2]) == "E0301"
    assert code_of(TRANSPOSE, "f32[N, 3]", perm=[0]) == "E0304"
    assert code_of(TRANSPOSE, "f32[N, 3]", perm=[0.0, 1]) == "E0304"


@each_row("dtype", core.ALL)
def test_squeeze_and_unsqueeze(dtype: str) -> None:
    x = core.sample(dtype, (2, 1, 3, 1))
    core.same(run(SQUEEZE, x, axes=[1]), oracle.reshape(x, [2, 3, 1], dtype))
    core.same(run(SQUEEZE, x, axes=[-1, 1]), oracle.reshape(x, [2, 3], dtype))
    core.same(run(UNSQUEEZE, x, axes=[0, -1, 3]), oracle.reshape(x, [1, 2, 1, 1, 3, 1, 1], dtype))
    core.same(run(UNSQUEEZE, core.sample(dtype, ()), axes=0), oracle.reshape(core.sample(dtype, ()), [1], dtype))


def test_squeeze_and_unsqueeze_errors() -> None:
    assert types_of(SQUEEZE, "f32[N, 1]", axes=1) == ["f32[N]"]
    assert conditions_of(SQUEEZE, "f32[N, 1]", axes=0) == ["N == 1"]
    assert conditions_of(SQUEEZE, "f32[N, 1]", axes=0, dims={"N": (1, 1)}) == []
    assert code_of(SQUEEZE, "f32[N, 1]", axes=0, dims={"N": (2, 9)}) == "E0317"
    assert code_of(SQUEEZE, "f32[3, 1]", axes=0) == "E0317"
    assert code_of(SQUEEZE, "f32[3, 1]") == "E0306"
    assert code_of(SQUEEZE, "f32[3, 1]", axes=[]) == "E0303"
    assert types_of(UNSQUEEZE, "f32[N, 3]", axes=[0, -1]) == ["f32[1, N, 3, 1]"]
    assert code_of(UNSQUEEZE, "f32[N, 3]", axes=3) == "E0301"
    assert code_of(UNSQUEEZE, "f32[N, 3]", axes=[0, -4]) == "E0302"
    assert code_of(UNSQUEEZE, "f32[N, 3]", axes=[]) == "E0303"
    assert node_of(UNSQUEEZE, "f32[3]", axes=-1).attributes == NewAxesAttributes(axes=(1,))


@each_row("dtype", core.ALL)
def test_expand(dtype: str) -> None:
    for shape, to in (
        ((), [2]),
        ((3,), [2, 3]),
        ((2, 1), [3]),
        ((2, 1, 3), [1, 4, 1]),
        ((1,), [0]),
        ((2, 1, 1, 2), []),
    ):
        x = core.sample(dtype, shape)
        core.same(run(EXPAND, x, shape=to, symbolic=False), oracle.expand(x, to, dtype))


def test_expand_errors() -> None:
    assert types_of(EXPAND, "f32[1, 3]", shape=["N", 1]) == ["f32[N, 3]"]
    assert code_of(EXPAND, "f32[2, 3]", shape=[3, 3]) == "E0313"
    assert code_of(EXPAND, "f32[N]", shape=["M"]) == "E0313"
    assert code_of(EXPAND, "f32[2]", shape=[-1]) == "E0304"
    assert code_of(EXPAND, "f32[2]") == "E0306"


# --- concat and split


@each_row("dtype", core.ALL)
def test_concat_and_split(dtype: str) -> None:
    for axis in (0, 1, 2):
        shapes = [[n if i == axis else 2 for i in range(3)] for n in (1, 3, 0)]
        parts = [core.sample(dtype, s, i) for i, s in enumerate(shapes)]
        whole = oracle.concat(parts, axis, dtype)
        core.same(run(CONCAT, *parts, axis=axis - 3), whole)
        for part, again in zip(oracle.split(whole, axis, [1, 3, 0], dtype), parts, strict=True):
            core.same(part, again)
        for got, part in zip(run(SPLIT, whole, axis=axis, sizes=[1, 3, 0]), parts, strict=True):
            core.same(got, part)
    (single,) = run(SPLIT, parts[0], axis=0, sizes=[2])
    core.same(single, parts[0])


def test_concat_types_and_errors() -> None:
    assert types_of(CONCAT, "f32[3, N]", "f32[3, M]", "f32[3, 1]", axis=1) == ["f32[3, M + N + 1]"]
    assert types_of(CONCAT, "f32[N, 2]", "f32[3, 2]", axis=1) == ["f32[3, 4]"]
    assert conditions_of(CONCAT, "f32[N, 2]", "f32[M, 2]", axis=1) == ["N == M"]
    assert conditions_of(CONCAT, "f32[N, 2]", "f32[N, 2]", axis=1) == []
    assert types_of(CONCAT, "f32[3]", axis=0) == ["f32[3]"]
    assert code_of(CONCAT, "f32[3, 2]", "f32[4, 2]", axis=1) == "E0317"
    assert code_of(CONCAT, "f32[3, 2]", "f32[3]", axis=0) == "E0317"
    assert code_of(CONCAT, "f32[3]", 1, axis=0) == "E0317"
    assert code_of(CONCAT, "f32[3]", "i32[3]", axis=0) == "E0310"
    assert code_of(CONCAT, "f32[3]", "f32[3]", axis=1) == "E0301"
    assert code_of(CONCAT, "f32[]", "f32[]", axis=0) == "E0301"
    assert code_of(CONCAT, "f32[3]", "f32[3]") == "E0306"
    assert code_of(CONCAT, axis=0) == "E0308"


def test_split_types_and_errors() -> None:
    assert types_of(SPLIT, "f32[3, N]", axis=1, sizes=[1, "M"]) == ["f32[3, 1]", "f32[3, M]"]
    assert conditions_of(SPLIT, "f32[3, N]", axis=1, sizes=[1, "M"]) == ["M + 1 == N"]
    assert code_of(SPLIT, "f32[3]", axis=0, sizes=[1, 2]) == ""
    assert code_of(SPLIT, "f32[3]", axis=0, sizes=[1, 1]) == "E0317"
    assert code_of(SPLIT, "f32[3]", axis=0, sizes=[4, -1]) == "E0304"
    assert code_of(SPLIT, "f32[3]", axis=0, sizes=[]) == "E0304"
    assert code_of(SPLIT, "f32[3]", axis=0) == "E0306"
    assert code_of(SPLIT, "f32[3]", axis=1, sizes=[3]) == "E0301"


# --- slice


@settings(max_examples=75)
@given(
    size=st.integers(0, 6),
    start=st.integers(-8, 8),
    end=st.integers(-8, 8),
    step=st.integers(-3, 3).filter(bool),
)
def test_slice_clamps_as_numpy_and_onnx(size: int, start: int, end: int, step: int) -> None:
    assume(not (step < 0 and start < -size))  # refused: NumPy and ONNX differ
    x = np.arange(size, dtype=np.float32)
    attributes = node_of(SLICE, x, starts=[start], ends=[end], steps=[step]).attributes
    reference = SLICE.reference
    assert reference is not None
    out = reference(attributes, x)
    np.testing.assert_array_equal(out, oracle.slice_(x, [(0, start, end, step)], "f32"))
    np.testing.assert_array_equal(out, x[start:end:step])
    assert types_of(SLICE, x, starts=[start], ends=[end], steps=[step]) == [f"f32[{out.shape[0]}]"]


@each_row("dtype", core.ALL)
def test_slice(dtype: str) -> None:
    x = core.sample(dtype, (3, 4, 2, 5))
    out = run(SLICE, x, starts=[-1, 0], ends=[0, 3], axes=[3, -3], steps=[-2, 2])
    core.same(out, oracle.slice_(x, [(3, -1, 0, -2), (1, 0, 3, 2)], dtype))
    core.same(run(SLICE, x, starts=[1, 2], ends=[3, 4]), oracle.slice_(x, [(0, 1, 3, 1), (1, 2, 4, 1)], dtype))


def test_slice_to_the_far_end() -> None:
    x = np.arange(5, dtype=np.int32)
    for far in (2**31 - 1, 2**63 - 1):
        assert run(SLICE, x, starts=[1], ends=[far]).tolist() == [1, 2, 3, 4]
        assert run(SLICE, x, starts=[far], ends=[-far - 1], steps=[-1]).tolist() == [4, 3, 2, 1, 0]


def test_slice_attributes_are_sorted_and_complete() -> None:
    node = node_of(SLICE, "f32[4, 5]", starts=[1, 2], ends=[3, 4], axes=[-1, 0])
    assert node.attributes == SliceAttributes(starts=(2, 1), ends=(4, 3), axes=(0, 1), steps=(1, 1))
    assert node_of(SLICE, "f32[4, 5]", starts=0, ends=2, axes=1).attributes == SliceAttributes(
        starts=(0,), ends=(2,), axes=(1,), steps=(1,)
    )


@each_row(
    ("start", "end", "step", "size", "conditions"),
    [
        (0, 2**31 - 1, 1, "N", []),
        (1, 2**31 - 1, 1, "N - 1", []),
        (0, -1, 1, "N - 1", []),
        (-1, 2**31 - 1, 1, "1", []),
        (-2, 2**31 - 1, 1, "2", ["0 <= N - 2"]),
        (1, -1, 1, "N - 2", ["1 <= N - 1"]),
        (0, 3, 1, "3", ["3 <= N"]),
        (0, 1, 1, "1", []),
        (0, "N", 1, "N", []),
        (0, 2**31 - 1, 2, "(N + 1) // 2", []),
        (-1, -(2**31), -1, "N", []),
        (0, "M", 1, "M", ["M <= N"]),
        (-1, 0, -1, "N - 1", []),
    ],
)
def test_slice_of_a_symbolic_axis(start: int, end: int | str, step: int, size: str, conditions: list[str]) -> None:
    keywords = {"starts": [start], "ends": [end], "steps": [step]}
    assert types_of(SLICE, "f32[N]", **keywords) == [f"f32[{size}]"]
    assert conditions_of(SLICE, "f32[N]", **keywords) == conditions


def test_slice_of_a_bounded_axis_is_proved() -> None:
    dims = {"N": (4, 9)}
    assert conditions_of(SLICE, "f32[N]", starts=[1], ends=[-2], dims=dims) == []
    assert types_of(SLICE, "f32[N]", starts=[0], ends=[20], dims=dims) == ["f32[N]"]
    assert types_of(SLICE, "f32[N]", starts=[10], ends=[20], dims=dims) == ["f32[0]"]
    assert types_of(SLICE, "f32[N]", starts=[-20], ends=[2], dims=dims) == ["f32[2]"]
    assert types_of(SLICE, "f32[N]", starts=[3], ends=[1], dims=dims) == ["f32[0]"]


def test_slice_of_nothing() -> None:
    assert run(SLICE, np.array(3.0, np.float32), starts=[], ends=[]).shape == ()


def test_slice_errors() -> None:
    assert code_of(SLICE, "f32[4]", starts=[0], ends=[2]) == ""
    assert code_of(SLICE, "f32[4]", starts=[0], ends=[2], steps=[0]) == "E0304"
    assert code_of(SLICE, "f32[4]", starts=[0, 1], ends=[2]) == "E0304"
    assert code_of(SLICE, "f32[4]", starts=[0], ends=[2], axes=[0, 1]) == "E0301"
    assert code_of(SLICE, "f32[4, 4]", starts=[0], ends=[2], axes=[0, 1]) == "E0304"
    assert code_of(SLICE, "f32[4, 4]", starts=[0, 0], ends=[2, 2], axes=[0, -2]) == "E0302"
    assert code_of(SLICE, "f32[4]", starts=[0], ends=[2], steps=[1, 1]) == "E0304"
    assert code_of(SLICE, "f32[4]", starts=[0, 0], ends=[2, 2]) == "E0301"
    assert code_of(SLICE, "f32[4]", starts=[0]) == "E0306"
    assert code_of(SLICE, "f32[4]", starts=[0], ends=[1.5]) == "E0304"
    assert code_of(SLICE, "f32[4]", starts=[-5], ends=[0], steps=[-1]) == "E0304"
    assert code_of(SLICE, "f32[4]", starts=[-4], ends=[0], steps=[-1]) == ""


# --- pad


@each_row("dtype", core.ALL)
def test_pad(dtype: str) -> None:
    value = True if dtype == "bool" else 3
    for shape, pads in (((), []), ((2,), [1, 0]), ((0, 2), [1, 0, 2, 3]), ((1, 2, 2, 1), [0, 1, 2, 0, 1, 0, 0, 2])):
        x = core.sample(dtype, shape)
        core.same(run(PAD, x, pads=pads, value=value), oracle.pad(x, pads, value, dtype))
        core.same(run(PAD, x, pads=pads), oracle.pad(x, pads, 0, dtype))


def test_pad_types_and_errors() -> None:
    assert types_of(PAD, "f32[N, 3]", pads=[1, 0, 2, 0]) == ["f32[N + 3, 3]"]
    assert code_of(PAD, "f32[3]", pads=[1]) == "E0304"
    assert code_of(PAD, "f32[3]", pads=[1, -1]) == "E0304"
    assert code_of(PAD, "f32[3]", pads=[1, 1.5]) == "E0304"
    assert code_of(PAD, "f32[3]", pads=[1, "N"]) == ""
    assert code_of(PAD, "f32[3]") == "E0306"
    assert code_of(PAD, "u8[3]", pads=[1, 1], value=256) == "E0311"
    assert code_of(PAD, "u8[3]", pads=[1, 1], value=255) == ""
    assert code_of(PAD, "i32[3]", pads=[1, 1], value=0.5) == "E0311"
    assert code_of(PAD, "f32[3]", pads=[1, 1], value=-math.inf) == ""
    assert code_of(PAD, "bool[3]", pads=[1, 1], value=2) == "E0311"
    assert code_of(PAD, "f32[3]", pads=[1, 1], value=True) == "E0311"


def test_tile() -> None:
    tile = OPERATIONS["tile"]
    for dtype in core.ALL:
        for seed, (shape, repeats) in enumerate(
            [((), []), ((3,), [2]), ((2, 3), [3, 1]), ((2, 1, 2), [1, 4, 2]), ((2, 0), [2, 2])]
        ):
            x = core.sample(dtype, shape, seed)
            sizes = tuple(n * k for n, k in zip(shape, repeats, strict=True))
            wrapped = lambda at, x=x: core.element(x, tuple(i % n for i, n in zip(at, x.shape, strict=True)))  # noqa: E731
            core.same(run(tile, x, repeats=repeats), core.build(sizes, dtype, wrapped))


def test_tile_types() -> None:
    tile = OPERATIONS["tile"]
    assert types_of(tile, "f32[N, 3]", repeats=[2, "M"]) == ["f32[2 * N, 3 * M]"]
    assert code_of(tile, "f32[N, 3]", repeats=[2]) == "E0304"
    assert code_of(tile, "f32[3]", repeats=[-1]).startswith("E03")
    assert code_of(tile, "f32[3]", repeats=[0.5]) == "E0304"
    assert code_of(tile, "f32[3]") == "E0306"
