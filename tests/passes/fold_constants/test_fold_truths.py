"""Truths beside constants and other truths: positive, near-miss and numerical tests."""

from __future__ import annotations

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, names

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import Operation
from dmlc.ir.dtype import bool_, f32
from dmlc.ops.binary import AND, EQUAL, NOT_EQUAL, OR, XOR
from dmlc.ops.choose import WHERE
from dmlc.ops.index import FULL
from dmlc.passes.fold_constants import FoldConstants
from tests.rows import each_row

PASS = FoldConstants()
KEPT = {(EQUAL, True), (NOT_EQUAL, False), (XOR, False), (AND, True), (OR, False)}
DECIDED = {(AND, False), (OR, True)}


@each_row("swapped", [False, True])
@each_row("truth", [False, True])
@each_row("op", [EQUAL, NOT_EQUAL, XOR, AND, OR])
def test_a_truth_beside_a_constant(op: Operation, truth: bool, swapped: bool) -> None:
    b = Building()
    x, c = b.input("x", (4,), bool_), b.constant([truth] * 4, bool_)
    graph = b.done(b(op, c, x) if swapped else b(op, x, c))
    check_numbers(PASS, graph)
    assert names(graph) == ([] if (op, truth) in KEPT | DECIDED else ["not"])


@pytest.mark.parametrize("op", [EQUAL, XOR, AND, OR])
def test_truths_beside_other_constants_stay(op: Operation) -> None:
    b = Building()
    x = b.input("x", (4,), bool_)
    mixed = b.constant([True, False, True, True], bool_)
    wide = b.constant(np.full((2, 4), op in (EQUAL, AND)), bool_)
    graph = b.done(b(op, x, mixed), b(op, x, wide))
    check_numbers(PASS, graph)
    assert names(graph) == [op.name, op.name]


@each_row("op", [EQUAL, NOT_EQUAL, XOR, AND, OR])
def test_no_truths_beside_a_constant(op: Operation) -> None:
    b = Building()
    graph = b.done(b(op, b.input("x", (0,), bool_), b.constant(np.zeros(0, bool), bool_)))
    check_numbers(PASS, graph)
    assert names(graph) == ["xor" if op is NOT_EQUAL else op.name]


def test_a_scalar_that_decides_does_not_take_the_place_of_a_shape() -> None:
    b = Building()
    graph = b.done(b(AND, b.input("x", (4,), bool_), b.constant(False, bool_)))
    check_numbers(PASS, graph)
    assert names(graph) == ["and"]


def test_unequal_truths_are_one_operator() -> None:
    b = Building()
    graph = b.done(b(NOT_EQUAL, b.input("x", (4,), bool_), b.input("z", (4,), bool_)))
    check_numbers(PASS, graph)
    assert names(graph) == ["xor"]


def test_unequal_numbers_stay_a_comparison() -> None:
    b = Building()
    graph = b.done(b(NOT_EQUAL, b.input("x", (4,)), b.input("z", (4,))))
    check_numbers(PASS, graph)
    assert names(graph) == ["not_equal"]


@pytest.mark.parametrize(("target", "kinds"), [("directml", ["Xor", "Not"]), ("cpu", ["Equal"]), ("onnx", ["Equal"])])
def test_equal_truths_run_on_the_provider(target: str, kinds: list[str]) -> None:
    program = dmlc.compile(
        Source("m.dml", "model m(x: bool[4], z: bool[4]) -> (y) {\n    return x == z\n}\n"), target=target
    )
    assert [node.op_type for node in program.to_onnx().graph.node] == kinds
    x, z = np.array([True, True, False, False]), np.array([True, False, True, False])
    np.testing.assert_array_equal(program.run({"x": x, "z": z}, backend="cpu")["y"], x == z)


def test_equal_numbers_keep_their_operator() -> None:
    source = Source("m.dml", "model m(x: f32[4], z: f32[4]) -> (y) {\n    return x == z\n}\n")
    assert [node.op_type for node in dmlc.compile(source).to_onnx().graph.node] == ["Equal"]


@each_row("truth", [False, True])
@each_row("shape", [(), (4,), (3, 1)])
@each_row("wide", [False, True])
def test_a_choice_that_is_known(truth: bool, shape: tuple[int, ...], wide: bool) -> None:
    """The operand alone, or an expand of it where it is the smaller of the two."""
    b = Building()
    chosen, other = b.input("x", (3, 4) if wide else (4,)), b.input("z", (3, 4))
    c = b.constant(np.full(shape, truth), bool_)
    graph = b.done(b(WHERE, c, chosen, other) if truth else b(WHERE, c, other, chosen))
    check_numbers(PASS, graph)
    assert names(graph) == ([] if wide else ["expand"])


@pytest.mark.parametrize("truth", [False, True])
def test_a_choice_by_a_filled_condition(truth: bool) -> None:
    b = Building()
    x, z = b.input("x", ("N", 4)), b.input("z", ("N", 4))
    c = b(FULL, shape=(x.shape[0], 1), value=truth, dtype=bool_)
    graph = b.done(b(WHERE, c, x, z))
    check_numbers(PASS, graph, binding={"N": 3})
    assert not [name for name in names(graph) if name == "where"]


def test_choices_that_are_not_known_stay() -> None:
    """Mixed truths, and an operand that an expand to open sizes would have to widen."""
    b = Building()
    x, z, n = b.input("x", (4,)), b.input("z", (4,)), b.input("n", ("N", 4))
    mixed = b.constant([True, False, True, True], bool_)
    always = b.constant([True] * 4, bool_)
    graph = b.done(b(WHERE, mixed, x, z), b(WHERE, always, x, n), b(WHERE, b.input("c", (4,), bool_), x, z))
    check_numbers(PASS, graph, binding={"N": 3})
    assert names(graph) == ["where"] * 3


def test_a_choice_of_no_element_stays() -> None:
    b = Building()
    graph = b.done(b(WHERE, b.constant(np.zeros(0, bool), bool_), b.input("x", (0,)), b.constant(1.0, f32)))
    check_numbers(PASS, graph)
