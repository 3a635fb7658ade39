"""Nodes that are neither shared nor folded: each test fails where one guard of those passes is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_helpers import ALL, Building, check_numbers, context, ledger, names, remarks

from dmlc.diagnostics.limits import Limits
from dmlc.ir import DType
from dmlc.ir.dtype import f16, f32, i32
from dmlc.ops.elementwise import ABS, EXP
from dmlc.ops.index import FULL
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MEAN, REDUCE_SUM
from dmlc.passes.fold_constants import FoldConstants
from dmlc.passes.share_prefixes import SharePrefixes
from dmlc.passes.share_reductions import ShareReductions


def prefixes(shape: Any = (3, 4, 5), dtype: DType = f32, op: Any = REDUCE_SUM, **options: Any) -> bool:
    """True if the reduction over two axes goes on from that over the last one."""
    b = Building(n=(0, 9))
    x = b.input("x", shape, dtype)
    graph = b.done(b(op, x, axes=[2]), b(op, x, axes=[1, 2]))
    ctx = context(target="numpy", allowed=ALL, **options)
    with np.errstate(all="ignore"):
        check_numbers(SharePrefixes(), graph, ctx, exact=dtype is not f32, binding={"n": 2})
    return bool(ledger(ctx))


def test_prefixes_that_are_and_are_not_shared() -> None:
    assert prefixes()
    assert prefixes(dtype=f16, op=REDUCE_MAX)
    assert prefixes(dtype=i32)
    assert not prefixes(dtype=f16)
    assert not prefixes(dtype=i32, op=REDUCE_MEAN)
    assert not prefixes((3, 4, 1))  # it would read as much again
    assert not prefixes(skip_rules=frozenset(("share-prefixes",)))


def shared(shape: Any = (3, 4), **options: Any) -> bool:
    b = Building(n=(0, 9))
    x = b.input("x", shape)
    graph = b.done(b(REDUCE_SUM, x, axes=[1]), b(REDUCE_MEAN, x, axes=[1]))
    ctx = context(allowed=ALL, **options)
    with np.errstate(all="ignore"):
        check_numbers(ShareReductions(), graph, ctx, exact=False)
    return bool(ledger(ctx))


def test_means_that_are_and_are_not_taken_from_the_sum() -> None:
    assert shared()
    assert not shared((3, 0))
    assert not shared(skip_rules=frozenset(("share-reductions",)))


def test_more_elements_than_f32_counts() -> None:
    b = Building()
    x = b(FULL, shape=[1, (1 << 24) + 1], value=1, dtype=f32)
    graph = b.done(b(REDUCE_SUM, x, axes=[1]), b(REDUCE_MEAN, x, axes=[1]))
    ctx = context(allowed=ALL)
    ShareReductions().run(graph, ctx)
    assert names(graph) == ["full", "reduce_sum", "reduce_mean"]


@pytest.mark.parametrize(
    ("limits", "folds"), [({}, True), ({"folded_elements": 63}, False), ({"folded_bytes": 255}, False)]
)
def test_constants_that_would_be_too_large(limits: Any, folds: bool) -> None:
    b = Building()
    graph = b.done(b(EXP, b.constant(np.ones(64))), b(ABS, b.input("x", (2,))))
    ctx = check_numbers(FoldConstants(), graph, context(allowed=ALL, limits=Limits(**limits)))
    assert (names(graph) == ["abs"]) is folds
    assert folds or remarks(ctx)
