"""Divisions by norms that stay since more nodes would come of it: each test fails where one count is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from tests.rows import each_row

RULES = {"divide-by-norm", "normalize-by-norm", "square-of-root"}
SUM = r.node("ReduceSumSquare", ["x"], ["s"], axes=[1])
WRITTEN: dict[str, list[r.onnx.NodeProto]] = {
    "over the norm": [r.node("ReduceL2", ["x"], ["s"], axes=[1]), r.node("Div", ["x", "s"], ["y"])],
    "by one over": [
        r.node("ReduceL1", ["x"], ["s"], axes=[1]),
        r.node("Reciprocal", ["s"], ["q"]),
        r.node("Mul", ["x", "q"], ["y"]),
    ],
    "of squares": [
        SUM,
        r.node("Sqrt", ["s"], ["z"]),
        r.node("Reciprocal", ["z"], ["q"]),
        r.node("Mul", ["x", "q"], ["y"]),
    ],
    "times its square": [
        r.node("ReduceL2", ["x"], ["s"], axes=[1]),
        r.node("Mul", ["s", "s"], ["q"]),
        r.node("Mul", ["x", "q"], ["y"]),
    ],
    "by a power": [SUM, r.node("Pow", ["s", "p"], ["q"]), r.node("Mul", ["x", "q"], ["y"])],
}


@each_row("written", WRITTEN)
@each_row(("kind", "fires"), [(r.FLOAT, True), (r.HALF, False)])
def test_half_floats_of_a_model_would_be_cast(written: str, kind: int, fires: bool) -> None:
    """The nodes of a model get no casts, those that come in their place do."""
    weights: dict[str, Any] = {}
    if written == "by a power":
        weights["p"] = np.array(-0.5, r.helper.tensor_dtype_to_np_dtype(kind))
    info = [2, 3, 4]
    m = r.model(WRITTEN[written], [("x", kind, info)], [("y", kind, info)], opset=13, **weights)
    program = dmlc.compile(m, target="cpu", allow=["range"])
    assert bool(RULES & set(dict(r.fired(program)))) == fires
    assert len(r.operators(program)) <= len(WRITTEN[written])


@pytest.mark.parametrize(("opset", "scales", "fires"), [(18, 2, False), (18, 1, False), (21, 4, True)])
def test_a_scale_for_each_group_takes_none_for_each_channel(opset: int, scales: int, fires: bool) -> None:
    """Up to opset 20 a GroupNormalization has one for each group."""
    nodes = [
        r.node("GroupNormalization", ["x", "s", "b"], ["z"], num_groups=min(scales, 2)),
        r.node("Mul", ["z", "c"], ["y"]),
    ]
    info = [2, 4, 3, 3]
    weights = {"s": np.arange(1, scales + 1, dtype=np.float32), "b": np.ones(scales, np.float32)}
    by_channel = np.arange(1, 5, dtype=np.float32).reshape(4, 1, 1)
    m = r.model(nodes, [("x", r.FLOAT, info)], [("y", r.FLOAT, info)], opset=opset, c=by_channel, **weights)
    m.graph.value_info.append(r.helper.make_tensor_value_info("z", r.FLOAT, info))
    program = dmlc.compile(m, target="onnx", opset=opset)
    assert ("absorb-channel-scale" in dict(r.fired(program))) == fires
    x = np.random.default_rng(0).standard_normal(info).astype(np.float32)
    r.same(r.run(m, {"x": x}), program.run({"x": x}, "cpu"), 1e-5)
