"""compare(): what is equal, how far apart is within a class, and where the first difference is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dmlc.verifying import compare
from dmlc.verifying.comparison import Comparison
from dmlc.verifying.tolerance import TOLERANCES
from tests.rows import each_row

NAN, INF = np.nan, np.inf
FLOAT_DTYPES = [np.float16, np.float32, np.float64]


def one(a: Any, b: Any, allowed: str = "reassociates", **options: Any) -> Comparison:
    return compare({"y": a}, {"y": b}, allowed, **options)["y"]


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def test_nan_and_zeros() -> None:
    assert one(f32(NAN, -0.0, INF), f32(-NAN, 0.0, INF), "exact").status == "exact"
    assert one(f32(-0.0, 0.0), f32(0.0, 0.0), "exact").zeros == 1


@each_row(
    ("a", "b"),
    [(NAN, 1.0), (1.0, NAN), (INF, -INF), (INF, 3.4e38), (3.4e38, INF), (NAN, INF), (0.0, NAN)],
)
@each_row("allowed", ["exact", "reassociates", "range"])
def test_nan_and_infinities_stay_where_they_are(a: float, b: float, allowed: str) -> None:
    found = one(f32(5, a), f32(5, b), allowed)
    assert found.status == "different"
    assert found.difference is not None
    assert found.difference.index == (1,)
    assert found.difference.what == "NaN or infinity at another place"


def test_one_unit_in_the_last_place() -> None:
    a = f32(1.0, 2.0, 4.0)
    b = np.nextafter(a, np.float32(9))
    found = one(a, b)
    assert found.status == "within"
    assert found.errors.ulp == 1
    assert found.errors.absolute == pytest.approx(4.76837158e-07)
    assert found.errors.relative == pytest.approx(2**-23)
    exact = one(a, b, "exact")
    assert exact.status == "different"
    assert str(exact.difference) == "values differ at [0]: 1 became 1.00000012 (3 of 3 elements)"


def test_units_across_zero_and_types() -> None:
    least = np.float32(1e-45)
    assert one(f32(-least), f32(least)).errors.ulp == 2
    assert one(np.array([1.0], np.float16), np.array([1.002], np.float16)).errors.ulp == 2
    assert one(np.array([1.0]), np.array([1.0 + 2**-52])).errors.ulp == 1
    assert one(f32(1.0), f32(1.0 + 2**-7), kinds={"y": "bfloat16"}).errors.ulp == 1


def test_small_elements_are_held_against_the_largest() -> None:
    assert one(f32(1e6, 1e-3), f32(1e6, 0.0)).status == "within"
    assert one(f32(1, 1e-3), f32(1, 0.0)).status == "different"


def test_integers_bools_texts() -> None:
    a = np.array([[1, 2], [3, 4]])
    found = one(a, np.array([[1, 2], [5, 4]]))
    assert found.difference is not None
    assert (found.difference.index, found.difference.a, found.difference.b) == ((1, 0), 3, 5)
    assert found.errors.absolute == 2
    assert one(a, a).status == "exact"
    assert one(np.array([True]), np.array([False])).status == "different"
    assert one(np.array(["a", "b"], object), np.array(["a", "c"])).status == "different"
    assert one(np.array(["a"], object), np.array(["a"])).status == "exact"


def test_types_shapes_names() -> None:
    assert "dtype float32 became float64" in str(one(f32(1), np.array([1.0])).difference)
    assert "shape [1] became [1, 1]" in str(one(f32(1), f32(1).reshape(1, 1)).difference)
    both = compare({"a": f32(1)}, {"b": f32(1)})
    assert {name: found.status for name, found in both.items()} == {"a": "different", "b": "different"}
    assert one(np.float32(3), np.float32(3)).status == "exact"
    assert one(np.zeros((0, 3)), np.zeros((0, 3))).status == "exact"


def test_parts() -> None:
    assert one([f32(1), f32(2)], [f32(1), f32(2)]).status == "exact"
    found = one([f32(1), f32(2, 3)], [f32(1), f32(2, 4)])
    assert found.difference is not None
    assert found.difference.index == (1, 1)
    assert one([f32(1)], [f32(1), f32(1)]).status == "different"
    assert one({1: 0.5, 2: 0.25}, {1: 0.5, 2: 0.25}).status == "exact"
    assert one({1: 0.5}, {2: 0.5}).status == "different"
    assert one(None, None).status == "exact"
    assert one(None, f32(1)).status == "different"
    assert one([f32(1)], f32(1)).status == "different"


def test_complex_numbers() -> None:
    a = np.array([1 + 2j], np.complex64)
    assert one(a, a).status == "exact"
    assert one(a, np.array([1 - 2j], np.complex64)).status == "different"


def test_every_tolerance_has_a_reason() -> None:
    assert all(row.reason for row in TOLERANCES.values())


def test_unknown_classes() -> None:
    with pytest.raises(ValueError, match="no class"):
        compare({}, {}, "strict")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    dtype = draw(st.sampled_from([*FLOAT_DTYPES, np.int32, np.uint8, np.bool_]))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    elements = hnp.from_dtype(np.dtype(dtype))
    a = draw(hnp.arrays(dtype, shape, elements=elements))
    b = draw(st.one_of(st.just(a.copy()), hnp.arrays(dtype, shape, elements=elements)))
    return a, b


def slow_equal(x: Any, y: Any) -> bool:
    return bool(x == y) or (x != x and y != y)


@settings(max_examples=75)
@given(pairs())
def test_against_one_element_at_a_time(pair: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
    a, b = pair
    unequal = [index for index in np.ndindex(a.shape) if not slow_equal(a[index], b[index])]
    exact = one(a, b, "exact")
    assert (exact.status == "exact") == (not unequal)
    if unequal:
        assert exact.difference is not None
        assert exact.difference.index == unequal[0]
        assert exact.difference.count == len(unequal)
    loose = one(a, b)
    if not unequal:
        assert loose.status == "exact"
        return
    finite = [float(abs(a[i])) for i in np.ndindex(a.shape) if a.dtype.kind == "f" and np.isfinite(a[i])]
    top = max(finite, default=0.0)
    outside = []
    for index in unequal:
        x, y = a[index], b[index]
        if a.dtype.kind == "f" and np.isfinite(x) and np.isfinite(y):
            row = TOLERANCES[a.dtype.name]
            if abs(float(x) - float(y)) <= row.relative * abs(float(x)) + (row.scaled * top + row.least):
                continue
        outside.append(index)
    assert (loose.status == "different") == bool(outside)
    if outside:
        assert loose.difference is not None
        assert loose.difference.index == outside[0]


@settings(max_examples=40)
@given(pairs())
def test_equality_has_no_direction(pair: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
    a, b = pair
    assert one(a, b, "exact").status == one(b, a, "exact").status
    assert one(a, a).status == "exact"
    assert one(a, b).errors.ulp == one(b, a).errors.ulp
    assert one(a, b).errors.absolute == one(b, a).errors.absolute


@settings(max_examples=50)
@given(
    hnp.arrays(np.float32, hnp.array_shapes(max_dims=2, max_side=5), elements=hnp.from_dtype(np.dtype(np.float32))),
    st.integers(-3, 3),
)
def test_a_few_units_are_always_within(a: np.ndarray[Any, Any], units: int) -> None:
    b = a
    for _ in range(abs(units)):
        with np.errstate(over="ignore"):
            b = np.where(np.isfinite(b), np.nextafter(b, np.float32(np.sign(units) * np.inf)), b)
    if np.isfinite(b).sum() == np.isfinite(a).sum():
        assert one(a, b).status in ("exact", "within")


INT64 = np.iinfo(np.int64)
#: Two values that differ, and the largest absolute, relative error and units in the last place.
LARGEST_ERRORS: list[tuple[Any, Any, tuple[float | None, float | None, float | None]]] = [
    (f32(1, 2), f32(1, 2), (0, 0, 0)),
    (f32(1, 2), f32(1, 5), (3, 1.5, 10485760)),
    (f32(0, 1), f32(3, 1), (3, None, 1077936128)),
    (f32(NAN, 1), f32(2, 1), (None, None, None)),
    (f32(INF, 1), f32(1, 1), (None, None, None)),
    (f32(INF), f32(-INF), (None, None, None)),
    (f32(NAN, 1), f32(2, 4), (3, 3, 16777216)),
    (np.array([1e308]), np.array([-1e308]), (np.finfo(float).max, 2, 2 * 0x7FE1CCF385EBC8A0)),
    (np.array([4, 1]), np.array([1, 1]), (3, 0.75, None)),
    (np.array([0]), np.array([-5]), (5, None, None)),
    (np.array([INT64.max]), np.array([INT64.max - 1]), (1, 1 / INT64.max, None)),
    (np.array([INT64.min]), np.array([INT64.max]), (2.0**64, 2, None)),
    (np.array([0], np.uint8), np.array([255], np.uint8), (255, None, None)),
    (np.array([True, False]), np.array([True, True]), (None, None, None)),
    (np.array(["a"], object), np.array(["b"], object), (None, None, None)),
    (f32(1), f32(1, 2), (None, None, None)),
    (f32(1), np.array([1.0]), (None, None, None)),
    ([f32(1)], [f32(1), f32(2)], (None, None, None)),
    ([f32(1), f32(2)], [f32(1), f32(4)], (2, 1, 8388608)),
    ({1: f32(1)}, {2: f32(1)}, (None, None, None)),
    (None, f32(1), (None, None, None)),
]


@each_row("allowed", ["exact", "reassociates"])
@each_row(("a", "b", "expected"), LARGEST_ERRORS)
def test_largest_errors(a: Any, b: Any, expected: tuple[float | None, ...], allowed: str) -> None:
    """0 where nothing differs, None where what differs is not a pair of numbers."""
    found = one(a, b, allowed)
    assert found.status == ("exact" if expected == (0, 0, 0) else "different")
    errors = (found.errors.absolute, found.errors.relative, found.errors.ulp)
    assert [x is None for x in errors] == [x is None for x in expected]
    assert [x for x in errors if x is not None] == pytest.approx([x for x in expected if x is not None])


def test_the_largest_error_of_a_missing_output() -> None:
    for found in compare({"a": f32(1)}, {"b": f32(1)}).values():
        assert (found.errors.absolute, found.errors.relative, found.errors.ulp) == (None, None, None)
