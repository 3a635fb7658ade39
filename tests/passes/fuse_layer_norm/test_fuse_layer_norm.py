"""Layer normalizations in every spelling, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layer_norm_spellings import (
    BETA,
    GAMMA,
    SPELLINGS,
    STEP,
    affine,
    affine_of_higher_rank,
    broadcast_mean,
    built,
    centred,
    deviation,
    inverse,
    mean,
    mean_taken_out_last,
    plain,
    powers,
    scalar_affine,
    scale_times_the_inverse,
    sum_over,
    untouched,
)
from pass_helpers import ALL, Building, assert_equal, check_numbers, context, evaluate, ledger, names, remarks, run

from dmlc.ir import Value
from dmlc.ir.dtype import f16, f32, f64
from dmlc.ops import binary as b2
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import CONSTANT, constant_of
from dmlc.ops.elementwise import RELU, SQRT
from dmlc.ops.move import RESHAPE, TRANSPOSE
from dmlc.ops.normalize import LAYER_NORM, NormAttributes
from dmlc.ops.reduce import REDUCE_SUM
from dmlc.passes.manager import PassContext
from tests.rows import each_row


@each_row("shape", [(2, 3, 8), ("N", 3, 8), (8,)], ids=str)
@each_row("spelling", SPELLINGS, ids=lambda f: f.__name__)
def test_each_spelling_becomes_one_node(spelling: Callable[[Building, Value], Value], shape: Any) -> None:
    if shape == (8,) and spelling in (scale_times_the_inverse, affine_of_higher_rank, scalar_affine):
        return  # its constants have a higher rank
    graph = built(spelling, shape)
    check_numbers(STEP, graph, exact=False, binding={"N": 2})
    assert names(graph) == ["layer_norm"]


def test_a_mean_that_is_broadcast_first() -> None:
    graph = built(broadcast_mean)
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]


@pytest.mark.parametrize("spelling", [plain, powers, mean_taken_out_last], ids=lambda f: f.__name__)
def test_numbers_that_break_sums(spelling: Callable[[Building, Value], Value]) -> None:
    graph = built(spelling, (7, 8))
    x = np.zeros((7, 8), np.float32)
    x[0] = 3  # all equal
    x[1] = np.arange(8) - 4
    x[2, 3] = np.nan
    x[3, 0] = np.inf
    x[4, 0], x[4, 1] = np.inf, -np.inf
    x[5] = -0.0
    x[6] = 1e-30
    check_numbers(STEP, graph, exact=False, feeds={"x": x})
    assert names(graph) == ["layer_norm"]


def test_a_large_mean_costs_digits_alike() -> None:
    """The error of either form is that of the mean, which is as large as the mean is; see the rule's text."""
    graph = built(plain, (4, 64))
    x = (np.random.default_rng(1).standard_normal((4, 64)) + 1000).astype(np.float32)
    before = evaluate(graph, {"x": x})[0]
    run(STEP, graph)
    np.testing.assert_allclose(evaluate(graph, {"x": x})[0], before, atol=1e-3)


def test_the_weights_stay_the_same_values() -> None:
    graph = built(SPELLINGS[1])
    run(STEP, graph)
    (node,) = [n for n in graph if n.op is LAYER_NORM]
    np.testing.assert_array_equal(constant_of(node.operand(1)).array, GAMMA.astype(np.float32))  # type: ignore[union-attr]
    np.testing.assert_array_equal(constant_of(node.operand(2)).array, BETA.astype(np.float32))  # type: ignore[union-attr]
    assert node.attributes_as(NormAttributes).epsilon == pytest.approx(1e-5)


def test_scale_and_bias_that_are_inputs() -> None:
    b = Building()
    x, g, s = b.input("x", (2, 8)), b.input("g", (8,)), b.input("s", (8,))
    graph = b.done(b(b2.ADD, b(b2.MUL, plain(b, x), g), s))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]


def test_two_axes_and_scales_of_their_shape() -> None:
    b = Building()
    x = b.input("x", (2, 3, 8))
    c = centred(b, x, (1, 2))
    y = b(b2.DIV, c, deviation(b, c, (1, 2)))
    rng = np.random.default_rng(0)
    graph = b.done(affine(b, y, rng.standard_normal((3, 8)), rng.standard_normal((3, 8))))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]
    assert next(n for n in graph if n.op is LAYER_NORM).attributes_as(NormAttributes).axis == 1


def test_axes_of_size_one_around() -> None:
    b = Building()
    x = b.input("x", (2, 8, 1, 1))
    c = centred(b, x, 1)
    graph = b.done(affine(b, b(b2.DIV, c, deviation(b, c, 1)), GAMMA.reshape(8, 1, 1), BETA.reshape(8, 1, 1)))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]


def test_channels_first_takes_two_transposes() -> None:
    b = Building()
    x = b.input("x", ("N", 8, 4, 5))
    c = centred(b, x, 1)
    graph = b.done(affine(b, b(b2.DIV, c, deviation(b, c, 1)), GAMMA.reshape(8, 1, 1), BETA.reshape(1, 8, 1, 1)))
    check_numbers(STEP, graph, exact=False, binding={"N": 2})
    assert names(graph) == ["transpose", "layer_norm", "transpose"]


def test_transposes_around_channels_first_vanish() -> None:
    b = Building()
    x = b(TRANSPOSE, b.input("x", (2, 4, 5, 8)), perm=[0, 3, 1, 2])
    c = centred(b, x, 1)
    y = affine(b, b(b2.DIV, c, deviation(b, c, 1)), GAMMA.reshape(8, 1, 1), BETA.reshape(8, 1, 1))
    graph = b.done(b(TRANSPOSE, y, perm=[0, 2, 3, 1]))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]


def test_casts_around_f16() -> None:
    b = Building()
    x = b(CAST, b.input("x", (2, 8), f16), to=f32)
    y = b(CAST, plain(b, x), to=f16)
    gamma, beta = b.constant(GAMMA, f16), b.constant(BETA, f16)
    graph = b.done(b(b2.ADD, b(b2.MUL, y, gamma), beta))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["cast", "layer_norm", "cast"]


def test_f16_throughout() -> None:
    def half(b: Building, x: Value) -> Value:
        c = centred(b, x)
        v = mean(b, b(b2.MUL, c, c))
        y = b(b2.DIV, c, b(SQRT, b(b2.ADD, v, b.constant(1e-3, f16))))
        return b(b2.ADD, b(b2.MUL, y, b.constant(GAMMA, f16)), b.constant(BETA, f16))

    graph = built(half, dtype=f16)
    ctx = check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]
    assert {c for _, c in ledger(ctx)} == {"reassociates"}


def test_statistics_in_f32_of_an_f16_difference() -> None:
    def mixed(b: Building, x: Value) -> Value:
        c = centred(b, x)
        wide = b(CAST, c, to=f32)
        v = b(b2.ADD, mean(b, b(b2.MUL, wide, wide)), b.constant(1e-5))
        return b(b2.MUL, c, b(CAST, inverse(b, v), to=f16))

    graph = built(mixed, dtype=f16)
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["cast", "layer_norm", "cast"]


def test_further_factors_stay() -> None:
    b = Building()
    x, mask = b.input("x", (2, 3, 8)), b.input("mask", (2, 3, 1))
    c = centred(b, x)
    graph = b.done(b(b2.DIV, b(b2.MUL, b(b2.MUL, mask, c), mask), deviation(b, c)))
    check_numbers(STEP, graph, exact=False)
    assert sorted(names(graph)) == ["layer_norm", "mul", "mul"]


def test_a_factor_that_stands_there_twice() -> None:
    """x * (x * inverse) is the norm times x, and dividing twice by the deviation divides once more."""
    b = Building()
    x = b.input("x", (2, 8))
    c = centred(b, x)
    s = deviation(b, c)
    graph = b.done(b(b2.DIV, b(b2.DIV, c, s), s))
    check_numbers(STEP, graph, exact=False)
    b = Building()
    c = centred(b, b.input("x", (2, 8)))
    graph = b.done(b(b2.MUL, b(b2.DIV, c, deviation(b, c)), c))
    check_numbers(STEP, graph, exact=False)


# --- the variance as a difference of moments


def moments(b: Building, x: Value, keep: Any = None) -> Value:
    m = sum_over(b, x)
    v = b(b2.SUB, sum_over(b, b(b2.MUL, x, x)), b(b2.MUL, m, m))
    if keep is not None:
        v = keep(b, v)
    scale = b(b2.MUL, inverse(b, b(b2.ADD, v, b.constant(1e-6))), b.constant(GAMMA))
    return b(b2.ADD, b(b2.MUL, b(b2.SUB, x, m), scale), b.constant(BETA))


@pytest.mark.parametrize(
    "keep",
    [
        None,
        lambda b, v: b(b2.MAX, b.constant(0.0), v),
        lambda b, v: b(RELU, v),
        lambda b, v: b(CLIP, v, min=0.0),
    ],
    ids=["bare", "max", "relu", "clip"],
)
def test_moments_are_of_class_range(keep: Any) -> None:
    def spelling(b: Building, x: Value) -> Value:
        return moments(b, x, keep)

    graph = built(spelling, (3, 8))
    before = names(graph)
    ctx = run(STEP, graph)
    assert names(graph) == before
    assert any("--allow range" in text for text in remarks(ctx))
    ctx = check_numbers(STEP, graph, context(allowed=ALL), exact=False)
    assert names(graph) == ["layer_norm"]
    assert ("fuse-layer-norm", "range") in ledger(ctx)


def test_moments_where_the_mean_is_taken_out_last() -> None:
    def split(b: Building, x: Value) -> Value:
        m = mean(b, x)
        v = b(b2.SUB, mean(b, b(b2.MUL, x, x)), b(b2.POW, m, b.constant(2.0)))
        s = inverse(b, b(b2.ADD, v, b.constant(1e-5)))
        return b(b2.SUB, b(b2.MUL, x, s), b(b2.MUL, m, s))

    graph = built(split, (3, 8))
    run(STEP, graph)
    assert "layer_norm" not in names(graph)
    check_numbers(STEP, graph, context(allowed=ALL), exact=False)
    assert names(graph) == ["layer_norm"]


# --- near misses


def test_epsilon_outside_of_the_root() -> None:
    def outside(b: Building, x: Value) -> Value:
        c = centred(b, x)
        return b(b2.DIV, c, b(b2.ADD, b(SQRT, mean(b, b(b2.MUL, c, c))), b.constant(0.1)))

    untouched(built(outside), "epsilon 0.1 is added to the root, not under it")


@pytest.mark.parametrize("epsilon", [None, 0.0, -1e-5])
def test_no_epsilon(epsilon: float | None) -> None:
    def without(b: Building, x: Value) -> Value:
        c = centred(b, x)
        v = mean(b, b(b2.MUL, c, c))
        return b(b2.DIV, c, b(SQRT, v if epsilon is None else b(b2.ADD, v, b.constant(epsilon))))

    untouched(built(without), "no epsilon under the root" if epsilon is None else "not above 0")


def test_epsilon_that_is_an_input() -> None:
    b = Building()
    x, e = b.input("x", (2, 8)), b.input("e", ())
    c = centred(b, x)
    graph = b.done(b(b2.DIV, c, b(SQRT, b(b2.ADD, mean(b, b(b2.MUL, c, c)), e))))
    untouched(graph, "epsilon is not a constant")


def test_the_variance_itself_divides() -> None:
    def variance(b: Building, x: Value) -> Value:
        c = centred(b, x)
        return b(b2.DIV, c, b(b2.ADD, mean(b, b(b2.MUL, c, c)), b.constant(1e-5)))

    untouched(built(variance), "not by its root")


def test_another_power() -> None:
    def fourth(b: Building, x: Value) -> Value:
        c = centred(b, x)
        v = mean(b, b(b2.POW, c, b.constant(4.0)))
        return b(b2.DIV, c, b(SQRT, b(b2.ADD, v, b.constant(1e-5))))

    untouched(built(fourth))


@pytest.mark.parametrize("factor", [8 / 7, 0.99, 8.0])
def test_another_divisor(factor: float) -> None:
    def unbiased(b: Building, x: Value) -> Value:
        c = centred(b, x)
        v = b(b2.MUL, mean(b, b(b2.MUL, c, c)), b.constant(factor))
        return b(b2.DIV, c, b(SQRT, b(b2.ADD, v, b.constant(1e-5))))

    untouched(built(unbiased), "times the mean of squares over axes [2]")


def test_a_sum_of_which_the_count_is_not_known() -> None:
    b = Building()
    x = b.input("x", (2, "D"))
    c = centred(b, x)
    v = b(b2.MUL, b(REDUCE_SUM, b(b2.MUL, c, c), axes=1), b.constant(0.125))
    untouched(b.done(b(b2.DIV, c, b(SQRT, b(b2.ADD, v, b.constant(1e-5))))), "is not known")


def test_the_numerator_is_not_centred() -> None:
    untouched(built(lambda b, x: b(b2.DIV, x, deviation(b, centred(b, x)))), "what is divided by the deviation is not")


def test_the_numerator_of_the_other_sign_has_a_scale_of_minus_one() -> None:
    def flipped(b: Building, x: Value) -> Value:
        m = mean(b, x)
        return b(b2.DIV, b(b2.SUB, m, x), deviation(b, b(b2.SUB, x, m)))

    graph = built(flipped)
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]


def test_mean_and_variance_over_different_axes() -> None:
    def apart(b: Building, x: Value) -> Value:
        c = centred(b, x, 2)
        return b(b2.DIV, c, deviation(b, c, 1))

    untouched(built(apart), "the mean is taken over axes [2], the mean of squares over axes [1]")


def test_a_mean_that_lies_along_another_axis() -> None:
    def crossed(b: Building, x: Value) -> Value:
        c = b(b2.SUB, x, mean(b, x, 1, keepdims=False))
        v = mean(b, b(b2.MUL, c, c), 1, keepdims=False)
        return b(b2.DIV, c, b(SQRT, b(b2.ADD, v, b.constant(1e-5))))

    untouched(built(crossed, (8, 8)), "keepdims=false")


def test_the_mean_of_another_value() -> None:
    """The rest is an RMS normalization of the difference."""
    b = Building()
    x, z = b.input("x", (2, 8)), b.input("z", (2, 8))
    c = b(b2.SUB, x, mean(b, z))
    graph = b.done(b(b2.DIV, c, deviation(b, c)))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["reduce_mean", "sub", "rms_norm"]


@pytest.mark.parametrize("which", ["value", "axes", "scale"])
def test_another_mean_taken_out_last(which: str) -> None:
    b = Building()
    x, z = b.input("x", (8, 8)), b.input("z", (8, 8))
    s = inverse(b, b(b2.ADD, mean(b, b(b2.POW, centred(b, x), b.constant(2.0))), b.constant(1e-5)))
    m = mean(b, z if which == "value" else x, 0 if which == "axes" else 1)
    t = b(b2.MUL, s, b.constant(GAMMA)) if which == "scale" else s
    untouched(b.done(b(b2.SUB, b(b2.MUL, x, s), b(b2.MUL, m, t))))


def test_a_product_of_a_higher_rank() -> None:
    b = Building()
    c = centred(b, b.input("x", (8,)))
    graph = b.done(b(b2.MUL, c, b(b2.DIV, b.constant([[1.0]]), deviation(b, c))))
    untouched(graph, "the product has another shape")


@pytest.mark.parametrize("which", ["mean", "variance", "centred"])
def test_what_is_used_elsewhere_stays(which: str) -> None:
    """A mean that is an output leaves the rest to an RMS normalization, which is one node where the target has it."""
    b = Building()
    x = b.input("x", (2, 8))
    m = mean(b, x)
    c = b(b2.SUB, x, m)
    v = mean(b, b(b2.MUL, c, c))
    y = b(b2.DIV, c, b(SQRT, b(b2.ADD, v, b.constant(1e-5))))
    other = {"mean": m, "variance": v, "centred": c}[which]
    graph = b.done(y, other)
    ctx = check_numbers(STEP, graph, exact=False)
    assert "layer_norm" not in names(graph)
    if which == "variance":
        assert "rms_norm" not in names(graph)
        assert any("used outside of the pattern" in text for text in remarks(ctx))
    else:
        assert names(graph) == ["reduce_mean", "sub", "rms_norm"]


def test_a_scale_along_the_rows_stays() -> None:
    """It is left to the instance normalization where that is one, and is never taken into the layer normalization."""
    untouched(built(lambda b, x: affine(b, plain(b, x), np.ones((3, 1)), np.zeros((3, 1)))), "instance normalization")
    graph = built(lambda b, x: b(b2.MUL, plain(b, x), b.constant(np.arange(48).reshape(2, 3, 8))))
    ctx = check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm", "mul"]
    assert any("varies along an axis before 2" in text for text in remarks(ctx))


def test_a_scale_that_broadcasts_stays() -> None:
    graph = built(lambda b, x: b(b2.MUL, plain(b, x), b.constant(np.ones((1, 1, 1)))), (3, 8))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm", "mul"]


def test_a_scale_after_the_bias_stays() -> None:
    graph = built(lambda b, x: b(b2.MUL, affine(b, plain(b, x)), b.constant(GAMMA)))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm", "mul"]


def test_a_normalized_value_of_two_uses_takes_no_scale() -> None:
    b = Building()
    y = plain(b, b.input("x", (2, 8)))
    graph = b.done(b(b2.MUL, y, b.constant(GAMMA)), y)
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm", "mul"]


def test_a_residual_is_no_bias() -> None:
    b = Building()
    x, r = b.input("x", (8,)), b.input("r", (8,))
    graph = b.done(b(b2.ADD, plain(b, x), r))
    run(STEP, graph)
    assert names(graph) == ["layer_norm", "add"]


def test_instance_normalization_is_left_to_its_rule() -> None:
    b = Building()
    x = b.input("x", (2, 3, 4, 5))
    c = centred(b, x, (2, 3))
    y = b(b2.DIV, c, deviation(b, c, (2, 3)))
    untouched(b.done(affine(b, y, np.ones((3, 1, 1)), np.zeros((3, 1, 1)))), "instance normalization")


def test_group_normalization_is_left_to_its_rule() -> None:
    b = Building()
    x = b(RESHAPE, b.input("x", (2, 6, 4, 5)), shape=[2, 3, 40])
    untouched(b.done(b(RESHAPE, plain(b, x), shape=[2, 6, 4, 5])), "group normalization")


@pytest.mark.parametrize(("shape", "reason"), [((2, "D"), "are not known"), ((2, 1), "for which kernels fail")])
def test_sizes_for_which_no_scale_can_be_made(shape: Any, reason: str) -> None:
    untouched(built(plain, shape), reason)


def test_large_ones_are_made_only_for_a_scale_that_follows() -> None:
    def wide(b: Building, x: Value) -> Value:
        c = centred(b, x, (1, 2))
        return b(b2.DIV, c, deviation(b, c, (1, 2)))

    untouched(built(wide, (1, 512, 256)), "ones would take 131072 elements")
    graph = built(lambda b, x: b(b2.MUL, wide(b, x), b.constant(np.full((512, 256), 2.0))), (1, 512, 256))
    run(STEP, graph)
    assert names(graph) == ["layer_norm"]


def test_f64_stays() -> None:
    def double(b: Building, x: Value) -> Value:
        c = centred(b, x)
        v = b(b2.ADD, mean(b, b(b2.MUL, c, c)), b.constant(1e-5, f64))
        return b(b2.DIV, c, b(SQRT, v))

    untouched(built(double, dtype=f64), "this is f64")


def test_a_mean_that_is_chosen_by_a_mask() -> None:
    b = Building()
    x, keep = b.input("x", (2, 8)), b.input("keep", (2, 8))
    masked = b(WHERE, b(b2.GREATER, keep, b.constant(0.0)), x, b.constant(0.0))
    c = b(b2.SUB, x, mean(b, masked))
    untouched(b.done(b(b2.DIV, c, b(SQRT, b(b2.ADD, mean(b, b(b2.MUL, masked, masked)), b.constant(1e-5))))))


# --- targets and opsets


def at(opset: int, target: str = "directml") -> PassContext:
    return context(target, opset=opset)


def test_below_opset_17_the_centred_value_is_rms_normalized() -> None:
    graph = built(SPELLINGS[1])
    ctx = check_numbers(STEP, graph, at(16), exact=False)
    assert names(graph) == ["reduce_mean", "sub", "rms_norm", "add"]
    assert ledger(ctx)[0] == ("fuse-rms-norm", "reassociates")


def test_below_opset_17_elsewhere_it_stays() -> None:
    untouched(built(SPELLINGS[1]), "LayerNormalization needs opset 17, and opset 16 is emitted", at(16, "onnx"))


def test_numpy_code_stays_as_it_is_written() -> None:
    untouched(built(SPELLINGS[1]), ctx=context("numpy"))


def test_only_exact_rewrites() -> None:
    untouched(built(plain), "it reassociates", context(allowed=("exact",)))


def test_a_rule_that_is_skipped() -> None:
    ctx = context(skip_rules=("absorb-norm-bias",))
    graph = built(SPELLINGS[1])
    run(STEP, graph, ctx)
    assert names(graph) == ["layer_norm", "add"]


# --- normalizations that are there already


def test_an_existing_norm_takes_constants() -> None:
    b = Building()
    x = b.input("x", (2, 8))
    y = b(LAYER_NORM, x, b.constant(GAMMA), None, epsilon=1e-3)
    y = b(b2.MUL, y, b.constant(GAMMA + 1))
    graph = b.done(b(b2.ADD, b(b2.ADD, y, b.constant(BETA)), b.constant(BETA)))
    check_numbers(STEP, graph, exact=False)
    assert names(graph) == ["layer_norm"]


def test_an_existing_scale_that_is_an_input_stays() -> None:
    b = Building()
    y = b(LAYER_NORM, b.input("x", (2, 8)), b.input("g", (8,)), None)
    graph = b.done(b(b2.MUL, y, b.constant(GAMMA)))
    untouched(graph, "not both are constants")


def test_constants_only_where_the_kept_ones_fit() -> None:
    """A scale that the normalization broadcasts itself would keep it from being one node."""
    b = Building()
    y = b(LAYER_NORM, b.input("x", (2, 8)), b.constant([2.0]), None)
    untouched(b.done(b(b2.ADD, y, b.constant(BETA))), "is broadcast by the normalization already")


def test_places_of_all_nodes_are_kept() -> None:
    graph = built(SPELLINGS[1])
    spans = {s for n in graph if n.op is not CONSTANT for s in n.spans}
    run(STEP, graph)
    (node,) = [n for n in graph if n.op is LAYER_NORM]
    assert set(node.spans) == spans
    assert node.history.rules == ("fuse-layer-norm", "absorb-norm-scale", "absorb-norm-bias")


def test_the_report_tells_of_the_kernel_that_cancels() -> None:
    graph = built(SPELLINGS[1])
    run(STEP, graph)
    (note,) = graph.notes
    assert "up to 1.26" in note
    graph = built(SPELLINGS[1])
    run(STEP, graph, at(16))
    assert graph.notes == []


def test_a_second_run_changes_nothing() -> None:
    graph = built(SPELLINGS[1])
    run(STEP, graph)
    ctx = context()
    assert not STEP.run(graph, ctx)
    assert ctx.ledger == []


def test_many_norms_in_a_row() -> None:
    b = Building()
    x = b.input("x", (2, 8))
    for _ in range(40):
        x = b(b2.ADD, x, affine(b, plain(b, x)))
    graph = b.done(x)
    before = evaluate(graph, {"x": np.ones((2, 8), np.float32)})
    run(STEP, graph)
    assert names(graph).count("layer_norm") == 40
    assert len(names(graph)) == 80
    assert_equal(before, evaluate(graph, {"x": np.ones((2, 8), np.float32)}), exact=False)
