"""A part of ``python -m tools.exhaustive``, the same one every time."""

import random

import numpy as np
import pytest

from tests.rows import each_row
from tools.exhaustive.selection_cases import Case, cases, problems, rows, weak_orderings, with_dtypes

OPS = ("argmax", "argmin", "top_k", "hardmax")
SAMPLE = [case for op in OPS for case in random.Random(op).sample(list(with_dtypes(cases((op,)), 1)), 2)]


@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_every_order_of_a_few_values(case: Case) -> None:
    orderings, ways, wrong = problems(case)
    assert orderings and ways >= 4
    assert not wrong, "\n".join(wrong[:5])


def test_the_orderings_are_all_there_are() -> None:
    assert [len(weak_orderings(n)) for n in range(1, 7)] == [1, 3, 13, 75, 541, 4683]  # OEIS A000670


def test_signs_and_infinities_are_among_them() -> None:
    x = rows(3, "f32")
    assert (np.signbit(x) & (x == 0)).any() and np.isposinf(x).any() and np.isneginf(x).any()
    assert {(row.min(), row.max()) for row in rows(2, "i8")} >= {(-128, 127)}


def test_a_wrong_tie_is_found() -> None:
    """The oracle for the last of equals does not agree with a program that takes the first."""
    last = Case("argmax", (2, 3), (1,), "f32", last=True)
    first = Case("argmax", (2, 3), (1,), "f32")
    assert not np.array_equal(last.expected()[0], first.expected()[0])


@each_row("case", [case for case in SAMPLE if case.group <= 4], ids=str)
def test_the_oracle_says_the_same_of_rows_and_of_the_tensor_made_of_them(case: Case) -> None:
    for laid, whole in zip(case.expected(), case.asked(case.data(), [axis + 1 for axis in case.axes]), strict=True):
        assert laid.dtype == whole.dtype and laid.shape == whole.shape and np.array_equal(laid, whole)
