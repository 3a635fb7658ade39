"""Places along an axis that are joined along another: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

import pytest
from pass_helpers import Building, check_numbers, names, remarks, run

from dmlc.ir import Value
from dmlc.ops.elementwise import RELU
from dmlc.ops.move import CONCAT, RESHAPE, SLICE, SQUEEZE
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()
RULE = "concat-of-places"


def place(b: Building, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
    return b(SQUEEZE, b(SLICE, x, starts=[start], ends=[end], axes=[axis], steps=[step]), axes=[axis])


def joined(b: Building, x: Value, axis: int, to: int, rows: Any = ((0, 1), (1, 2))) -> Value:
    return b(CONCAT, *[place(b, x, axis, *row) for row in rows], axis=to)


@each_row(
    ("shape", "axis", "to", "left"),
    [
        ((5, 2, 3, 4), 1, 2, ["transpose", "reshape"]),
        ((5, 2, 3, 4), 1, 1, ["reshape"]),
        ((5, 2, 3, 4), 1, 0, ["transpose", "reshape"]),
        ((2, 3, 4), 0, 1, ["transpose", "reshape"]),
        ((3, 2), 1, 0, ["transpose", "reshape"]),
        ((2, 1, 4), 0, 1, ["reshape"]),
    ],
)
def test_all_places_become_a_transpose_and_a_reshape(shape: Any, axis: int, to: int, left: list[str]) -> None:
    b = Building()
    ctx = check_numbers(PASS, b.done(joined(b, b.input("x", shape), axis, to)))
    assert names(b.graph) == left
    assert RULE in {entry.rule for entry in ctx.ledger}


def test_places_of_open_sizes() -> None:
    """Both directions of a recurrent layer."""
    b = Building(t=(1, 5), n=(1, 5))
    check_numbers(PASS, b.done(joined(b, b.input("x", ("t", 2, "n", 4)), 1, 2)), binding={"t": 3, "n": 2})
    assert names(b.graph) == ["transpose", "reshape"]


def test_three_places_and_those_counted_from_the_end() -> None:
    b = Building()
    rows = ((0, 1), (-2, -1), (-1, 1 << 31))
    check_numbers(PASS, b.done(joined(b, b.input("x", (3, 4)), 0, 0, rows)))
    assert names(b.graph) == ["reshape"]


@each_row(
    ("shape", "rows"),
    [
        ((5, 3, 4), ((0, 1), (1, 2))),  # not all places
        ((5, 2, 4), ((1, 2), (0, 1))),  # in another order
        ((5, 2, 4), ((0, 1), (0, 1))),
        ((5, 2, 4), ((0, 1), (1, 2), (1, 2))),
    ],
)
def test_other_places_stay(shape: Any, rows: Any) -> None:
    b = Building()
    check_numbers(PASS, b.done(joined(b, b.input("x", shape), 1, 1, rows)))
    assert "concat" in names(b.graph)


def test_places_of_two_tensors_stay() -> None:
    b = Building()
    x, z = b.input("x", (5, 2, 4)), b.input("z", (5, 2, 4))
    check_numbers(PASS, b.done(b(CONCAT, place(b, x, 1, 0, 1), place(b, z, 1, 1, 2), axis=1)))
    assert "concat" in names(b.graph)


def test_places_in_another_shape_stay() -> None:
    b = Building()
    x = b.input("x", (5, 2, 4))
    parts = [b(SLICE, x, starts=[i], ends=[i + 1], axes=[1]) for i in range(2)]
    check_numbers(PASS, b.done(b(CONCAT, *[b(RESHAPE, part, shape=[4, 5]) for part in parts], axis=1)))
    assert "concat" in names(b.graph)


def test_places_along_different_axes_stay() -> None:
    b = Building()
    x = b.input("x", (2, 2))
    check_numbers(PASS, b.done(b(CONCAT, place(b, x, 0, 0, 1), place(b, x, 1, 1, 2), axis=0)))
    assert "concat" in names(b.graph)


def test_parts_that_no_slice_makes_stay() -> None:
    b = Building()
    x, z = b.input("x", (5, 2, 4)), b.input("z", (5, 1, 4))
    check_numbers(PASS, b.done(b(CONCAT, place(b, x, 1, 0, 1), b(SQUEEZE, z, axes=[1]), axis=1)))
    check_numbers(PASS, b.done(b(CONCAT, place(b, x, 1, 0, 1), b.input("w", (5, 4)), axis=1)))
    assert "concat" in names(b.graph)


def test_sizes_that_a_reshape_cannot_infer_keep_the_concat() -> None:
    b = Building(t=(1, 5), n=(1, 5))
    check_numbers(PASS, b.done(joined(b, b.input("x", ("t", "n", 2, 4)), 2, 0)), binding={"t": 3, "n": 2})
    assert "concat" in names(b.graph)


def test_a_size_is_not_inferred_beside_one_that_may_be_0() -> None:
    b = Building(t=(0, 5), n=(1, 5))
    check_numbers(PASS, b.done(joined(b, b.input("x", ("t", "n", 2)), 2, 1)), binding={"t": 0, "n": 2})
    assert "concat" in names(b.graph)


def test_a_size_is_inferred_beside_others_that_are_known() -> None:
    b = Building(t=(0, 5))
    check_numbers(PASS, b.done(joined(b, b.input("x", ("t", 3, 2)), 2, 0)), binding={"t": 2})
    assert names(b.graph) == ["transpose", "reshape"]


def test_places_of_nothing_stay() -> None:
    b = Building()
    ctx = check_numbers(PASS, b.done(joined(b, b.input("x", (3, 0, 2)), 2, 0)))
    assert RULE not in {entry.rule for entry in ctx.ledger}


@pytest.mark.parametrize("which", [0, 1])
def test_a_part_that_is_used_elsewhere_stays(which: int) -> None:
    b = Building()
    x = b.input("x", (5, 2, 4))
    cut = b(SLICE, x, starts=[0], ends=[1], axes=[1])
    first = b(SQUEEZE, cut, axes=[1])
    graph = b.done(b(CONCAT, first, place(b, x, 1, 1, 2), axis=1), b(RELU, (cut, first)[which]))
    ctx = run(PASS, graph)
    assert "concat" in names(graph)
    assert any("is used 2 times" in text for text in remarks(ctx))
