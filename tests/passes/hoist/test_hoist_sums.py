"""hoist: sums of sums, and what the cost model of a target says of hoists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering_helpers import chosen, compiled, operators, result
from pass_helpers import ALL, Building, check_numbers, context, ledger, names, remarks

import dmlc
from dmlc.ir import DType, Operation
from dmlc.ir.dtype import f16, f32, f64, i32
from dmlc.ops.binary import ADD, SUB
from dmlc.ops.matmul import MATMUL
from dmlc.ops.reduce import REDUCE_L1, REDUCE_MAX, REDUCE_MEAN, REDUCE_SUM
from dmlc.passes.hoist import Hoist

PASS = Hoist()
BIG = (4, 64, 128)


def added(reduction: Operation = REDUCE_SUM, shape: Any = BIG, dtype: DType = f32, **more: Any) -> Any:
    b = Building()
    return b.done(b(reduction, b(ADD, b.input("a", shape, dtype), b.input("c", shape, dtype)), axes=[1, 2], **more))


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("reduction", [REDUCE_SUM, REDUCE_MEAN])
def test_what_is_added_is_summed_first(reduction: Operation, dtype: DType, keepdims: bool) -> None:
    graph = added(reduction, dtype=dtype, keepdims=keepdims)
    ctx = check_numbers(PASS, graph, context("cpu"), exact=False)
    assert names(graph) == [reduction.name, reduction.name, "add"]
    assert ledger(ctx) == [("sum-of-sums", "reassociates")]


def test_every_summand_is_summed_first() -> None:
    b = Building()
    x, y, z = (b.input(name, BIG) for name in "xyz")
    graph = b.done(b(REDUCE_SUM, b(ADD, b(ADD, x, y), z), axes=[1, 2]))
    check_numbers(PASS, graph, context("cpu"), exact=False)
    assert sorted(names(graph)) == ["add", "add", *["reduce_sum"] * 3]


@pytest.mark.parametrize("target", ["directml", "onnx", "numpy"])
def test_targets_without_a_cost_model_add_first(target: str) -> None:
    graph = added()
    ctx = check_numbers(PASS, graph, context(target))
    assert names(graph) == ["add", "reduce_sum"] and not ledger(ctx)


def test_sums_that_stay() -> None:
    def stays(graph: Any, why: str, allowed: Any = ALL) -> None:
        before = names(graph)
        ctx = check_numbers(PASS, graph, context("cpu", allowed))
        assert names(graph) == before and why in " | ".join(remarks(ctx))

    stays(added(), "only exact rewrites are allowed", ("exact",))
    stays(added(dtype=f16), "f16 would be rounded between the parts")
    stays(added(dtype=i32), "")
    stays(added(shape=(2, 4, 8)), "and unchanged")
    stays(added(shape=(4096, 1, 16)), "and unchanged")  # rows so short that a reduction costs more than the sum
    stays(added(REDUCE_L1), "")
    stays(added(REDUCE_MAX), "")
    b = Building()
    both = b(ADD, b.input("x", BIG), b.input("y", BIG))
    stays(b.done(b(REDUCE_SUM, both, axes=[1, 2]), both), "used 2 times")
    b = Building()
    x = b.input("x", BIG)
    stays(b.done(b(REDUCE_SUM, b(ADD, x, x), axes=[1, 2])), "")
    for op, shape in ((SUB, BIG), (ADD, (64, 1))):
        b = Building()
        stays(b.done(b(REDUCE_SUM, b(op, b.input("x", BIG), b.input("y", shape)), axes=[1, 2])), "")


def test_a_bias_that_a_matrix_product_takes_stays() -> None:
    b = Building()
    product = b(MATMUL, b.input("x", (256, 64)), b.input("w", (64, 512)))
    graph = b.done(b(REDUCE_SUM, b(ADD, product, b.input("c", (256, 512))), axes=[1]))
    ctx = check_numbers(PASS, graph, context("cpu"))
    assert "computed together with the matmul before it" in remarks(ctx)[-1] and "add" in names(graph)[1]


def test_the_whole_compiler_and_what_it_says() -> None:
    def summed(**options: Any) -> dmlc.Program:
        return compiled(lambda x: dmlc.reduce_sum(x + dmlc.exp(x), axes=[1], keepdims=False), (512, 256), **options)

    program = summed()
    x = np.random.default_rng(0).standard_normal((512, 256), np.float32)
    np.testing.assert_allclose(result(program, x), (x + np.exp(x)).sum(1), rtol=1e-5)
    (choice,) = [r for r in program.remarks if r.chosen and r.rule == "hoist"]
    assert choice.reason().startswith("sum-of-sums ") and ", rather than unchanged " in choice.reason()
    assert operators(program).count("ReduceSum") == 2
    without = summed(skip_rules=["sum-of-sums"])
    assert operators(without) == ["Exp", "Add", "ReduceSum"] and not any(
        "sum-of-sums" in text for text in chosen(without)
    )
    for shape in ((4, 8), (512, 256)):  # a rule that the user names is applied, whatever it costs
        named = compiled(
            lambda x: dmlc.reduce_sum(x + dmlc.exp(x), axes=[1], keepdims=False), shape, only_rules=["sum-of-sums"]
        )
        assert operators(named).count("ReduceSum") == 2


def test_hoists_of_one_operand_tell_what_they_save() -> None:
    program = compiled(lambda x: dmlc.reduce_max(dmlc.exp(x), axes=[1]), (512, 256))
    (choice,) = [r.reason() for r in program.remarks if r.rule == "hoist"]
    after, before = [float(part.split(" ")[-2]) for part in choice.split(", rather than ")]
    assert choice.startswith("rising-after-extreme ") and after < before
    wide = compiled(lambda x: dmlc.reduce_mean(x * 3, axes=[1]), ("n", 256))
    (choice,) = [r.reason() for r in wide.remarks if r.rule == "hoist"]
    assert choice.startswith("scale-after-sum ") and choice.count(" to ") == 2
