"""The algebra that each reduction declares holds for its reference, on numbers that NumPy combines by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlc.ir import NUMERIC, DType
from dmlc.ir.dtype import f64, i32
from dmlc.ops.reduce import DUALS, GOES_ON, MERGES, REDUCTIONS, ReduceAttributes, Reduction
from tests.rows import each_row

BEFORE = {"": lambda x: x, "abs": np.abs, "square": np.square, "exp": np.exp}
AFTER = {"": lambda x: x, "sqrt": np.sqrt, "log": np.log}
#: Numbers whose sums are positive, so that each logarithm is defined.
NUMBERS = st.lists(st.integers(-3, 8), min_size=1, max_size=6).filter(lambda found: sum(found) > 0)
each = each_row("op", REDUCTIONS, ids=lambda op: op.name)
#: Equations of small integers: the first few examples would show that one does not hold.
few = settings(max_examples=20)


def reduced(op: Reduction, x: Any, dtype: DType = f64) -> Any:
    """The result over all elements."""
    array = np.asarray(x, dtype=dtype.numpy)
    with np.errstate(all="ignore"):
        return op.reference(ReduceAttributes(axes=tuple(range(array.ndim)), keepdims=False), array)


@each
@few
@given(numbers=NUMBERS)
def test_a_reduction_is_a_total_between_two_elementwise_parts(op: Reduction, numbers: list[int]) -> None:
    total = reduced(op.base, BEFORE[op.before](np.asarray(numbers, np.float64)))
    np.testing.assert_allclose(reduced(op, numbers), AFTER[op.after](total), rtol=1e-12)
    assert not (op.base.before or op.base.after)


@each
@few
@given(numbers=NUMBERS)
def test_a_neutral_element_changes_nothing(op: Reduction, numbers: list[int]) -> None:
    neutral = op.neutral_of(f64)
    if neutral is not None:
        np.testing.assert_array_equal(reduced(op, [*numbers, neutral]), reduced(op, numbers))
    else:
        assert op.name == "reduce_mean"


@each
@each_row("dtype", NUMERIC, ids=str)
def test_the_result_over_nothing(op: Reduction, dtype: DType) -> None:
    if dtype in op.operands[0].dtypes and (dtype.is_float or op.name != "reduce_mean"):
        expected = np.asarray(op.of_nothing(dtype), dtype=dtype.numpy)
        np.testing.assert_array_equal(reduced(op, np.zeros(0), dtype), expected)


@each
@few
@given(numbers=NUMBERS)
def test_one_element_is_left_to_the_elementwise_part(op: Reduction, numbers: list[int]) -> None:
    for number in (abs(n) + 1 for n in numbers):
        plain = number * number if (op.before, op.after) == ("square", "") else number
        alone = plain if op.alone is None else BEFORE.get(op.alone.name, np.log)(number)
        np.testing.assert_allclose(reduced(op, [number]), alone, rtol=1e-12)


@each
@few
@given(left=NUMBERS, right=NUMBERS)
def test_totals_are_joined(op: Reduction, left: list[int], right: list[int]) -> None:
    if op.join is not None:
        join = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[op.join.name]
        assert reduced(op, [*left, *right], i32) == join(reduced(op, left, i32), reduced(op, right, i32))


@each_row(("op", "total"), GOES_ON.items(), ids=lambda op: op.name)
@few
@given(rows=st.lists(st.lists(st.integers(-8, 8), min_size=3, max_size=3), min_size=1, max_size=4))
def test_a_total_goes_on_from_partial_results(op: Reduction, total: Reduction, rows: list[list[int]]) -> None:
    partial = [reduced(op, row) for row in rows]
    np.testing.assert_allclose(reduced(total, partial), reduced(op, rows), rtol=1e-12, atol=1e-12)


@each_row(("pair", "merged"), MERGES.items(), ids=lambda found: getattr(found, "name", None))
@few
@given(rows=st.lists(st.lists(st.integers(-3, 8), min_size=3, max_size=3), min_size=1, max_size=4))
def test_a_merged_reduction_is_one_of_the_other(
    pair: tuple[Reduction, Reduction], merged: Reduction, rows: list[list[int]]
) -> None:
    outer, inner = pair
    partial = [reduced(inner, row) for row in rows]
    np.testing.assert_allclose(reduced(outer, partial), reduced(merged, rows), rtol=1e-11, atol=1e-11)


@each_row("pair", [(a, b) for a in REDUCTIONS for b in REDUCTIONS if (a, b) not in MERGES],
                         ids=lambda pair: f"{pair[0].name}-{pair[1].name}")  # fmt: skip
def test_no_reduction_is_the_outer_one_of_the_inner_one(pair: tuple[Reduction, Reduction]) -> None:
    outer, inner = pair
    rows = np.asarray([[-2.0, 3.0, 0.5], [4.0, -1.0, 7.0]])
    found = reduced(outer, [reduced(inner, row) for row in rows])
    negative = reduced(outer, [reduced(inner, row) for row in -rows])
    for op in REDUCTIONS:
        same = np.allclose(found, reduced(op, rows)) and np.allclose(negative, reduced(op, -rows), equal_nan=False)
        assert not same, op.name


@each_row(("op", "dual"), DUALS.items(), ids=lambda op: op.name)
@few
@given(numbers=NUMBERS)
def test_the_dual_of_the_negatives_is_the_negative(op: Reduction, dual: Reduction, numbers: list[int]) -> None:
    assert reduced(dual, [-n for n in numbers]) == -reduced(op, numbers)
    assert reduced(op, numbers) in numbers
