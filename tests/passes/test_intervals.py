"""The range of values: what is proved, what is not, and that the references stay within it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dmlc
from dmlc import text
from dmlc.diagnostics import Source
from dmlc.ir import Graph
from dmlc.passes.intervals import Intervals
from dmlc.runtime.reference import evaluate
from tests.rows import each_row

F16_MAX = 65504.0


def load(body: str, inputs: str = "x: f16[3, 4]", dims: str = "") -> Graph:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    return text.load(Source("t.dml", f"{dims}model t({inputs}) -> (y) {{\n{lines}    return y\n}}\n"))


def of(body: str, inputs: str = "x: f16[3, 4]", dims: str = "") -> tuple[float, float]:
    graph = load(body, inputs, dims)
    return Intervals(graph).of(graph.outputs[0][1])


@each_row(
    ("body", "low", "high"),
    [
        ("y = sigmoid(x) + 1.0", 1, 2),
        ("y = clip(x, min=-2, max=3) ** 2", 0, 9),
        ("c = clip(x, min=-2, max=3); y = c * c", 0, 9),
        ("c = clip(x, min=-2, max=3); y = c * sin(x)", -3, 3),
        ("y = abs(clip(x, min=-2, max=1)) - 1.0", -1, 1),
        ("y = -(relu(tanh(x)))", -1, 0),
        ("y = where(x > 0.0, 4.0, sigmoid(x))", 0, 4),
        ("y = min(max(x, -1.0), 7.0)", -1, 7),
        ("y = one_hot(argmax(x, axes=[1]), depth=4, on=5, dtype=f16)", 0, 5),
        ("y = hardmax(x, axes=[1]) * 3.0", 0, 3),
        ("y = sqrt(clip(x, min=4, max=16))", 2, 4),
        ("y = clip(x, min=1, max=2) / clip(x, min=4, max=8)", 0.125, 0.5),
        ("y = reduce_max(transpose(reshape(cos(x), shape=[4, 3]), perm=[1, 0]), axes=[1])", -1, 1),
        ("y = reduce_sum(sigmoid(x), axes=[0, 1])", 0, 12),
        ("y = reduce_mean(sigmoid(x), axes=[0, 1])", 0, 1),
        ("y = reduce_sum_square(tanh(x), axes=[1])", 0, 4),
        ("y = reciprocal(clip(x, min=2, max=4))", 0.25, 0.5),
        ("y = floor(clip(x, min=-1.5, max=1.5))", -2, 1),
        ("y = x * sin(x)", -F16_MAX, F16_MAX),
        ("y = concat(sigmoid(x), 2.0 * tanh(x), axis=0)", -2, 2),
        ("y = pad(sigmoid(x), pads=[1, 0, 0, 0], value=9)", 0, 9),
        ("y = tile(sigmoid(x), repeats=[2, 1])", 0, 1),
    ],
)
def test_ranges_that_are_known(body: str, low: float, high: float) -> None:
    found = of(body)
    size = max(abs(low), abs(high))
    # The ends may lie a few roundings of f16 outside, never inside.
    assert low - 0.02 * size <= found[0] <= low
    assert high <= found[1] <= high + 0.02 * size


@each_row(
    "body",
    [
        "y = x * x",
        "y = x + 100.0",
        "y = exp(x)",
        "y = reciprocal(x)",
        "y = 1.0 / x",
        "y = x ** 3",
        "y = reduce_sum(x, axes=[1])",
        "y = sigmoid(x) / tanh(x)",
    ],
)
def test_what_may_overflow(body: str) -> None:
    assert math.inf in map(abs, of(body))


def test_integers() -> None:
    assert of("y = x as f16", "x: u8[3]") == (0, 255)
    assert of("y = (x as f16) * (x as f16)", "x: u8[3]")[1] < F16_MAX
    assert of("y = x as f16", "x: bool[3]") == (0, 1)
    assert of("y = x + x", "x: i8[3]") == (-128, 127)  # it wraps
    assert of("y = -x", "x: i8[3]") == (-128, 127)
    assert of("y = (x as i32) * 2", "x: i8[3]") == (-256, 254)
    assert of("y = x + 1", "x: i64[3]")[1] >= 2**63 - 1
    assert of("y = clip(x, min=0, max=1) as u8", "x: f32[3]") == (0, 255)  # NaN may become any


def test_sizes_without_a_bound() -> None:
    assert of("y = reduce_sum(sigmoid(x), axes=[0])", "x: f16[N]")[1] == math.inf
    assert of("y = reduce_sum(sigmoid(x), axes=[0])", "x: f16[N]", "dim N in 1..100\n")[1] == pytest.approx(
        100, rel=0.02
    )
    assert of("y = reduce_mean(sigmoid(x), axes=[0])", "x: f16[N]") == (0, 2)


def test_an_extreme_of_nothing_is_infinite() -> None:
    assert of("y = reduce_max(sigmoid(x), axes=[0])", "x: f16[N]", "dim N in 0..9\n")[0] == -math.inf
    assert of("y = reduce_max(sigmoid(x), axes=[0])", "x: f16[N]", "dim N in 1..9\n") == (0, 1)


def test_deep_graphs() -> None:
    g = dmlc.Graph("deep")
    x = g.input("x", dtype="f16", shape=(2,))
    out = dmlc.sigmoid(x)
    for _ in range(5000):
        out = dmlc.relu(out)
    g.output("y", out)
    assert Intervals(g.graph).of(g.graph.outputs[0][1]) == (0, 1)


# --- random programs

_UNARY = ("sigmoid", "tanh", "abs", "neg", "relu", "sin", "floor", "sqrt", "exp")
_BINARY = ("+", "-", "*", "/")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Lines over x (f16 or f32 within -8..8) and k (u8)."""
    low = draw(st.integers(-8, 4))
    lines = [f"a0 = clip(x, min={low}, max={low + draw(st.integers(0, 4))})", "a1 = (k as D)", "a2 = sigmoid(x)"]
    for n in range(3, 3 + draw(st.integers(1, 6))):
        a, b = (f"a{draw(st.integers(0, n - 1))}" for _ in range(2))
        kind = draw(st.sampled_from(["unary", "binary", "reduce", "pick", "move"]))
        if kind == "unary":
            word = f"{draw(st.sampled_from(_UNARY))}({a})"
        elif kind == "binary":
            word = f"{a} {draw(st.sampled_from(_BINARY))} {b}"
        elif kind == "reduce":
            word = f"{draw(st.sampled_from(['reduce_sum', 'reduce_mean', 'reduce_max', 'reduce_l2']))}({a}, axes=[1])"
        elif kind == "pick":
            word = draw(st.sampled_from([f"where({a} > 1.0, {a}, {b})", f"max({a}, {b})", f"min({a}, {b})"]))
        else:
            word = draw(st.sampled_from([f"{a} ** 2", f"softmax({a}, axes=[1])", f"clip({a}, min=-3)"]))
        lines.append(f"a{n} = {word}")
    return "; ".join([*lines, f"y = a{len(lines) - 1} * 1.0"])


@settings(max_examples=60)
@given(programs(), st.sampled_from(["f16", "f32"]), st.integers(0, 2**32 - 1))
def test_references_stay_within(body: str, dtype: str, seed: int) -> None:
    graph = load(body.replace("as D", f"as {dtype}"), f"x: {dtype}[3, 5], k: u8[3, 5]")
    rng = np.random.default_rng(seed)
    wide = np.where(rng.random((3, 5)) < 0.5, rng.uniform(-8, 8, (3, 5)), rng.choice([0.0, 1.0, -4.0, 60000.0], (3, 5)))
    feeds = {
        "x": wide.astype(np.float16 if dtype == "f16" else np.float32),
        "k": rng.integers(0, 256, (3, 5)).astype(np.uint8),
    }
    with np.errstate(all="ignore"):
        found = evaluate(graph, feeds)["y"]
    low, high = Intervals(graph).of(graph.outputs[0][1])
    numbers = found[~np.isnan(found)].astype(np.float64)
    assert ((low <= numbers) & (numbers <= high)).all(), (body, low, high, numbers)
