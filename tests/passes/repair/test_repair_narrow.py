"""Extremes of 8 and 16 bits at opsets where the provider takes wider integers only."""

import numpy as np
import pytest
import repair_helpers as r

import dmlc
from dmlc.diagnostics import Source

RULE = "narrow-extreme"


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_models_at_18(op: str, dtype: str) -> None:
    array = np.int8 if dtype == "i8" else np.uint8
    info = np.iinfo(array)
    x = np.array([[info.min, 0, 3], [info.max, 5, 5]], array)
    program = r.repaired(r.reduction(op, r.KINDS[dtype], 18), "reduce-bytes-18", RULE, {"x": x}, opset=18, exact=True)
    assert r.operators(program) == ["Cast", op, "Cast"]
    assert program.placement().count("cpu") == 0


@pytest.mark.parametrize("dtype", ["i16", "u16"])
def test_types_that_the_operator_does_not_take(dtype: str) -> None:
    r.faulty(r.reduction("ReduceMax", r.KINDS[dtype], 18))


def test_where_the_provider_takes_them() -> None:
    for opset in (17, 20, 21):
        program = r.left_alone(r.reduction("ReduceMax", r.KINDS["i8"], 18), RULE, opset=opset)
        assert r.operators(program) == ["ReduceMax"] and program.placement().count("cpu") == 0
    assert r.operators(r.left_alone(r.reduction("ReduceMax", r.KINDS["i32"], 18), RULE, opset=18)) == ["ReduceMax"]


def test_a_program_whose_axis_may_be_empty() -> None:
    text = "dim N in 0..4\nmodel t(x: i8[2, N]) -> (y) {\n    y = reduce_max(x, axes=1)\n    return y\n}\n"
    program = dmlc.compile(Source("t.dml", text), opset=18)
    assert RULE not in dict(r.fired(program))
    np.testing.assert_array_equal(program.run({"x": np.zeros((2, 0), np.int8)}, "cpu")["y"], [[-128], [-128]])
