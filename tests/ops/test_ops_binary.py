"""Each binary reference against Python's own arithmetic, one pair of elements at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_calls import code_of, run, types_of

from dmlc.ir import Operation
from dmlc.ops import FAMILIES, INFIX, OPERATIONS
from tests.rows import each_row
from tools.oracles import core
from tools.oracles.elements import BINARY, floored

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
BY_NAME: dict[str, Operation] = {op.name: op for op in INFIX.values()} | {n: OPERATIONS[n] for n in ("min", "max")}

DTYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BY_NAME, core.NUMERIC),
    **dict.fromkeys(("and", "or", "xor"), (*core.INTEGERS, "bool")),
    **dict.fromkeys(("equal", "not_equal"), core.ALL),
}
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((3,), ()),
    ((2, 3), (3,)),
    ((2, 1, 3), (4, 1)),
    ((2, 2, 1, 3), (1, 2, 2, 1)),
    ((0, 3), (1, 3)),
]
SPECIALS = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, math.inf, -math.inf, math.nan]


def called(name: str, dtype: str) -> Operation | str:
    """The operation as a program calls it: ``/`` takes floats, and ``onnx.Div`` is the quotient of integers."""
    return "Div" if name == "div" and dtype in core.INTEGERS else BY_NAME[name]


def oracle(name: str, a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    shape = core.broadcast_shape(a.shape, b.shape)
    kind = core.NUMPY[dtype]

    def rounded(x: float) -> float:
        return float(kind(x))

    def rule(at: tuple[int, ...]) -> object:
        left = core.element(a, core.broadcast_at(a.shape, at))
        right = core.element(b, core.broadcast_at(b.shape, at))
        if name == "floordiv":
            return floored(left, right, dtype, rounded)
        return BINARY[name](left, right, dtype)

    assert a.dtype == b.dtype == kind
    return core.build(shape, "bool" if name in COMPARISONS else dtype, rule)


def operands(name: str, dtype: str, shapes: tuple[tuple[int, ...], ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    a = core.sample(dtype, shapes[0], seed, full=name not in ("pow", "equal"))
    b = core.sample(dtype, shapes[1], seed + 100, full=name not in ("pow", "equal", "div"))
    if dtype in core.INTEGERS:
        if name in ("div", "floordiv", "mod"):
            b = np.where(b == 0, 3, b).astype(b.dtype)
        if name == "pow":
            b = np.where(b < 0, 5, b).astype(b.dtype)
    return a, b


def test_every_sign_is_here() -> None:
    signs = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^"]
    assert set(INFIX) == set(signs)
    assert set(BY_NAME) == {*BINARY, "floordiv"} == {op.name for op in FAMILIES["Elementwise, two operands"]}
    for op in FAMILIES["Elementwise, two operands"]:
        for operand in op.operands:
            assert sorted(d.name for d in operand.dtypes) == sorted(DTYPES[op.name]), op.name


@each_row("name", BY_NAME)
def test_reference(name: str) -> None:
    for dtype in DTYPES[name]:
        for seed, shapes in enumerate(SHAPES):
            a, b = operands(name, dtype, shapes, seed)
            core.same(run(called(name, dtype), a, b), oracle(name, a, b, dtype))


@each_row("name", BY_NAME)
def test_specials(name: str) -> None:
    pairs = list(itertools.product(SPECIALS, repeat=2))
    for dtype in DTYPES[name]:
        if core.is_float(dtype):
            a = np.array([p[0] for p in pairs], core.NUMPY[dtype])
            b = np.array([p[1] for p in pairs], core.NUMPY[dtype])
            core.same(run(BY_NAME[name], a, b), oracle(name, a, b, dtype))


@each_row("name", BY_NAME)
def test_other_dtypes_are_refused(name: str) -> None:
    for dtype in core.ALL:
        expected = "" if dtype in DTYPES[name] else "E0309"
        assert code_of(called(name, dtype), f"{dtype}[2]", f"{dtype}[2]") == expected, dtype


def test_a_quotient_of_integers_is_floored_truncated_or_cast() -> None:
    for dtype in core.INTEGERS:
        for operands in ((f"{dtype}[2]", f"{dtype}[2]"), (f"{dtype}[2]", 2), (7, f"{dtype}[2]")):
            assert code_of(INFIX["/"], *operands) == "E0343"
            assert code_of(INFIX["//"], *operands) == code_of("Div", *operands) == ""
    assert code_of(INFIX["/"], "f16[2]", 2) == code_of(INFIX["/"], 1, "f64[2]") == ""
    assert code_of(INFIX["/"], "i32[2]", 0.5) == code_of("Div", "i32[2]", 0.5) == "E0311"
    assert code_of("Div", "i32[2]", "i64[2]") == "E0310"


@each_row("name", ["add", "sub", "mul"])
@each_row("dtype", core.INTEGERS)
def test_integers_wrap(name: str, dtype: str) -> None:
    info = np.iinfo(core.NUMPY[dtype])
    values = [info.min, info.max, 0, 1, info.max // 2 + 1]
    pairs = list(itertools.product(values, repeat=2))
    a = np.array([p[0] for p in pairs], core.NUMPY[dtype])
    b = np.array([p[1] for p in pairs], core.NUMPY[dtype])
    np.testing.assert_array_equal(run(BY_NAME[name], a, b), oracle(name, a, b, dtype))


@settings(max_examples=60)
@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1).filter(bool))
def test_integer_division_identities(a: int, b: int) -> None:
    x, y = np.array(a, np.int32), np.array(b, np.int32)
    if (a, b) == (-(2**31), -1):
        return  # unspecified: the quotient is not in range
    quotient, floor, rest = (int(run(s, x, y)) for s in ("Div", INFIX["//"], INFIX["%"]))
    assert quotient == math.trunc(a / b)  # exact: both are below 2^53
    assert floor == a // b
    assert floor * b + rest == a
    assert rest == 0 or (rest < 0) == (b < 0)


def test_integer_powers_wrap_and_negative_exponents_truncate() -> None:
    base = np.array([3, 2, -2, 7], np.int32)
    assert run(INFIX["**"], base, np.array([21, 40, 31, 0], np.int32)).tolist() == [
        3**21 - 2 * 2**32,
        0,
        -(2**31),
        1,
    ]
    exponent = np.array(-3, np.int32)
    assert run(INFIX["**"], np.array([1, -1, 2, -5], np.int32), exponent).tolist() == [1, -1, 0, 0]


def test_division_by_zero_and_overflow_do_not_stop_the_reference() -> None:
    for op in ("Div", INFIX["//"], INFIX["%"]):
        out = run(op, np.array([5, -(2**31)], np.int32), np.array([0, -1], np.int32))
        assert out.dtype == np.int32


def test_f16_rounds_once() -> None:
    a = np.array(2049.0, np.float32).astype(np.float16)
    assert run(INFIX["*"], a, np.array(60000, np.float16)) == np.float16(np.inf)
    x = np.array([1.0009765625], np.float16)
    exact = x.astype(np.float64) ** 3
    np.testing.assert_array_equal(run(INFIX["**"], x, np.array(3, np.float16)), exact.astype(np.float16))


def test_floor_of_floats_is_that_of_the_rounded_quotient() -> None:
    assert run(INFIX["//"], np.float32([1, -1]), np.float32([0.1, 0.1])).tolist() == [10, -10]
    assert run(INFIX["//"], np.array(2047, np.float16), np.array(682.5, np.float16)).item() == 3  # 2.9993 rounds up


def test_comparisons_give_bool() -> None:
    for sign in ("==", "!=", "<", "<=", ">", ">="):
        assert types_of(INFIX[sign], "i32[N, 3]", "i32[3]") == ["bool[N, 3]"]


# --- broadcasting


def test_broadcast_types() -> None:
    add = INFIX["+"]
    assert types_of(add, "f32[N, 1, 3]", "f32[M, 3]") == ["f32[N, M, 3]"]
    assert types_of(add, "f32[]", "f32[N]") == ["f32[N]"]
    assert types_of(add, "f32[N]", 2) == ["f32[N]"]
    assert types_of(add, 0.5, "f16[2, N]") == ["f16[2, N]"]
    assert types_of(add, "f32[N]", "f32[M]", dims={"N": (4, 4), "M": (4, 4)}) == ["f32[M]"]
    assert types_of(add, "f32[N]", "f32[3]", dims={"N": (1, 1)}) == ["f32[3]"]
    assert types_of(add, "f32[N]", "f32[3]", dims={"N": (3, 3)}) == ["f32[3]"]


@pytest.mark.parametrize(
    ("a", "b"), [("f32[4, 3]", "f32[4]"), ("f32[N]", "f32[M]"), ("f32[N]", "f32[3]"), ("f32[0]", "f32[2]")]
)
def test_broadcast_errors(a: str, b: str) -> None:
    for op in BY_NAME.values():
        dtype = "i32" if op.name in ("and", "or", "xor") else "f32"
        assert code_of(op, a.replace("f32", dtype), b.replace("f32", dtype)) == "E0313"


# --- constants that make no sense


@pytest.mark.parametrize("op", ["Div", INFIX["//"], INFIX["%"]], ids=str)
def test_division_by_a_constant_zero(op: Operation | str) -> None:
    assert code_of(op, "i32[4]", 0) == "E0319"
    assert code_of(op, "u8[4]", 0) == "E0319"
    assert code_of(op, "i32[4]", 2) == ""
    assert code_of(INFIX["/"] if op == "Div" else op, "f32[4]", 0) == ""
    assert code_of(op, 0, "i32[4]") == ""
    assert code_of(INFIX["/"], "i32[4]", 0) == "E0319"


def test_negative_constant_power() -> None:
    assert code_of(INFIX["**"], "i32[4]", -1) == "E0320"
    assert code_of(OPERATIONS["pow"], "i32[4]", -1) == "E0320"
    assert code_of(INFIX["**"], "i32[4]", 2) == ""
    assert code_of(INFIX["**"], "f32[4]", -1) == ""
    assert code_of(INFIX["**"], -1, "i32[4]") == ""


def test_mixed_dtypes() -> None:
    for op in BY_NAME.values():
        assert code_of(op, "i32[2]", "i64[2]") == "E0310"
        assert code_of(called(op.name, "i32"), "i32[2]", "i32[2]") == ""


def test_literals_take_the_other_dtype_and_must_fit() -> None:
    assert code_of(INFIX["+"], "u8[4]", 256) == "E0311"
    assert code_of(INFIX["+"], "u8[4]", 255) == ""
    assert code_of(INFIX["+"], "i32[4]", 0.5) == "E0311"
    assert code_of(INFIX["+"], "i32[4]", 2.0) == ""
    assert code_of(INFIX["+"], "f16[4]", 1e6) == "E0311"
    assert code_of(INFIX["+"], "f16[4]", math.inf) == ""
    assert code_of(INFIX["+"], 1, 2) == "E0312"
