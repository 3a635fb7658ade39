"""Tile of f64, which DirectML's TILE does not take."""

from __future__ import annotations

import numpy as np
import repair_helpers as r
from onnx import ModelProto

from tests.rows import each_row

RULE = "tile-by-expand"


def tile(repeats: list[int], shape: list[object], kind: int = r.DOUBLE, opset: int = 21) -> ModelProto:
    made = r.node("Tile", ["x", "repeats"], ["y"])
    return r.model(made, [("x", kind, shape)], [("y", kind, None)], opset=opset, repeats=np.array(repeats, np.int64))


@each_row("repeats", [[2, 1], [1, 3], [4, 2], [1, 1]])
@each_row("shape", [[2, 3], ["N", 3], ["N", "M"]])
@each_row("opset", [13, 21])
def test_tile_of_f64(repeats: list[int], shape: list[object], opset: int) -> None:
    x = np.arange(6, dtype=np.float64).reshape(2, 3)
    r.repaired(tile(repeats, shape, opset=opset), "rank", RULE, {"x": x}, exact=True)


def test_many_axes() -> None:
    x = np.arange(16, dtype=np.float64).reshape(1, 2, 1, 2, 1, 2, 1, 2)
    r.repaired(tile([3, 2, 1, 1, 1, 1, 5, 2], list(x.shape)), "rank", RULE, {"x": x})


def test_other_types_keep_it() -> None:
    assert r.operators(r.left_alone(tile([2, 1], [2, 3], r.FLOAT), RULE)) == ["Tile"]
    assert r.operators(r.left_alone(tile([2, 1], [2, 3]), RULE, target="cpu")) == ["Tile"]
