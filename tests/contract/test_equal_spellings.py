"""An operation of the language is never worse than the same written by hand: nodes, dispatches, numbers."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

TARGETS = [("directml", 21), ("directml", 15), ("cpu", 21), ("onnx", 21), ("onnx", 13)]


def _norm(axes: str) -> tuple[str, str]:
    operation = f"y = mean_variance_norm(x, axes={axes})"
    return operation, f"c = x - reduce_mean(x, axes={axes})\n    y = c / sqrt(reduce_mean(c * c, axes={axes}) + 1e-5)"


def _beside(axes: str, keepdims: str) -> tuple[str, str]:
    """A log-sum-exp beside the maximum. By hand as the operation is defined: an infinite maximum is not taken out."""
    keywords = f"axes={axes}, keepdims={keepdims}"
    operation = f"a = reduce_max(x, {keywords})\n    y = reduce_log_sum_exp(x, {keywords}) + a"
    put_back = "m" if keepdims == "true" else f"squeeze(m, axes={axes})"
    add = "p + log(reduce_sum(exp(x - p), axes=" + axes + "))"
    total = add if keepdims == "true" else f"squeeze({add}, axes={axes})"
    by_hand = f"m = reduce_max(x, axes={axes})\n    p = clip(m, min=-3e38, max=3e38)\n    y = {total} + {put_back}"
    return operation, by_hand


_CENTRED = "c = x - reduce_mean(x, axes=[-1])\n    n = c / sqrt(reduce_mean(c * c, axes=[-1]) + 1e-5)\n    "
_MAX = "e = exp(x - reduce_max(x, axes=[-1]))\n    "

#: Both ways of saying y. Operands: x of [4, 6, 8, 10], s and b of [10], i of three indices.
PAIRS: dict[str, tuple[str, str]] = {
    **{
        f"mean_variance_norm {axes}": _norm(axes)
        for axes in ("[2, 3]", "[1, 2, 3]", "[3]", "[1]", "[0, 2, 3]", "[1, 2]")
    },
    "mean alone": ("y = mean_variance_norm(x, axes=[2, 3], variance=false)", "y = x - reduce_mean(x, axes=[2, 3])"),
    "mean beside mean_variance_norm": (
        "a = reduce_mean(x, axes=[2, 3])\n    y = mean_variance_norm(x, axes=[2, 3]) + a",
        "a = reduce_mean(x, axes=[2, 3])\n    c = x - a\n    y = c / sqrt(reduce_mean(c * c, axes=[2, 3]) + 1e-5) + a",
    ),
    "layer_norm": ("y = layer_norm(x, s, b)", _CENTRED + "y = n * s + b"),
    "layer_norm without bias": ("y = layer_norm(x, s)", _CENTRED + "y = n * s"),
    "rms_norm": ("y = rms_norm(x, s)", "y = x / sqrt(reduce_mean(x * x, axes=[-1]) + 1e-5) * s"),
    "lp_norm": (
        "y = lp_norm(x)",
        "n = reduce_l2(x, axes=[-1])\n    y = x / where(n == 0, 1, n)",
    ),
    "softmax": ("y = softmax(x)", _MAX + "y = e / reduce_sum(e, axes=[-1])"),
    "log_softmax": (
        "y = log_softmax(x)",
        "e = x - reduce_max(x, axes=[-1])\n    y = e - log(reduce_sum(exp(e), axes=[-1]))",
    ),
    "log-sum-exp beside max": _beside("[3]", "true"),
    "log-sum-exp beside max, axes dropped": _beside("[3]", "false"),
    "log-sum-exp of planes beside max": _beside("[2, 3]", "false"),
    "reduce_l1": ("y = reduce_l1(x, axes=[1])", "y = reduce_sum(abs(x), axes=[1])"),
    "reduce_l2": ("y = reduce_l2(x, axes=[1])", "y = sqrt(reduce_sum(x * x, axes=[1]))"),
    "reduce_sum_square": ("y = reduce_sum_square(x, axes=[1])", "y = reduce_sum(x * x, axes=[1])"),
    "reduce_log_sum": ("y = reduce_log_sum(abs(x) + 1, axes=[1])", "y = log(reduce_sum(abs(x) + 1, axes=[1]))"),
    "reduce_mean": ("y = reduce_mean(x, axes=[1])", "y = reduce_sum(x, axes=[1]) / 6"),
    "reduce_any": ("y = reduce_any(x > 1, axes=[1])", "y = reduce_max(x > 1, axes=[1])"),
    "reduce_all": ("y = reduce_all(x > 1, axes=[1])", "y = !reduce_any(!(x > 1), axes=[1])"),
    "argmax": (
        "y = argmax(x, axes=[1, 2], keepdims=false)",
        "y = argmax(reshape(x, shape=[4, 48, 10]), axes=[1], keepdims=false)",
    ),
    "hardmax": ("y = hardmax(x, axes=[1])", "y = one_hot(argmax(x, axes=[1], keepdims=false), depth=6, axis=1)"),
    "gelu": ("y = gelu(x)", "y = x * (1 + erf(x / 1.4142135623730951)) / 2"),
    "gelu by tanh": (
        "y = gelu(x, approximate=tanh)",
        "y = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
    ),
    "silu": ("y = silu(x)", "y = x * sigmoid(x)"),
    "silu beside sigmoid": ("y = silu(x) + sigmoid(x)", "a = sigmoid(x)\n    y = x * a + a"),
    "softplus": ("y = softplus(x)", "y = log(1 + exp(x))"),
    "softsign": ("y = softsign(x)", "y = x / (1 + abs(x))"),
    "elu": ("y = elu(x)", "y = where(x > 0, x, exp(x) - 1)"),
    "leaky_relu": ("y = leaky_relu(x)", "y = max(x, 0.01 * x)"),
    "hard_sigmoid": ("y = hard_sigmoid(x)", "y = clip(0.2 * x + 0.5, min=0, max=1)"),
    "sigmoid": ("y = sigmoid(x)", "y = 1 / (1 + exp(-x))"),
    "relu": ("y = relu(x)", "y = max(x, 0)"),
    "clip": ("y = clip(x, min=-1, max=1)", "y = min(max(x, -1), 1)"),
    "sort": ("y = sort(x)", "y, j = top_k(x, k=10, order=smallest)"),
    "argsort": ("y = argsort(x)", "v, y = top_k(x, k=10, order=smallest)"),
    "stack": ("y = stack(x, x + 1)", "y = concat(unsqueeze(x, axes=[0]), unsqueeze(x + 1, axes=[0]), axis=0)"),
    "flip": ("y = flip(x, axes=[1])", "y = slice(x, starts=[-1], ends=[-99], axes=[1], steps=[-1])"),
    "tile": ("y = tile(x, repeats=[1, 2, 1, 1])", "y = concat(x, x, axis=1)"),
    "gather of batches": (
        "y = gather(x, argmax(x, axes=[1], keepdims=false) as i64, axis=1, batch_axes=1)",
        "k = unsqueeze(argmax(x, axes=[1], keepdims=false) as i64, axes=[3])\n"
        "    y = onnx.GatherND(x, k, batch_dims=1)",
    ),
}


def compiled(body: str, target: str, opset: int, dtype: str = "f32") -> dmlc.Program:
    head = f"model m(x: {dtype}[4, 6, 8, 10], s: {dtype}[10], b: {dtype}[10]) -> (y)"
    return dmlc.compile(Source("m.dml", f"{head} {{\n    {body}\n    return y\n}}\n"), target=target, opset=opset)


def feeds(dtype: type = np.float32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"x": (4, 6, 8, 10), "s": (10,), "b": (10,)}
    return {
        name: (rng.permutation(np.prod(shape)).reshape(shape) / 400 - 2).astype(dtype) for name, shape in shapes.items()
    }


@pytest.mark.parametrize("name", PAIRS)
def test_an_operation_is_never_worse_than_by_hand(name: str) -> None:
    operation, by_hand = PAIRS[name]
    for target, opset in (TARGETS[0], *TARGETS[1 + list(PAIRS).index(name) % 2 :: 2]):
        a, b = compiled(operation, target, opset), compiled(by_hand, target, opset)
        names = [[node.op_type for node in made.to_onnx().graph.node] for made in (a, b)]
        assert len(names[0]) <= len(names[1]), (target, opset, *names)
        if target == "directml":
            assert a.placement().dispatches <= b.placement().dispatches, (opset, *names)
        x, y = a.run(feeds(), backend="cpu")["y"], b.run(feeds(), backend="cpu")["y"]
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5, err_msg=f"{target} {opset}")


@each_row("name", [*(n for n in PAIRS if "norm" in n), "relu", "gelu", "silu"])
def test_of_f16_too(name: str) -> None:
    """Parts that no operator takes are computed in f32, with casts, where by hand they would be rounded each."""
    operation, by_hand = PAIRS[name]
    for target, opset in TARGETS[list(PAIRS).index(name) % 2 :: 2]:
        a, b = (compiled(body, target, opset, "f16") for body in (operation, by_hand))
        names = [[node.op_type for node in made.to_onnx().graph.node if node.op_type != "Cast"] for made in (a, b)]
        more = name == "mean beside mean_variance_norm"  # the norm's mean in f32 is another than the f16 one beside it
        assert len(names[0]) <= len(names[1]) + more, (target, opset, *names)
        x, y = (made.run(feeds(np.float16), backend="cpu")["y"].astype(np.float64) for made in (a, b))
        np.testing.assert_allclose(x, y, rtol=1e-2, atol=1e-2, err_msg=f"{target} {opset}")


def test_the_maximum_is_found_once() -> None:
    for axes, keepdims in (("[3]", "true"), ("[3]", "false"), ("[1, 2]", "false")):
        for dtype in ("f32", "f16"):
            for target, opset in TARGETS:
                made = compiled(_beside(axes, keepdims)[0], target, opset, dtype)
                names = [node.op_type for node in made.to_onnx().graph.node]
                assert names.count("ReduceMax") == 1, (target, opset, dtype, names)


def test_infinities_beside_the_maximum() -> None:
    text = _beside("[3]", "false")[0].replace("y = ", "z = ").replace(" + a", "") + "\n    y = z"
    x = feeds()
    x["x"][0, 0, 0], x["x"][0, 0, 1, 0], x["x"][0, 1, 0, 0] = -np.inf, np.inf, -np.inf
    for target, opset in TARGETS:
        made = compiled(text, target, opset)
        np.testing.assert_allclose(made.run(x, backend="cpu")["y"], made.run(x, backend="reference")["y"], rtol=1e-5)
