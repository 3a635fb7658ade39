"""matmul against sums of products, with NumPy's rules for vectors and leading axes."""

from __future__ import annotations

import numpy as np
from ops_calls import code_of, run, types_of

from dmlc.ops import OPERATIONS
from tests.rows import each_row
from tools.oracles import core
from tools.oracles import groups as oracle

MATMUL = OPERATIONS["matmul"]
SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 2)),
    ((2, 2, 3), (3, 2)),
    ((2, 1, 2, 3), (2, 3, 1)),
    ((2, 3), (2, 3, 2)),
    ((3,), (2, 3, 2)),
    ((2, 0), (0, 3)),
    ((0, 2, 3), (3, 1)),
]


@each_row("dtype", core.NUMERIC)
def test_reference(dtype: str) -> None:
    for seed, (left, right) in enumerate(SHAPES):
        a, b = core.sample(dtype, left, seed, full=True), core.sample(dtype, right, seed + 9, full=True)
        expected = oracle.matmul(a, b, dtype)
        core.same(run(MATMUL, a, b), expected, times=8)
        assert expected.shape == np.matmul(a, b).shape


def test_f16_accumulates_in_f32() -> None:
    ones = np.ones(4096, np.float16)
    assert run(MATMUL, ones, ones).item() == 4096


def test_types() -> None:
    assert types_of(MATMUL, "f32[B, N, K]", "f32[K, M]") == ["f32[B, N, M]"]
    assert types_of(MATMUL, "f32[B, 1, N, K]", "f32[C, K, M]") == ["f32[B, C, N, M]"]
    assert types_of(MATMUL, "f32[K]", "f32[K]") == ["f32[]"]
    assert types_of(MATMUL, "f32[K]", "f32[B, K, M]") == ["f32[B, M]"]
    assert types_of(MATMUL, "f32[N]", "f32[3]", dims={"N": (3, 3)}) == ["f32[]"]


def test_errors() -> None:
    assert code_of(MATMUL, "f32[2, 3]", "f32[3, 2]") == ""
    assert code_of(MATMUL, "f32[2, 3]", "f32[2, 3]") == "E0317"
    assert code_of(MATMUL, "f32[2, 3]", "f32[2]") == "E0317"
    assert code_of(MATMUL, "f32[2, N]", "f32[M, 2]") == "E0317"
    assert code_of(MATMUL, "f32[2, N]", "f32[3, 2]") == "E0317"
    assert code_of(MATMUL, "f32[]", "f32[3]") == "E0317"
    assert code_of(MATMUL, "f32[3]", 2.0) == "E0317"
    assert code_of(MATMUL, "f32[2, 2, 3]", "f32[4, 3, 2]") == "E0313"
    assert code_of(MATMUL, "f32[3]", "f16[3]") == "E0310"
    assert code_of(MATMUL, "bool[3]", "bool[3]") == "E0309"
