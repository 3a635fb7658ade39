"""Floor division of f16: the quotient is rounded to f16 before its floor, as the reference does."""

from __future__ import annotations

import numpy as np

import dmlc
from tests.rows import each_row

TEXT = "model m(a: f16[N], b: f16[N]) -> (y) {\n    y = a // b\n    return y\n}\n"


@each_row("opset", [11, 13, 17, 21])
@each_row("target", ["cpu", "onnx", "directml"])
@each_row("exact", [False, True])
def test_the_quotient_is_rounded_first(target: str, opset: int, exact: bool) -> None:
    """-1 // 0.1 is -10: the quotient -10.002 rounds to -10 in f16. The floor of the quotient in f32 is -11."""
    rng = np.random.default_rng(7)
    a, b = (np.append(rng.normal(size=400) * 8, value).astype(np.float16) for value in (-1, 0.1))
    program = dmlc.compile(dmlc.Source(TEXT, name="m.dml"), target=target, opset=opset, exact=exact)
    expected = np.floor((a.astype(np.float32) / b.astype(np.float32)).astype(np.float16))
    assert expected[-1] == -10
    np.testing.assert_array_equal(program.run({"a": a, "b": b}, "cpu")["y"], expected)
    np.testing.assert_array_equal(program.run({"a": a, "b": b}, "reference")["y"], expected)
