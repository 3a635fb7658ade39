"""Layout operations that ``fold-constants`` joins or drops: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, names, run

from dmlc.ir import Value
from dmlc.ir.dtype import bool_, f16
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import RELU, SIGMOID, TANH
from dmlc.ops.move import RESHAPE, SLICE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.reduce import REDUCE_MAX
from dmlc.passes import FoldConstants

PASS = FoldConstants()


def ledger_of(b: Building, *outputs: Value) -> list[str]:
    graph = b.done(*outputs)
    return [entry.rule for entry in check_numbers(PASS, graph).ledger]


@pytest.mark.parametrize(
    ("shape", "perm", "flat"),
    [
        ((2, 1, 1, 5), [0, 3, 1, 2], [2, 5]),
        ((1, 4, 3), [1, 0, 2], [12]),
        ((1, 2, 1, 3), [1, 3, 0, 2], [6]),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_a_transpose_that_moves_ones_joins_the_reshape(shape: Any, perm: Any, flat: Any, before: bool) -> None:
    b = Building()
    if before:
        x = b(RESHAPE, b.input("x", (int(np.prod(shape)),)), shape=list(shape))
        rules = ledger_of(b, b(TANH, b(TRANSPOSE, x, perm=perm)))
    else:
        rules = ledger_of(b, b(RESHAPE, b(TRANSPOSE, b.input("x", shape), perm=perm), shape=flat))
    assert "transpose-of-ones" in rules
    assert names(b.graph).count("transpose") == 0
    assert names(b.graph).count("reshape") == 1


def test_a_transpose_of_ones_with_one_open_size_joins() -> None:
    b = Building(N=(1, 9))
    x = b(TRANSPOSE, b.input("x", ("N", 1, 1, 6)), perm=[0, 3, 1, 2])
    run(PASS, b.done(b(SQUEEZE, x, axes=[2, 3])))
    assert names(b.graph) == ["reshape"]


@pytest.mark.parametrize("case", ["alone", "moves more", "used by another", "two open sizes"])
def test_transposes_that_stay(case: str) -> None:
    b = Building(N=(1, 9), M=(1, 9))
    if case == "alone":
        b.done(b(TANH, b(TRANSPOSE, b(RELU, b.input("x", (2, 1, 3))), perm=[1, 0, 2])))
    elif case == "moves more":
        b.done(b(RESHAPE, b(TRANSPOSE, b.input("x", (2, 1, 3)), perm=[2, 1, 0]), shape=[6]))
    elif case == "used by another":
        turned = b(TRANSPOSE, b.input("x", (2, 1, 3)), perm=[1, 0, 2])
        b.done(b(RESHAPE, turned, shape=[6]), b(TANH, turned))
    else:
        turned = b(TRANSPOSE, b.input("x", ("N", "M", 1, 6)), perm=[2, 0, 1, 3])
        b.done(b(RESHAPE, turned, shape=[1, *turned.shape[1:3], 2, 3]))
    run(PASS, b.graph)
    assert names(b.graph).count("transpose") == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (((0, 9, 1, 2),), ((0, 9, 2, 2),)),
        (((1, 9, 1, 1),), ((0, 2, 1, 1),)),
        (((1, 6, 1, 2),), ((1, 9, 1, 2),)),
        (((-5, -1, 1, 1),), ((-3, 9, 1, 2),)),
        (((0, 4, 2, 1), (0, 9, 0, 2)), ((1, 3, 1, 1), (1, 9, 2, 1))),
    ],
)
def test_a_slice_of_a_slice_is_one(first: Any, second: Any) -> None:
    b = Building()
    value = b.input("x", (6, 8, 7))
    for rows in (first, second):
        starts, ends, axes, steps = map(list, zip(*rows, strict=True))
        value = b(SLICE, value, starts=starts, ends=ends, axes=axes, steps=steps)
    assert ledger_of(b, value) == ["slice-chain"]
    assert names(b.graph) == ["slice"]


@pytest.mark.parametrize("case", ["used by another", "backwards", "empty"])
def test_slices_that_stay(case: str) -> None:
    b = Building()
    step = -1 if case == "backwards" else 1
    inner = b(SLICE, b.input("x", (6, 8)), starts=[-1 if step < 0 else 0], ends=[-7 if step < 0 else 3], axes=[0],
              steps=[step])  # fmt: skip
    outer = b(SLICE, inner, starts=[3 if case == "empty" else 1], ends=[9], axes=[0])
    b.done(outer, *([b(TANH, inner)] if case == "used by another" else []))
    check_numbers(PASS, b.graph)
    assert names(b.graph).count("slice") == 2


def around(b: Building, x: Value, back: Any, **inverse: Any) -> Value:
    y = b(MUL, b(ADD, x, b(MUL, x, b.constant(0.5))), b(SIGMOID, x))
    return b(back, y, **inverse)


def test_elementwise_operations_between_reshapes_take_the_first_shape() -> None:
    b = Building()
    x = b(RESHAPE, b.input("x", (6, 4)), shape=[2, 3, 4])
    scaled = b(ADD, x, b.constant(np.arange(4)))
    rules = ledger_of(b, around(b, scaled, RESHAPE, shape=[6, 4]))
    assert "layout-around-elementwise" in rules
    assert "reshape" not in names(b.graph)


def test_elementwise_operations_between_transposes_take_the_first_order() -> None:
    b = Building()
    first = b(TRANSPOSE, b.input("x", (2, 3, 4)), perm=[1, 2, 0])
    second = b(TRANSPOSE, b.input("z", (2, 3, 4)), perm=[1, 2, 0])
    rules = ledger_of(b, around(b, b(ADD, first, b(TANH, second)), TRANSPOSE, perm=[2, 0, 1]))
    assert "layout-around-elementwise" in rules
    assert "transpose" not in names(b.graph)


def test_casts_and_choices_go_along() -> None:
    b = Building()
    check = b(UNSQUEEZE, b.input("c", (5,), bool_), axes=[0])
    x = b(UNSQUEEZE, b.input("x", (5,)), axes=[0])
    run(PASS, b.done(b(SQUEEZE, b(CAST, b(WHERE, check, x, b.constant(1.0)), to=f16), axes=[0])))
    assert names(b.graph) == ["where", "cast"]


@pytest.mark.parametrize("case", ["another order", "another shape", "used inside", "other operand", "reduced", "rank"])
def test_layouts_around_operations_that_stay(case: str) -> None:
    b = Building()
    if case == "another order":
        x = b(TRANSPOSE, b.input("x", (2, 3, 4)), perm=[1, 2, 0])
        outputs = [b(TRANSPOSE, b(TANH, x), perm=[1, 2, 0])]
    elif case == "reduced":
        x = b(TRANSPOSE, b.input("x", (2, 3, 4)), perm=[1, 0, 2])
        outputs = [b(TRANSPOSE, b(REDUCE_MAX, x, axes=[2]), perm=[1, 0, 2])]
    else:
        x = b(RESHAPE, b.input("x", (6, 4)), shape=[2, 3, 4])
        y = b(TANH, x)
        if case == "other operand":
            y = b(ADD, y, b.constant(np.arange(3).reshape(3, 1)))
        if case == "rank":
            y = b(ADD, y, b.constant(np.ones((1, 1, 1)) * 2))
        outputs = [b(RESHAPE, y, shape=[4, 6] if case == "another shape" else [6, 4])]
        if case == "used inside":
            outputs.append(b(RELU, y))
    b.done(*outputs)
    before = len(names(b.graph))
    check_numbers(PASS, b.graph)
    assert len(names(b.graph)) == before
