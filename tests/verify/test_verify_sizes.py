"""Sizes that are tried until the original runs."""

from __future__ import annotations

from itertools import islice

from dmlc.ir import Dim, evaluate, symbol
from dmlc.verify.sizes import size_candidates
from tests.rows import each_row

A, B, N = symbol("a"), symbol("b"), symbol("n")


def elements(shape: tuple[Dim, ...], binding: dict[str, int]) -> int:
    out = 1
    for size in shape:
        out *= evaluate(size, binding)
    return out


@each_row("shape", [(2, 3, A, 8, B), (N, 64, A, B), (A, B), (N, 3, A, A, A)])
def test_sizes_that_grow_have_a_budget_of_elements(shape: tuple[Dim, ...]) -> None:
    """A model that takes none of them is run with each, four times where integers are fed."""
    found = list(islice(size_candidates([shape], {}, (), 0), 20))
    assert len(found) == 20
    assert max(elements(shape, binding) for binding in found) <= 1 << 19
    assert sum(elements(shape, binding) for binding in found) <= 1 << 21


@each_row("size", [32, 64, 128, 224, 256])
def test_sizes_of_images_are_tried(size: int) -> None:
    found = list(islice(size_candidates([(N, 3, A, B)], {}, (), 0), 20))
    assert any((binding["a"], binding["b"]) == (size, size) for binding in found)


def test_a_large_fixed_size_is_tried_with_small_batches() -> None:
    found = list(islice(size_candidates([(N, 1 << 20)], {}, (), 0), 20))
    assert {binding["n"] for binding in found} >= {1, 2, 3, 4}
