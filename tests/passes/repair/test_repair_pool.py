"""Poolings over the whole map, of more axes than DirectML's poolings take."""

import numpy as np
import pytest
import repair_helpers as r
from onnx import parser

import dmlc

RULE = "reduce-many-axes"
POOLS = {"GlobalMaxPool": "ReduceMax", "GlobalAveragePool": "ReduceMean"}
#: A shape and one with open sizes, the last of which may be 0.
SHAPES = ([2, 3, 4, 2, 3, 2], ["N", 3, "K", 2, "M", "K"])


def pool(op: str, shape: list[object], kind: str = "float") -> r.onnx.ModelProto:
    sizes = ", ".join(map(str, shape))
    out = ", ".join(f"o{axis}" for axis in range(len(shape)))
    text = f'<ir_version: 8, opset_import: ["": 20]> g ({kind}[{sizes}] x) => ({kind}[{out}] y) {{ y = {op}(x) }}'
    return parser.parse_model(text)


@pytest.mark.parametrize("op", POOLS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pooling_of_six_axes_is_a_reduction(op: str, shape: list[object]) -> None:
    """ONNX Runtime's CPU provider pools over three axes at most: NumPy is the measure."""
    m = pool(op, shape)
    program = dmlc.compile(m, target="directml")
    program.require_sound()
    assert r.operators(program) == [POOLS[op]]
    assert dict(r.fired(program))[RULE] == ("exact" if op == "GlobalMaxPool" else "reassociates")
    x = np.random.default_rng(3).normal(size=(2, 3, 4, 2, 3, 2 if shape is SHAPES[0] else 4)).astype(np.float32)
    want = (np.max if op == "GlobalMaxPool" else np.mean)(x, (2, 3, 4, 5), keepdims=True)
    np.testing.assert_allclose(program.run({"x": x}, backend="cpu")["y"], want, rtol=1e-5, atol=1e-6)
    again = dmlc.compile(program.to_onnx(), target="directml")
    assert r.operators(again) == r.operators(program)


def test_pooling_in_a_program_is_a_reduction() -> None:
    source = "model g(x: f32[2, 3, 4, 2, 3, 2]) -> (y) {\n    y = onnx.GlobalMaxPool(x)\n    return y\n}\n"
    program = dmlc.compile(dmlc.Source(source, name="m.dml"), target="directml")
    program.require_sound()
    assert r.operators(program) == ["ReduceMax"]
    x = np.random.default_rng(4).normal(size=(2, 3, 4, 2, 3, 2)).astype(np.float32)
    np.testing.assert_array_equal(program.run({"x": x}, backend="cpu")["y"], x.max((2, 3, 4, 5), keepdims=True))


@pytest.mark.parametrize("op", POOLS)
def test_pooling_that_the_target_takes_stays(op: str) -> None:
    assert r.operators(r.left_alone(pool(op, [2, 3, 4, 2, 3]), RULE, target="directml")) == [op]
    r.left_alone(pool(op, [2, 3, 4, 2, 3, 2]), RULE, target="cpu")
    assert r.operators(r.left_alone(pool(op, [2, 3, 4, 2, 3, 2]), RULE, target="onnx")) == [op]


def test_reductions_and_other_poolings_of_many_axes_stay() -> None:
    for op in ("ReduceMax", "ReduceMean", "GlobalLpPool"):
        assert r.operators(r.left_alone(pool(op, [2, 3, 4, 2, 3, 2]), RULE, target="directml")) == [op]


def test_a_mean_is_not_summed_in_another_order_where_that_is_forbidden() -> None:
    assert r.refusals(r.left_alone(pool("GlobalAveragePool", [2, 3, 4, 2, 3, 2]), RULE, exact=True)) == ["E0591"]
    program = dmlc.compile(pool("GlobalMaxPool", [2, 3, 4, 2, 3, 2]), exact=True)
    assert r.operators(program) == ["ReduceMax"] and not r.refusals(program)
