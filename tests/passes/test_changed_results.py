"""Rewrites that other optimizers make by default and that change results: here they stay as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import model, node
from onnx import TensorProto

import dmlc

INT32, INT64 = TensorProto.INT32, TensorProto.INT64


def arg_after(op: str, **attributes: Any) -> onnx.ModelProto:
    nodes = [node(op, ["x"], ["f"], **attributes), node("ArgMax", ["f"], ["y"], axis=0, keepdims=0)]
    return model(nodes, (3,), types={"y": INT64})


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
@pytest.mark.parametrize(
    ("m", "x", "wanted"),
    [
        (
            model(
                [node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0), node("ReduceMean", ["m"], ["y"], keepdims=0)],
                (2, 2),
                dtype=INT32,
            ),
            np.array([[1, 2], [2, 3]], np.int32),
            1,  # each mean truncates; the mean of all is 2
        ),
        (arg_after("Exp"), np.array([100, 200, 20], np.float32), 0),  # both overflow to infinity: a tie
        (arg_after("Log"), np.array([-1, 2, 3], np.float32), 0),  # the logarithm of -1 is NaN, and wins
        (arg_after("Softmax", axis=0), np.array([0, 1e-9, 0], np.float32), 0),  # rounded away: a tie
    ],
)
def test_the_result_of_the_original_stays(m: onnx.ModelProto, x: Any, wanted: int, target: str) -> None:
    program = dmlc.compile(m, target=target)
    assert program.run({"x": x}, "cpu")["y"] == wanted
    assert program.run({"x": x}, "cpu")["y"] == dmlc.compile(m, only_rules=["dce"]).run({"x": x}, "cpu")["y"]


def test_sums_in_another_order_are_said_to_be() -> None:
    """Merged sums may differ in the last bits: the ledger names the class, and ``--exact`` keeps them apart."""
    nodes = [node("ReduceSum", ["x", "a"], ["s"], keepdims=1), node("ReduceSum", ["s", "b"], ["y"], keepdims=1)]
    m = model(nodes, (40, 50), a=[1], b=[0])
    program = dmlc.compile(m)
    assert [e.rewrite_class for e in program.ledger if e.rule == "merge-nested-reductions"] == ["reassociates"]
    x = (np.random.default_rng(0).standard_normal((40, 50)) * 10.0 ** np.arange(50).clip(0, 6)).astype(np.float32)
    exact = dmlc.compile(m, exact=True)
    assert not [e for e in exact.ledger if e.rewrite_class != "exact"]
    plain = dmlc.compile(m, only_rules=["dce"])
    np.testing.assert_array_equal(exact.run({"x": x}, "cpu")["y"], plain.run({"x": x}, "cpu")["y"])
    np.testing.assert_allclose(program.run({"x": x}, "cpu")["y"], plain.run({"x": x}, "cpu")["y"], rtol=1e-4)
