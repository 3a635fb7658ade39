"""The dispatch table: counted facts, and what the code makes of them."""

from __future__ import annotations

from dmlc.ir import symbol
from dmlc.targets import dispatch_row, dispatches
from dmlc.targets.target import load_data
from tests.rows import each_row

N = symbol("N")


@each_row(
    ("op", "shape", "axes", "expected"),
    [
        ("Add", (2, 3), [0, 1], 1),
        ("Reshape", (2, 3), None, 0),
        ("Transpose", (2, 3), None, 1),
        ("Hardmax", (2, 3), [1], 2),
        ("ReduceSum", (2, 3, 4), [1, 2], 1),
        ("ReduceSum", (2, 3, 4), [-1, 1], 1),
        ("ReduceSum", (2, 3, 4), [0, 2], 2),
        ("ReduceSum", (2, 1, 4), [0, 2], 1),  # an axis of one element separates nothing
        ("ReduceSum", (2, 3, 4, 5, 6), [0, 2, 4], 2),
        ("ReduceSum", None, None, 1),
        ("ReduceSum", (), [], 1),
        ("TopK", (2, 8, 16, 32), [-1], 257),
        ("TopK", (2, 8, 16, 32), [1], 1025),
        ("TopK", (N, 8), [1], N + 1),
        ("TopK", (N, 8), [0], 9),
        ("TopK", None, [0], None),
        ("TopK", (2, 8), [2], None),
    ],
)
def test_dispatches(op: str, shape: tuple | None, axes: list[int] | None, expected: object) -> None:
    assert dispatches(op, shape, axes) == expected


def test_every_row_has_a_source_and_no_operator_two_rows() -> None:
    rows = load_data("dispatch")["rows"]
    names = [name for row in rows for name in row["operators"]]
    assert len(names) == len(set(names))
    assert all(dispatch_row(name).source for name in [*names, "Add"])
