"""Layer normalizations in the spellings that models have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pass_helpers import Building, names, remarks, run

from dmlc.ir import Graph, Value
from dmlc.ir.dtype import f32
from dmlc.ops import binary as b2
from dmlc.ops.elementwise import NEG, RECIPROCAL, SQRT
from dmlc.ops.move import EXPAND
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.passes.fuse_layer_norm import FuseLayerNorm
from dmlc.passes.manager import PassContext

GAMMA = np.linspace(0.5, 1.5, 8)
BETA = np.linspace(-1, 1, 8)


STEP = FuseLayerNorm()


def built(spelling: Callable[[Building, Value], Value], shape: Any = (2, 3, 8), dtype: Any = f32) -> Graph:
    b = Building()
    return b.done(spelling(b, b.input("x", shape, dtype)))


def untouched(graph: Graph, reason: str = "", ctx: PassContext | None = None) -> None:
    """Check that nothing is rewritten; ``reason`` is part of a remark."""
    before = names(graph)
    ctx = run(STEP, graph, ctx)
    assert names(graph) == before
    assert ctx.ledger == []
    if reason:
        assert any(reason in text for text in remarks(ctx)), remarks(ctx)


def mean(b: Building, x: Value, axes: Any = -1, keepdims: bool = True) -> Value:
    return b(REDUCE_MEAN, x, axes=axes, keepdims=keepdims)


def sum_over(b: Building, x: Value, axes: Any = -1) -> Value:
    return b(b2.MUL, b(REDUCE_SUM, x, axes=axes), b.constant(np.float32(1 / 8)))


def inverse(b: Building, v: Value) -> Value:
    return b(RECIPROCAL, b(SQRT, v))


def centred(b: Building, x: Value, axes: Any = -1) -> Value:
    return b(b2.SUB, x, mean(b, x, axes))


def deviation(b: Building, c: Value, axes: Any = -1, epsilon: float = 1e-5) -> Value:
    return b(SQRT, b(b2.ADD, mean(b, b(b2.POW, c, b.constant(2.0)), axes), b.constant(epsilon)))


def plain(b: Building, x: Value) -> Value:
    c = centred(b, x)
    return b(b2.DIV, c, deviation(b, c))


def affine(b: Building, y: Value, gamma: Any = GAMMA, beta: Any = BETA) -> Value:
    return b(b2.ADD, b(b2.MUL, y, b.constant(gamma)), b.constant(beta))


def times_reciprocal(b: Building, x: Value) -> Value:
    c = centred(b, x)
    v = b(b2.ADD, b.constant(1e-5), mean(b, b(b2.MUL, c, c)))
    return b(b2.ADD, b.constant(BETA), b(b2.MUL, b.constant(GAMMA), b(b2.MUL, inverse(b, v), c)))


def scale_before_the_division(b: Building, x: Value) -> Value:
    c = centred(b, x)
    return b(b2.ADD, b(b2.DIV, b(b2.MUL, b.constant(GAMMA), c), deviation(b, c)), b.constant(BETA))


def scale_over_the_deviation(b: Building, x: Value) -> Value:
    c = centred(b, x)
    return b(b2.ADD, b(b2.MUL, c, b(b2.DIV, b.constant(GAMMA), deviation(b, c))), b.constant(BETA))


def scale_times_the_inverse(b: Building, x: Value) -> Value:
    c = centred(b, x)
    v = b(b2.ADD, mean(b, b(b2.MUL, c, c)), b.constant([[1e-5]]))
    return b(b2.ADD, b(b2.MUL, c, b(b2.MUL, inverse(b, v), b.constant(GAMMA))), b.constant(BETA))


def powers(b: Building, x: Value) -> Value:
    c = b(b2.ADD, x, b(NEG, mean(b, x)))
    v = b(b2.ADD, mean(b, b(b2.POW, c, b.constant([2.0]))), b.constant(1e-5))
    return affine(b, b(b2.MUL, c, b(b2.POW, v, b.constant(-0.5))))


def one_over_the_root(b: Building, x: Value) -> Value:
    c = centred(b, x)
    v = b(b2.ADD, mean(b, b(b2.MUL, c, c)), b.constant(1e-5))
    return affine(b, b(b2.MUL, b(b2.DIV, b.constant([1.0]), b(b2.POW, v, b.constant(0.5))), c))


def root_of_the_reciprocal(b: Building, x: Value) -> Value:
    c = centred(b, x)
    v = b(b2.ADD, mean(b, b(b2.MUL, c, c)), b.constant(1e-5))
    return affine(b, b(b2.MUL, c, b(SQRT, b(RECIPROCAL, v))))


def sums_over_the_count(b: Building, x: Value) -> Value:
    c = b(b2.SUB, x, sum_over(b, x))
    v = b(b2.DIV, b(REDUCE_SUM_SQUARE, c, axes=-1), b.constant(8.0))
    return affine(b, b(b2.DIV, c, b(SQRT, b(b2.SUB, v, b.constant(-1e-5)))))


def squared_difference(b: Building, x: Value) -> Value:
    """The mean less x is squared, and x less the mean is divided."""
    m = mean(b, x)
    d, c = b(b2.SUB, m, x), b(b2.SUB, x, m)
    v = b(b2.ADD, mean(b, b(b2.MUL, d, d)), b.constant(1e-5))
    return affine(b, b(b2.MUL, c, inverse(b, v)))


def mean_taken_out_last(b: Building, x: Value) -> Value:
    """TensorFlow's batch normalization."""
    m = mean(b, x)
    d = b(b2.SUB, x, m)
    s = b(b2.MUL, inverse(b, b(b2.ADD, mean(b, b(b2.MUL, d, d)), b.constant(1e-5))), b.constant(GAMMA))
    return b(b2.ADD, b(b2.MUL, x, s), b(b2.SUB, b.constant(BETA), b(b2.MUL, s, m)))


def broadcast_mean(b: Building, x: Value) -> Value:
    c = b(b2.SUB, x, b(EXPAND, mean(b, x), shape=list(x.shape)))
    return affine(b, b(b2.DIV, c, b(EXPAND, deviation(b, c), shape=list(x.shape))))


def affine_of_higher_rank(b: Building, x: Value) -> Value:
    return affine(b, plain(b, x), GAMMA.reshape(1, 1, 8), BETA.reshape(1, 8))


def scalar_affine(b: Building, x: Value) -> Value:
    return affine(b, plain(b, x), 0.5, [[2.0]])


def bias_taken_away(b: Building, x: Value) -> Value:
    return b(b2.SUB, b(b2.MUL, plain(b, x), b.constant(GAMMA)), b.constant(BETA))


SPELLINGS: list[Callable[[Building, Value], Value]] = [
    plain,
    lambda b, x: affine(b, plain(b, x)),
    times_reciprocal,
    scale_before_the_division,
    scale_over_the_deviation,
    scale_times_the_inverse,
    powers,
    one_over_the_root,
    root_of_the_reciprocal,
    sums_over_the_count,
    squared_difference,
    mean_taken_out_last,
    affine_of_higher_rank,
    scalar_affine,
    bias_taken_away,
]
