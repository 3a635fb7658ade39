"""Programs that depend on attributes: no lowering makes a node that DirectML fails at or computes wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np

import dmlc
from dmlc.ir import DTYPES, INDEX, DType
from dmlc.ir.dtype import u64
from tests.kit import run
from tests.rows import each_row


def compiled(body: str, inputs: str) -> dmlc.Program:
    program = dmlc.compile(dmlc.Source(f"model m({inputs}) -> (y) {{\n    return {body}\n}}\n", name="m.dml"))
    program.require_sound()
    return program


def computed(program: dmlc.Program, feeds: dict[str, Any]) -> np.ndarray:
    (result,) = run(program, feeds, on="optimized").values()
    return result


@each_row("dtype", DTYPES, ids=str)
@each_row("turn", [0, 1])
def test_one_hot(dtype: DType, turn: int) -> None:
    """The values of every dtype, for indices of every dtype: also on equal to off, and the two exchanged.

    A fixed and an open length take turns along the dtypes of indices.
    """
    indices = np.array([[0, 3], [5, 1]])
    signed = np.array([[-1, 3], [-5, 1]])
    for index in INDEX[turn::2]:
        length = ("4", "W")[(DTYPES.index(dtype) + INDEX.index(index) // 2) % 2]
        given = (indices if index.kind == "uint" else signed).astype(index.numpy)
        wide = f", x: {index.name}[2, 2], w: f32[{length}]"
        for on, off in (("true", "false"), ("false", "true"), ("true", "true")) if dtype.kind == "bool" else ((5, 3),):
            body = f"one_hot(x, depth={length}, axis=1, on={on}, off={off}, dtype={dtype.name})"
            program = compiled(f"where(w[0] >= 0, {body}, {body})", wide[2:])
            values = [np.asarray(v == "true" if dtype.kind == "bool" else v, dtype.numpy) for v in (on, off)]
            places = np.where(given.astype(np.int64) < 0, given.astype(np.int64) + 4, given.astype(np.int64))
            want = np.where(places[:, None, :] == np.arange(4)[:, None], *values)
            got = computed(program, {"x": given, "w": np.zeros(4, np.float32)})
            assert got.dtype == dtype.numpy and np.array_equal(got, want)


def test_the_largest_index_is_out_of_range() -> None:
    program = compiled("one_hot(x, depth=3, dtype=bool)", "x: u64[2]")
    got = computed(program, {"x": np.array([2**64 - 1, 1], u64.numpy)})
    assert np.array_equal(got, [[False, False, False], [False, True, False]])


@each_row("size", [1, 2, 3])
@each_row("exclusive", [False, True])
@each_row("reverse", [False, True])
@each_row("op", ["cumsum", "cumprod"])
def test_running_sums_and_products(op: str, exclusive: bool, reverse: bool, size: int) -> None:
    flags = f"exclusive={str(exclusive).lower()}, reverse={str(reverse).lower()}"
    program = compiled(f"{op}(x, axis=1, {flags})", f"x: f32[2, {size}]")
    x = np.arange(2, 2 + 2 * size, dtype=np.float32).reshape(2, size)
    first = 0 if op == "cumsum" else 1
    ahead = x[:, ::-1] if reverse else x
    if exclusive:
        ahead = np.concatenate([np.full((2, 1), first, np.float32), ahead[:, :-1]], axis=1)
    want = (np.cumsum if op == "cumsum" else np.cumprod)(ahead, axis=1)
    assert np.array_equal(computed(program, {"x": x}), want[:, ::-1] if reverse else want)
