"""Instability of a model: how far its results move when its inputs change in their last places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.verify.comparison import DIFFERENT, Comparison, compare_values
from dmlc.verify.inputs import Feeds
from dmlc.verify.parts import as_one_array
from dmlc.verify.tolerance import REASSOCIATES
from dmlc.verify.trace import RunFailed, Side, TraceStep

#: Moves of the inputs, the most units in the last place of a move, and how many times further a rewrite may move the
#: results: its roundings are as many as the model's nodes, not one for each input.
_TIMES, UNITS, _FURTHER = 6, 2, 8


#: Functions that jump: no rounding can be promised behind them, but where their operands are not rounded.
JUMPS = frozenset(
    {
        *("argmax", "argmin", "topk", "hardmax", "round", "floor", "ceil", "sign", "cast", "mod", "fmod", "floordiv"),
        *("greater", "less", "equal", "notequal", "greaterorequal", "lessorequal", "greaterequal", "lessequal"),
        *("nonzero", "unique", "nonmaxsuppression", "quantizelinear", "isnan", "isinf", "onehot"),
    }
)
#: Functions whose results are elements of their operands, or as exact as they are.
EXACT_OPS = frozenset(
    {
        *("identity", "reshape", "transpose", "squeeze", "unsqueeze", "flatten", "expand", "tile", "slice", "split"),
        *("gather", "gatherelements", "gathernd", "scatterelements", "scatternd", "concat", "pad", "where", "compress"),
        *("neg", "abs", "relu", "max", "min", "clip", "reducemax", "reducemin", "maxpool", "globalmaxpool"),
        *("depthtospace", "spacetodepth", "reversesequence", "constant", "constantofshape", "full", "iota", "range"),
    }
)


def jumps(steps: Sequence[TraceStep]) -> bool:
    """True if a function on the way jumps."""
    return any(step.op in JUMPS or step.inner & JUMPS for step in steps)


def jumped_on(steps: Sequence[TraceStep], feeds: Feeds) -> frozenset[str]:
    """Return the inputs and weights that functions with jumps read directly: their ties do not depend on rounding."""
    written = {name for step in steps for name in step.writes}
    given = {name for step in steps for name in step.reads if name not in written}
    exact: dict[str, frozenset[str]] = {name: frozenset([name]) for name in {*feeds, *given}}
    out: frozenset[str] = frozenset()
    for step in steps:
        reads = [name for name in step.reads if name]
        if not all(name in exact for name in reads):
            continue
        sources = frozenset().union(*(exact[name] for name in reads))
        if jumps([step]):
            out |= sources
        if step.op in JUMPS or step.op in EXACT_OPS:
            exact.update(dict.fromkeys(step.writes, sources))
    return out


class Instability:
    """The original's results on inputs and weights that are a little off, but for those that are ``fixed``. 0 stays 0,
    so that ties of zeros stay ties. Weights move because results inside of the model are rounded too."""

    def __init__(self, side: Side, feeds: Feeds, seed: list[int], fixed: frozenset[str]) -> None:
        self._results: list[dict[str, Any]] = []
        rng = np.random.default_rng([*seed, 11])
        weights = side.weights()
        for turn in range(_TIMES):
            moved, moved_weights = _moved(feeds, rng, fixed), _moved(weights, rng, fixed)
            if turn and not moved and not moved_weights:
                return
            try:
                self._results.append(side.run_with({**feeds, **moved}, moved_weights))
            except RunFailed:
                continue

    def with_rounding(self, side: Side, feeds: Feeds, output: str, seed: list[int]) -> Instability:
        """The same, and the results of ``output`` where those on the way are rounded otherwise."""
        out = copy(self)
        rng = np.random.default_rng([*seed, 17])
        rounded = [side.run_rounded(feeds, output, rng) for _ in range(_TIMES)]
        out._results = self._results + [result for result in rounded if result is not None]
        return out

    def explains(self, comparison: Comparison, a: Array, b: Any, kind: str | None) -> bool:
        """Return whether the original itself varies as much as the output's difference."""
        others = [as_one_array(result[comparison.name], kind) for result in self._results]
        if any(other.shape != a.shape for other in others):
            return True  # the size itself hangs on the last places
        if not others or comparison.places is None:
            return False
        if a.dtype.kind != "f":
            unstable = np.logical_or.reduce([other != a for other in others])
            return bool(unstable[comparison.places].all())
        with np.errstate(all="ignore"):
            apart = [np.abs(other.astype(np.float64) - a.astype(np.float64)) for other in others]
            changed = np.logical_or.reduce([_sort(other) != _sort(a) for other in others])
        most = np.nan_to_num(np.fmax.reduce(apart), nan=0.0, posinf=np.inf)
        # an element may stay where it is by chance, while those beside it move
        with np.errstate(all="ignore"):
            slack = _FURTHER * np.maximum(most, np.median(most))
        found = compare_values(comparison.name, a, b, frozenset({REASSOCIATES}), kind, slack)
        # nothing is promised where the original is a number at one input and not at the next
        if found.status != DIFFERENT or found.places is None:
            return found.status != DIFFERENT
        return not (found.places & comparison.places & ~changed).any()


def _sort(x: Array) -> Array:
    """Finite, NaN, or which infinity."""
    return np.asarray(np.where(np.isfinite(x), 0, np.where(np.isnan(x), 1, np.sign(x) + 3)))


def _moved(feeds: Mapping[str, Any], rng: np.random.Generator, fixed: frozenset[str]) -> Feeds:
    """The float arrays that may move, each number times 1 plus a few units in the last place."""
    moving = {n: x for n, x in feeds.items() if n not in fixed and isinstance(x, np.ndarray)}
    floats = {n: x for n, x in moving.items() if x.dtype.kind == "f" and x.size}
    out: Feeds = {}
    for name, x in floats.items():
        limits = np.finfo(x.dtype)
        steps = rng.integers(-UNITS, UNITS + 1, x.shape)
        with np.errstate(all="ignore"):
            moved = x.astype(np.longdouble) * (1 + steps * np.longdouble(limits.eps))
            inside = np.clip(moved, np.longdouble(limits.min), np.longdouble(limits.max)).astype(x.dtype)
        out[name] = np.where(np.isfinite(x), inside, x)
    return out
