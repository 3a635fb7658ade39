"""Near misses of the fusions of layer normalizations: each test fails where one guard of theirs is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from pass_helpers import ALL, Building, check_numbers, context, ledger, remarks

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import Value
from dmlc.ir.dtype import f16, f32
from dmlc.ops import binary as b2
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG, RECIPROCAL, SQRT
from dmlc.ops.reduce import REDUCE_MEAN
from dmlc.passes.fuse_layer_norm import FuseLayerNorm
from dmlc.targets import KernelTable, load_target
from dmlc.targets.known_wrong import wrong_in

STEP = FuseLayerNorm()
GAMMA, OTHER = np.linspace(0.5, 1.5, 8), np.linspace(2, 3, 8)
Made = Callable[[Building, Value, Value, Value], Value]


def _statistics(b: Building, x: Value) -> tuple[Value, Value]:
    """The mean, and one over the deviation."""
    mean = b(REDUCE_MEAN, x, axes=[-1], keepdims=True)
    d = b(b2.SUB, x, mean)
    variance = b(REDUCE_MEAN, b(b2.MUL, d, d), axes=[-1], keepdims=True)
    return mean, b(RECIPROCAL, b(SQRT, b(b2.ADD, variance, b.constant(1e-5))))


def fused(made: Made, shape: tuple[Any, ...] = (3, 8)) -> list[str]:
    b = Building()
    x = b.input("x", shape)
    mean, inverse = _statistics(b, x)
    graph = b.done(made(b, x, mean, inverse))
    ctx = check_numbers(STEP, graph, context(allowed=ALL), exact=False)
    return [rule for rule, _ in ledger(ctx)]


def times(b: Building, *values: Any) -> Value:
    out, *rest = [v if isinstance(v, Value) else b.constant(v) for v in values]
    for value in rest:
        out = b(b2.MUL, out, value)
    return out


def test_split_by_the_same_scale() -> None:
    assert "fuse-layer-norm" in fused(lambda b, x, m, s: b(b2.SUB, times(b, x, s), times(b, m, s)))


@pytest.mark.parametrize(
    "made",
    [
        lambda b, x, m, s: b(b2.ADD, times(b, x, s), times(b, b(NEG, m), s)),
        lambda b, x, m, s: b(b2.ADD, b(b2.DIV, b(NEG, m), b(RECIPROCAL, s)), b(b2.DIV, x, b(RECIPROCAL, s))),
        lambda b, x, m, s: b(b2.ADD, times(b, x, s), b(b2.ADD, times(b, b(NEG, m), s), b.constant(OTHER))),
        lambda b, x, m, s: b(b2.ADD, b(b2.ADD, b.constant(OTHER), times(b, s, b(NEG, m))), times(b, x, s)),
    ],
)
def test_split_with_a_negated_mean(made: Made) -> None:
    assert "fuse-layer-norm" in fused(made)


@pytest.mark.parametrize(
    "made",
    [
        lambda b, x, m, s: b(b2.ADD, times(b, x, s), times(b, m, s)),
        lambda b, x, m, s: b(b2.ADD, times(b, x, s), b(b2.ADD, times(b, m, s), b.constant(OTHER))),
        lambda b, x, m, s: b(b2.SUB, times(b, x, s), times(b, b(NEG, m), s)),
        lambda b, x, m, s: b(b2.ADD, times(b, x, s), b(b2.SUB, b.constant(OTHER), times(b, b(NEG, m), s))),
        lambda b, x, m, s: b(b2.ADD, times(b, x, s), b(b2.ADD, times(b, b(NEG, x), s), b.constant(OTHER))),
    ],
)
def test_split_with_a_mean_that_is_not_subtracted(made: Made) -> None:
    assert "fuse-layer-norm" not in fused(made)


def test_split_with_a_negated_mean_that_is_used_elsewhere() -> None:
    b = Building()
    x = b.input("x", (3, 8))
    mean, inverse = _statistics(b, x)
    negated = b(NEG, mean)
    graph = b.done(b(b2.ADD, times(b, x, inverse), times(b, negated, inverse)), negated)
    ctx = check_numbers(STEP, graph, context(allowed=ALL), exact=False)
    assert ledger(ctx) == []


@pytest.mark.parametrize(
    "made",
    [
        lambda b, x, m, s: b(b2.SUB, times(b, x, s, b.constant(GAMMA)), times(b, m, s, b.constant(OTHER))),
        lambda b, x, m, s: b(b2.SUB, times(b, x, s), times(b, m, s, b.constant(OTHER))),
        lambda b, x, m, s: b(b2.SUB, times(b, x, s, b.constant(GAMMA)), times(b, m, s)),
        lambda b, x, m, s: b(
            b2.SUB, b(b2.DIV, times(b, x, s), b.constant(GAMMA)), b(b2.DIV, times(b, m, s), b.constant(OTHER))
        ),
        lambda b, x, m, s: b(b2.SUB, b(b2.DIV, times(b, x, s), b.constant(GAMMA)), times(b, m, s)),
    ],
)
def test_split_by_scales_that_differ(made: Made) -> None:
    assert "fuse-layer-norm" not in fused(made)


@pytest.mark.parametrize(("means", "centres", "spreads"), [(2, 1, 2), (1, 2, 2), (1, 1, 2), (2, 1, 1), (2, 2, 1)])
def test_split_with_statistics_over_axes_that_differ(means: int, centres: int, spreads: int) -> None:
    b = Building()
    x = b.input("x", (2, 8, 8))
    d = b(b2.SUB, x, b(REDUCE_MEAN, x, axes=[centres], keepdims=True))
    variance = b(REDUCE_MEAN, b(b2.MUL, d, d), axes=[spreads], keepdims=True)
    inverse = b(RECIPROCAL, b(SQRT, b(b2.ADD, variance, b.constant(1e-5))))
    mean = b(REDUCE_MEAN, x, axes=[means], keepdims=True)
    graph = b.done(b(b2.SUB, times(b, x, inverse), times(b, mean, inverse)))
    ctx = check_numbers(STEP, graph, context(allowed=ALL), exact=False)
    assert not ledger(ctx)


def _normalized(b: Building, x: Value) -> Value:
    return b(b2.MUL, b(b2.SUB, x, _statistics(b, x)[0]), _statistics(b, x)[1])


@pytest.mark.parametrize("shape", [(2, 1, 8), (2, 3, 8)])
def test_a_scale_that_broadcasts_the_normalized_value_stays(shape: tuple[int, ...]) -> None:
    b = Building()
    x = b.input("x", (3, 8))
    graph = b.done(b(b2.MUL, _normalized(b, x), b.constant(np.ones(shape) * 2)))
    check_numbers(STEP, graph, context(allowed=ALL), exact=False)


@pytest.mark.parametrize(("there", "back"), [(f16, f32), (f32, f16)])
def test_a_cast_between_norm_and_scale(there: Any, back: Any) -> None:
    b = Building()
    x = b.input("x", (3, 8), back if there is f16 else there)
    out = b(CAST, _normalized(b, x), to=there if there is f16 else back)
    graph = b.done(b(b2.MUL, out, b.constant(GAMMA, f16)))
    check_numbers(STEP, graph, context(allowed=ALL), exact=False)


@pytest.mark.parametrize(("release", "fires"), [("1.26.0", False), ("1.27.0", True)])
def test_kernels_that_lose_large_means_are_not_used(release: str, fires: bool) -> None:
    table = KernelTable("test", {"LayerNormalization": [[17, 21, {"T": "f32"}]]}, wrong_in(release))
    b = Building()
    x = b.input("x", (3, 8))
    mean, inverse = _statistics(b, x)
    graph = b.done(b(b2.MUL, b(b2.SUB, x, mean), inverse))
    ctx = check_numbers(STEP, graph, context(replace(load_target("cpu"), table=table)), exact=False)
    assert bool(ledger(ctx)) == fires
    assert any("loses large means" in reason for reason in remarks(ctx)) != fires


@pytest.mark.parametrize(("scale", "fires"), [("8", True), ("1", False)])
def test_scale_that_broadcasts_keeps_the_mean_in_f32(scale: str, fires: bool) -> None:
    """In f16 the mean of large numbers is rounded too much to be taken out by a node of its own."""
    text = f"model m(x: f16[3, 8], s: f16[{scale}]) -> (y) {{\n    return layer_norm(x, s)\n}}\n"
    program = dmlc.compile(Source("t.dml", text), target="directml", opset=15)
    assert ("layer-norm-by-rms" in {entry.rule for entry in program.ledger}) == fires
    x = (2000 + np.random.default_rng(0).integers(-3, 4, (3, 8))).astype(np.float16)
    feeds = {"x": x, "s": np.ones(int(scale), np.float16)}
    exact = x.astype(np.float64) - x.mean(axis=1, keepdims=True, dtype=np.float64)
    exact /= np.sqrt((exact**2).mean(axis=1, keepdims=True) + 1e-5)
    if not fires:
        np.testing.assert_allclose(program.run(feeds, "cpu")["y"], exact, atol=4e-3)
