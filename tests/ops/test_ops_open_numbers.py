"""Dims in attributes that are numbers: the values of the same call with the number, with sizes open and fixed."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import NumberKind, attribute_specs
from dmlc.ops.open_numbers import COMPOSED
from tests.rows import each_row

CALLS = [
    "mean_variance_norm(x, axes=[1], epsilon=NUM / 10)",
    "mean_variance_norm(x, axes=[1], epsilon=NUM, variance=false)",
    "layer_norm(x, s, s, epsilon=NUM / 10)",
    "layer_norm(x, s, epsilon=1 / NUM)",
    "layer_norm(x, t, axis=0, epsilon=1 / NUM)",
    "rms_norm(x, s, epsilon=NUM ** -0.5)",
    "elu(x, alpha=NUM)",
    "leaky_relu(x, alpha=1 / NUM)",
    "hard_sigmoid(x, alpha=1 / NUM)",
    "hard_sigmoid(x, beta=NUM / 10)",
    "hard_sigmoid(x, alpha=1 / NUM, beta=1 / NUM)",
    "clip(x, min=NUM / 10)",
    "clip(x, max=NUM / 10, min=none)",
    "clip(x, min=0, max=NUM - 4)",
    "full(shape=[2], value=NUM / 2, like=x)",
    "pad(x, pads=[1, 0, 2, 1], value=NUM)",
    "pad(x as i32, pads=[1, 0, 2, 1], value=-NUM)",
    "one_hot(i, depth=4, on=NUM)",
    "one_hot(i, depth=4, off=NUM / 2, dtype=f16)",
    "one_hot(i, depth=4, on=NUM, off=NUM - 1, dtype=i64)",
]


TARGETS: tuple[dmlc.TargetName, ...] = ("onnx", "directml", "cpu", "numpy")


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@each_row("call", CALLS)
def test_a_dim_is_the_number_that_it_is(call: str, dtype: str) -> None:
    """Each dtype takes every other target; the next call takes the others."""
    inputs = f"x: {dtype}[N, 3], s: {dtype}[3], t: {dtype}[N, 3], i: i32[2]"
    text = f"model m({inputs}) -> (y) {{\n return {call}\n}}\n"
    kind, tolerance = (np.float32, 1e-5) if dtype == "f32" else (np.float16, 4e-3)
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(kind)
    feeds = {"x": x, "s": np.arange(3, dtype=kind), "t": x[::-1] + kind(1), "i": np.array([3, 9], np.int32)}
    wanted = dmlc.compile(dmlc.Source(text.replace("NUM", "5"))).run(feeds, "reference")["y"]
    source = dmlc.Source(text.replace("NUM", "N"))
    for target in TARGETS[(CALLS.index(call) + (dtype == "f16")) % 2 :: 2]:
        for program in (dmlc.compile(source, target=target), dmlc.compile(source, target=target, bind={"N": 5})):
            found = program.run(feeds)["y"]
            assert found.dtype == wanted.dtype, target
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=target)


def test_every_attribute_that_is_a_number_takes_dims() -> None:
    numbers = {
        op
        for op in OPERATIONS.values()
        if any(isinstance(spec.kind, NumberKind) for spec in attribute_specs(op.attributes))
    }
    assert numbers == set(COMPOSED)


@pytest.mark.parametrize(
    "call",
    [
        "mean_variance_norm(x, axes=[1], epsilon=1 / N)",
        "layer_norm(x, s, s, epsilon=1 / N)",
        "rms_norm(x, s, epsilon=1 / N)",
    ],
)
def test_a_norm_of_a_fixed_size_is_one_node(call: str) -> None:
    text = f"model m(x: f32[N, 3], s: f32[3]) -> (y) {{\n return {call}\n}}\n"
    assert len(dmlc.compile(dmlc.Source(text), bind={"N": 4}).to_onnx().graph.node) == 1


@each_row(
    "call",
    [
        "pad(n, pads=[0, 0], value=NUM / 10)",
        "pad(x, pads=[0, 0], value=NUM)",
        "layer_norm(x, t, epsilon=NUM)",
        "elu(n, alpha=NUM)",
        "one_hot(n, depth=0, on=NUM)",
        "hard_sigmoid(x, alpha=NUM, betta=1)",
        "mean_variance_norm(x, epsilon=NUM)",
        "clip(x > 0, min=NUM)",
        "softmax(x, axes=[NUM])",
        "argmax(x, axes=NUM)",
    ],
)
def test_mistakes_beside_a_dim_are_those_beside_a_number(call: str) -> None:
    found = []
    for number in ("5", "N"):
        text = f"model m(x: f32[N, 3], t: f32[2], n: i32[N]) -> (y) {{\n return {call.replace('NUM', number)}\n}}\n"
        with pytest.raises(dmlc.DmlcError) as caught:
            dmlc.compile(dmlc.Source(text))
        first = caught.value.diagnostics[0]
        found.append((first.code.id[:3], first.span.column if first.span else 0))
    assert found[0] == found[1]
