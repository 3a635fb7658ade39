"""``fuse-dot``: sums over products that stretch both factors, their near misses, their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fusion_helpers import check, model, node, reasons
from onnx import TensorProto

RNG = np.random.default_rng(3)


def product(shape: Any, other: Any, axis: int, **options: Any) -> Any:
    total = node("ReduceSum", ["p", "a"], ["y"], keepdims=options.pop("keepdims", 0))
    w = RNG.standard_normal(other).astype(np.float32)
    return model([node("Mul", ["x", "w"], ["p"]), total], shape, w=w, a=[axis], **options)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("shape", "other", "axis", "want"),
    [
        ((3, 4, 1), (4, 5), 1, ["Reshape", "MatMul"]),
        ((3, 1, 4), (5, 4), 2, ["Reshape", "Transpose", "MatMul"]),
        ((2, 3, 1, 4), (2, 1, 5, 4), 3, None),
        ((1, 4, 3), (5, 4, 1), 1, None),
        ((2, 3, 4, 1), (4, 5), 2, None),
        ((2, 3, 1, 4), (5, 4), 3, None),
        ((4, 2, 1, 3, 1), (4, 1, 5, 1, 6), 0, None),
    ],
)
def test_a_contraction_is_a_matmul(shape: Any, other: Any, axis: int, want: list[str] | None, keepdims: int) -> None:
    import dmlc

    m = product(shape, other, axis, keepdims=keepdims)
    found = [n.op_type for n in dmlc.compile(m).to_onnx().graph.node]
    assert "MatMul" in found and "Mul" not in found and "ReduceSum" not in found
    if want is not None and not keepdims:
        assert found == want
    check(m, found)


@pytest.mark.parametrize(
    ("shape", "other", "axis", "words"),
    [
        ((3, 4), (3, 4), 1, "no larger than its factors"),
        ((3, 4), (4,), 1, "no larger than its factors"),
        ((3, 1), (1, 4), 1, "not over one that both factors have"),
        ((2, 3, 4, 1), (4, 5), 3, "not over one that both factors have"),
    ],
)
def test_near_misses(shape: Any, other: Any, axis: int, words: str) -> None:
    program = check(product(shape, other, axis), ["Mul", "ReduceSum"])
    assert words in reasons(program, "matmul-from-sum")


def test_integers_and_products_that_are_used_stay() -> None:
    m = model([node("Mul", ["x", "w"], ["p"]), node("ReduceSum", ["p", "a"], ["y"])], (3, 4, 1),
              dtype=TensorProto.INT32, w=np.ones((4, 5), np.int32), a=[1])  # fmt: skip
    check(m, ["Mul", "ReduceSum"], target="onnx")
    used = model([node("Mul", ["x", "w"], ["p"]), node("ReduceSum", ["p", "a"], ["y"])], (3, 4, 1),
                 outputs=("y", "p"), w=np.ones((4, 5), np.float32), a=[1])  # fmt: skip
    assert "p is used 2 times" in reasons(check(used, ["Mul", "ReduceSum"]), "matmul-from-sum")
