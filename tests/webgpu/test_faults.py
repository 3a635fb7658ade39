"""The known faults of the provider that the table of target ``webgpu`` has: each one met by the provider itself.

A row that the provider no longer meets must go. Where a repair is known, what is compiled gives the right numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from webgpu_helpers import apart, compiled_on_webgpu, on_webgpu

import dmlc
from dmlc.targets.provider import provider
from tests import kit

pytestmark = pytest.mark.webgpu


def case(text: str, **feeds: Any) -> tuple[str, dict[str, np.ndarray]]:
    return text, {name: np.asarray(value) for name, value in feeds.items()}


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


#: A model for each row, by its id: one that goes wrong or fails.
CASES = {
    "conv-channels": case(
        "g (float[1, 6, 8] x, float[4, 6, 3] w) => (float[1, 4, 6] y) { y = Conv(x, w) }",
        x=numbers(1, 6, 8), w=numbers(4, 6, 3),
    ),
    "instance-norm-epsilon": case(
        "g (float[1, 2, 9] x, float[2] s) => (float[1, 2, 9] y, float[1, 2, 9] z)"
        " { y = InstanceNormalization <epsilon = 0.1> (x, s, s) z = InstanceNormalization <epsilon = 1e-5> (x, s, s) }",
        x=numbers(1, 2, 9), s=np.ones(2, "f4"),
    ),
    "norm-far-mean": case(
        "g (float[2, 64] x, float[64] s) => (float[2, 64] y) { y = LayerNormalization (x, s, s) }",
        x=numbers(2, 64) + 1000, s=np.ones(64, "f4"),
    ),
    "log-sum-exp": case(
        "g (float[2, 3] x) => (float[2] y)"
        " { y = ReduceLogSumExp <axes = [1], keepdims = 0> (x) }",
        x=np.full((2, 3), 90, "f4"),
    ),
    "reduce-no-axes": case(
        "g (float[2, 3] x) => (float[2, 3] y) { y = ReduceSumSquare <noop_with_empty_axes = 1> (x) }", x=numbers(2, 3)
    ),
    "max-pool-indices": case(
        "g (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y, int64[1, 1, 2, 2] i)"
        " { y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }", x=numbers(1, 1, 4, 4)
    ),
    "thresholded-relu-f16": case(
        "g (float16[4] x) => (float16[4] y) { y = ThresholdedRelu (x) }", x=numbers(4, dtype="float16")
    ),
    "softmax-components": case(
        "g (float[3, 4, 5] x) => (float[3, 4, 5] y) { y = Softmax <axis = 1> (x) }", x=numbers(3, 4, 5)
    ),
    "mean-f16": case(
        "g (float16[2, 9000] x) => (float16[2] y) { y = ReduceMean <axes = [1], keepdims = 0> (x) }",
        x=np.full((2, 9000), 9, "float16"),
    ),
    "empty": case("g (float[3, 0] x, float[0, 5] w) => (float[3, 5] y) { y = MatMul (x, w) }",
                  x=numbers(3, 0), w=numbers(0, 5)),
    "batch-norm-training": case(
        "g (float[2, 3] x, float[3] s) => (float[2, 3] y, float[3] m, float[3] v)"
        " { y, m, v = BatchNormalization <training_mode = 1> (x, s, s, s, s) }", x=numbers(2, 3), s=np.ones(3, "f4"),
    ),
    "resize-antialias": case(
        "g (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y) <float[4] k = {1, 1, 0.5, 0.5}>"
        ' { y = Resize <antialias = 1, mode = "linear"> (x, , k) }', x=numbers(1, 1, 4, 4),
    ),
    "bound-of-nan": case("g (float[3] x) => (float[3] y) { r = Sqrt (x) y = Relu (r) }", x=np.array([-1, 0, 4], "f4")),
    "softmax-of-infinity": case(
        "g (float[2, 3] x, bool[2, 1] c) => (float[2, 3] y) { m = Where (c, x, low) y = Softmax (m) }",
        x=numbers(2, 3), c=np.array([[True], [False]]),
    ),
    "empty-rows": case("g (float[0, 3] x) => (float[0, 3] y) { y = Softmax (x) }", x=numbers(0, 3)),
}  # fmt: skip
#: The row without a case here: it takes minutes of shader compilation.
LEFT_OUT = {"mha-mask"}
ROWS = {row.id: row for row in provider("webgpu_ep").failures}


def test_every_row_has_a_case() -> None:
    assert set(ROWS) == set(CASES) | LEFT_OUT


@pytest.mark.parametrize("name", CASES)
def test_the_provider_has_the_fault_and_the_compiled_model_has_not(name: str) -> None:
    text, feeds = CASES[name]
    opset = 12 if name == "softmax-components" else 17 if "<axes" in text else 21
    model = kit.onnx(text, opset=opset, **({"low": np.array(-np.inf, "f4")} if "low" in text else {}))
    want = kit.run(model, feeds)
    found = dmlc.check(model, target="webgpu").placement
    assert found is not None
    assert ROWS[name].what in [finding.limit for _, finding in found.findings]
    try:
        assert apart(on_webgpu(model, feeds), want)
    except Exception as error:  # onnxruntime's exceptions have no common base class
        assert ROWS[name].effect == "fails", error
    program = dmlc.compile(model, target="webgpu")
    if not program.placement().fails and ROWS[name].effect != "advice":
        assert not apart(compiled_on_webgpu(program, feeds), want)
