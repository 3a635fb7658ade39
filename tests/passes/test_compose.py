"""``compose``: what the target has no operator for is written in others, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model
from pass_helpers import Building, assert_equal, context, evaluate, ledger, names, random_feeds, run

import dmlc
from dmlc.ir import DType, Graph, Value, symbol
from dmlc.ir.dtype import f16, f32, f64, i32
from dmlc.ops import OPERATIONS
from dmlc.ops.index import GATHER
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX, ReduceAttributes
from dmlc.passes.compose import Compose
from dmlc.passes.manager import PassContext
from dmlc.targets import load_target
from tests.rows import each_row

N = symbol("N")


def composed(graph: Graph, target: str = "onnx", opset: int = 21) -> list[str]:
    """The operations after the pass; a second run finds nothing."""
    ctx = PassContext(load_target(target), opset, verify=True)
    run(Compose(), graph, ctx)
    assert not Compose().run(graph, PassContext(load_target(target), opset))
    return names(graph)


def one(name: str, dtype: DType = f32, **attributes: object) -> Graph:
    b = Building()
    return b.done(b(OPERATIONS[name], b.input("x", (3, 4), dtype), **attributes))


@each_row(
    ("name", "dtype", "opset", "expected"),
    [
        ("silu", f32, 21, ["sigmoid", "mul"]),
        ("gelu", f32, 20, ["gelu"]),
        ("gelu", f32, 19, ["mul", "mul", "erf", "add", "mul"]),
        ("softplus", f32, 11, ["softplus"]),
        ("softplus", f64, 21, ["relu", "abs", "neg", "exp", "add", "log", "sub", "sub", "div", "add", "add"]),
        ("elu", f64, 21, ["relu", "min", "mul", "tanh", "exp", "add", "mul", "mul", "add"]),
        ("leaky_relu", f64, 21, ["max", "min", "mul", "add"]),
        ("sigmoid", f64, 21, ["sigmoid"]),
    ],
)
def test_functions_without_an_operator(name: str, dtype: DType, opset: int, expected: list[str]) -> None:
    graph = one(name, dtype)
    feeds = random_feeds(graph)
    before = evaluate(graph, feeds)
    assert sorted(composed(graph, opset=opset)) == sorted(expected)
    for a, b in zip(before, evaluate(graph, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["softplus", "elu"])
def test_small_results_are_as_exact_as_large_ones(name: str) -> None:
    """Written out, they add 1 to what may be far smaller: its last places must survive."""
    x = np.concatenate([sign * np.logspace(-18, 2.5, 83) for sign in (1, -1)])
    b = Building()
    graph = b.done(b(OPERATIONS[name], b.input("x", x.shape, f64)))
    (before,) = evaluate(graph, {"x": x})
    composed(graph)
    assert len(names(graph)) > 1
    (after,) = evaluate(graph, {"x": x})
    np.testing.assert_allclose(after, before, rtol=4 * np.finfo(np.float64).eps, atol=0)


@pytest.mark.parametrize(("target", "is_widened"), [("onnx", True), ("cpu", True), ("directml", False)])
def test_f16_is_rounded_once_where_its_kernels_are_those_of_f32(target: str, is_widened: bool) -> None:
    assert ("cast" in composed(one("silu", f16), target)) is is_widened


def test_nodes_of_a_model_stay_at_its_own_opset() -> None:
    text = '<ir_version: 8, opset_import: ["": 13]> m (double[N] x) => (double[N] y) { y = Softplus(x) }'
    made = dmlc.compile(parse_model(text), target="onnx", opset=13)
    assert [node.op_type for node in made.to_onnx().graph.node] == ["Softplus"]


# --- gather


def gathered(axis: int, batch: int) -> Graph:
    b = Building(N=(1, 8))
    x, i = b.input("x", (N, 3, 4, 5)), b.input("i", (N, 3), i32)
    return b.done(b(GATHER, x, i, axis=axis, batch_axes=batch))


@pytest.mark.parametrize(
    ("axis", "batch", "opset", "is_kept"),
    [(1, 1, 12, True), (2, 2, 12, True), (1, 1, 11, False), (2, 1, 21, False), (2, 0, 11, True), (0, 0, 21, True)],
)
def test_gather_with_batch_axes(axis: int, batch: int, opset: int, is_kept: bool) -> None:
    graph = gathered(axis, batch)
    feeds = random_feeds(graph, {"N": 3})
    feeds["i"] = np.abs(feeds["i"]) % 3
    before = evaluate(graph, feeds)
    found = composed(graph, opset=opset)
    assert ("gather" in found, "gather_elements" in found) == (is_kept, not is_kept)
    assert_equal(before, evaluate(graph, feeds))


# --- log-sum-exp beside the maximum


def beside(max_axes: list[int], keepdims: bool = True, dtype: DType = f32, axes: tuple[int, ...] = (1,)) -> Graph:
    b = Building()
    x = b.input("x", (3, 4, 2), dtype)
    peak: Value = b(REDUCE_MAX, x, axes=max_axes, keepdims=keepdims)
    return b.done(peak, b(REDUCE_LOG_SUM_EXP, x, axes=list(axes), keepdims=keepdims))


@each_row("keepdims", [True, False])
@each_row("dtype", [f16, f32, f64])
@each_row("target", ["onnx", "cpu", "directml"])
def test_log_sum_exp_takes_the_maximum_beside_it(target: str, dtype: DType, keepdims: bool) -> None:
    graph = beside([1], keepdims, dtype)
    feeds = {"x": np.linspace(-9, 9, 24).reshape(3, 4, 2).astype(dtype.numpy)}
    feeds["x"][0, :, 0], feeds["x"][1, 0, 0] = -np.inf, np.inf
    before = evaluate(graph, feeds)
    found = composed(graph, target)
    assert "reduce_log_sum_exp" not in found
    assert ("reduce_log_sum" in found) is (target != "cpu")
    for a, b in zip(before, evaluate(graph, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3 if dtype is f16 else 1e-6)


@each_row("target", ["onnx", "cpu", "directml"])
def test_log_sum_exp_over_no_axis_is_its_operand(target: str) -> None:
    x = np.array([[np.inf, -np.inf, 1e30, 2]], np.float32)
    b = Building()
    value, record = b.input("x", x.shape), ReduceAttributes(axes=(), keepdims=True)
    graph = b.done(*[b.graph.add(op, [value], record).result for op in (REDUCE_MAX, REDUCE_LOG_SUM_EXP)])
    assert "reduce_log_sum_exp" not in composed(graph, target)
    assert_equal([x, x], evaluate(graph, {"x": x}))
    b = Building()
    alone = b.done(b.graph.add(REDUCE_LOG_SUM_EXP, [b.input("x", x.shape)], record).result)
    assert composed(alone, target) == ["reduce_log_sum_exp"]


def test_log_sum_exp_beside_another_maximum_takes_its_own_out() -> None:
    assert composed(beside([0])).count("reduce_max") == 2
    assert composed(beside([0, 1])).count("reduce_max") == 2
    b = Building()
    x = b.input("x", (3, 4, 1))
    graph = b.done(b(REDUCE_LOG_SUM_EXP, x, axes=[1, 2], keepdims=False))
    assert composed(graph) == ["reduce_max", "clip", "sub", "exp", "reduce_log_sum", "add", "squeeze"]
    (peak,) = [node for node in graph if node.op is REDUCE_MAX]
    assert peak.attributes == ReduceAttributes(axes=(1,), keepdims=True)


def test_log_sum_exp_of_a_model_stays_one_node_where_it_may_run_anywhere() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[N, 4] x) => (float[N, 1] y, float[N, 1] z)
    { y = ReduceMax<axes=[1]>(x) z = ReduceLogSumExp<axes=[1]>(x) }"""
    made = dmlc.compile(parse_model(text), target="onnx")
    assert [node.op_type for node in made.to_onnx().graph.node] == ["ReduceMax", "ReduceLogSumExp"]


def test_log_sum_exp_that_a_model_spells_out_is_one_node_where_it_may_run_anywhere() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[N, 4] x) => (float[N, 1] y, float[N, 1] z)
    <int64[1] one = {1}> { y = ReduceMax<axes=[1]>(x) e = Exp(x) s = ReduceSum(e, one) z = Log(s) }"""
    for target, is_one in (("onnx", True), ("cpu", False)):
        made = dmlc.compile(parse_model(text), target=target)
        assert ("ReduceLogSumExp" in [node.op_type for node in made.to_onnx().graph.node]) is is_one


def test_the_ledger_names_the_rules() -> None:
    rules = (
        (one("silu"), "compose-unary"),
        (beside([1]), "log-sum-exp-beside-max"),
        (beside([0]), "lower-log-sum-exp"),
    )
    for graph, rule in rules:
        assert ledger(run(Compose(), graph, context("onnx"))) == [(rule, "exact")]
