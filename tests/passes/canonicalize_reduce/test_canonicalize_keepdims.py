"""absorb-move-into-keepdims: which squeezes and unsqueezes a reduction takes over."""

from __future__ import annotations

from pass_helpers import (
    Building,
    axes_of,
    check_numbers,
    context,
    ledger,
    names,
    remarks,
)

from dmlc.ir import Operation
from dmlc.ops.binary import MUL
from dmlc.ops.move import RESHAPE, SQUEEZE, UNSQUEEZE
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_SUM,
)
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from tests.rows import each_row

PASS = CanonicalizeReduce()
EXACT_ONLY = ("exact",)


@each_row("op", [REDUCE_SUM, REDUCE_L1, ARGMAX, ARGMIN])
@each_row("move", ["squeeze", "reshape"])
def test_a_squeeze_becomes_keepdims_false(op: Operation, move: str) -> None:
    b = Building(n=(1, 7))
    x = b.input("x", ("n", 3, 4))
    value = b(op, x, axes=[1, 2])
    value = b(SQUEEZE, value, axes=[1, 2]) if move == "squeeze" else b(RESHAPE, value, shape=["n"])
    graph = b.done(value)
    ctx = check_numbers(PASS, graph, context(allowed=EXACT_ONLY), binding={"n": 5})
    assert names(graph) == [op.name]
    assert [n.attributes.keepdims for n in graph] == [False]
    assert ledger(ctx) == [("absorb-move-into-keepdims", "exact")]


@each_row("op", [REDUCE_SUM, REDUCE_L1, ARGMAX, ARGMIN])
@each_row("move", ["unsqueeze", "reshape"])
def test_an_unsqueeze_becomes_keepdims_true(op: Operation, move: str) -> None:
    b = Building(n=(1, 7))
    x = b.input("x", (3, "n", 4))
    value = b(op, x, axes=[0, 2], keepdims=False)
    value = b(UNSQUEEZE, value, axes=[0, 2]) if move == "unsqueeze" else b(RESHAPE, value, shape=[1, "n", 1])
    graph = b.done(value)
    check_numbers(PASS, graph, binding={"n": 5})
    assert names(graph) == [op.name]
    assert [n.attributes.keepdims for n in graph] == [True]


def test_a_squeeze_that_also_takes_another_axis_of_size_1_is_absorbed() -> None:
    for keepdims, squeezed in ((True, [0, 2]), (False, [0])):
        b = Building()
        x = b.input("x", (1, 3, 4))
        graph = b.done(b(SQUEEZE, b(REDUCE_L1, x, axes=[2], keepdims=keepdims), axes=squeezed))
        check_numbers(PASS, graph)
        assert names(graph) == ["reduce_l1"]
        assert axes_of(graph) == (0, 2)


def test_a_squeeze_that_leaves_a_reduced_axis_stays() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    graph = b.done(b(SQUEEZE, b(REDUCE_SUM, x, axes=[0, 2]), axes=[0]))
    check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum", "squeeze"]


def test_an_unsqueeze_elsewhere_stays() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4))
    graph = b.done(b(UNSQUEEZE, b(REDUCE_SUM, x, axes=[0], keepdims=False), axes=[2]))
    check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum", "unsqueeze"]


def test_a_squeeze_of_a_reduction_that_is_used_twice_stays() -> None:
    b = Building()
    x = b.input("x", (2, 3))
    total = b(REDUCE_SUM, x, axes=[1])
    graph = b.done(b(SQUEEZE, total, axes=[1]), b(MUL, x, total))
    ctx = check_numbers(PASS, graph)
    assert names(graph) == ["reduce_sum", "squeeze", "mul"]
    assert remarks(ctx) == ["the result of reduce_sum is used 2 times (being an output counts)"]
