"""Operators that the WebGPU provider leaves to the CPU: the kernels of narrower types, and one cast for many views."""

from __future__ import annotations

import numpy as np
import pytest
import repair_helpers as r
from onnx import numpy_helper

from tests import kit

NARROWER, VIEWS = "integers-in-narrower", "cast-before-view"


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin", "CumSum", "ReduceMax"])
def test_counts_find_kernels_of_i32(op: str) -> None:
    """Inputs that nobody bounds keep them in i64."""
    call = {"CumSum": "CumSum (n, axis)", "ReduceMax": "ReduceMax <keepdims = 0> (n, one)"}
    text = f"""g (bool[3, 4] x, int64[3, 4] z) => (int64[a{", b" * (op != "ReduceMax")}] y)
        <int64 axis = {{1}}, int64[1] one = {{1}}> {{
        c = Cast <to = 7> (x)
        n = Add (c, c)
        y = {call.get(op, f"{op} <axis = 1> (n)")}
    }}"""
    feeds = {"x": np.arange(12).reshape(3, 4) % 5 > 2, "z": np.full((3, 4), 2**40)}
    model = kit.onnx(text, opset=18)
    program = r.dmlc.compile(model, target="webgpu")
    assert NARROWER in dict(r.fired(program))
    assert np.array_equal(program.run(feeds, "cpu")["y"], kit.run(model, feeds)["y"])
    assert program.placement().count("cpu") == 0
    shape = "bool[3, N]" if op == "ReduceMax" else "bool[3, 0]"
    for other in (text.replace("bool[3, 4]", shape), text.replace("bool[3, 4]", "bool[N, 0]")):
        assert NARROWER not in dict(r.fired(r.dmlc.compile(kit.onnx(other, opset=18), target="webgpu")))
    wide = r.dmlc.compile(kit.onnx(text.replace("Add (c, c)", "Add (c, z)"), opset=18), target="webgpu")
    assert NARROWER not in dict(r.fired(wide))


def test_casts_of_several_views_become_one() -> None:
    text = """g (int64[2, 3] x) => (float[2, 1, 3] y, float[3, 2] z) <int64[1] one = {1}> {
        v = Unsqueeze (x, one)
        y = Cast <to = 1> (v)
        w = Transpose (x)
        z = Cast <to = 1> (w)
    }"""
    model, feeds = kit.onnx(text), {"x": np.array([[1, -2, 3], [2**40, 5, 6]])}
    program = r.dmlc.compile(model, target="webgpu")
    assert VIEWS in dict(r.fired(program))
    assert [node.op for node in program.placement().nodes if node.where == "cpu"] == ["Cast"]
    want = kit.run(model, feeds)
    assert all(np.array_equal(program.run(feeds, "cpu")[name], want[name]) for name in want)
    assert VIEWS not in dict(r.fired(r.dmlc.compile(model, target="directml")))


def test_a_norm_of_numbers_far_from_zero_is_centred() -> None:
    """A variance that is a difference of squares has no digit left of these numbers in f32."""
    text = "g (float[2, 64] x, float[64] s) => (float[2, 64] y) { y = LayerNormalization (x, s) }"
    x = (1e4 + np.random.default_rng(0).random((2, 64))).astype("f4")
    feeds = {"x": x, "s": np.ones(64, "f4")}
    for low, high, wanted in ((1e4, 10001, True), (-10001, -1e4, True), (0, 10001, False), (1, 1.2, False)):
        program = r.dmlc.compile(kit.onnx(text, opset=17), target="webgpu", ranges={"x": (low, high)})
        assert ("centred-norm" in dict(r.fired(program))) is wanted
        want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True, dtype="f8") + 1e-5)
        assert np.allclose(program.run(feeds, "cpu")["y"], want, atol=0.02)
    plain = r.dmlc.compile(kit.onnx(text, opset=17), target="webgpu")
    assert "centred-norm" not in dict(r.fired(plain))
    assert any("mean is far from 0" in finding.limit for _, finding in plain.placement().findings)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(8, 3, 1), (8, 2, 1), (7, 3, 2), (6, 3, 2), (6, 1, 3)])
def test_a_convolution_pads_by_numbers(mode: str, size: int, kernel: int, stride: int) -> None:
    """Else the provider transposes the weights in each run."""
    text = f"""g (float[1, 2, {size}, 9] x) => (float[a, b, c, d] y) {{
        y = Conv <auto_pad = "{mode}", strides = [{stride}, 1]> (x, w)
    }}"""
    model = kit.onnx(text)
    weights = np.random.default_rng(0).random((3, 2, kernel, 2)).astype("f4")
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    feeds = {"x": np.random.default_rng(1).random((1, 2, size, 9)).astype("f4")}
    program = r.dmlc.compile(model, target="webgpu")
    assert "explicit-conv-pads" in dict(r.fired(program))
    np.testing.assert_allclose(program.run(feeds, "cpu")["y"], kit.run(model, feeds)["y"], rtol=1e-6)
    assert program.placement().dispatches == 1


def test_a_reduction_has_its_axes_in_order() -> None:
    """Else the provider takes the last axes for others, and transposes."""
    model = kit.onnx(
        "g (float[2, 3, 4] x) => (float[2] y) { y = ReduceMax <axes = [-1, 1], keepdims = 0> (x) }", opset=17
    )
    program = r.dmlc.compile(model, target="webgpu")
    assert "axes-in-order" in dict(r.fired(program))
    assert program.placement().dispatches == 1
    assert "axes-in-order" not in dict(r.fired(r.dmlc.compile(model, target="directml")))
