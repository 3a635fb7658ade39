"""Masked arrays, which no model knows: refused wherever data comes in, so that no masked element is computed with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dmlc
from tests.rows import each_row

MASKED = np.ma.masked_array(np.arange(3, dtype=np.float32), mask=[False, True, False])
SOURCE = dmlc.Source("model m(x: f32[N]) -> (y) {\n    return x * 2\n}\n")


@each_row("backend", ["cpu", "numpy", "reference"])
@each_row("data", [MASKED, np.ma.masked_array(np.arange(3), mask=True), np.ma.masked])
def test_a_masked_array_is_not_fed(backend: str, data: Any) -> None:
    with pytest.raises(dmlc.DmlcError, match="masked array") as caught:
        dmlc.compile(SOURCE).run({"x": data}, backend)
    assert caught.value.diagnostics[0].code.id == "E0424"
    assert "filled" in caught.value.diagnostics[0].help


def test_generated_code_refuses_masked_arrays() -> None:
    scope: dict[str, Any] = {}
    exec(dmlc.compile(SOURCE, target="numpy").to_numpy(), scope)
    np.testing.assert_array_equal(scope["m"](MASKED.filled(0)), [0, 0, 4])
    with pytest.raises(TypeError, match="must be a NumPy array, not MaskedArray"):
        scope["m"](MASKED)


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_a_masked_array_is_not_a_constant(dtype: Any) -> None:
    with pytest.raises(dmlc.DmlcError, match="would lose its mask") as caught:
        dmlc.constant(MASKED, dtype=dtype)
    assert caught.value.diagnostics[0].code.id == "E0335"
    g = dmlc.Graph("g")
    with pytest.raises(dmlc.DmlcError, match="would lose its mask"):
        g.input("x", dtype="float32", shape=(3,)) + MASKED
