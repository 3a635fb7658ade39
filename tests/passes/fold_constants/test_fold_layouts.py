"""Layout operations that ``fold-constants`` joins or drops: positive, near-miss and numerical tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, check_numbers, ledger, names, remarks, run

import dmlc
from dmlc.ir import Value, symbol
from dmlc.ir.dtype import bool_, f16
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.elementwise import RELU, SIGMOID, TANH
from dmlc.ops.move import CONCAT, RESHAPE, SLICE, SPLIT, SQUEEZE, TRANSPOSE, UNSQUEEZE, ReshapeAttributes
from dmlc.ops.reduce import REDUCE_MAX
from dmlc.passes.fold_constants import FoldConstants, between
from tests.rows import each_row

PASS = FoldConstants()
K = symbol("K")


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


@pytest.mark.parametrize(
    ("between", "last", "left"),
    [
        ((2, 2 * K // 6, 3), (2, 2 * K // 6 * 3), []),  # as ONNX infers -1 of sizes that are not known to divide
        ((2, 2 * K // 6, 3), (1, 2, 2 * K // 6 * 3), ["reshape"]),
        ((K, 2), (2, K), []),
    ],
)
def test_a_reshape_there_and_back_moves_nothing_however_its_size_is_written(between: Any, last: Any, left: Any) -> None:
    b = Building(K=(3, 9))
    x = b.graph.add(RESHAPE, [b.input("x", (2, "K"))], ReshapeAttributes(shape=between)).result
    y = b.graph.add(RESHAPE, [x], ReshapeAttributes(shape=last)).result
    check_numbers(PASS, b.done(b(RELU, y)), binding={"K": 6})
    assert names(b.graph) == [*left, "relu"]
    assert b.graph.outputs[0][1].shape[-1] == K


def test_a_size_beside_one_that_may_be_zero_stays_as_it_is_written() -> None:
    b = Building(N=(0, 9), K=(3, 9))
    half = K // 2
    x = b.graph.add(RESHAPE, [b.input("x", ("N", "K"))], ReshapeAttributes(shape=(symbol("N"), 2, half))).result
    y = b.graph.add(RESHAPE, [x], ReshapeAttributes(shape=(symbol("N"), half * 2))).result
    check_numbers(PASS, b.done(b(RELU, y)), binding={"N": 0, "K": 5})
    assert b.graph.outputs[0][1].shape[-1] == half * 2


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
    assert not ledger(check_numbers(PASS, b.graph))
    assert names(b.graph).count("slice") == 2


@pytest.mark.parametrize("case", ["first", "last", "twice", "of two", "shared"])
def test_a_concat_of_a_concat_is_one(case: str) -> None:
    b = Building()
    x, y, z = (b.input(name, (2, size, 3)) for name, size in zip("xyz", (1, 2, 4), strict=True))
    inner = b(CONCAT, x, y, axis=1)
    parts = {"last": (z, inner), "twice": (inner, z, inner)}.get(case, (inner, z))
    if case == "of two":
        parts = (inner, b(CONCAT, z, x, axis=1))
    outer = [b(CONCAT, *parts, axis=1)]
    if case == "shared":
        outer.append(b(CONCAT, b(TANH, z), inner, axis=1))
    assert set(ledger_of(b, *outer)) == {"concat-chain"}
    assert names(b.graph).count("concat") == len(outer)


@pytest.mark.parametrize("case", ["another axis", "used by another", "an output", "many"])
def test_concats_that_stay(case: str) -> None:
    b = Building()
    x, y = b.input("x", (2, 3)), b.input("y", (2, 3))
    inner = b(CONCAT, *[x, y] * (129 if case == "many" else 1), axis=0)
    outer = b(CONCAT, inner, inner if case == "another axis" else x, axis=1 if case == "another axis" else 0)
    others = [b(TANH, inner)] if case == "used by another" else [inner] if case == "an output" else []
    found = remarks(check_numbers(PASS, b.done(outer, *others)))
    assert names(b.graph).count("concat") == 2
    assert any("is used 2 times" in reason for reason in found) is bool(others)


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


def test_constants_are_transposed() -> None:
    """The row stands along another axis before the transpose, and the column is a scale of channels."""
    b = Building()
    x = b(ADD, b(TRANSPOSE, b.input("x", (2, 4, 4)), perm=[0, 2, 1]), b.constant(np.arange(4)))
    y = b(MUL, x, b.constant(np.arange(4).reshape(4, 1)))
    check_numbers(PASS, b.done(b(TRANSPOSE, y, perm=[0, 2, 1])))
    assert names(b.graph) == ["add", "mul"]


@pytest.mark.parametrize("is_made", [True, False])
def test_the_side_with_fewer_transposes_is_transposed(is_made: bool) -> None:
    """A scaled residual: one transpose of it stands for two of the others."""
    b = Building()
    turned = b(TRANSPOSE, b.input("x", (2, 3, 4, 5)), perm=[0, 3, 1, 2])
    scaled = b(MUL, turned, b.constant(np.arange(5).reshape(5, 1, 1)))
    z = b.input("z", (2, 5, 3, 4))
    residual = b(TANH, z) if is_made else z
    out = b(TRANSPOSE, b(ADD, residual, scaled), perm=[0, 2, 3, 1])
    check_numbers(PASS, b.done(out, residual))
    assert sorted(names(b.graph)) == sorted(["add", "mul", "transpose", *["tanh"] * is_made])


def layouts(b: Building, case: str) -> list[Value]:
    """The outputs of a graph with layout operations around others, of which none can go."""
    if case == "fewer axes":
        x, z = b(TRANSPOSE, b.input("x", (4, 3, 2)), perm=[1, 0, 2]), b(TRANSPOSE, b.input("z", (2, 4)), perm=[1, 0])
        return [b(TRANSPOSE, b(ADD, x, z), perm=[1, 0, 2])]
    if case == "many":
        x = b(TRANSPOSE, b.input("x", (2, 4, 4)), perm=[0, 2, 1])
        for _ in range(25):
            x = b(TANH, x)
        return [b(TRANSPOSE, x, perm=[0, 2, 1])]
    if case in ("two residuals", "a residual of a value that others need"):
        turned = b(TRANSPOSE, b.input("x", (2, 3, 4)), perm=[0, 2, 1])
        y = b(ADD, b(TANH, turned), b.input("z", (2, 4, 3)))
        if case == "two residuals":
            return [b(TRANSPOSE, b(ADD, y, b.input("u", (2, 4, 3))), perm=[0, 2, 1])]
        return [b(TRANSPOSE, y, perm=[0, 2, 1]), turned]
    if case == "no inverse":  # both operands broadcast to the result of the unsqueeze too
        return [b(UNSQUEEZE, b(ADD, b.input("x", (3, 1)), b.input("z", (1, 4))), axes=[0])]
    if case == "another order":
        x = b(TRANSPOSE, b.input("x", (2, 3, 4)), perm=[1, 2, 0])
        return [b(TRANSPOSE, b(TANH, x), perm=[1, 2, 0])]
    if case == "reduced":
        x = b(TRANSPOSE, b.input("x", (2, 3, 4)), perm=[1, 0, 2])
        return [b(TRANSPOSE, b(REDUCE_MAX, x, axes=[2]), perm=[1, 0, 2])]
    x = b(RESHAPE, b.input("x", (6, 4)), shape=[2, 3, 4])
    first = y = b(TANH, x)
    if case == "other operand":
        y = b(ADD, y, b.constant(np.arange(3).reshape(3, 1)))
    if case == "rank":
        y = b(ADD, y, b.constant(np.ones((1, 1, 1)) * 2))
    if case == "used further inside":
        y = b(ADD, y, x)
    out = b(RESHAPE, y, shape=[4, 6] if case == "another shape" else [6, 4])
    used = {"used inside": y, "used further inside": first}.get(case)
    return [out] if used is None else [out, b(RELU, used)]


@each_row("case", [
    "another order", "another shape", "used inside", "used further inside", "other operand", "reduced", "rank",
    "no inverse", "many", "fewer axes", "two residuals", "a residual of a value that others need",
])  # fmt: skip
def test_layouts_around_operations_that_stay(case: str) -> None:
    b = Building()
    graph = b.done(*layouts(b, case))
    before = names(graph)
    assert not ledger(check_numbers(PASS, graph))
    assert names(graph) == before


def test_operations_that_are_reached_in_many_ways_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 12 squares has 4096 ways to its start."""
    looked: list[Value] = []
    undoes = between._undoes
    monkeypatch.setattr(between, "_undoes", lambda root, maker: looked.append(maker) or undoes(root, maker))
    b = Building()
    y = b(TRANSPOSE, b.input("x", (2, 3)), perm=[1, 0])
    for _ in range(12):
        y = b(MUL, y, y)
    run(PASS, b.done(b(TRANSPOSE, y, perm=[1, 0])))
    assert "transpose" not in names(b.graph)
    assert len(looked) < 100


def test_a_split_of_which_one_part_is_all() -> None:
    """The empty part is a constant, if its sizes are known."""
    for shape, left in (((2, 3), []), (("N", 3), ["split"])):
        b = Building(N=(1, 9))
        graph = b.done(*b.node(SPLIT, b.input("x", shape), sizes=[3, 0], axis=1))
        check_numbers(PASS, graph, binding={"N": 2})
        assert names(graph) == left
    b = Building()
    graph = b.done(*b.node(SPLIT, b.input("x", (2, 3)), sizes=[3], axis=1))
    check_numbers(PASS, graph)
    assert names(graph) == []


# --- transpose-between-reshapes


def moved(b: Building, shape: Any, middle: Any, perm: Any, last: Any) -> Value:
    x = b(RESHAPE, b.input("x", shape), shape=list(middle))
    return b(RESHAPE, b(TRANSPOSE, x, perm=perm), shape=list(last))


@pytest.mark.parametrize(
    ("shape", "middle", "perm", "last"),
    [
        ((2, 4, 5, 8), (8, 5, 8), [0, 2, 1], (2, 4, 8, 5)),  # merged and split
        ((2, 4, 5, 8), (8, 5, 8), [1, 0, 2], (5, 2, 4, 8)),
        ((1, 4, 32), (1, 2, 2, 32), [0, 3, 1, 2], (1, 32, 4)),  # split and merged
        ((6, 4, 5), (3, 8, 5), [2, 0, 1], (5, 6, 4)),  # neither, but moved together
        ((1, 4, 5, 8), (4, 5, 8), [0, 2, 1], (1, 4, 8, 5)),  # ones go and come
        ((4, 1, 5, 8), (4, 5, 8), [0, 2, 1], (4, 8, 1, 5)),
        (("N", 4, 5, 8), ("N * 4", 5, 8), [0, 2, 1], ("N", 4, 8, 5)),
    ],
)
def test_a_transpose_between_reshapes_is_one_transpose(shape: Any, middle: Any, perm: Any, last: Any) -> None:
    b = Building(N=(1, 9))
    n = symbol("N")
    sized = [[n * 4 if d == "N * 4" else n if d == "N" else d for d in one] for one in (middle, last)]
    ctx = check_numbers(PASS, b.done(b(RELU, moved(b, shape, sized[0], perm, sized[1]))), binding={"N": 2})
    assert ("transpose-between-reshapes", "exact") in ledger(ctx)
    assert names(b.graph) == ["transpose", "relu"]


@pytest.mark.parametrize(
    ("shape", "middle", "perm", "last"),
    [
        ((2, 4, 5, 8), (8, 5, 8), [0, 2, 1], (8, 2, 4, 5)),  # another shape of as many axes
        ((2, 4, 5, 8), (8, 5, 8), [0, 2, 1], (8, 8, 5)),  # fewer axes
        ((8, 6), (8, 2, 3), [0, 2, 1], (8, 6)),  # parts of an axis change places
        ((6, 6), (2, 3, 2, 3), [0, 3, 2, 1], (6, 6)),  # and so do parts of two
        ((6, 4), (3, 8), [1, 0], (4, 6)),  # an axis of each is parted
        ((2, 3, 4), (2, 2, 6), [1, 0, 2], (2, 3, 4)),
        ((0, 3, 4), (0, 12), [1, 0], (3, 4, 0)),
    ],
)
def test_other_transposes_between_reshapes_stay(shape: Any, middle: Any, perm: Any, last: Any) -> None:
    b = Building()
    ctx = check_numbers(PASS, b.done(b(RELU, moved(b, shape, middle, perm, last))))
    assert "transpose-between-reshapes" not in dict(ledger(ctx))


def test_a_transpose_between_reshapes_of_many_axes_stays() -> None:
    b = Building()
    shape = (2,) * 9
    ctx = run(PASS, b.done(b(RELU, moved(b, shape, (16, 32), [1, 0], shape))))
    assert names(b.graph) == ["reshape", "transpose", "reshape", "relu"]
    assert any("9 axes, more than 8" in remark for remark in remarks(ctx))


def test_a_transpose_between_reshapes_that_others_need_stays() -> None:
    b = Building()
    x = b(RESHAPE, b.input("x", (2, 4, 5, 8)), shape=[8, 5, 8])
    turned = b(TRANSPOSE, x, perm=[0, 2, 1])
    ctx = run(PASS, b.done(b(RESHAPE, turned, shape=[2, 4, 8, 5]), turned))
    assert names(b.graph) == ["reshape", "transpose", "reshape"]
    assert any("is used 2 times" in remark for remark in remarks(ctx))


_GIVEN = """model t(y: f32[m], x: f32[9], c: bool[9]) -> (z) {
    k = onnx.Compress(x, c, axis=0)
    r = reshape(k, shape=[m])
    z = reshape(r, shape=[m, 1])
    return z
}"""
_EVEN = """dim K in 2..9
model t(x: f32[N, K]) -> (z) {
    r = reshape(x, shape=[N, K // 2, 2])
    z = reshape(r, shape=[N, K // 2 * 2])
    return z
}"""


@pytest.mark.parametrize(("text", "sizes"), [(_GIVEN, ["m", "1"]), (_EVEN, ["N", "K"])], ids=["given", "even"])
def test_the_size_of_joined_reshapes_is_in_its_plainest_form(text: str, sizes: list[str]) -> None:
    """The size of an input, not that of an operator's result, and no quotient that other sizes leave a remainder of."""
    program = dmlc.compile(dmlc.Source(text), target="onnx")
    assert [entry.rule for entry in program.ledger] == ["reshape-chain"]
    assert [str(size) for _, value in program.graph.outputs for size in value.shape] == sizes
