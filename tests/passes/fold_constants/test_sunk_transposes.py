"""Transposes that go behind an operation: positive, near-miss and numerical tests."""

from __future__ import annotations

from collections.abc import Callable

from pass_helpers import Building, check_numbers, names, remarks, run

from dmlc.ir import Value
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.elementwise import RELU
from dmlc.ops.move import CONCAT, RESHAPE, SLICE, TRANSPOSE
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()
Made = Callable[[Building], Value]


def left(made: Made) -> list[str]:
    """The nodes that are left; the numbers stay."""
    b = Building(n=(1, 5))
    check_numbers(PASS, b.done(made(b)), binding={"n": 2})
    return names(b.graph)


def turned(b: Building, name: str, *perm: int, shape: tuple[int, ...] = (2, 3, 4)) -> Value:
    return b(TRANSPOSE, b.input(name, shape), perm=list(perm))


@each_row(
    "made",
    [
        lambda b: b(ADD, turned(b, "x", 0, 2, 1), turned(b, "y", 0, 2, 1)),
        lambda b: b(ADD, turned(b, "x", 1, 2, 0), turned(b, "y", 1, 2, 0, shape=(1, 3, 1))),
        lambda b: b(MUL, b(ADD, turned(b, "x", 2, 0, 1), turned(b, "y", 2, 0, 1)), turned(b, "z", 2, 0, 1)),
        lambda b: b(CONCAT, turned(b, "x", 2, 0, 1), turned(b, "y", 2, 0, 1, shape=(7, 3, 4)), axis=1),
    ],
)
def test_transposes_of_one_order_become_one(made: Made) -> None:
    found = left(made)
    assert found.count("transpose") == 1
    assert found[-1] == "transpose"


@each_row(
    "made",
    [
        lambda b: b(ADD, turned(b, "x", 0, 2, 1), turned(b, "y", 1, 2, 0, shape=(3, 2, 4))),
        lambda b: b(ADD, turned(b, "x", 0, 2, 1), b.input("y", (2, 4, 3))),
        lambda b: b(CONCAT, turned(b, "x", 0, 2, 1), b.input("y", (2, 4, 3)), axis=0),
        lambda b: b(RESHAPE, turned(b, "x", 0, 2, 1), shape=[2, 2, 6]),
        lambda b: b(TRANSPOSE, b(SLICE, b.input("x", (2, 3, 4)), starts=[1], ends=[3], axes=[1]), perm=[2, 0, 1]),
    ],
)
def test_others_stay(made: Made) -> None:
    b = Building()
    graph = b.done(made(b))
    before = names(graph)
    run(PASS, graph)
    assert names(graph) == before


def test_a_transpose_that_others_read_stays() -> None:
    b = Building()
    x, y = turned(b, "x", 0, 2, 1), turned(b, "y", 0, 2, 1)
    graph = b.done(b(ADD, x, y), b(RELU, x))
    ctx = run(PASS, graph)
    assert names(graph).count("transpose") == 2
    assert any("is used 2 times" in text for text in remarks(ctx))


def test_ones_that_move_behind_a_transpose_are_moved_by_it() -> None:
    def made(b: Building) -> Value:
        return b(RESHAPE, turned(b, "x", 0, 2, 3, 1, shape=(1, 6, 1, 5)), shape=[1, 5, 6, 1])

    assert left(made) == ["transpose"]


def test_a_slice_between_two_transposes_is_cut_before_both() -> None:
    def made(b: Building, second: tuple[int, ...]) -> Value:
        first = turned(b, "x", 1, 2, 0)
        return b(TRANSPOSE, b(SLICE, first, starts=[1, 0], ends=[3, 1], axes=[0, 2]), perm=list(second))

    assert left(lambda b: made(b, (2, 0, 1))) == ["slice"]
    assert left(lambda b: made(b, (1, 0, 2))) == ["slice", "transpose"]


@each_row(
    ("split", "second", "expected"),
    [
        ([2, 5, 3, 4], (0, 2, 3, 1), ["reshape"]),
        ([2, 5, 12, 1], (0, 2, 1, 3), ["reshape"]),
        ([2, 5, 3, 4], (2, 0, 1, 3), ["reshape", "transpose"]),
        ([10, 12], (1, 0), ["transpose", "reshape", "transpose"]),
    ],
)
def test_a_reshape_between_two_transposes_comes_before_both(
    split: list[int], second: tuple[int, ...], expected: list[str]
) -> None:
    def made(b: Building) -> Value:
        first = turned(b, "x", 0, 2, 1, shape=(2, 12, 5))
        return b(TRANSPOSE, b(RESHAPE, first, shape=split), perm=list(second))

    assert left(made) == expected
