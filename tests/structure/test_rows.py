"""``tests.rows``: one test runs all rows of a table and reports each one that fails."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import RowsFailed, each_row


def test_each_row_that_fails_has_a_paragraph() -> None:
    seen = []

    @each_row(("a", "b"), [(1, 1), (1, 2), (3, 4), (5, 5)])
    def test(a: int, b: int) -> None:
        seen.append((a, b))
        assert a == b, f"{a} differs from {b}"

    with pytest.raises(RowsFailed) as caught:
        test()
    first, *others = str(caught.value).splitlines()
    assert first == "2 of 4 rows fail"
    assert [row for row in others if row.startswith("[")] == [
        f"[{name}] test_rows.py:{inspect.getsourcelines(test)[1] + 3}: AssertionError: {message}"
        for name, message in (("1-2", "1 differs from 2"), ("3-4", "3 differs from 4"))
    ]
    assert isinstance(caught.value.__cause__, AssertionError)
    assert seen == [(1, 1), (1, 2), (3, 4), (5, 5)]


def test_tables_are_combined() -> None:
    @each_row("op", [SimpleNamespace(name="add"), SimpleNamespace(name="mul")])
    @each_row("rank", [0, 1], ids=["scalar", "vector"])
    @each_row("dtype", [pytest.param("f16", id="half"), pytest.param("f32")])
    def test(op: SimpleNamespace, rank: int, dtype: str) -> None:
        if rank and op.name == "mul":
            raise KeyError(dtype)

    with pytest.raises(RowsFailed, match="2 of 8 rows fail") as caught:
        test()
    assert [name for name, _ in caught.value.failures] == ["mul-vector-half", "mul-vector-f32"]


@pytest.mark.parametrize("left", [1, 2])
@each_row("right", [[3], [4]], ids=str)
def test_parametrize_and_fixtures_stay(left: int, right: list[int], request: pytest.FixtureRequest) -> None:
    assert f"[{left}]" in request.node.name
    assert right in ([3], [4])


def test_rows_of_a_property() -> None:
    @each_row("least", [0, 7])
    @given(number=st.integers(0, 100))
    def test(least: int, number: int) -> None:
        assert number >= least

    with pytest.raises(RowsFailed, match=r"(?s)1 of 2 rows fail\n\[7\] .*number=0"):
        test()


def test_what_does_not_raise_is_a_row_that_fails() -> None:
    @each_row("call", [int, float])
    def test(call: type) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            call("2.5")

    with pytest.raises(RowsFailed, match=r"(?s)1 of 2 rows fail\n\[float\] .*DID NOT RAISE"):
        test()


def test_a_table_without_rows_is_wrong() -> None:
    with pytest.raises(AssertionError, match="tests nothing"):
        each_row("a", [])
