"""Values beside tensors of no element are computed: each test fails where one guard of those repairs is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import Source

#: The statement that makes the repairs look: a result of no element.
EMPTY = "e: f32[0, 3]"


def compiled(body: str, inputs: str, outputs: str = "y", dims: str = "") -> dmlc.Program:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    text = f"{dims}model t({inputs}) -> ({outputs}) {{\n{lines}    return {outputs}\n}}\n"
    return dmlc.compile(Source("t.dml", text))


def rules(program: dmlc.Program) -> set[str]:
    return {entry.rule for entry in program.ledger}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("y = matmul(x, transpose(x, perm=[1, 0]))", lambda x: x @ x.T),
        ("y = reduce_sum(x, axes=[1])", lambda x: x.sum(1, keepdims=True)),
        ("y = pad(x, pads=[0, 1, 0, 0], value=7)", lambda x: np.pad(x, [(0, 0), (1, 0)], constant_values=7)),
        ("y = concat(x, x, axis=0)", lambda x: np.concatenate([x, x])),
        ("y = scatter_elements(x, argmax(x, axes=[1]), reduce_max(x, axes=[1]) + 1.0, axis=1)", None),
    ],
)
def test_what_is_not_empty_is_computed(body: str, want: Any) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::-1].copy()
    program = compiled(f"{body}; o = exp(e)", f"x: f32[2, 3], {EMPTY}", "y, o")
    assert "nothing-to-compute" in rules(program)
    found = program.run({"x": x, "e": np.zeros((0, 3), np.float32)}, "cpu")
    expected = x.copy() if want is None else want(x)
    if want is None:
        expected[np.arange(2), x.argmax(1)] = x.max(1) + 1
    np.testing.assert_allclose(found["y"], expected)
    assert found["o"].shape == (0, 3)


def test_flags_of_nothing() -> None:
    program = compiled("y = e > 1.0", EMPTY)
    found = program.run({"e": np.zeros((0, 3), np.float32)}, "cpu")["y"]
    assert (found.dtype, found.shape) == (np.bool_, (0, 3))


def test_of_open_sizes_nothing_is_made() -> None:
    program = compiled("y = exp(e); z = concat(e, e, axis=0)", "e: f32[0, n]", "y, z", "dim n in 1..9\n")
    assert not {"nothing-to-compute", "concat-of-some"} & rules(program)
