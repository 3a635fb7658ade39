"""Sizes that are tried until the original runs."""

from __future__ import annotations

from itertools import islice

from dmlc.ir import Dim, evaluate, symbol
from dmlc.verifying.sizes import empty_candidates, size_candidates
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


def empties(usual: dict[str, int], least: int = 0) -> list[dict[str, int]]:
    return list(empty_candidates([(A, N), (B, 1)], {}, (), usual, least=least))


def test_equal_first_axes_are_empty_together_first() -> None:
    """ONNX Runtime's Concat takes [0, 1] beside [3, 1], and leaves the elements of the first undefined."""
    found = empties({"a": 3, "n": 3, "b": 3})
    assert found[0] == {"a": 0, "n": 3, "b": 0}
    assert found[1:] == [{"a": 0, "n": 3, "b": 3}, {"a": 3, "n": 0, "b": 3}, {"a": 3, "n": 3, "b": 0}]


def test_different_first_axes_are_empty_one_by_one() -> None:
    assert empties({"a": 2, "n": 3, "b": 4})[0] == {"a": 0, "n": 3, "b": 4}
    assert empties({"a": 3, "n": 3, "b": 3}, least=1) == []
