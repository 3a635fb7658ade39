"""Pads of negative counts."""

from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx.parser import parse_model

from tests.rows import each_row
from tests.versions import needs_onnx_runtime

RULE = "slice-negative-pads"


def pad(
    pads: list[int], shape: list[Any], out: list[Any], *, mode: str = "constant", kind: int = r.FLOAT, **weights: Any
) -> r.onnx.ModelProto:
    names = ["x", "pads", "value" if "value" in weights else "", "axes" if "axes" in weights else ""]
    made = r.node("Pad", names[: 4 if names[3] else 3 if names[2] else 2], ["y"], mode=mode)
    return r.model(made, [("x", kind, shape)], [("y", kind, out)], pads=np.array(pads), **weights)


def grid(*shape: int) -> np.ndarray:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@each_row("mode", ["constant", "reflect", "edge", "wrap"])
@each_row("pads", [[1, -1, 0, 2], [-1, 2, 0, -1], [-1, 0, -1, -2], [2, -2, -1, 1]])
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
    assert r.refusals(r.left_alone(pad([-3, 2], [2], [1]), RULE)) == ["E0592"]


OPEN = [
    ([-1, 0, 0, 0], ["Slice"]),
    ([0, 1, -2, 0], ["Slice", "Pad"]),
    ([-1, -1, -1, -1], ["Slice"]),
    ([0, 0, 0, -2], ["Slice"]),
    ([-2, 0, 3, 1], ["Pad", "Slice"]),
    ([3, -1, -2, 2], ["Pad", "Slice"]),
    ([-1, 2, 1, -2], ["Pad", "Slice"]),
]


@needs_onnx_runtime(1, 24, "ends the process where more is cut off than there is")
@each_row(("pads", "nodes"), OPEN)
@each_row(("opset", "is_ranked"), [(9, 0), (9, 1), (10, 0), (11, 1), (13, 0), (18, 1), (21, 0), (21, 1)])
def test_open_sizes(is_ranked: int, opset: int, pads: list[int], nodes: list[str]) -> None:
    """As ONNX Runtime counts, more may be cut off than there is where the other side is padded."""
    shape = ["N", "M"] if is_ranked else None
    if opset < 11:
        made = r.node("Pad", ["x"], ["y"], pads=pads, value=-3.0)
        m = r.model(made, [("x", r.FLOAT, shape)], [("y", r.FLOAT, None)], opset=opset)
    else:
        made = r.node("Pad", ["x", "pads", "value"], ["y"])
        weights = {"pads": np.array(pads), "value": np.float32(-3)}
        m = r.model(made, [("x", r.FLOAT, shape)], [("y", r.FLOAT, None)], opset=opset, **weights)
    feeds = [{"x": grid(*sizes)} for sizes in ((4, 3), (2, 2), (1, 3), (2, 1)) if runs(m, sizes)]
    assert len(feeds) > 1
    program = r.repaired(m, "pad-negative", RULE, *feeds, exact=True)
    assert r.operators(program) == nodes
    if opset < 13:
        kept = r.repaired(m, "pad-negative", RULE, *feeds, exact=True, opset=13)
        assert r.operators(kept) == nodes


def runs(m: r.onnx.ModelProto, sizes: tuple[int, ...]) -> bool:
    try:
        r.run(m, {"x": grid(*sizes)})
    except Exception:  # less than nothing is left of an axis
        return False
    return True


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("shape", [["N", "M"], None])
def test_open_sizes_in_other_modes(mode: str, shape: list[Any] | None) -> None:
    made = r.node("Pad", ["x", "pads"], ["y"], mode=mode)
    for pads in ([-1, 1, 0, -1], [1, -1, -1, 0]):
        m = r.model(made, [("x", r.FLOAT, shape)], [("y", r.FLOAT, None)], pads=np.array(pads))
        feeds = [{"x": grid(rows, 5)} for rows in (3, 4)]
        assert r.operators(r.repaired(m, "pad-negative", RULE, *feeds, exact=True)) == ["Slice", "Pad"]


@pytest.mark.parametrize(("pads", "nodes"), [([-1, 2], ["Pad", "Slice"]), ([-1, -1], ["Slice"])])
def test_axes_of_an_unknown_rank(pads: list[int], nodes: list[str]) -> None:
    m = pad(pads, [2, 5], [2, 6], value=np.float32(-7), axes=np.array([-1]))
    m.graph.input[0].type.tensor_type.ClearField("shape")
    m.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = [{"x": grid(2, 5)}, {"x": grid(2, 2, 3)}, {"x": grid(2)}]
    assert r.operators(r.repaired(m, "pad-negative", RULE, *feeds)) == nodes


@each_row("axes", [[1, 0], [0, 1], [-2], [-1]])
@each_row("pads", [[-1, 2], [2, -1], [-1, -1]])
def test_named_axes_of_open_sizes(axes: list[int], pads: list[int]) -> None:
    counts = [pads[0], *[0] * (len(axes) - 1), pads[1], *[0] * (len(axes) - 1)]
    m = pad(counts, ["N", "M"], [None, None], axes=np.array(axes))
    r.repaired(m, "pad-negative", RULE, {"x": grid(3, 4)}, {"x": grid(5, 3)}, exact=True)


def test_pads_in_bodies() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[?, ?] x, int64[1] a) => (float[] y)
        <int64[1] a = {0}, float v = {1}, int64[4] p = {0, -1, 1, 0}, int64 n = {2}, bool t = {1}> {
        m = ReduceMax (x, a)
        y = Loop (n, t) <body: graph = b (int64 i, bool c) => (bool o, float[] r) { o = Identity (c)
            r = Pad (m, p, v) }> }"""
    m = parse_model(text)
    m.graph.output[0].type.tensor_type.ClearField("shape")
    m.graph.node[1].attribute[0].g.output[1].type.tensor_type.ClearField("shape")
    r.repaired(m, "pad-negative", RULE, {"x": grid(3, 4), "a": np.array([0])}, {"x": grid(3, 4), "a": np.array([1])})
