"""Sums of many f16 elements, and Lp poolings of f16: advised of, and computed in f32 where that is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import dmlc
from dmlc.diagnostics import Source
from tests.rows import each_row

EPS = float(np.finfo(np.float16).eps)
X = np.random.default_rng(1).uniform(0.5, 3, (4, 8192)).astype(np.float16)
WIDE = X.astype(np.float64)
#: Reductions of a row, in f64.
SUMS = {
    "reduce_sum": lambda x: x.sum(1, keepdims=True),
    "reduce_mean": lambda x: x.mean(1, keepdims=True),
    "reduce_l1": lambda x: np.abs(x).sum(1, keepdims=True),
    "reduce_l2": lambda x: np.sqrt((x * x).sum(1, keepdims=True)),
    "reduce_sum_square": lambda x: (x * x).sum(1, keepdims=True),
    "reduce_log_sum": lambda x: np.log(x.sum(1, keepdims=True)),
}


def program(call: str, columns: Any, **options: Any) -> dmlc.Program:
    text = f"model t(x: f16[4, {columns}]) -> (y) {{\n    y = {call}(x, axes=[1], keepdims=true)\n    return y\n}}\n"
    return dmlc.compile(Source("t.dml", text), **options)


def codes(found: dmlc.Program) -> list[str]:
    return [d.code.id for d in found.problems()]


def operators(found: dmlc.Program) -> list[str]:
    return [node.op_type for node in found.to_onnx().graph.node]


@each_row("call", SUMS)
def test_a_long_sum(call: str) -> None:
    plain, wide = program(call, 8192), program(call, 8192, accumulate="f32")
    assert codes(plain) == ["W0611"] and codes(wide) == []
    assert "Cast" not in operators(plain)
    assert operators(wide)[0] == operators(wide)[-1] == "Cast"
    (advice,) = plain.problems()
    assert "adds f16" in advice.message and advice.help == "--accumulate f32 computes it in f32"
    want = SUMS[call](WIDE)
    got = wide.run({"x": X}, backend="numpy")["y"].astype(np.float64)
    fits = np.abs(want) < np.finfo(np.float16).max
    np.testing.assert_allclose(got[fits], want[fits], rtol=2 * EPS)
    assert np.isinf(got[~fits]).all()


@each_row("call", SUMS)
def test_shorter_sums_and_open_ones_stay(call: str) -> None:
    for columns in (4096, "N"):
        for options in ({}, {"accumulate": "f32"}):
            found = program(call, columns, **options)
            assert "W0611" not in codes(found) and "Cast" not in operators(found)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_long_sums_of_wider_types_stay(dtype: str) -> None:
    text = f"model t(x: {dtype}[4, 8192]) -> (y) {{\n    return reduce_sum(x, axes=[1])\n}}\n"
    found = dmlc.compile(Source("t.dml", text), accumulate="f32")
    assert "W0611" not in codes(found) and "accumulate-f32" not in [e.rule for e in found.ledger]


def test_other_targets_have_no_advice() -> None:
    assert codes(program("reduce_mean", 8192, target="onnx")) == []


def test_a_global_average_pool() -> None:
    text = "(float16[1,2,100,100] x) => (float16[1,2,1,1] y) { y = GlobalAveragePool(x) }"
    m = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    assert codes(dmlc.compile(m)) == ["W0611"]
    wide = dmlc.compile(m, accumulate="f32")
    assert codes(wide) == []
    x = np.random.default_rng(2).uniform(20, 30, (1, 2, 100, 100)).astype(np.float16)
    want = x.astype(np.float64).mean((2, 3), keepdims=True)
    np.testing.assert_allclose(wide.run({"x": x}, backend="numpy")["y"].astype(np.float64), want, rtol=EPS)


# --- Lp poolings


def pooling(call: str, before: str = "", opset: int = 18) -> ModelProto:
    text = f"(float16[1,1,4,4] x) => (float16[a,b,c,d] y) {{ {before} y = {call} }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


WINDOW = "LpPool<kernel_shape = [2,2], strides = [2,2]>"


def powers(x: np.ndarray, p: int, size: int) -> np.ndarray:
    n = 4 // size
    parts = np.abs(x.reshape(1, 1, n, size, n, size)) ** p
    return parts.sum((3, 5)) ** (1 / p)


@each_row(
    ("call", "p", "size"),
    [
        (f"{WINDOW}(x)", 2, 2),
        ("LpPool<kernel_shape = [2,2], strides = [2,2], p = 3>(x)", 3, 2),
        ("GlobalLpPool(x)", 2, 4),
    ],
)
def test_a_pooling_of_powers(call: str, p: int, size: int) -> None:
    """289 was expected of DirectML, and infinity came (onnxruntime issue 26533)."""
    m = pooling(call)
    plain, wide = dmlc.compile(m), dmlc.compile(m, accumulate="f32")
    assert codes(plain) == ["W0611"] and codes(wide) == []
    assert operators(wide)[1:2] == [plain.to_onnx().graph.node[0].op_type]
    x = np.random.default_rng(3).uniform(100, 300, (1, 1, 4, 4)).astype(np.float16)
    got = wide.run({"x": x}, backend="cpu")["y"].astype(np.float64)
    np.testing.assert_allclose(got, powers(x.astype(np.float64), p, size), rtol=EPS)


@each_row(
    ("before", "is_advised"),
    [
        ("t = Tanh(x)", False),
        ("t = Clip(x, l, h)", False),
        ("t = Clip(x, l)", True),
        ("t = Clip(x, l, b)", True),
        ("s = Sigmoid(x) t = Transpose(s)", False),
        ("t = Relu(x)", True),
    ],
)
def test_bounds_silence_the_advice(before: str, is_advised: bool) -> None:
    """The sum of four squares of 100 is within f16, that of four of 200 is not."""
    m = pooling(f"{WINDOW}(t)", before)
    bounds = {"l": 0, "h": 100, "b": 200}
    m.graph.initializer.extend([numpy_helper.from_array(np.float16(n), name) for name, n in bounds.items()])
    assert ("W0611" in codes(dmlc.compile(m))) == is_advised
