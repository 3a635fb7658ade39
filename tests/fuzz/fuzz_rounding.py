"""How far a program's own roundings move its results: what no other way of computing them can be held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlc.ir import Array, DimExpr, Graph, evaluate
from dmlc.verify.compare import DIFFERENT, compare_values
from dmlc.verify.inputs import Feeds
from dmlc.verify.tolerance import REASSOCIATES

#: Every inexact result moves by up to so many units in the last place, in so many samples; and how much further than
#: they do another way of computing may go.
_UNITS, _SAMPLES, _FURTHER = 4, 8, 8
#: Multiples of this part of 1 need no rounding, so that ties among small integers and halves stay ties.
_PARTS = 64


def explains(graph: Graph, feeds: Feeds, results: Mapping[str, Any]) -> bool:
    """Whether all that differs in ``results`` from the references moves as far when every operation rounds anew."""
    rng = np.random.default_rng(0)
    plain = _run(graph, feeds, None)
    samples = [_run(graph, feeds, rng) for _ in range(_SAMPLES)]
    return all(_within(plain[name], results[name], [s[name] for s in samples]) for name in plain)


def _run(graph: Graph, feeds: Feeds, rng: np.random.Generator | None) -> dict[str, Array]:
    values = {v: feeds[v.name or ""] for v in graph.inputs}
    binding = {
        size.name: got
        for value in graph.inputs
        for size, got in zip(value.shape, values[value].shape, strict=True)
        if isinstance(size, DimExpr) and size.name
    }
    for node in graph:
        attributes = node.attributes.substitute(binding) if node.attributes.dims() else node.attributes
        operands = [None if v is None else values[v] for v in node.operands]
        with np.errstate(all="ignore"):
            found = node.op.reference(attributes, *operands)  # type: ignore[misc]
            arrays = found if isinstance(found, tuple) else (found,)
            for value, array in zip(node.results, arrays, strict=True):
                assert array.shape == tuple(evaluate(size, binding) for size in value.shape)
                values[value] = array if rng is None else _moved(array, rng)
    return {name: values[value] for name, value in graph.outputs}


def _is_exact(x: Array) -> bool:
    """Whether no element needed rounding."""
    with np.errstate(all="ignore"):
        return x.dtype.kind != "f" or np.array_equal(x * _PARTS, np.round(x * _PARTS))


def _moved(x: Array, rng: np.random.Generator) -> Array:
    if _is_exact(x):
        return x
    steps = rng.integers(-_UNITS, _UNITS + 1, x.shape) * np.finfo(x.dtype).eps
    return np.where(np.isfinite(x), x * (1 + steps), x).astype(x.dtype)


def _within(a: Array, b: Array, samples: list[Array]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if _is_exact(a):  # a choice: where it falls otherwise in one sample, it may in another fall anywhere
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f") or any((s != a).any() for s in samples)
    with np.errstate(all="ignore"):
        apart = np.fmax.reduce([np.abs(s.astype(np.float64) - a.astype(np.float64)) for s in samples])
        most = np.nan_to_num(apart, nan=0.0, posinf=np.inf)
        changed = np.logical_or.reduce([np.isfinite(s) != np.isfinite(a) for s in samples])
    slack = _FURTHER * np.maximum(most, np.median(most) if most.size else 0.0)
    found = compare_values("", a, b, frozenset({REASSOCIATES}), None, slack)
    return found.status != DIFFERENT or (found.places is not None and not (found.places & ~changed).any())
