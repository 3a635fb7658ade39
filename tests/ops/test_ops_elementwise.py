"""Each elementwise reference against Python's own arithmetic, one element at a time."""

from __future__ import annotations

import math

import numpy as np
from ops_calls import code_of, run, types_of

from dmlc.ops import FAMILIES, OPERATIONS, PREFIX
from tests.rows import each_row
from tools.oracles import core
from tools.oracles.elements import UNARY

SIGNED = (*core.FLOATS, "i8", "i16", "i32", "i64")

#: The dtypes of each operation, from the language reference: floats, unless they are here.
DTYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(UNARY, core.FLOATS),
    "abs": core.NUMERIC,
    "sign": core.NUMERIC,
    "neg": SIGNED,
    "relu": SIGNED,
    "not": (*core.INTEGERS, "bool"),
}
SHAPES = [(), (3,), (2, 0), (2, 1, 3), (2, 2, 1, 3)]
SPECIALS = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.25, 1.0, -1.0, math.inf, -math.inf, math.nan, 20.0, -20.0]


def oracle(name: str, x: np.ndarray, dtype: str) -> np.ndarray:
    target = "bool" if name in ("is_nan", "is_inf") else dtype
    return core.build(x.shape, target, lambda at: UNARY[name](core.element(x, at), dtype))


def test_every_unary_operation_is_here() -> None:
    registered = {op.name: op for op in FAMILIES["Elementwise, one operand"]}
    assert set(DTYPES) == set(UNARY) == set(registered)
    assert set(registered) <= set(OPERATIONS)
    for name, op in registered.items():
        (operand,) = op.operands
        assert sorted(d.name for d in operand.dtypes) == sorted(DTYPES[name]), name


@each_row("name", UNARY)
def test_reference(name: str) -> None:
    for dtype in DTYPES[name]:
        for seed, shape in enumerate(SHAPES):
            x = core.sample(dtype, shape, seed, full=True)
            core.same(run(OPERATIONS[name], x), oracle(name, x, dtype))


@each_row("name", UNARY)
def test_specials(name: str) -> None:
    for dtype in DTYPES[name]:
        if core.is_float(dtype):
            x = np.array(SPECIALS, core.NUMPY[dtype])
        elif dtype == "bool":
            x = np.array([True, False])
        else:
            info = np.iinfo(core.NUMPY[dtype])
            x = np.array([info.min, info.max, 0, 1], core.NUMPY[dtype])
        core.same(run(OPERATIONS[name], x), oracle(name, x, dtype))


@each_row("name", UNARY)
def test_other_dtypes_are_refused(name: str) -> None:
    for dtype in core.ALL:
        expected = "" if dtype in DTYPES[name] else "E0309"
        assert code_of(OPERATIONS[name], f"{dtype}[2]") == expected, dtype


def test_f16_is_computed_in_f32_and_rounded_once() -> None:
    x = np.linspace(-4, 4, 257, dtype=np.float16)
    expected = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float16)
    np.testing.assert_array_equal(run(OPERATIONS["sigmoid"], x), expected)


def test_silu_of_a_large_number_below_0_is_no_zero() -> None:
    x = np.array([-99, -100], np.float32)
    expected = (x * np.exp(x.astype(np.float64))).astype(np.float32)
    np.testing.assert_allclose(run(OPERATIONS["silu"], x), expected, rtol=0.05)  # subnormal numbers have few bits


def test_round_halves_to_even() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    np.testing.assert_array_equal(run(OPERATIONS["round"], x), [-2, -2, 0, 0, 2, 2])


def test_prefix_signs() -> None:
    assert types_of(PREFIX["-"], "f32[N, 3]") == ["f32[N, 3]"]
    assert types_of(PREFIX["!"], "bool[]") == ["bool[]"]
    assert code_of(PREFIX["-"], "u32[2]") == "E0309"
    assert code_of(PREFIX["-"], "bool[2]") == "E0309"
    assert code_of(PREFIX["!"], "f32[2]") == "E0309"


def test_tests_of_floats_give_bool() -> None:
    assert types_of(OPERATIONS["is_nan"], "f16[2, N]") == ["bool[2, N]"]
