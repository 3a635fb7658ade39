"""Pads of negative counts."""

from typing import Any

import numpy as np
import pytest
import repair_helpers as r

RULE = "slice-negative-pads"


def pad(
    pads: list[int], shape: list[Any], out: list[Any], *, mode: str = "constant", kind: int = r.FLOAT, **weights: Any
) -> r.onnx.ModelProto:
    names = ["x", "pads", "value" if "value" in weights else "", "axes" if "axes" in weights else ""]
    made = r.node("Pad", names[: 4 if names[3] else 3 if names[2] else 2], ["y"], mode=mode)
    return r.model(made, [("x", kind, shape)], [("y", kind, out)], pads=np.array(pads), **weights)


def grid(*shape: int) -> np.ndarray:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [[1, -1, 0, 2], [-1, 2, 0, -1], [-1, 0, -1, -2], [2, -2, -1, 1]])
def test_modes(mode: str, pads: list[int]) -> None:
    out = [4 + pads[0] + pads[2], 5 + pads[1] + pads[3]]
    m = pad(pads, [4, 5], out, mode=mode)
    program = r.repaired(m, "pad-negative", RULE, {"x": grid(4, 5)}, exact=True)
    assert r.operators(program) == (["Slice", "Pad"] if max(pads) > 0 else ["Slice"])


def test_a_value_and_axes() -> None:
    m = pad([-1, 2], [2, 5], [2, 6], value=np.float32(-7), axes=np.array([-1]))
    assert r.operators(r.repaired(m, "pad-negative", RULE, {"x": grid(2, 5)})) == ["Slice", "Pad"]


def test_a_value_that_is_fed() -> None:
    made = r.node("Pad", ["x", "pads", "value"], ["y"])
    inputs = [("x", r.FLOAT, [3]), ("value", r.FLOAT, [])]
    m = r.model(made, inputs, [("y", r.FLOAT, [3])], pads=np.array([-1, 1]))
    r.repaired(m, "pad-negative", RULE, {"x": grid(3), "value": np.array(9, np.float32)})


@pytest.mark.parametrize("dtype", ["f16", "f64", "i64", "i32", "u8", "bool"])
def test_dtypes(dtype: str) -> None:
    m = pad([-1, 1], [4], [4], kind=r.KINDS[dtype])
    array = r.helper.tensor_dtype_to_np_dtype(r.KINDS[dtype])
    r.repaired(m, "pad-negative", RULE, {"x": np.array([1, 0, 1, 1], array)})


def test_counts_that_were_an_attribute() -> None:
    made = r.node("Pad", ["x"], ["y"], pads=[1, -1, 0, 0], value=3.0)
    m = r.model(made, [("x", r.FLOAT, [2, 3])], [("y", r.FLOAT, [3, 2])], opset=10)
    r.repaired(m, "pad-negative", RULE, {"x": grid(2, 3)})


def test_an_open_axis_that_is_not_cut() -> None:
    m = pad([1, -1, 0, 0], ["N", 3], ["M", 2])
    for rows in (1, 4):
        r.repaired(m, "pad-negative", RULE, {"x": grid(rows, 3)})


def test_near_misses() -> None:
    assert r.operators(r.left_alone(pad([1, 0, 0, 0], [2, 3], [3, 3]), RULE)) == ["Pad"]
    assert r.operators(r.left_alone(pad([1, -1, 0, 0], [2, 3], [3, 2]), RULE, target="cpu")) == ["Pad"]
    program = r.left_alone(pad([-1, 0, 0, 0], ["N", 3], ["M", 3]), RULE)
    assert r.refusals(program) == ["E0592"]
    assert any("open size" in remark.reason() for remark in program.remarks if remark.rule == RULE)
    assert r.refusals(r.left_alone(pad([-3, 2], [2], [1]), RULE)) == ["E0592"]
