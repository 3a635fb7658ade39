"""Reshapes around matrix products and transposes that ``fold-constants`` drops: positive, near-miss and numerical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pass_helpers import Building, check_numbers, names, remarks, run

from dmlc.ir import Value
from dmlc.ops.elementwise import RELU
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()
PRODUCT, ONES = "matmul-between-reshapes", "ones-around-transpose"
Made = Callable[[Building], "Value | tuple[Value, ...]"]


def left(made: Made) -> list[str]:
    """The nodes that are left; the numbers stay."""
    b = Building(n=(1, 5), m=(1, 5))
    out = made(b)
    check_numbers(PASS, b.done(*(out if isinstance(out, tuple) else (out,))), binding={"n": 2, "m": 3})
    return names(b.graph)


def product(
    b: Building, x: Value, z: Value, *, merged: Any = 6, turned: bool = False, back: Any = (2, 3, 4, 5), rows: int = 4
) -> Value:
    """``x`` and ``z`` with their batches merged, multiplied, and split again."""
    first = b(RESHAPE, x, shape=[merged, rows, 8])
    second = b(RESHAPE, z, shape=[merged, 5, 8] if turned else [merged, 8, 5])
    second = b(TRANSPOSE, second, perm=[0, 2, 1]) if turned else second
    return b(RESHAPE, b(MATMUL, first, second), shape=list(back))


def test_a_merged_batch_is_split() -> None:
    assert left(lambda b: product(b, b.input("x", (2, 3, 4, 8)), b.input("z", (2, 3, 8, 5)))) == ["matmul"]


def test_a_batch_of_other_matrices_of_nothing_stays() -> None:
    def made(b: Building) -> Value:
        return product(b, b.input("x", (2, 3, 0, 8)), b.input("z", (2, 3, 8, 5)), rows=0, back=(7, 3, 0, 5))

    assert left(made) == ["reshape", "reshape", "matmul", "reshape"]


def test_a_merged_batch_of_an_open_size_is_split() -> None:
    def made(b: Building) -> Value:
        x, z = b.input("x", ("n", 3, 4, 8)), b.input("z", ("n", 3, 8, 5))
        n = x.shape[0]
        return product(b, x, z, merged=n * 3, back=(n, 3, 4, 5))

    assert left(made) == ["matmul"]


def test_a_transpose_of_the_last_axes_goes_along() -> None:
    def made(b: Building) -> Value:
        return product(b, b.input("x", (2, 3, 4, 8)), b.input("z", (2, 3, 5, 8)), turned=True)

    assert left(made) == ["transpose", "matmul"]


def test_an_operand_of_another_shape_keeps_its_reshape() -> None:
    assert left(lambda b: product(b, b.input("x", (2, 3, 32)), b.input("z", (2, 3, 8, 5)))) == ["reshape", "matmul"]


@pytest.mark.parametrize(("batch", "perm"), [((1, 6), (1, 0, 2)), ((6, 1), (1, 2, 0))])
def test_a_transpose_of_the_batch_goes_along_beside_an_axis_of_size_1(
    batch: tuple[int, int], perm: tuple[int, ...]
) -> None:
    """Rows come from a product of all heads: their reshape makes the axis too, so that no other node is needed."""

    def made(b: Building) -> Value:
        x, z = b.input("x", (*batch, 4, 8)), b.input("z", (8, 30))
        sizes = [6, 8, 5]
        z = b(TRANSPOSE, b(RESHAPE, z, shape=[sizes[perm.index(axis)] for axis in range(3)]), perm=perm)
        return b(RESHAPE, b(MATMUL, b(RESHAPE, x, shape=[6, 4, 8]), z), shape=[*batch, 4, 5])

    assert left(made) == ["reshape", "transpose", "matmul"]


def test_a_transpose_of_the_batch_stays_beside_other_sizes() -> None:
    def made(b: Building) -> Value:
        x, z = b.input("x", (2, 3, 4, 8)), b.input("z", (8, 30))
        z = b(TRANSPOSE, b(RESHAPE, z, shape=[8, 6, 5]), perm=[1, 0, 2])
        return b(RESHAPE, b(MATMUL, b(RESHAPE, x, shape=[6, 4, 8]), z), shape=[2, 3, 4, 5])

    assert left(made) == ["reshape", "transpose", "reshape", "matmul", "reshape"]


def test_a_unit_axis_that_is_added_and_taken_out_goes() -> None:
    def made(b: Building) -> Value:
        x = b(SQUEEZE, b.input("x", (1, 6, 4, 8)), axes=[0])
        z = b(SQUEEZE, b.input("z", (1, 6, 8, 5)), axes=[0])
        return b(UNSQUEEZE, b(MATMUL, x, z), axes=[0])

    assert left(made) == ["matmul"]


def _split_rows(b: Building) -> Value:
    return product(b, b.input("x", (2, 3, 4, 8)), b.input("z", (2, 3, 8, 5)), back=(6, 2, 2, 5))


def _merged_again(b: Building) -> Value:
    return product(b, b.input("x", (2, 3, 4, 8)), b.input("z", (2, 3, 8, 5)), back=(2, 3, 20))


def _five_axes(b: Building) -> Value:
    return product(b, b.input("x", (2, 3, 4, 8)), b.input("z", (2, 3, 8, 5)), back=(2, 3, 1, 4, 5))


def _five_axes_in_all(b: Building) -> Value:
    first = b(RESHAPE, b.input("x", (2, 3, 2, 4, 8)), shape=[6, 2, 4, 8])
    second = b(RESHAPE, b.input("z", (2, 3, 2, 8, 5)), shape=[6, 2, 8, 5])
    return b(RESHAPE, b(MATMUL, first, second), shape=[2, 3, 2, 4, 5])


def _broadcast(b: Building) -> Value:
    first = b(RESHAPE, b.input("x", (2, 3, 4, 8)), shape=[6, 4, 8])
    second = b(RESHAPE, b.input("z", (8, 5)), shape=[1, 8, 5])
    return b(RESHAPE, b(MATMUL, first, second), shape=[2, 3, 4, 5])


def _made_otherwise(b: Building) -> Value:
    first = b(RESHAPE, b.input("x", (2, 3, 4, 8)), shape=[6, 4, 8])
    return b(RESHAPE, b(MATMUL, first, b(RELU, b.input("z", (6, 8, 5)))), shape=[2, 3, 4, 5])


def _other_transpose(b: Building) -> Value:
    second = b(TRANSPOSE, b(RESHAPE, b.input("z", (8, 3, 10)), shape=[8, 6, 5]), perm=[1, 0, 2])
    first = b(RESHAPE, b.input("x", (2, 3, 4, 8)), shape=[6, 4, 8])
    return b(RESHAPE, b(MATMUL, first, second), shape=[2, 3, 4, 5])


def _two_open_sizes(b: Building) -> Value:
    x, z = b.input("x", ("m", "n", 32)), b.input("z", ("m", "n", 40))
    m, n = x.shape[:2]
    return product(b, x, z, merged=n * m, back=(n, m, 4, 5))


@each_row(
    "made",
    [
        _split_rows,
        _merged_again,
        _five_axes,
        _five_axes_in_all,
        _broadcast,
        _made_otherwise,
        _other_transpose,
        _two_open_sizes,
    ],
    ids=lambda made: made.__name__,
)
def test_other_products_stay(made: Made) -> None:
    b = Building(n=(1, 5), m=(1, 5))
    graph = b.done(made(b))
    before = names(graph)
    run(PASS, graph)
    assert names(graph) == before


@pytest.mark.parametrize("shared", ["product", "factor", "turned"])
def test_what_is_used_elsewhere_stays(shared: str) -> None:
    b = Building()
    first = b(RESHAPE, b.input("x", (2, 3, 4, 8)), shape=[6, 4, 8])
    plain = b(RESHAPE, b.input("z", (2, 3, 5, 8)), shape=[6, 5, 8])
    turned = b(TRANSPOSE, plain, perm=[0, 2, 1])
    inner = b(MATMUL, first, turned)
    other = {"product": inner, "factor": first, "turned": turned}[shared]
    graph = b.done(b(RESHAPE, inner, shape=[2, 3, 4, 5]), b(RELU, other))
    ctx = run(PASS, graph)
    assert names(graph).count("reshape") == 3
    assert any("is used 2 times" in text for text in remarks(ctx))


# --- axes of size 1


def moved(b: Building, x: Value, first: Any, perm: Any, last: Any) -> Value:
    return b(RESHAPE, b(TRANSPOSE, b(RESHAPE, x, shape=list(first)), perm=list(perm)), shape=list(last))


@each_row(
    ("first", "perm", "last"),
    [
        ((4, 7, 2, 1, 8), (0, 2, 1, 3, 4), (4, 2, 7, 8)),
        ((4, 1, 7, 2, 8), (0, 3, 2, 4, 1), (4, 2, 7, 8)),
        ((4, 7, 1, 2, 8, 1), (3, 2, 1, 5, 0, 4), (2, 7, 4, 8)),
    ],
)
def test_axes_of_size_1_are_not_made(first: Any, perm: Any, last: Any) -> None:
    assert left(lambda b: moved(b, b.input("x", (4, 7, 16)), first, perm, last)) == ["reshape", "transpose"]


def test_axes_of_size_1_beside_an_open_size() -> None:
    def made(b: Building) -> Value:
        x = b.input("x", ("n", 7, 16))
        n = x.shape[0]
        return moved(b, x, (n, 7, 2, 1, 8), (0, 2, 1, 3, 4), (n, 2, 7, 8))

    assert left(made) == ["reshape", "transpose"]


@each_row(
    ("first", "perm", "last"),
    [
        ((4, 7, 2, 8), (0, 2, 1, 3), (4, 2, 56)),
        ((4, 7, 2, 8), (0, 2, 1, 3), (4, 1, 2, 7, 8)),
        ((4, 7, 2, 1, 8), (0, 2, 1, 3, 4), (4, 14, 8)),
    ],
)
def test_other_axes_stay(first: Any, perm: Any, last: Any) -> None:
    expected = ["reshape", "transpose", "reshape"]
    assert left(lambda b: moved(b, b.input("x", (4, 7, 16)), first, perm, last)) == expected


def test_a_transpose_that_is_used_elsewhere_stays() -> None:
    def made(b: Building) -> tuple[Value, ...]:
        inner = b(TRANSPOSE, b(RESHAPE, b.input("x", (4, 7, 16)), shape=[4, 7, 2, 1, 8]), perm=[0, 2, 1, 3, 4])
        return b(RESHAPE, inner, shape=[4, 2, 7, 8]), b(RELU, inner)

    assert left(made).count("transpose") == 1
    assert left(made).count("reshape") == 2


def test_axes_of_size_1_beside_two_open_sizes_stay() -> None:
    def made(b: Building) -> Value:
        x = b.input("x", ("n", "m", 16))
        n, m = x.shape[:2]
        return moved(b, x, (m, n, 2, 1, 8), (0, 2, 1, 3, 4), (m, 2, n, 8))

    assert left(made) == ["reshape", "transpose", "reshape"]


def test_a_transpose_of_something_else_stays() -> None:
    def made(b: Building) -> Value:
        inner = b(TRANSPOSE, b(RELU, b.input("x", (4, 7, 2, 1, 8))), perm=[0, 2, 1, 3, 4])
        return b(RESHAPE, inner, shape=[4, 2, 7, 8])

    assert left(made) == ["relu", "transpose", "reshape"]
