"""Plans for softmax, log-sum-exp and norms on the cpu target: the kernel or its parts, with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from lowering_helpers import PART_RULES, chosen, compiled, operators, result
from onnx import TensorProto, helper

import dmlc
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("by_one_calibration")

RNG = np.random.default_rng(0)
SOFTMAX = {"softmax": dmlc.softmax, "log_softmax": dmlc.log_softmax}
NORMS = {
    "l1": dmlc.reduce_l1,
    "l2": dmlc.reduce_l2,
    "sum_square": dmlc.reduce_sum_square,
    "log_sum": dmlc.reduce_log_sum,
}


def call(function: Any, axes: Sequence[int], **more: Any) -> Any:
    return lambda x: function(x, axes=axes, **more)


def model(op_type: str, shape: Sequence[Any], opset: int = 13, of: int = TensorProto.FLOAT, **attributes: Any) -> Any:
    x, y = (helper.make_tensor_value_info(n, of, s) for n, s in (("x", shape), ("y", None)))
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"], **attributes)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def soft(x: np.ndarray, axes: tuple[int, ...], log: bool) -> np.ndarray:
    wide = x.astype(np.float64)
    shifted = wide - wide.max(axes, keepdims=True)
    total = np.exp(shifted).sum(axes, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


@pytest.mark.parametrize("name", SOFTMAX)
def test_the_last_axis_keeps_the_kernel(name: str) -> None:
    for shape in ((4096, 1024), (1, 1000), (16, 12, 197, 197)):
        program = compiled(call(SOFTMAX[name], [-1]), shape)
        assert operators(program) == ["Softmax" if name == "softmax" else "LogSoftmax"]
    assert operators(compiled(call(SOFTMAX[name], [1]), (256, 16, 16)))[0] != "ReduceMax"  # short runs


@pytest.mark.parametrize("name", SOFTMAX)
def test_axes_of_one_element_keep_the_kernel(name: str) -> None:
    """The cost model counts reductions of one element as nothing, but each is a node."""
    for shape, axes in (((2, 256, 1), [-1]), ((4, 1, 64), [1]), ((8, 1, 1, 16), [1, 2])):
        program = compiled(call(SOFTMAX[name], axes), shape)
        assert chosen(program) == []
        assert "ReduceMax" not in operators(program)
        x = RNG.normal(size=shape).astype(np.float32)
        assert np.array_equal(result(program, x), soft(x, tuple(axes), name == "log_softmax"))


@pytest.mark.parametrize("name", SOFTMAX)
def test_other_axes_are_parts(name: str) -> None:
    for shape in ((8, 64, 128, 128), (1, 21, 512, 512)):
        program = compiled(call(SOFTMAX[name], [1]), shape)
        assert chosen(program)[0] == "softmax-in-parts"
        assert "Transpose" not in operators(program) and not any("oftmax" in op for op in operators(program))
        assert chosen(compiled(call(SOFTMAX[name], [1]), shape, exact=True)) == []
        for target in ("directml", "onnx"):
            assert len(operators(compiled(call(SOFTMAX[name], [1]), shape, target=target))) == 1


def test_the_reason_names_both_costs() -> None:
    program = compiled(call(dmlc.softmax, [1]), (8, 64, 128, 128))
    first = next(r.reason() for r in program.remarks if r.rule == "choose-lowering")
    assert first.startswith("softmax-in-parts ") and "rather than unchanged " in first


@each_row("name", SOFTMAX)
@each_row(
    ("shape", "axes"), [((3, 5), [1]), ((3, 5, 7), [1]), ((2, 3, 4, 5), [1, 3]), ((1, 4, 1, 6), [1, 2]), ((5, 1), [0])]
)
@each_row("dtype", ["float16", "float32", "float64"])
def test_parts_give_the_same_numbers(name: str, shape: tuple[int, ...], axes: list[int], dtype: str) -> None:
    x = (RNG.standard_normal(shape) * 5).astype(dtype)
    program = compiled(call(SOFTMAX[name], axes), shape, dtype, only_rules=["softmax-in-parts"])
    assert chosen(program) == ["softmax-in-parts"]
    assert operators(program).count("Cast") == (2 if dtype == "float16" else 0)  # f16 is rounded once
    got, want = result(program, x), soft(x, tuple(axes), name == "log_softmax")
    assert got.dtype == x.dtype
    tolerance = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_large_numbers_and_infinities_of_softmax() -> None:
    x = np.array([[1e4, 1e4 - 1, -np.inf], [-1e30, 1e30, 0], [3, -np.inf, 3]], np.float32).T.copy()
    got = result(compiled(call(dmlc.softmax, [0]), x.shape, only_rules=PART_RULES), x)
    np.testing.assert_allclose(got, soft(x, (0,), False), rtol=1e-6, atol=1e-30)


# --- log-sum-exp


@pytest.mark.parametrize("axes", [[1], [2, 3], [0, 2]])
def test_a_kernel_of_a_model_becomes_parts(axes: list[int]) -> None:
    shape = [64, 128, 16, 16]
    program = dmlc.compile(model("ReduceLogSumExp", shape, axes=axes, keepdims=0), target="cpu")
    assert chosen(program)[0] == "log-sum-exp-in-parts"
    assert "ReduceLogSumExp" not in operators(program)
    x = RNG.standard_normal(shape).astype(np.float32)
    want = np.log(np.exp(x.astype(np.float64)).sum(tuple(axes)))
    np.testing.assert_allclose(result(program, x), want, rtol=1e-6, atol=1e-6)
    small = dmlc.compile(model("ReduceLogSumExp", [2, 2], 18), target="cpu")
    assert operators(small) == ["ReduceLogSumExp"]
    other = dmlc.compile(model("ReduceLogSumExp", shape, axes=axes), target="onnx")
    assert operators(other) == ["ReduceLogSumExp"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("keepdims", [True, False])
def test_infinities_are_right(dtype: str, keepdims: bool) -> None:
    inf = np.inf
    x = np.array([[-inf, -inf], [inf, 1], [-inf, 2], [1e4, 1e4], [inf, -inf], [-6e4, -6e4], [0, 0]], dtype)
    source = model("ReduceLogSumExp", x.shape, of=helper.np_dtype_to_tensor_dtype(x.dtype), axes=[1], keepdims=keepdims)
    program = dmlc.compile(source, target="cpu", only_rules=["log-sum-exp-in-parts"])
    assert chosen(program) == ["log-sum-exp-in-parts"]
    want = np.array([-inf, inf, 2, 1e4 + np.log(2), inf, -6e4 + np.log(2), np.log(2)])
    want = want[:, None] if keepdims else want
    tolerance = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
    got = result(program, x)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got, want.astype(dtype), rtol=tolerance)


def test_nan_propagates() -> None:
    x = np.array([[np.nan, 1], [1, np.nan], [1, 2]], np.float32)
    got = result(compiled(call(dmlc.reduce_log_sum_exp, [1]), x.shape, only_rules=PART_RULES), x)
    assert np.isnan(got[:2]).all() and not np.isnan(got[2]).any()


# --- norms


@pytest.mark.parametrize("name", NORMS)
def test_norms_off_the_last_axis_are_parts(name: str) -> None:
    for shape, axes in (((8192, 1024), [0]), ((8, 64, 128, 128), [1])):
        assert chosen(compiled(call(NORMS[name], axes), shape))[0] == "norm-in-parts"
        assert len(operators(compiled(call(NORMS[name], axes), shape, target="directml"))) == 1
    assert len(operators(compiled(call(NORMS[name], [1]), (4, 8)))) == 1


@each_row("name", NORMS)
@each_row(("shape", "axes"), [((40, 6), [0]), ((3, 5, 7), [0, 2]), ((1, 5, 7), [1])])
@each_row("dtype", ["float16", "float32"])
def test_norms_in_parts_give_the_same_numbers(name: str, shape: tuple[int, ...], axes: list[int], dtype: str) -> None:
    x = (np.abs(RNG.standard_normal(shape)) * (300 if dtype == "float16" and name == "l2" else 1)).astype(dtype)
    wide = x.astype(np.float64)
    want = {
        "l1": np.abs(wide).sum(tuple(axes)),
        "l2": np.sqrt((wide * wide).sum(tuple(axes))),
        "sum_square": (wide * wide).sum(tuple(axes)),
        "log_sum": np.log(wide.sum(tuple(axes))),
    }[name]
    program = compiled(call(NORMS[name], axes, keepdims=False), shape, dtype, only_rules=["norm-in-parts"])
    assert chosen(program) == ["norm-in-parts"]
    got = result(program, x)
    assert got.dtype == x.dtype and np.isfinite(got).all()
    np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == "float16" else 1e-5)


def test_norms_of_integers_stay() -> None:
    program = compiled(call(dmlc.reduce_l1, [0]), (4096, 256), "int32", only_rules=["norm-in-parts"])
    assert chosen(program) == []
