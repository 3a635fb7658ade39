"""Every example of the four DirectML operator pages, as the reference gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops_calls import run

from dmlc.ops import OPERATIONS
from tests.rows import each_row

SQUARE = [[1, 2, 3], [3, 0, 4], [2, 5, 2]]
RISING = [[[[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]]
TIED = [[[[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]]
CUBE = [[[12, 0], [-101, 11]], [[3, 234], [0, -101]]]


@each_row(
    ("name", "x", "keywords", "expected"),
    [
        ("argmax", SQUARE, {"axes": [0], "axis_direction": "increasing"}, [[1, 2, 1]]),
        ("argmax", SQUARE, {"axes": [1], "axis_direction": "increasing"}, [[2], [2], [1]]),
        ("argmax", SQUARE, {"axes": [0, 1], "axis_direction": "increasing"}, [[7]]),
        ("argmax", [3, 2, 1, 2, 3], {"axis_direction": "increasing"}, [0]),
        ("argmax", [3, 2, 1, 2, 3], {"axis_direction": "decreasing"}, [4]),
        ("argmin", SQUARE, {"axes": [0], "axis_direction": "increasing"}, [[0, 1, 2]]),
        ("argmin", SQUARE, {"axes": [1], "axis_direction": "increasing"}, [[0], [1], [0]]),
        ("argmin", SQUARE, {"axes": [0, 1], "axis_direction": "increasing"}, [[4]]),
        ("argmin", [1, 2, 3, 2, 1], {"axis_direction": "increasing"}, [0]),
        ("argmin", [1, 2, 3, 2, 1], {"axis_direction": "decreasing"}, [4]),
    ],
)
def test_arg_pages(name: str, x: Any, keywords: dict[str, Any], expected: Any) -> None:
    result = run(OPERATIONS[name], np.array(x, np.float32), **keywords)
    assert result.dtype == np.uint32
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("x", "axis", "k", "direction", "values", "indices"),
    [
        (RISING, 3, 2, "decreasing", [[11, 10], [9, 8], [7, 6]], [[3, 2], [2, 3], [3, 2]]),
        (RISING, 2, 2, "decreasing", [[4, 5, 10, 11], [3, 2, 9, 8]], [[2, 2, 0, 0], [1, 1, 1, 1]]),
        (TIED, 3, 3, "decreasing", [[3, 2, 2], [5, 5, 4], [6, 6, 6]], [[3, 1, 2], [2, 3, 1], [0, 1, 2]]),
        (TIED, 3, 3, "increasing", [[1, 2, 2], [3, 4, 5], [6, 6, 6]], [[0, 1, 2], [0, 1, 2], [0, 1, 2]]),
    ],
)
def test_top_k_page(x: Any, axis: int, k: int, direction: str, values: Any, indices: Any) -> None:
    got = run(OPERATIONS["top_k"], np.array(x, np.float32), k=k, axis=axis, axis_direction=direction)
    assert [r.dtype for r in got] == [np.float32, np.uint32]
    assert [r.tolist() for r in got] == [[[values]], [[indices]]]


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ([1], [[[1, 0], [0, 1]], [[1, 1], [0, 0]]]),
        ([0], [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]),
        ([0, 2], [[[0, 0], [0, 1]], [[0, 1], [0, 0]]]),
    ],
)
def test_hardmax_page(axes: list[int], expected: Any) -> None:
    assert run(OPERATIONS["hardmax"], np.array(CUBE, np.float32), axes=axes).tolist() == expected
