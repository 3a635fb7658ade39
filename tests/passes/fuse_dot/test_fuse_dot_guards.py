"""Near misses of ``fuse-dot``: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import model, node
from onnx import external_data_helper
from pass_helpers import ALL, Building, assert_equal, context, evaluate, ledger, names, random_feeds, run

import dmlc
from dmlc.ir import DType, Value
from dmlc.ir.dtype import f32, i32
from dmlc.ops.binary import MUL
from dmlc.ops.move import TRANSPOSE
from dmlc.ops.opaque import OPAQUE
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.passes.fuse_dot import FuseDot

Made = Callable[[Building], "Value | tuple[Value, ...]"]


def fused(made: Made, *, skip: str = "") -> tuple[list[str], list[str]]:
    """The rules that fired, and the operations then."""
    b = Building()
    out = made(b)
    graph = b.done(*(out if isinstance(out, tuple) else (out,)))
    ctx = context(allowed=ALL, skip_rules=(skip,))
    feeds = random_feeds(graph)
    before = evaluate(graph, feeds)
    run(FuseDot(), graph, ctx)
    if not graph.holds([OPAQUE]):  # an Einsum has no reference
        assert_equal(before, evaluate(graph, feeds), exact=False)
    return [rule for rule, _ in ledger(ctx)], names(graph)


def product(b: Building, shape: Any, other: Any, dtype: DType = f32) -> Value:
    return b(MUL, b.input("x", shape, dtype), b.input("z", other, dtype))


def total(b: Building, value: Value, *axes: int, keepdims: bool = False) -> Value:
    return b(REDUCE_SUM, value, axes=list(axes), keepdims=keepdims)


def test_products_that_are_and_are_no_matmul() -> None:
    assert fused(lambda b: total(b, product(b, (4, 1, 8), (1, 5, 8)), 2))[0] == ["matmul-from-sum"]
    assert not fused(lambda b: total(b, product(b, (4, 1, 8), (1, 5, 8), i32), 2))[0]  # may wrap otherwise
    assert not fused(lambda b: total(b, product(b, (4, 1, 1), (1, 5, 1)), 2))[0]  # nothing is summed


def test_products_that_are_and_are_no_einsum() -> None:
    assert fused(lambda b: total(b, product(b, (4, 8), (4, 8)), 1))[0] == ["einsum-from-sum"]

    def used(b: Building) -> tuple[Value, ...]:
        p = product(b, (4, 8), (4, 8))
        return total(b, p, 1), p

    def no_axis(b: Building) -> Value:
        record = ReduceAttributes(axes=(), keepdims=False)
        return b.graph.add(REDUCE_SUM, [product(b, (4, 8), (4, 8))], record).result

    def square(b: Building) -> Value:
        x = b.input("x", (4, 8))
        return total(b, b(MUL, x, x), 1)

    for made in (used, no_axis, square):
        assert not fused(made)[0]


def test_a_sum_that_broadcasts_both_factors_is_no_sum_of_weighted_rows() -> None:
    def made(b: Building) -> Value:
        return total(b, product(b, (1, 8, 4), (3, 8, 1)), 1)

    assert fused(made)[0] == ["matmul-from-sum"]
    assert not fused(made, skip="matmul-from-sum")[0]


@pytest.mark.parametrize(("rows", "used", "moved"), [(8, False, False), (8, True, True), (1 << 18, False, True)])
def test_only_small_constants_of_its_own_are_laid_out_anew(rows: int, used: bool, moved: bool) -> None:
    def made(b: Building) -> Any:
        weights = b.constant(np.arange(rows * 5, dtype=np.float32).reshape(1, 5, rows) / rows)
        y = total(b, b(MUL, b.input("x", (2, 1, rows)), weights), 2)
        return (y, b(MUL, weights, b.input("z", (1, 5, 1)))) if used else y

    rules, found = fused(made)
    assert "matmul-from-sum" in rules
    assert (TRANSPOSE.name in found) is moved


def test_weights_in_a_file_of_their_own_are_not_laid_out_anew(tmp_path: Path) -> None:
    nodes = [node("Mul", ["x", "w"], ["p"]), node("ReduceSum", ["p", "a"], ["y"], keepdims=0)]
    m = model(nodes, (2, 1, 400), w=np.ones((1, 5, 400), np.float32), a=np.array([2]))
    external_data_helper.set_external_data(m.graph.initializer[0], "apart.data")
    onnx.save(m, tmp_path / "m.onnx")
    program = dmlc.compile(tmp_path / "m.onnx")
    assert "matmul-from-sum" in {entry.rule for entry in program.ledger}
    assert "Transpose" in [n.op_type for n in program.to_onnx().graph.node]
