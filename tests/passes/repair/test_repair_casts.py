"""Casts to bool on DirectML, which rounds toward zero first."""

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from dmlc.diagnostics import Source

RULE = "truth-by-comparison"
NUMBERS = [0.25, -3, 0, -0.0, np.nan, np.inf, 1e-7, 2]


def cast(dtype: str, opset: int = 21) -> r.onnx.ModelProto:
    shape = [len(NUMBERS)]
    made = r.node("Cast", ["x"], ["y"], to=r.BOOL)
    return r.model(made, [("x", r.KINDS[dtype], shape)], [("y", r.BOOL, shape)], opset=opset)


@pytest.mark.parametrize(("dtype", "opset"), [("f16", 21), ("f32", 21), ("f64", 21), ("f32", 13)])
def test_casts_of_floats(dtype: str, opset: int) -> None:
    x = np.array(NUMBERS, {"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])
    program = r.repaired(cast(dtype, opset), "cast-bool", RULE, {"x": x}, exact=True)
    assert r.operators(program) == ["Equal", "Not"]
    assert dict(r.fired(program))[RULE] == "exact"
    np.testing.assert_array_equal(program.run({"x": x}, "cpu")["y"], x.astype(bool))


def test_cast_like() -> None:
    shape = [len(NUMBERS)]
    made = r.node("CastLike", ["x", "like"], ["y"])
    m = r.model(made, [("x", r.FLOAT, shape), ("like", r.BOOL, [1])], [("y", r.BOOL, shape)])
    feeds = {"x": np.array(NUMBERS, np.float32), "like": np.array([True])}
    assert r.operators(r.repaired(m, "cast-bool", RULE, feeds)) == ["Equal", "Not"]


def test_a_program_of_the_language() -> None:
    text = Source("t.dml", "model t(x: f32[4]) -> (y) {\n    y = cast(x, to=bool)\n    return y\n}\n")
    for target in ("directml", "directml:ort-1.17"):
        program = dmlc.compile(text, target=target)
        assert (RULE, "exact") in r.fired(program) and not r.troubles(program)
    assert RULE not in dict(r.fired(dmlc.compile(text, target="cpu")))


def test_other_casts_are_left() -> None:
    assert r.operators(r.left_alone(cast("u8"), RULE)) == ["Cast"]
    made = r.node("Cast", ["x"], ["y"], to=r.KINDS["u8"])
    m = r.model(made, [("x", r.FLOAT, [2])], [("y", r.KINDS["u8"], [2])])
    assert r.operators(r.left_alone(m, RULE)) == ["Cast"]
    assert r.operators(r.left_alone(cast("f32"), RULE, target="cpu")) == ["Cast"]
