"""The remainders and searches that the repairs spell: each test fails where one guard of theirs is dropped."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source

RULE = "remainder-by-division"


def compiled(body: str, inputs: str) -> dmlc.Program:
    return dmlc.compile(Source("t.dml", f"model t({inputs}) -> (y) {{\n    y = {body}\n    return y\n}}\n"))


def rules(program: dmlc.Program) -> set[str]:
    return {entry.rule for entry in program.ledger}


def operators(program: dmlc.Program) -> list[str]:
    return [n.op_type for n in program.to_onnx().graph.node]


@pytest.mark.parametrize("divisor", ["3", "(-3)", "z"])
def test_remainders_of_large_integers(divisor: str) -> None:
    program = compiled(f"x % {divisor}", "x: i64[4], z: i64[4]")
    assert RULE in rules(program)
    x, z = np.array([7, -7, 6, -1]), np.array([3, 3, -4, -4])
    want = np.mod(x, z if divisor == "z" else int(divisor.strip("()")))
    np.testing.assert_array_equal(program.run({"x": x, "z": z}, "cpu")["y"], want)


@pytest.mark.parametrize("kind", ["f64", "f32", "f16", "i8", "i32"])
def test_other_remainders_stay(kind: str) -> None:
    assert RULE not in rules(compiled("x % z", f"x: {kind}[4], z: {kind}[4]"))


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("(x as i64) % 3", True),
        ("argmax(x, axes=[0], dtype=i64) % 3", True),
        ("(argmax(x, axes=[0], dtype=i32) as i64) % 3", True),
        ("(-(x as i64)) % 3", False),
        ("((x as i8) as i64) % 3", False),
    ],
)
def test_what_is_never_negative_takes_no_choice(body: str, plain: bool) -> None:
    program = compiled(body, "x: u8[4]")
    assert RULE in rules(program)
    assert ("Where" not in operators(program)) is plain


def test_a_search_of_doubles_is_no_gain() -> None:
    text = "model t(x: f64[4000, 64]) -> (v) {\n    v, i = top_k(x, k=2, axis=1)\n    return v\n}\n"
    assert "top-k-by-search" not in rules(dmlc.compile(Source("t.dml", text)))


@pytest.mark.parametrize(("body", "guarded"), [
    ("(4 - abs(x) % 4) % 4", False),  # the padding of whole windows
    ("(3 - abs(x) % 4) % 4", False),
    ("(2 - abs(x) % 4) % 4", True),
    ("(4 - x % 4) % 4", True),
    ("(abs(x) % 4 - 1) % 4", True),
])  # fmt: skip
def test_remainders_that_are_written_out_have_bounds(body: str, guarded: bool) -> None:
    """A remainder inside was replaced before, and its form tells how large it may be."""
    body = body.replace("abs(x)", "argmax(w, axes=[1], dtype=i64, keepdims=false)")
    program = compiled(body, "x: i64[9], w: f32[9, 9]")
    assert RULE in rules(program)
    assert ("Where" in operators(program)) is guarded
    x = np.arange(-4, 5)
    feeds = {"x": x, "w": np.eye(9, dtype=np.float32)}
    number = np.arange(9) if "argmax" in body else x
    text = body.replace("argmax(w, axes=[1], dtype=i64, keepdims=false)", "x")
    np.testing.assert_array_equal(program.run(feeds, "cpu")["y"], eval(text, {"x": number}))
