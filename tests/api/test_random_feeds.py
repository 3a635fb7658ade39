"""Inputs made up by ``random_feeds``: what arrives at an index stays in its range, on whatever way."""

from __future__ import annotations

import pytest
from onnx import parser

import dmlc
from tests.rows import each_row

#: Ways from the input ``l`` to the indices of ``x: f32[N, 3]``, and the type of ``l``.
WAYS = {
    "unsqueeze": ("i64[N]", "unsqueeze(l, axes=[1])"),
    "squeeze": ("i64[N, 1, 1]", "squeeze(l, axes=[2])"),
    "reshape": ("i64[N]", "reshape(l, shape=[N, 1])"),
    "transpose": ("i64[1, N]", "transpose(l, perm=[1, 0])"),
    "expand": ("i64[N, 1]", "expand(l, shape=[N, 2])"),
    "concat": ("i64[N, 1]", "concat(l, l, axis=1)"),
    "stack": ("i64[N]", "stack(l, l, axis=1)"),
    "slice": ("i64[N, 9]", "l[:, 2:4]"),
    "flip": ("i64[N, 2]", "flip(l, axes=[1])"),
    "tile": ("i64[N, 1]", "tile(l, repeats=[1, 2])"),
    "pad": ("i64[N, 1]", "pad(l, pads=[0, 0, 0, 1])"),
    "cast": ("i32[N, 1]", "l as i64"),
    "float": ("f32[N, 1]", "l as i64"),
    "where": ("i64[N, 1]", "where(x[:, 0:1] > 0, l, 0)"),
    "gather": ("i64[N, 5]", "gather(l, iota(length=2, dtype=i64), axis=1)"),
    "several": ("i32[N]", "expand(unsqueeze(l as i64, axes=[1]), shape=[N, 3])"),
}


@each_row(("type", "way"), WAYS.values(), ids=list(WAYS))
def test_an_index_stays_in_its_axis_on_every_way(type: str, way: str) -> None:
    text = f"model m(x: f32[N, 3], l: {type}) -> (y) {{\n    i = {way}\n    return gather_elements(x, i, axis=1)\n}}\n"
    program = dmlc.compile(dmlc.Source(text), target="cpu")
    for seed in range(8):  # ONNX Runtime refuses an index that is out of range
        program.run(program.random_feeds(seed), "cpu")


def test_parts_of_an_input_keep_their_own_axes() -> None:
    text = """model m(x: f32[N, 3], z: f32[7, N], l: i64[2, N]) -> (a, b) {
    first, second = split(l, axis=0, sizes=[1, 1])
    a = gather(x, reshape(first, shape=[N]), axis=1)
    b = gather(z, second)
    return a, b
}
"""
    program = dmlc.compile(dmlc.Source(text), target="cpu")
    for seed in range(8):
        program.run(program.random_feeds(seed), "cpu")


def test_a_block_of_the_library_gets_indices() -> None:
    text = """use cross_entropy from std

model m(x: f32[N, C], l: i64[N]) -> (a) {
    return cross_entropy(x, l)
}
"""
    program = dmlc.compile(dmlc.Source(text), target="cpu")
    for seed in range(30):
        feeds = program.random_feeds(seed)
        assert 0 <= feeds["l"].min() <= feeds["l"].max() < feeds["x"].shape[1]
        program.run(feeds, "cpu")


def test_an_axis_of_unknown_size_gets_index_0() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N] x, int64[M] l) => (int64[1,M] y)
        { z = NonZero(x) y = Gather<axis = 1>(z, l) }"""
    )
    program = dmlc.compile(model, target="cpu")
    feeds = program.random_feeds(1)
    assert not feeds["l"].any()
    assert program.run(feeds, "cpu")["y"].shape == (1, feeds["l"].size)


@pytest.mark.parametrize("seed", range(3))
def test_verification_finds_the_same_inputs(seed: int) -> None:
    type, way = WAYS["several"]
    text = f"model m(x: f32[N, 3], l: {type}) -> (y) {{\n    i = {way}\n    return gather_elements(x, i, axis=1)\n}}\n"
    assert dmlc.compile(dmlc.Source(text), target="cpu").verify(8, seed=seed).ok
