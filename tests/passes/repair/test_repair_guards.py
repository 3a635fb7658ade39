"""Near misses of the repairs for DirectML: each test fails where one guard of theirs is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r

import dmlc


def fired(m: r.onnx.ModelProto, **options: Any) -> set[str]:
    return {entry.rule for entry in dmlc.compile(m, **options).ledger}


@pytest.mark.parametrize(
    ("equation", "shapes", "out"),
    [
        ("ij,jk->ik", [[2, 3], [3, 4]], [2, 4]),  # no ellipsis
        ("...i->i", [[2, 3]], [3]),  # none in the result
    ],
)
def test_equations_that_stay(equation: str, shapes: list[list[int]], out: list[int]) -> None:
    inputs = [(f"x{i}", r.FLOAT, shape) for i, shape in enumerate(shapes)]
    made = r.node("Einsum", [name for name, *_ in inputs], ["y"], equation=equation)
    assert "spell-ellipsis" not in fired(r.model(made, inputs, [("y", r.FLOAT, out)], opset=13))


def test_more_is_cut_off_than_there_is() -> None:
    made = r.node("Pad", ["x", "pads"], ["y"])
    m = r.model(made, [("x", r.FLOAT, [2, 3])], [("y", r.FLOAT, None)], pads=np.array([-2, 0, -1, 2]))
    assert "slice-negative-pads" not in fired(m)


def test_results_of_other_operators_stay() -> None:
    made = r.node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], strides=[2, 2])
    outs = [("y", r.FLOAT, [1, 2, 2, 2]), ("i", r.KINDS["i64"], [1, 2, 2, 2])]
    assert "one-layer-norm-result" not in fired(r.model(made, [("x", r.FLOAT, [1, 2, 4, 4])], outs))
