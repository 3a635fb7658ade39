"""Integer division by a size, which is not 0: neither a guard nor a sign of the divisor is computed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dmlc
from tests.rows import each_row

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def program(dtype: str, line: str, bounds: str = "") -> dmlc.Source:
    return dmlc.Source(f"{bounds}model m(a: {dtype}[N], w: f32[W]) -> (y) {{\n    return {line}\n}}\n")


def operators(source: dmlc.Source, target: dmlc.TargetName) -> list[str]:
    return [node.op_type for node in dmlc.compile(source, target=target).to_onnx().graph.node]


@each_row("target", ["directml", "cpu", "onnx"])
@each_row("dtype", ["i32", "i64", "u32", "u64"])
def test_a_remainder_by_an_open_size_is_not_guarded(dtype: str, target: dmlc.TargetName) -> None:
    found = operators(program(dtype, "a % W"), target)
    assert not {"Equal", "Or", "Neg", "Xor", "Not"} & set(found)
    assert len(found) <= {("i64", "directml"): 8, ("u64", "directml"): 6}.get((dtype, target), 5)


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_the_signs_of_indices_are_not_asked_for(dtype: str, target: dmlc.TargetName) -> None:
    for line in ("iota(length=N, like=a) // W", "iota(length=N, like=a) % W", "argmax(w, dtype=i64) // W"):
        assert not {"Equal", "Less", "Where"} & set(operators(program(dtype, line), target)), line


def test_a_size_that_may_be_0_or_overflow_its_dtype_stays_guarded() -> None:
    assert "Equal" in operators(program("i32", "a % W", "dim W in 0..9\n"), "onnx")
    assert "Equal" in operators(program("u8", "a % W"), "onnx")
    assert "Equal" not in operators(program("u8", "a % W", "dim W in 1..255\n"), "onnx")
    assert "Equal" in operators(program("i32", "a % (W - 3)"), "onnx")


@each_row("target", ["directml", "cpu", "onnx", "numpy"])
@each_row("divisor", [2**62, 2**63 - 1, -(2**62), -(2**63), 2**53 + 1, -(2**53) - 1])
def test_divisors_that_no_float_holds(divisor: int, target: dmlc.TargetName) -> None:
    x = np.array([-1, -5, 5, 0, -(2**63), 2**63 - 1, 2**53, -(2**53)])
    text = f"model m(x: i64[8]) -> (y, z) {{\n    return x // {divisor}, x % {divisor}\n}}\n"
    found = dmlc.compile(dmlc.Source(text), target=target).run({"x": x})
    np.testing.assert_array_equal(found["y"], [n // divisor for n in x.tolist()])
    np.testing.assert_array_equal(found["z"], [n % divisor for n in x.tolist()])


TARGETS: tuple[dmlc.TargetName, ...] = ("directml", "cpu", "onnx", "numpy")


@each_row("dtype", INTEGERS)
def test_quotients_and_remainders_by_sizes_are_numpys(dtype: str) -> None:
    """Two of the targets for each expression; each expression and each dtype meets all four."""
    kind = np.dtype(dtype.replace("u", "uint") if dtype[0] == "u" else dtype.replace("i", "int"))
    a = np.arange(-20 if dtype[0] == "i" else 0, 100, 7).astype(kind)
    index, w = np.arange(len(a)), np.zeros(6, np.float32)
    lines = {
        "a % W": a % 6,
        "a // W": a // 6,
        "a % (W * 2 - 1)": a % 11,
        "iota(length=N, like=a) // W": index // 6,
        "iota(length=N, like=a) % (W + 1)": index % 7,
        "iota(length=N, like=a) % W * W // (W - 1)": index % 6 * 6 // 5,
    }
    if dtype[0] == "i":
        lines |= {"a % -W": a % -6, "a // (-W - 1)": a // -7, "(a - 3) // W % W": (a - 3) // 6 % 6}
    for (turn, (line, wanted)), second in itertools.product(enumerate(lines.items()), (0, 2)):
        target = TARGETS[(turn + INTEGERS.index(dtype) // 2 + second) % 4]
        found = dmlc.compile(program(dtype, line), target=target).run({"a": a, "w": w})["y"]
        np.testing.assert_array_equal(found, wanted.astype(kind), err_msg=f"{line} for {target}")
